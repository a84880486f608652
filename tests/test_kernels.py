"""The delta engine's compiled loops against the plain formula; also run with the JIT switched off.

Numbers come from a grid of small dyadic fractions, where all arithmetic is exact, so that ties and
zero differences are really ties and zero differences, and from a wide range of magnitudes.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_operators import make_contest

from coevo.evaluation import _functions as functions
from coevo.evaluation import _kernels as kernels
from coevo.evaluation import _measures as measures
from coevo.evaluation import _reach as reach
from coevo.fitness import ClippedMargin, CrossEntropy
from coevo.network import ACTIVATIONS

pytestmark = pytest.mark.without_jit

GRID = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
SUMS = st.sampled_from([-50.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 50.0])  # ±50 saturate tanh
STEPS = ("relu", "sign", "identity")  # exact on the grid


def matrices(elements, n_rows, n_columns):
    row = st.lists(elements, min_size=n_columns, max_size=n_columns)
    return st.lists(row, min_size=n_rows, max_size=n_rows).map(np.array)


@st.composite
def hidden_cases(draw, elements=GRID, sums=SUMS):
    """Outputs without one hidden neuron, its weights, its sums now and as candidates."""
    n_outputs, n_instances = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    rest = draw(matrices(elements, n_outputs, n_instances))
    weights = draw(matrices(elements, 1, n_outputs))[0]
    now, candidates = draw(matrices(sums, 1, n_instances)), draw(matrices(sums, 3, n_instances))
    # Classes may be missing from the batch.
    y = draw(st.lists(st.integers(0, n_outputs - 1), min_size=n_instances, max_size=n_instances))
    return rest, weights, now[0], candidates, np.array(y, dtype=np.int32)


def plain_accuracy(outputs, targets):
    return np.mean(outputs.argmax(axis=0) == targets)


def hidden_by_intervals(rest, weights, now, candidates, targets, activation):
    dtype = rest.dtype
    function = ACTIVATIONS[activation]
    activations = function(now)
    outputs = rest + np.multiply.outer(weights, activations)
    low, high = np.empty((2, len(targets)), dtype=dtype)
    code = kernels.ACTIVATION_CODES[activation]
    kernels.hidden_intervals(outputs, targets, weights, activations, code, low, high)
    measured = np.empty(len(candidates))
    kernels.measure_inside(candidates, np.zeros(len(candidates), dtype), low, high, measured)
    return measured


def hidden_by_reach(rest, weights, now, candidates, targets, activation):
    """Each instance has one input, which is 1, and is alone: its sum is the candidate's weight."""
    activations = ACTIVATIONS[activation](now)
    outputs = rest + np.multiply.outer(weights, activations)
    counts = np.zeros(len(candidates), dtype=np.int64)
    for k in range(len(targets)):
        layer = reach.LastHidden(
            inputs=np.ones((len(targets), 1)), activations=activations[np.newaxis],
            outgoing=weights[np.newaxis], outputs=outputs, targets=targets,
            activation=kernels.ACTIVATION_CODES[activation],
        )  # fmt: skip
        trials = np.zeros((1, len(candidates), 2))
        trials[0, :, 0] = candidates[:, k]
        contest = make_contest(np.zeros_like(trials), trials, measures_targets=False)
        here = np.empty_like(counts)
        reach.count_right(layer, 0, contest, 0, k, k + 1, here)
        counts += here
    return counts / len(targets)


HIDDEN_WAYS = (hidden_by_intervals, hidden_by_reach)


@pytest.mark.parametrize("measure", HIDDEN_WAYS)
@pytest.mark.parametrize("activation", STEPS)
@given(case=hidden_cases())
def test_hidden_intervals_are_exact_on_ties_zeros_and_equal_weights(measure, activation, case):
    rest, weights, _, candidates, targets = case
    measured = measure(*case, activation)
    for row, accuracy in zip(candidates, measured, strict=True):
        outputs = rest + np.multiply.outer(weights, ACTIVATIONS[activation](row))
        assert accuracy == plain_accuracy(outputs, targets)


