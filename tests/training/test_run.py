"""`run_search`: hooks, budgets, and what is resolved once."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from coevo import CoevoClassifier, CoevoRegressor, Settings, evolve
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.hooks import Hook
from coevo.core.metrics import Accuracy, CrossEntropy, find_metric, make_metric
from coevo.core.responses import ClassResponses, NumberResponses
from coevo.core.stopping import StopReason
from coevo.engines.reference import ReferenceEvaluator
from coevo.engines.registry import ENGINES
from coevo.training.problem import DataProblem
from coevo.training.run import run_search

SETTINGS = Settings(
    hidden_layer_sizes=(3,), batch_size=10, population_size=6, max_evaluations=None,
    max_generations=3, seed=1, dtype="float64",
)  # fmt: skip


@pytest.fixture
def problem(make_classification_data):
    inputs, targets = make_classification_data(np.random.default_rng(2), n_instances=80)
    return DataProblem(
        Data(inputs[:50], targets[:50]), Data(inputs[50:], targets[50:]),
        ClassResponses(np.array(["ash", "birch", "cedar"])),
    )  # fmt: skip


class Recorder(Hook):
    """Writes down what it is told, and fails where it should."""

    def __init__(self, name, calls, fails_in=None, state=None):
        self.name, self.calls, self.fails_in, self.state = name, calls, fails_in, state

    def _record(self, event):
        self.calls.append(f"{self.name}.{event}")
        if event == self.fails_in:
            raise RuntimeError(f"{self.name} fails in {event}")

    def open(self, run):
        self.run = run
        self._record("open")

    def restore(self, run):
        self._record("restore")
        return self.state

    def begin(self, search):
        self.search = search
        self._record("begin")

    def after_generation(self, search):
        self._record(f"after_generation {search.state.generation}")

    def end(self, search):
        self._record("end")

    def close(self):
        self._record("close")


# -------------------------------------------------------------------------------------------- hooks


def test_hooks_are_called_in_order_and_closed_in_reverse(problem):
    calls = []
    run_search(problem, replace(SETTINGS, max_generations=1), [Recorder(n, calls) for n in "ab"])
    assert calls == [
        "a.open", "b.open", "a.restore", "b.restore", "a.begin", "b.begin",
        "a.after_generation 1", "b.after_generation 1", "a.end", "b.end", "b.close", "a.close",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fails_in", "closed"),
    [
        ("open", ["b.close", "a.close"]),
        ("restore", ["c.close", "b.close", "a.close"]),
        ("begin", ["c.close", "b.close", "a.close"]),
        ("after_generation 2", ["c.close", "b.close", "a.close"]),
        ("end", ["c.close", "b.close", "a.close"]),
    ],
)
def test_hooks_that_were_opened_are_closed_when_a_run_fails(problem, fails_in, closed):
    calls = []
    hooks = [Recorder("a", calls), Recorder("b", calls, fails_in), Recorder("c", calls)]
    with pytest.raises(RuntimeError, match=f"b fails in {fails_in}"):
        run_search(problem, SETTINGS, hooks)
    assert [call for call in calls if call.endswith("close")] == closed
    assert f"c.{fails_in}" not in calls or fails_in.startswith("after_generation")


def test_hooks_are_closed_when_a_metric_fails(problem):
    calls = []

    def fail(y_true, y_pred):
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError, match="no"):
        run_search(problem, replace(SETTINGS, fitness=fail), [Recorder("a", calls)])
    assert calls == ["a.open", "a.restore", "a.begin", "a.close"]


def test_a_hook_may_restore_a_state(problem):
    settings = replace(SETTINGS, validate_every="replacement")  # the end of a run adds none
    whole = run_search(problem, settings)
    calls = []
    first = Recorder("a", calls)
    run_search(problem, replace(settings, max_generations=2), [first])
    state = first.search.state
    hooks = [Recorder("b", calls, state=state), Recorder("c", calls)]
    second = run_search(problem, settings, hooks)
    np.testing.assert_array_equal(second.network.genotype, whole.network.genotype)
    assert second.evaluations == whole.evaluations
    assert hooks[0].search.state is state
    assert [call for call in calls if "b.after" in call] == ["b.after_generation 3"]


def test_a_hook_sees_the_run_before_it_begins(problem):
    hook = Recorder("a", [])
    result = run_search(problem, SETTINGS, [hook], engine="reference")
    run = hook.run
    assert (run.engine, run.settings) == ("reference", result.settings)
    assert isinstance(run.evaluator, ReferenceEvaluator)
    assert run.arguments["population_size"] == 6
    assert run.arrays["training inputs"] is problem.training.inputs
    assert run.arrays["validation targets"] is problem.validation.targets
    assert run.arrays["initial network"] is None


def test_functions_are_hooks_and_may_stop(problem):
    result = run_search(problem, SETTINGS, [lambda search: search.state.generation == 2])
    assert (result.stop_reason, result.generations) == (StopReason.CALLBACK, 2)
    with pytest.raises(TypeError, match="callbacks must be functions of the search, got 3"):
        run_search(problem, SETTINGS, [3])


# ------------------------------------------------------------------------------------------ budgets


def test_a_run_that_would_never_end_is_refused_at_every_door_by_one_message(problem):
    message = (
        "the run would never end: set max_evaluations, max_generations, max_seconds, "
        "target_fitness or patience, or give a callback that says stop"
    )
    endless = {"max_evaluations": None, "hidden_layer_sizes": (3,), "batch_size": 10}
    X, y = problem.training.inputs, problem.training.targets
    doors = [
        lambda: run_search(problem, Settings(**endless)),
        lambda: evolve(X, y, X, y, **endless),
        lambda: evolve(X, y, X, y, Settings(**endless), variant="DE"),
        lambda: CoevoClassifier(**endless).fit(X, y),
        lambda: CoevoRegressor(**endless).fit(X, y),
    ]
    for door in doors:
        with pytest.raises(ValueError, match="would never end") as caught:
            door()
        assert str(caught.value) == message


def test_a_hook_that_cannot_stop_is_no_end(problem):
    endless = replace(SETTINGS, max_generations=None)
    with pytest.raises(ValueError, match="would never end"):
        run_search(problem, endless, [Recorder("a", [])])
    assert run_search(problem, endless, [lambda search: True]).generations == 1


# ---------------------------------------------------------------------------- what is resolved once


def test_settings_are_resolved_in_the_result(problem):
    result = run_search(problem, SETTINGS)
    settings = result.settings
    assert resolve(settings) == settings
    assert isinstance(settings.fitness, CrossEntropy)
    assert settings.representative == "mean"
    critical = np.sqrt(0.75 / settings.population_size)
    assert settings.scale_factor == pytest.approx(1.05 * critical, abs=1e-3)
    assert settings.crossover_rate == 0.5
    assert result.classes.tolist() == ["ash", "birch", "cedar"]
    numbers = DataProblem(
        replace(problem.training, targets=problem.training.inputs[:, :2]),
        replace(problem.validation, targets=problem.validation.inputs[:, :2]),
        NumberResponses(),
    )
    result = run_search(numbers, SETTINGS)
    assert resolve(result.settings, "regression") == result.settings
    assert (result.settings.fitness.name, result.classes) == ("squared_error", None)


@pytest.mark.parametrize("engine", ["auto", *ENGINES])
def test_the_engine_is_told(problem, engine):
    result = run_search(problem, SETTINGS, engine=engine)
    assert result.engine == ("delta" if engine == "auto" else engine)


def test_running_twice_with_the_same_objects_gives_the_same(problem):
    """Nothing that a user hands over is changed or remembers a run."""
    settings = replace(
        SETTINGS, control="shade", strategy="current-to-pbest/1",
        fitness=make_metric(lambda y, p: np.mean(y == p)), extensions=["weight_decay"],
    )  # fmt: skip
    first, second = (run_search(problem, settings) for _ in range(2))
    np.testing.assert_array_equal(first.network.genotype, second.network.genotype)
    assert settings.fitness.responses is None


def test_validation_may_have_a_metric_of_its_own(problem):
    other = replace(problem, validation_fitness="accuracy")
    result = run_search(other, SETTINGS)
    outputs = result.network.outputs(problem.validation.inputs)
    assert result.validation_fitness == Accuracy()(outputs, problem.validation.targets)
    assert result.train_fitness < 0  # cross-entropy


@pytest.mark.parametrize("fitness", ["cross_entropy", "accuracy", "roc_auc"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("validation_fitness", [None, "matthews"])
def test_many_validation_instances_are_looked_at_now_and_then(
    make_classification_data, fitness, engine, validation_fitness
):
    """The network that is kept has the validation fitness it has on all of them."""
    inputs, targets = make_classification_data(np.random.default_rng(2), 650, n_classes=2)
    problem = DataProblem(
        Data(inputs[:50], targets[:50]), Data(inputs[50:], targets[50:]),
        ClassResponses(np.array(["ash", "birch"])), validation_fitness=validation_fitness,
    )  # fmt: skip
    settings = replace(SETTINGS, fitness=fitness, max_generations=110, seed=4)
    hook = Recorder("search", [])
    result = run_search(problem, settings, [hook], engine=engine)
    assert result.settings.validate_every == 75  # 15 × 600 / (2 × 6 × 10)
    column = result.history.columns()["validation_fitness"]
    assert set(np.flatnonzero(np.diff(column))) <= {74, 109}  # the last at the end
    metric = find_metric(validation_fitness or fitness)
    outputs = result.network.outputs(problem.validation.inputs)
    expected = pytest.approx(float(metric(outputs, problem.validation.targets)), abs=1e-12)
    assert result.validation_fitness == expected
    # The delta engine does not keep up with what nobody asks for.
    assert hook.search.evaluator.memory() == {}


def test_warnings_of_a_metric_are_given_again_after_the_run(problem):
    from sklearn.exceptions import UndefinedMetricWarning

    def warn(y_true, y_pred):
        warnings.warn("a class is missing", UndefinedMetricWarning, stacklevel=1)
        return 0.0

    run_search(problem, replace(SETTINGS, fitness=warn))
    with pytest.warns(UndefinedMetricWarning):
        warn(0, 0)


# ------------------------------------------------------------------------------ the initial network


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("decomposition", ["neuron", "synapse", "layer", "whole"])
@pytest.mark.parametrize("limited", [True, False])
def test_engines_measure_in_place_as_the_reference_does(problem, engine, decomposition, limited):
    if engine == "delta" and decomposition in ("layer", "whole"):
        pytest.skip("not served by the delta engine")
    settings = replace(
        SETTINGS, decomposition=decomposition, limited_evaluation=limited, max_generations=1
    )
    network = run_search(problem, settings).network
    around = replace(problem, initial_network=network)
    hooks = [Recorder(name, []) for name in ("reference", engine)]
    for hook in hooks:
        run_search(around, replace(settings, initial_range=0.2), [hook], engine=hook.name)
    first, second = (hook.search for hook in hooks)
    for search in (first, second):
        search.state.global_solution[:] = network.genotype
        search.measure_in_place(slice(0, 50))
    for parts in zip(first.state.subpopulations, second.state.subpopulations, strict=True):
        np.testing.assert_allclose(*parts, rtol=1e-12)
    np.testing.assert_allclose(first.state.fitness, second.state.fitness, rtol=1e-9)
    # And both are what the networks score, put together gene by gene.
    i = len(first.decomposition) - 1
    genotype = network.genotype.copy()
    genotype[first.decomposition.groups[i]] = first.state.subpopulations[-1][-1, 2]
    outputs = network.architecture.forward(genotype, problem.training.inputs)
    expected = CrossEntropy()(outputs, problem.training.targets)
    assert first.state.fitness[i, 2] == pytest.approx(float(expected))


def test_a_search_that_never_moved_says_so(make_classification_data, rng):
    X, y = make_classification_data(rng)
    settings = {"hidden_layer_sizes": (3,), "batch_size": 20, "population_size": 30, "seed": 1,
                "fitness": lambda y_true, y_pred: 0.5}  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="in 5 generations no network was better"):
        evolve(X[:40], y[:40], X[40:], y[40:], max_generations=5, **settings)
    # Too early to say: few generations, or few networks.
    evolve(X[:40], y[:40], X[40:], y[40:], max_generations=4, **settings)
    settings |= {"decomposition": "whole", "population_size": 15}
    evolve(X[:40], y[:40], X[40:], y[40:], max_generations=30, **settings)


def test_ccde_that_never_moved_says_so_within_a_small_budget():
    """First fitness by sampling leaves one run in seven on digits where it began."""
    model = CoevoClassifier(strategy="rand/1", limited_evaluation=False, extensions=(),
                            max_evaluations=20_000, random_state=2)  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="in 17 generations no network was better"):
        model.fit(*load_digits(return_X_y=True))
