"""The direction of the smoothed fitness: by hand, by definition, and by the fast engine."""

import numpy as np
import pytest

from coevo.core.decomposition import decompose
from coevo.core.evaluator import Data
from coevo.core.metrics import (
    AbsoluteError,
    Accuracy,
    BalancedAccuracy,
    ClippedMargin,
    CrossEntropy,
    FBeta,
    LabelCrossEntropy,
    Matthews,
    Profit,
    RocAuc,
    SquaredError,
    make_metric,
)
from coevo.core.network import Architecture
from coevo.engines import smoothed
from coevo.engines.smoothed import SmoothedEvaluator
from coevo.engines.smoothed_reference import SmoothedReference
from coevo.runtime import threads

METRICS = [
    LabelCrossEntropy(), CrossEntropy(), Accuracy(), ClippedMargin(0.7),
    SquaredError((1.0, 2.0, 0.5)), AbsoluteError(), BalancedAccuracy(), FBeta(),
    FBeta(beta=2, average="macro"), Matthews(),
    Profit(((1, -2, 0), (0, 1, -1), (0, 0, 3))),
]  # fmt: skip


@pytest.fixture
def make_engines(rng):
    """Return the fast and the slow engine for the same data, rebased on some of them."""

    def make(metric, hidden, activation="tanh", dtype="float64", is_weighted=False, size=1.0):
        architecture = Architecture(5, hidden, 3, activation)
        n_instances = 30
        targets = rng.integers(3, size=n_instances)
        if metric.task == "regression":
            targets = rng.normal(size=(n_instances, 3)).astype(dtype)
        elif metric.task == "multilabel":
            targets = rng.integers(2, size=(n_instances, 3))
        weights = rng.uniform(0.5, 2, n_instances) if is_weighted else None
        data = Data(rng.normal(size=(n_instances, 5)).astype(dtype), targets, weights)
        decomposition = decompose("neuron", architecture)
        solution = (size * rng.normal(size=architecture.n_genes)).astype(dtype)
        engines = [
            engine(architecture, decomposition, metric, data, data)
            for engine in (SmoothedEvaluator, SmoothedReference)
        ]
        for engine in engines:
            engine.rebase(solution, np.arange(2, 29))
        return engines

    return make


def test_a_single_neuron_is_what_one_finds_by_hand():
    # One input, one output, squared error: f(s) = −(s − y)², so the slope is −2 (s − y).
    architecture = Architecture(1, (), 1)
    data = Data(np.array([[2.0], [-1.0]]), np.array([[1.0], [0.0]]), np.array([3.0, 1.0]))
    solution = np.array([0.5, 0.25])  # s = 1.25 and −0.25
    slopes = np.array([-2 * (1.25 - 1) * 0.75, -2 * -0.25 * 0.25])
    for engine in (SmoothedEvaluator, SmoothedReference):
        evaluator = engine(
            architecture, decompose("neuron", architecture), SquaredError(), data, data
        )
        evaluator.rebase(solution, slice(0, 2))
        found = evaluator.find_direction(np.array([0.5]))
        np.testing.assert_allclose(found, [slopes @ [2, -1], slopes.sum()], rtol=1e-12)


def test_a_step_within_the_width_has_a_slope():
    # Two classes, no hidden layer, one instance that is wrong by 0.4: the second output must rise
    # by more than that. A width of 0.5 sees it, one of 0.3 does not.
    architecture = Architecture(1, (), 2)
    data = Data(np.array([[1.0]]), np.array([1]))
    solution = np.array([0.4, 0.0, 0.0, 0.0])
    for engine in (SmoothedEvaluator, SmoothedReference):
        evaluator = engine(architecture, decompose("neuron", architecture), Accuracy(), data, data)
        evaluator.rebase(solution, slice(0, 1))
        np.testing.assert_allclose(evaluator.find_direction(np.array([0.5])), [-1, -1, 1, 1])
        assert not evaluator.find_direction(np.array([0.3])).any()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: f"{metric.task} {metric.name}")
@pytest.mark.parametrize("hidden", [(), (4,), (5, 4), (3, 4, 5)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_fast_engine_finds_what_the_definition_says(make_engines, metric, hidden, is_weighted):
    fast, slow = make_engines(metric, hidden, is_weighted=is_weighted)
    widths = np.linspace(1.4, 0.9, len(hidden) + 1)
    found, expected = fast.find_direction(widths), slow.find_direction(widths)
    assert expected.any() or metric == FBeta()  # whose class may be out of reach
    np.testing.assert_allclose(found, expected, atol=1e-12 * (1 + np.abs(expected).max()))
    np.testing.assert_allclose(
        fast.evaluate_global_solution(), slow.evaluate_global_solution(), rtol=1e-12
    )


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "sign", "identity"])
@pytest.mark.parametrize("hidden", [(4,), (4, 3)])
def test_every_activation(make_engines, activation, hidden):
    fast, slow = make_engines(CrossEntropy(), hidden, activation)
    widths = np.full(len(hidden) + 1, 0.5)
    np.testing.assert_allclose(fast.find_direction(widths), slow.find_direction(widths), atol=1e-12)


