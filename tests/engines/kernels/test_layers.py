"""Passes through a layer against the formula; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.network import ACTIVATIONS
from coevo.engines.kernels.activations import ACTIVATION_CODES, TANH
from coevo.engines.kernels.layers import multiply_in_order, run_shifted_layer

pytestmark = pytest.mark.without_jit


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@given(data=st.data())
def test_a_shifted_layer_is_run_as_the_formula_says(activation, dtype, data):
    """Any number of instances, neurons and neurons above; blocks of every size."""
    sizes = [data.draw(st.integers(1, largest)) for largest in (9, 7, 5, 3)]
    n_instances, n_neurons, n_above, n_candidates = sizes
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shapes = ((n_neurons, n_instances), n_neurons, (n_candidates, n_instances))
    values, slopes, shifts, matrix = (
        (rng.normal(size=shape) * data.draw(st.sampled_from([0, 1e-3, 1, 50]))).astype(dtype)
        for shape in (*shapes, (n_above, n_neurons + 1))
    )
    moved = values + slopes[:, np.newaxis] * shifts[:, np.newaxis]
    expected = matrix[:, :-1] @ ACTIVATIONS[activation](moved) + matrix[:, -1:]
    above = np.empty((n_candidates, n_above, n_instances), dtype=dtype)
    code = ACTIVATION_CODES[activation]
    run_shifted_layer(values, slopes, shifts, code, matrix, above)
    scale = np.abs(matrix).sum() * (1 + np.abs(moved).max())
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(above, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("n_instances", [511, 512, 513, 1025])
def test_a_shifted_layer_is_run_on_blocks_of_instances(n_instances, no_jit):
    if no_jit:
        pytest.skip("more instances than plain Python is quick with")
    rng = np.random.default_rng(n_instances)
    values, shifts, matrix = (
        rng.normal(size=shape) for shape in ((5, n_instances), (2, n_instances), (3, 6))
    )
    slopes = rng.normal(size=5)
    above = np.empty((2, 3, n_instances))
    run_shifted_layer(values, slopes, shifts, TANH, matrix, above)
    moved = values + slopes[:, np.newaxis] * shifts[:, np.newaxis]
    np.testing.assert_allclose(above, matrix[:, :-1] @ np.tanh(moved) + matrix[:, -1:], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
def test_instances_with_equal_activations_get_equal_pre_activations(dtype, data):
    sizes = [data.draw(st.integers(1, largest)) for largest in (40, 30, 5, 3)]
    n_instances, n_neurons, n_above, n_networks = sizes
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    matrix = rng.normal(size=(n_above, n_neurons + 1)).astype(dtype)
    distinct = rng.normal(size=(n_networks, n_neurons, 3)).astype(dtype)
    kinds = rng.integers(0, 3, n_instances)
    above = np.empty((n_networks, n_above, n_instances), dtype=dtype)
    multiply_in_order(matrix, np.ascontiguousarray(distinct[..., kinds]), above)
    expected = matrix[:, :-1] @ distinct + matrix[:, -1:]
    np.testing.assert_allclose(above, expected[..., kinds], rtol=1e-4, atol=1e-5)
    for kind in range(3):
        same = above[..., kinds == kind]
        assert (same == same[..., :1]).all()
