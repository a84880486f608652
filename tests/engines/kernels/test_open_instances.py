"""Products with open instances only; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.engines.kernels.open_instances import count_inside

pytestmark = pytest.mark.without_jit


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
def test_open_instances_are_counted_with_each_candidates_own_pre_activations(dtype, data):
    """On small whole numbers, where products are exact; in blocks of every size."""
    n_instances, n_inputs = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    n_candidates = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    inputs = rng.integers(-3, 4, (n_instances, n_inputs)).astype(dtype)
    vectors = rng.integers(-3, 4, (n_candidates, n_inputs + 1)).astype(dtype)
    instances = rng.permutation(n_instances)[: data.draw(st.integers(0, n_instances))]
    low, high = np.sort(rng.integers(-20, 21, (2, len(instances))).astype(dtype), axis=0)
    counts = np.zeros(n_candidates, dtype=np.int64)
    count_inside(inputs, instances, low, high, vectors, counts)
    values = vectors[:, :-1] @ inputs[instances].T + vectors[:, -1:]
    assert counts.tolist() == ((values >= low) & (values <= high)).sum(axis=1).tolist()