@pytest.mark.parametrize("measure", HIDDEN_WAYS)
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@given(case=hidden_cases(sums=st.sampled_from([-50.0, 0.0, 50.0])))
def test_hidden_intervals_are_exact_where_activations_saturate(measure, activation, case):
    rest, weights, _, candidates, targets = case
    measured = measure(*case, activation)
    for row, accuracy in zip(candidates, measured, strict=True):
        outputs = rest + np.multiply.outer(weights, ACTIVATIONS[activation](row))
        assert accuracy == plain_accuracy(outputs, targets)


magnitudes = st.builds(
    lambda sign, exponent, mantissa: sign * mantissa * 10.0**exponent,
    st.sampled_from([-1, 1]),
    st.integers(-12, 12),
    st.floats(1, 10),
)


@pytest.mark.parametrize("measure", HIDDEN_WAYS)
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@given(case=hidden_cases(elements=magnitudes, sums=magnitudes))
def test_hidden_intervals_hold_for_huge_and_tiny_values(measure, activation, case):
    rest, weights, now, candidates, targets = case
    function = ACTIVATIONS[activation]
    measured = measure(*case, activation)
    for row, accuracy in zip(candidates, measured, strict=True):
        outputs = rest + np.multiply.outer(weights, function(row))
        # Rounding may decide instances whose two best outputs are closer than it is fine.
        present = rest + np.multiply.outer(weights, function(now))
        scale = np.abs(outputs).max(axis=0) + np.abs(present).max(axis=0) + np.abs(rest).max(axis=0)
        top_two = np.sort(outputs, axis=0)[-2:]
        is_clear = top_two[1] - top_two[0] > 1e-12 * scale
        right = outputs.argmax(axis=0) == targets
        count = round(accuracy * len(targets))
        assert (right & is_clear).sum() <= count <= (right | ~is_clear).sum()


