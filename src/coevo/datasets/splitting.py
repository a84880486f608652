"""Splits a data set into training, validation and test parts, scaled by the training part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo._validation import check_flag, check_integer
from coevo.datasets.loading import Dataset

HELD_OUT = 0.15
"""The fraction of the validation part, and of the test part."""

INPUT_RANGES = {"MNIST": (0.0, 1.0)}
"""Data sets whose inputs are not scaled to [−1, 1]; docs/fidelity.md says why."""


def input_range(name: str) -> tuple[float, float]:
    """Return what the inputs of a data set are scaled to."""
    return INPUT_RANGES.get(name, (-1.0, 1.0))


@dataclass(frozen=True)
class Part:
    """Some instances of a data set, scaled.

    Parameters
    ----------
    inputs : float32 array of shape (n_instances, n_inputs)
        Scaled inputs.
    labels : integer array of shape (n_instances,)
    rows : integer array of shape (n_instances,)
        Which rows of the data set these are.
    """

    inputs: Array
    labels: Array
    rows: Array

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Split:
    """A data set in three parts that share no row.

    Parameters
    ----------
    train, validation, test
        The parts. Each feature of the training part spans the range; the others may go beyond.
    scaler
        The MinMaxScaler that scaled them, for new instances.
    """

    train: Part
    validation: Part
    test: Part
    scaler: Any


def split(
    dataset: Dataset, seed: int, by_group: bool = False, *, official_test: bool = False
) -> Split:
    """Split a data set at random, 70 % to train, 15 % to validate, 15 % to test.

    The held-out parts have round(0.15 n) rows each and the training part has the rest, which is
    what the accuracies in the paper imply: 399, 85 and 85 rows of WBC, 5000, 1072 and 1072 of HAR.
    Inputs are scaled feature by feature to [−1, 1], or to what `INPUT_RANGES` says; only the
    training part decides how. A feature that is constant there is at the range's lower end.

    Parameters
    ----------
    dataset
        What to split.
    seed
        Each seed gives another split, the same one on every machine.
    by_group
        Whether whole groups are drawn, so that no person (HAR) and no recording (ESR) is in two
        parts. A split by rows, as in the paper, has the same persons in training and test, which
        overestimates the accuracy. The fractions are then of the groups.
    official_test
        Whether the test part is the publisher's (MNIST, HAR; load these with "all"). The rest is
        then divided 70 to 15.

    Examples
    --------
    >>> from coevo.datasets import load, split
    >>> parts = split(load("WBC"), seed=1)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (399, 85, 85)
    """
    check_integer("seed", seed, 0)
    check_flag("by_group", by_group)
    check_flag("official_test", official_test)
    units = _groups(dataset) if by_group else np.arange(len(dataset))
    if official_test:
        is_test = _official_test(dataset)
        rest, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
        if np.isin(units[test], units[rest]).any():
            raise ValueError(f"{dataset.name}: groups of the official test part are also elsewhere")
        train, validation = _draw(units, rest, [HELD_OUT / (1 - HELD_OUT)], seed)
    else:
        rows = np.arange(len(dataset))
        train, validation, test = _draw(units, rows, [HELD_OUT, HELD_OUT], seed)
    return _scaled(dataset, train, validation, test)


def _groups(dataset: Dataset) -> Array:
    if dataset.groups is None:
        raise ValueError(
            f"by_group=True: {dataset.name} has no groups, nothing is known that its rows have in "
            "common; HAR (persons) and ESR (recordings) do"
        )
    return dataset.groups


def _official_test(dataset: Dataset) -> Array:
    if dataset.is_official_test is None:
        raise ValueError(
            f"official_test=True: this selection of {dataset.name} has no official test part; "
            'load("MNIST", "all") and load("HAR", "all") do'
        )
    return dataset.is_official_test


def _draw(units: Array, rows: Array, shares: list[float], seed: int) -> list[Array]:
    """Divide rows at random without dividing units.

    Parameters
    ----------
    units : integer array of shape (n_instances,)
        What must stay together; the row numbers themselves if nothing must.
    shares
        The share of the units in each held-out part.

    Returns
    -------
    rows that are left, and those of each held-out part
    """
    names, unit_of_row = np.unique(units[rows], return_inverse=True)
    sizes = [round(share * len(names)) for share in shares]
    if 0 in sizes or sum(sizes) >= len(names):
        raise ValueError(f"{len(names)} rows or groups are too few to split into parts")
    # The legacy generator: NumPy guarantees that its stream never changes.
    order = np.random.RandomState(np.random.MT19937(seed)).permutation(len(names))
    bounds = np.cumsum([len(names) - sum(sizes), *sizes[:-1]])
    part_of_unit = np.empty(len(names), dtype=np.int64)
    for part, members in enumerate(np.split(order, bounds)):
        part_of_unit[members] = part
    part_of_row = part_of_unit[unit_of_row]
    return [rows[part_of_row == part] for part in range(len(sizes) + 1)]


def _scaled(dataset: Dataset, train: Array, validation: Array, test: Array) -> Split:
    from sklearn.preprocessing import MinMaxScaler  # noqa: PLC0415 - keeps the import light

    train_inputs = dataset.inputs[train]
    low, high = input_range(dataset.name)
    scaler = MinMaxScaler((low, high)).fit(train_inputs)
    # A feature that is constant in training has no scale; scikit-learn would pass values of other
    # parts on unscaled, such as 255 for a pixel at MNIST's border.
    is_constant = scaler.data_range_ == 0
    scaler.scale_[is_constant], scaler.min_[is_constant] = 0, low

    def part(rows: Array, inputs: Array) -> Part:
        scaled = np.asarray(scaler.transform(inputs), dtype=np.float32)
        return Part(scaled, dataset.labels[rows], rows)

    return Split(
        part(train, train_inputs),
        part(validation, dataset.inputs[validation]),
        part(test, dataset.inputs[test]),
        scaler,
    )