@pytest.mark.parametrize("metric", METRICS[:7], ids=lambda metric: f"{metric.task} {metric.name}")
@pytest.mark.parametrize("hidden", [(), (4,), (5, 4)])
def test_single_precision(make_engines, metric, hidden):
    fast, slow = make_engines(metric, hidden, dtype="float32")
    widths = np.full(len(hidden) + 1, 0.5)
    found, expected = fast.find_direction(widths), slow.find_direction(widths)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_outputs_that_move_far_do_not_overflow(make_engines):
    fast, slow = make_engines(CrossEntropy(), (4,), "relu", size=200.0)
    widths = np.array([50.0, 50.0])
    np.testing.assert_allclose(fast.find_direction(widths), slow.find_direction(widths), rtol=1e-9)
    single, _ = make_engines(CrossEntropy(), (4,), "relu", "float32", size=200.0)
    assert np.isfinite(single.find_direction(widths)).all()


def test_a_narrow_width_gives_the_gradient_of_a_smooth_fitness(make_engines):
    fast, _ = make_engines(CrossEntropy(), (4, 3), is_weighted=True)
    solution, batch = fast._global_solution.copy(), np.arange(2, 29)
    steps = 1e-5 * np.eye(len(solution))
    above, below = (fast.evaluate_networks(solution + s, batch) for s in (steps, -steps))
    found = fast.find_direction(np.full(3, 1e-4))
    np.testing.assert_allclose(found, (above - below) / 2e-5, atol=1e-6)


@pytest.mark.parametrize("metric", [CrossEntropy(), LabelCrossEntropy(), Matthews()], ids=str)
def test_many_instances_are_handled_in_parts(make_engines, monkeypatch, metric):
    monkeypatch.setattr(smoothed, "_INSTANCES", 10)
    fast, slow = make_engines(metric, (4, 3), is_weighted=True)
    widths = np.full(3, 0.5)
    np.testing.assert_allclose(fast.find_direction(widths), slow.find_direction(widths), atol=1e-12)
    np.testing.assert_allclose(fast.evaluate_global_solution(), slow.evaluate_global_solution())


@pytest.mark.parametrize("hidden", [(70,), (40, 30)])
def test_the_number_of_threads_changes_no_bit(rng, monkeypatch, hidden):
    monkeypatch.setattr(smoothed, "_GRAIN", 1)
    monkeypatch.setattr(smoothed, "_PRODUCT", 2**16)
    architecture = Architecture(200, hidden, 5)
    inputs = rng.normal(size=(150, 200)).astype(np.float32)
    data = Data(inputs, rng.integers(5, size=150))
    solution = 0.1 * rng.normal(size=architecture.n_genes).astype(np.float32)
    decomposition = decompose("neuron", architecture)
    found = []
    for n_threads in (1, 2, 3):
        with threads.limit(n_threads):
            engine = SmoothedEvaluator(architecture, decomposition, CrossEntropy(), data, data)
            engine.rebase(solution, slice(0, 150))
            found.append(engine.find_direction(np.full(len(hidden) + 1, 0.5)).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("metric", [RocAuc(), make_metric(lambda y, p: 0.0)])
def test_a_metric_that_is_not_served_is_named(rng, metric):
    architecture = Architecture(2, (), 3)
    data = Data(rng.normal(size=(6, 2)), rng.integers(3, size=6))
    parts = (architecture, decompose("neuron", architecture), metric, data, data)
    message = rf"{metric.name} is neither; it serves accuracy, .*rand/1"
    with pytest.raises(ValueError, match=message):
        SmoothedEvaluator(*parts)
    slow = SmoothedReference(*parts)
    slow.rebase(np.zeros(9), slice(0, 6))
    with pytest.raises(ValueError, match=message):
        slow.find_direction(np.ones(1))


def test_a_metric_of_ones_own_is_served_by_the_reference_engine_only(rng):
    class OwnAccuracy(Accuracy):
        pass

    architecture = Architecture(2, (), 3)
    data = Data(rng.normal(size=(6, 2)), rng.integers(3, size=6))
    parts = (architecture, decompose("neuron", architecture), OwnAccuracy(), data, data)
    with pytest.raises(ValueError, match=r'OwnAccuracy.*engine="reference"'):
        SmoothedEvaluator(*parts)
    SmoothedReference(*parts)