@st.composite
def output_cases(draw):
    n_outputs, n_instances = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    outputs = draw(matrices(GRID, n_outputs, n_instances))
    candidates = draw(matrices(GRID, 3, n_instances))
    y = draw(st.lists(st.integers(0, n_outputs - 1), min_size=n_instances, max_size=n_instances))
    return outputs, draw(st.integers(0, n_outputs - 1)), candidates, np.array(y, dtype=np.int32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(case=output_cases())
def test_output_intervals_are_exact(dtype, case):
    outputs, c, candidates, targets = case
    outputs, candidates = outputs.astype(dtype), candidates.astype(dtype)
    low, high = np.empty((2, len(targets)), dtype=dtype)
    kernels.output_intervals(outputs, targets, c, low, high)
    measured = np.empty(len(candidates))
    biases = np.zeros(len(candidates), dtype=dtype)
    kernels.measure_inside(candidates, biases, low, high, measured)
    for row, accuracy in zip(candidates, measured, strict=True):
        changed = outputs.copy()
        changed[c] = row
        assert accuracy == plain_accuracy(changed, targets)


@given(output_cases())
def test_count_right_is_argmax(case):
    outputs, _, _, targets = case
    counts = np.empty(2, dtype=np.int64)
    kernels.count_right(np.stack([outputs, -outputs]), targets, counts)
    assert counts[0] == (outputs.argmax(axis=0) == targets).sum()
    assert counts[1] == ((-outputs).argmax(axis=0) == targets).sum()


@given(hidden_cases(), st.integers(1, 3))
def test_measure_after_moves_is_the_formula_move_by_move(case, n_moves):
    outputs, weights, _, _, targets = case
    rng = np.random.default_rng(n_moves)
    before, after = rng.choice([-1.0, -0.5, 0.0, 1.0], (2, n_moves, len(targets)))
    outgoing = rng.choice([-2.0, 0.0, 0.5, 1.0], (n_moves, len(weights)))
    measured, moved = np.empty(n_moves), outputs.copy()
    measure = measures.AccuracyOn(targets)
    measures.measure_after_moves(measure, moved, outgoing, before, after, measured)
    for move in range(n_moves):
        outputs = outputs + np.multiply.outer(outgoing[move], after[move] - before[move])
        assert measured[move] == (outputs.argmax(axis=0) == targets).mean()
    np.testing.assert_array_equal(moved, outputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@given(data=st.data())
def test_a_moved_layer_is_run_as_the_formula_says(activation, dtype, data):
    """Any number of instances, neurons and neurons above; blocks of every size."""
    sizes = [data.draw(st.integers(1, largest)) for largest in (9, 7, 5, 3)]
    n_instances, n_neurons, n_above, n_candidates = sizes
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shapes = ((n_neurons, n_instances), n_neurons, (n_candidates, n_instances))
    sums, slopes, shifts, matrix = (
        (rng.normal(size=shape) * data.draw(st.sampled_from([0, 1e-3, 1, 50]))).astype(dtype)
        for shape in (*shapes, (n_above, n_neurons + 1))
    )
    moved = sums + slopes[:, np.newaxis] * shifts[:, np.newaxis]
    expected = matrix[:, :-1] @ ACTIVATIONS[activation](moved) + matrix[:, -1:]
    above = np.empty((n_candidates, n_above, n_instances), dtype=dtype)
    code = kernels.ACTIVATION_CODES[activation]
    kernels.run_moved_layer(sums, slopes, shifts, code, matrix, above)
    scale = np.abs(matrix).sum() * (1 + np.abs(moved).max())
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(above, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("n_instances", [511, 512, 513, 1025])
def test_a_moved_layer_is_run_on_blocks_of_instances(n_instances, no_jit):
    if no_jit:
        pytest.skip("more instances than plain Python is quick with")
    rng = np.random.default_rng(n_instances)
    sums, shifts, matrix = (
        rng.normal(size=shape) for shape in ((5, n_instances), (2, n_instances), (3, 6))
    )
    slopes = rng.normal(size=5)
    above = np.empty((2, 3, n_instances))
    kernels.run_moved_layer(sums, slopes, shifts, kernels.TANH, matrix, above)
    moved = sums + slopes[:, np.newaxis] * shifts[:, np.newaxis]
    np.testing.assert_allclose(above, matrix[:, :-1] @ np.tanh(moved) + matrix[:, -1:], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_interval_ends_are_the_outermost_sums(activation, dtype):
    """ψ(s) ≥ bound holds from the least sum on, and ψ(s) ≤ bound up to the greatest."""
    real, code = np.dtype(dtype).type, kernels.ACTIVATION_CODES[activation]
    function = ACTIVATIONS[activation]
    tolerance = 64 * np.finfo(dtype).eps
    for bound in map(real, (-3, -1, -0.999, -0.5, 0, 1e-3, 0.25, 0.5, 0.75, 0.999, 1, 3)):
        for end, outward, holds in (
            (kernels._least_sum(bound, code), -1, lambda s, b: function(s) >= b),
            (kernels._greatest_sum(bound, code), 1, lambda s, b: function(s) <= b),
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


@given(st.integers(1, 40))
def test_one_instance_and_any_number_of_classes(n_outputs):
    assume(n_outputs >= 2)
    rng = np.random.default_rng(n_outputs)
    case = (rng.normal(size=(n_outputs, 1)), rng.normal(size=n_outputs), rng.normal(size=1),
            rng.normal(size=(6, 1)), np.array([n_outputs - 1], dtype=np.int32))  # fmt: skip
    measured = hidden_by_intervals(*case, "tanh")
    expected = [
        plain_accuracy(case[0] + np.multiply.outer(case[1], np.tanh(row)), case[4])
        for row in case[3]
    ]
    assert measured.tolist() == expected


@pytest.mark.parametrize(
    ("name", "least", "greatest", "tolerance"),
    [("exp", -80, 40, 3e-7), ("tanh", -20, 20, 3e-7), ("log", 1e-30, 1e30, 3e-7)],
)
def test_functions_in_float32_are_good_to_the_last_bits(name, least, greatest, tolerance):
    if least > 0:
        x = np.geomspace(least, greatest, 2001, dtype=np.float32)
    else:
        x = np.linspace(least, greatest, 2001, dtype=np.float32)
        x = np.concatenate([x, x / 1000, x / 1e6])
    values = np.array([getattr(functions, name)(number) for number in x])
    expected = getattr(np, name)(x.astype(np.float64))
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=0 if name == "tanh" else 1e-9)


def test_artanh_in_float32_is_good_to_the_last_bits_of_one():
    x = np.linspace(-0.9999, 0.9999, 2001, dtype=np.float32)
    values = np.array([functions.artanh(number) for number in x])
    assert values.dtype == np.float32
    # A sum near 0 is compared with sums of products of the order of 1.
    np.testing.assert_allclose(values, np.arctanh(x.astype(np.float64)), rtol=3e-7, atol=1.2e-7)
    assert functions.artanh(0.5) == np.arctanh(0.5)


def test_functions_saturate_and_never_overflow():
    assert [functions.tanh(np.float32(x)) for x in (-1e30, -50, 50, np.inf)] == [-1, -1, 1, 1]
    assert functions.exp(np.float32(-1e30)) < 1e-37
    assert functions.log(np.float32(1)) == 0
    assert math.copysign(1, functions.tanh(np.float32(-0.0))) == -1


@given(hidden_cases(elements=magnitudes, sums=magnitudes), st.sampled_from([*range(3)]))
def test_measures_by_outputs_are_the_plain_formula(case, n_same):
    """Cross-entropy and margins, for many and for a single output that moves."""
    rest, weights, now, candidates, targets = case
    weights = weights.copy()
    weights[n_same:] = 0 if n_same else weights[n_same:]
    outputs = rest + np.multiply.outer(weights, np.tanh(now))
    shares = np.full(len(targets), 1 / len(targets))
    given = measures.Candidates(
        candidates, np.zeros(len(candidates)), outputs, weights, np.tanh(now), kernels.TANH
    )
    entropy, margin = np.empty(len(candidates)), np.empty(len(candidates))
    measures.sum_cross_entropy(measures.CrossEntropyOn(targets, shares), given, entropy)
    measures.sum_margins(measures.MarginOn(targets, shares, 1.0), given, margin)
    for j, row in enumerate(candidates):
        moved = outputs + np.multiply.outer(weights, np.tanh(row) - np.tanh(now))
        scale = 1e-12 * (1 + np.abs(outputs).max() + np.abs(weights).max())
        assert entropy[j] == pytest.approx(CrossEntropy()(moved.T, targets), rel=1e-9, abs=scale)
        assert margin[j] == pytest.approx(ClippedMargin()(moved.T, targets), rel=1e-9, abs=scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
def test_open_instances_are_counted_with_each_candidates_own_sums(dtype, data):
    """On small whole numbers, where products are exact; in blocks of every size."""
    n_instances, n_inputs = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    n_candidates = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    inputs = rng.integers(-3, 4, (n_instances, n_inputs)).astype(dtype)
    vectors = rng.integers(-3, 4, (n_candidates, n_inputs + 1)).astype(dtype)
    instances = rng.permutation(n_instances)[: data.draw(st.integers(0, n_instances))]
    low, high = np.sort(rng.integers(-20, 21, (2, len(instances))).astype(dtype), axis=0)
    counts = np.zeros(n_candidates, dtype=np.int64)
    reach._count_inside(inputs, instances, low, high, vectors, counts)
    sums = vectors[:, :-1] @ inputs[instances].T + vectors[:, -1:]
    assert counts.tolist() == ((sums >= low) & (sums <= high)).sum(axis=1).tolist()
