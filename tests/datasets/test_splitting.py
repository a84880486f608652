"""Splits share no row, follow their seed, and are scaled by the training part."""

import os
from pathlib import Path

import numpy as np
import pytest

from coevo import datasets
from coevo.datasets.loading import Dataset

DATA_HOME = os.environ.get("COEVO_DATA_HOME")


def made_up(n=100, groups=None, is_official_test=None):
    inputs = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
    inputs[:, 1] = 7
    return Dataset("made up", inputs, np.arange(n) % 2, ("a", "b"), None, groups, is_official_test)


def parts_of(split):
    return split.train, split.validation, split.test


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (569, (399, 85, 85)),
        (4600, (3220, 690, 690)),
        (7144, (5000, 1072, 1072)),
        (60_000, (42_000, 9_000, 9_000)),
    ],
)
def test_sizes_are_the_papers(n, sizes):
    # Its accuracies are fractions of these: 83/85 = 97.65 %, 733/1072 = 68.38 %.
    assert tuple(map(len, parts_of(datasets.split(made_up(n), 0)))) == sizes


def test_split_partitions_the_rows_and_keeps_labels():
    dataset = made_up()
    split = datasets.split(dataset, 3)
    rows = np.concatenate([part.rows for part in parts_of(split)])
    assert sorted(rows) == list(range(100))
    for part in parts_of(split):
        assert np.array_equal(part.labels, dataset.labels[part.rows])
        assert part.inputs.dtype == np.float32


def test_split_follows_the_seed():
    dataset = made_up()
    same, again, other = (datasets.split(dataset, seed).test.rows for seed in (1, 1, 2))
    assert np.array_equal(same, again)
    assert not np.array_equal(same, other)
    # Pinned: a study must find the same split in every version of everything.
    assert same.tolist() == [4, 9, 14, 28, 29, 44, 50, 51, 54, 64, 82, 84, 87, 92, 96]


def test_scaling_is_fitted_on_the_training_part_only():
    dataset = made_up()
    split = datasets.split(dataset, 0)
    raw = dataset.inputs[split.train.rows]
    varying = [0, 2]
    assert np.allclose(split.train.inputs[:, varying].min(axis=0), -1)
    assert np.allclose(split.train.inputs[:, varying].max(axis=0), 1)
    low, high = raw.min(axis=0)[varying], raw.max(axis=0)[varying]
    expected = 2 * (dataset.inputs[split.test.rows][:, varying] - low) / (high - low) - 1
    assert np.allclose(split.test.inputs[:, varying], expected, atol=1e-6)
    assert np.allclose(split.scaler.transform(raw), split.train.inputs)


def test_feature_constant_in_training_is_minus_one_everywhere():
    dataset = made_up()
    test_row = datasets.split(dataset, 0).test.rows[0]
    dataset.inputs[test_row, 1] = 255
    split = datasets.split(dataset, 0)
    assert test_row in split.test.rows
    for part in parts_of(split):
        assert np.isfinite(part.inputs).all()
        assert (part.inputs[:, 1] == -1).all()


def test_split_leaves_the_data_set_alone():
    dataset = made_up()
    before = dataset.inputs.copy()
    datasets.split(dataset, 0)
    assert np.array_equal(dataset.inputs, before)


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_in_two_parts(seed):
    dataset = made_up(groups=np.arange(100) // 5 * 10)
    split = datasets.split(dataset, seed, by_group=True)
    groups = [set(dataset.groups[part.rows]) for part in parts_of(split)]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 20
    assert [len(group) for group in groups] == [14, 3, 3]
    assert sum(map(len, parts_of(split))) == 100


def test_official_test_part():
    is_test = np.arange(100) % 7 == 0
    split = datasets.split(made_up(is_official_test=is_test), 0, official_test=True)
    assert np.array_equal(split.test.rows, np.flatnonzero(is_test))
    assert len(split.validation) == 15
    assert len(split.train) == 70
    assert not is_test[split.train.rows].any()


def test_official_test_part_by_group():
    groups = np.arange(100) // 5
    dataset = made_up(groups=groups, is_official_test=groups >= 15)
    split = datasets.split(dataset, 0, by_group=True, official_test=True)
    assert set(groups[split.test.rows]) == set(range(15, 20))
    assert not set(groups[split.train.rows]) & set(groups[split.validation.rows])
    dataset = made_up(groups=groups, is_official_test=np.arange(100) > 72)
    with pytest.raises(ValueError, match="also elsewhere"):
        datasets.split(dataset, 0, by_group=True, official_test=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by_group": True}, "made up has no groups"),
        ({"official_test": True}, "no official test part"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_split_says_what_it_cannot_do(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.split(made_up(), **({"seed": 0} | arguments))


def test_too_few_to_split():
    with pytest.raises(ValueError, match="3 rows or groups are too few"):
        datasets.split(made_up(3), 0)
    with pytest.raises(ValueError, match="2 rows or groups are too few"):
        datasets.split(made_up(groups=np.arange(100) % 2), 0, by_group=True)


@pytest.mark.skipif(
    not (DATA_HOME and Path(DATA_HOME, "mnist").is_dir()), reason="needs the real MNIST"
)
def test_real_mnist_official_split():
    split = datasets.split(
        datasets.load("MNIST", "all", DATA_HOME, download=False), 0, official_test=True
    )
    assert list(map(len, parts_of(split))) == [49_412, 10_588, 10_000]
    assert split.test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert split.train.inputs.min() == 0
    assert split.train.inputs.max() == 1
    assert np.isfinite(split.test.inputs).all()
