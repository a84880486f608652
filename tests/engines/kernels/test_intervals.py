"""Intervals of pre-activations against argmax; also run with the JIT switched off."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.network import ACTIVATIONS
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.engines.kernels.intervals import (
    find_greatest,
    find_hidden_intervals,
    find_least,
    find_output_intervals,
    measure_inside,
)
from coevo.engines.kernels.open_instances import OpenLayer, count_right_with
from coevo.engines.kernels.sweeps import LastHidden

pytestmark = pytest.mark.without_jit

STEPS = ("relu", "sign", "identity")  # exact on the grid


def plain_accuracy(logits, targets):
    return np.mean(logits.argmax(axis=0) == targets)


@pytest.fixture(scope="session", params=["all instances", "open instances"])
def measure(request, make_contest):
    """Accuracy with each candidate for a hidden neuron, by intervals or on open instances only."""

    def measure_all(rest, weights, now, candidates, targets, activation):
        activations = ACTIVATIONS[activation](now)
        logits = rest + np.multiply.outer(weights, activations)
        low, high = np.empty((2, len(targets)), dtype=rest.dtype)
        code = ACTIVATION_CODES[activation]
        find_hidden_intervals(logits, targets, weights, activations, code, low, high)
        measured = np.empty(len(candidates))
        measure_inside(candidates, np.zeros(len(candidates), rest.dtype), low, high, measured)
        return measured

    def measure_open(rest, weights, now, candidates, targets, activation):
        """Each instance has one input, which is 1, and is alone: the weight is what it sees."""
        activations = ACTIVATIONS[activation](now)
        hidden = LastHidden(
            activations[np.newaxis], weights[np.newaxis],
            rest + np.multiply.outer(weights, activations), ACTIVATION_CODES[activation],
        )  # fmt: skip
        layer = OpenLayer(hidden, np.ones((len(targets), 1)), targets)
        counts = np.zeros(len(candidates), dtype=np.int64)
        for k in range(len(targets)):
            trials = np.zeros((1, len(candidates), 2))
            trials[0, :, 0] = candidates[:, k]
            contest = make_contest(np.zeros_like(trials), trials, measures_targets=False)
            here = np.empty_like(counts)
            count_right_with(layer, 0, *contest, 0, k, k + 1, here)
            counts += here
        return counts / len(targets)

    return measure_all if request.param == "all instances" else measure_open


def assert_exact(measure, case, activation):
    rest, weights, _, candidates, targets = case
    measured = measure(*case, activation)
    for row, accuracy in zip(candidates, measured, strict=True):
        logits = rest + np.multiply.outer(weights, ACTIVATIONS[activation](row))
        assert accuracy == plain_accuracy(logits, targets)


@pytest.mark.parametrize("activation", STEPS)
@given(data=st.data())
def test_hidden_intervals_are_exact_on_ties_zeros_and_equal_weights(
    measure, hidden_cases, activation, data
):
    assert_exact(measure, data.draw(hidden_cases()), activation)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@given(data=st.data())
def test_hidden_intervals_are_exact_where_activations_saturate(
    measure, hidden_cases, activation, data
):
    saturated = st.sampled_from([-50.0, 0.0, 50.0])
    assert_exact(measure, data.draw(hidden_cases(pre_activations=saturated)), activation)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@given(data=st.data())
def test_hidden_intervals_hold_for_huge_and_tiny_values(
    measure, hidden_cases, magnitudes, activation, data
):
    case = data.draw(hidden_cases(elements=magnitudes, pre_activations=magnitudes))
    rest, weights, now, candidates, targets = case
    function = ACTIVATIONS[activation]
    measured = measure(*case, activation)
    for row, accuracy in zip(candidates, measured, strict=True):
        logits = rest + np.multiply.outer(weights, function(row))
        # Rounding may decide instances whose two best logits are closer than it is fine.
        present = rest + np.multiply.outer(weights, function(now))
        scale = np.abs(logits).max(axis=0) + np.abs(present).max(axis=0) + np.abs(rest).max(axis=0)
        top_two = np.sort(logits, axis=0)[-2:]
        is_clear = top_two[1] - top_two[0] > 1e-12 * scale
        right = logits.argmax(axis=0) == targets
        count = round(accuracy * len(targets))
        assert (right & is_clear).sum() <= count <= (right | ~is_clear).sum()


@given(n_classes=st.integers(2, 40))
def test_one_instance_and_any_number_of_classes(measure, n_classes):
    rng = np.random.default_rng(n_classes)
    case = (rng.normal(size=(n_classes, 1)), rng.normal(size=n_classes), rng.normal(size=1),
            rng.normal(size=(6, 1)), np.array([n_classes - 1], dtype=np.int32))  # fmt: skip
    assert_exact(measure, case, "tanh")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
def test_output_intervals_are_exact(output_cases, dtype, data):
    logits, c, candidates, targets = data.draw(output_cases())
    logits, candidates = logits.astype(dtype), candidates.astype(dtype)
    low, high = np.empty((2, len(targets)), dtype=dtype)
    find_output_intervals(logits, targets, c, low, high)
    measured = np.empty(len(candidates))
    biases = np.zeros(len(candidates), dtype=dtype)
    measure_inside(candidates, biases, low, high, measured)
    for row, accuracy in zip(candidates, measured, strict=True):
        changed = logits.copy()
        changed[c] = row
        assert accuracy == plain_accuracy(changed, targets)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_interval_ends_are_the_outermost_pre_activations(activation, dtype):
    """ψ(s) ≥ bound holds from the least pre-activation on, and ψ(s) ≤ bound up to the greatest."""
    real, code = np.dtype(dtype).type, ACTIVATION_CODES[activation]
    function = ACTIVATIONS[activation]
    tolerance = 64 * np.finfo(dtype).eps
    for bound in map(real, (-3, -1, -0.999, -0.5, 0, 1e-3, 0.25, 0.5, 0.75, 0.999, 1, 3)):
        for end, outward, holds in (
            (find_least(bound, code), -1, lambda s, b: function(s) >= b),
            (find_greatest(bound, code), 1, lambda s, b: function(s) <= b),
        ):
            if not math.isfinite(end):
                continue
            inside = np.array([end - outward * (tolerance * (1 + abs(end)))], dtype=dtype)
            assert holds(inside, bound) or np.isclose(function(inside), bound, atol=tolerance)
            outside = np.array([end + outward * (0.01 * (1 + abs(end)))], dtype=dtype)
            is_saturated = activation in ("tanh", "sigmoid") and bound in (-1, 0, 1)
            assert (
                is_saturated
                or not holds(outside, bound)
                or np.isclose(function(outside), bound, atol=tolerance)
            )
