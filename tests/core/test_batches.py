"""Batches: a partition of the instances, visited in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.batches import Batches


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_batches_partition_the_instances(n_instances, batch_size, seed):
    batch_size = min(batch_size, n_instances)
    batches = Batches.partition(np.random.default_rng(seed), n_instances, batch_size)
    assert len(batches) == max(1, round(n_instances / batch_size))
    parts = [np.arange(n_instances)[batches[k]] for k in range(len(batches))]
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(np.concatenate(parts)) == list(range(n_instances))


def test_har_is_partitioned_into_ten_batches_of_500(rng):
    # 70 % of 7144 rows are 5000 instances.
    batches = Batches.partition(rng, 5000, 500)
    assert [len(batches[k]) for k in range(len(batches))] == [500] * 10


def test_batches_are_visited_in_order_over_and_over(rng):
    batches = Batches.partition(rng, 10, 3)
    visits = [batches.take(rng).tolist() for _ in range(7)]
    assert visits == [batches[k % 3].tolist() for k in range(7)]


def test_reshuffling_draws_new_batches_every_epoch(rng):
    batches = Batches.partition(rng, 100, 25, reshuffles=True)
    epochs = [np.concatenate([batches.take(rng) for _ in range(4)]) for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(100))
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[1], epochs[2])


def test_too_large_a_batch_warns_and_holds_everything(rng):
    with pytest.warns(UserWarning, match="batch_size=50 is larger than the 20 training instances"):
        batches = Batches.partition(rng, 20, 50)
    assert len(batches) == 1
    assert np.arange(20)[batches[0]].tolist() == list(range(20))
