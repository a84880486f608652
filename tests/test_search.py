"""The search as a whole: counting, remembering, stopping, stepping."""

import os
import signal
import threading

import numpy as np
import pytest
from conftest import make_classification_data
from hypothesis import given
from hypothesis import strategies as st

from coevo.decomposition import NAMES, decompose
from coevo.evaluation import Data
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import Accuracy, SquaredError, find_fitness
from coevo.history import Generation, History
from coevo.network import Architecture
from coevo.search import Search
from coevo.settings import Settings
from coevo.stopping import StopReason
from coevo.variants import SHARED, VARIANTS, variant_settings


def make_search(settings, callbacks=(), evaluator_class=ReferenceEvaluator, seed=5):
    inputs, targets = make_classification_data(np.random.default_rng(seed))
    architecture = Architecture(4, settings.hidden_layer_sizes, 3, settings.activation)
    decomposition = decompose(settings.decomposition, architecture, settings.group_size)
    evaluator = evaluator_class(
        architecture, decomposition, find_fitness(settings.fitness),
        Data(inputs[:40], targets[:40]), Data(inputs[40:], targets[40:]),
    )  # fmt: skip
    return Search(evaluator, decomposition, settings, callbacks)


def small(variant="LECCDE", **changes):
    defaults = {"hidden_layer_sizes": (3,), "population_size": 6, "batch_size": 10,
                "max_evaluations": None, "max_generations": 8, "seed": 7}  # fmt: skip
    return variant_settings(variant, **SHARED | defaults | changes)


class CountingEvaluator(ReferenceEvaluator):
    """Counts the networks that are really run for fitness, and keeps all that is validated."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.n_evaluated = 0
        self.validated = []

    def evaluate_networks(self, genotypes, instances):
        self.n_evaluated += len(genotypes)
        return super().evaluate_networks(genotypes, instances)

    def evaluate(self, i):
        measured = super().evaluate(i)
        self.n_evaluated += len(measured)
        return measured

    def validate_networks(self, genotypes):
        fitness = super().validate_networks(genotypes)
        self.validated += list(zip(fitness, genotypes.copy(), strict=True))
        return fitness

    def validate(self):
        moves = list(self._moves)
        fitness = super().validate()
        self.validated += list(zip(fitness, moves, strict=True))
        return fitness


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize(
    ("variant", "initial", "per_generation"),
    [("DE", 6, 6), ("LEDE", 6, 12), ("CCDE", 30, 6 * 6), ("LECCDE", 30, 2 * 6 * 6)],
)
def test_evaluations_are_counted_as_the_paper_counts_them(
    variant, initial, per_generation, synchronous
):
    search = make_search(
        small(variant, max_generations=3, synchronous=synchronous),
        evaluator_class=CountingEvaluator,
    )
    counts = [generation.evaluations for generation in search]
    assert search.state.history.rows[0, 1] == initial
    assert counts == [initial + g * per_generation for g in (1, 2, 3)]
    assert search.evaluator.n_evaluated == counts[-1]


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=st.integers(0, 2**16))
def test_remembered_network_is_the_best_validation_fitness_seen(variant, seed):
    settings = small(variant, seed=seed, max_generations=5)
    search = make_search(settings, evaluator_class=CountingEvaluator)
    search.run()
    fitness = [f for f, _ in search.evaluator.validated]
    assert search.state.best_validation == max(fitness)
    # The first of the best: later ones must be strictly better.
    first = search.evaluator.validated[int(np.argmax(fitness))][1]
    np.testing.assert_array_equal(search.state.best_network, first)
    again = search.evaluator.validate_networks(search.state.best_network[np.newaxis])
    assert again[0] == search.state.best_validation


@pytest.mark.parametrize("variant", VARIANTS)
def test_global_solution_is_made_of_the_fittest_individuals(variant):
    search = make_search(small(variant))
    for _ in search:
        state = search.state
        np.testing.assert_array_equal(state.champions, state.fitness.argmax(axis=1))
        np.testing.assert_array_equal(state.global_solution, search._compose(state.champions))


def test_one_subcomponent_makes_exactly_the_choices_of_de():
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(30, 4))
    data = Data(inputs, inputs @ [1.0, -2, 0.5, 0] + 0.3)
    architecture = Architecture(4, (), 1)  # one neuron: one subcomponent
    ends = []
    for name in ("whole", "neuron"):
        settings = Settings(
            hidden_layer_sizes=(), decomposition=name, limited_evaluation=False, seed=1,
            max_evaluations=None, max_generations=40, dtype="float64", representative="best",
        )  # fmt: skip
        decomposition = decompose(name, architecture)
        evaluator = ReferenceEvaluator(architecture, decomposition, SquaredError(), data, data)
        search = Search(evaluator, decomposition, settings)
        search.run()
        ends.append(search.state)
    np.testing.assert_array_equal(ends[0].subpopulations[0], ends[1].subpopulations[0])
    np.testing.assert_array_equal(ends[0].fitness, ends[1].fitness)
    np.testing.assert_array_equal(ends[0].best_network, ends[1].best_network)
    assert ends[0].evaluations == ends[1].evaluations == 20 + 40 * 20
    assert ends[0].best_validation > -0.5  # and it learns


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_run(variant, synchronous):
    first, second, other = (
        make_search(small(variant, seed=seed, synchronous=synchronous)) for seed in (3, 3, 4)
    )
    for search in (first, second, other):
        search.run()
    np.testing.assert_array_equal(first.state.global_solution, second.state.global_solution)
    columns = [0, 1, 3, 4, 5]  # all but the seconds
    np.testing.assert_array_equal(
        first.state.history.rows[:, columns], second.state.history.rows[:, columns]
    )
    assert not np.array_equal(first.state.global_solution, other.state.global_solution)


@pytest.mark.parametrize("decomposition", NAMES)
def test_each_layer_may_have_its_initial_range(decomposition):
    settings = Settings(
        hidden_layer_sizes=(3,),
        initial_range=[0.01, 2],
        scale_initial_range=False,
        decomposition=decomposition,
        group_size=5,
        seed=1,
        batch_size=20,
    )
    search = make_search(settings)
    networks = np.stack([search._compose(np.full(len(search.decomposition), j)) for j in range(20)])
    assert 0.009 < np.abs(networks[:, :15]).max() <= 0.01
    assert 1.8 < np.abs(networks[:, 15:]).max() <= 2


def test_stepping_is_running():
    stepped, run = make_search(small()), make_search(small())
    for generation in stepped:
        assert generation == stepped.state.history.latest
    assert run.run() == stepped.stop_reason == StopReason.MAX_GENERATIONS
    np.testing.assert_array_equal(stepped.state.best_network, run.state.best_network)


def test_a_search_goes_on_from_a_given_state():
    whole = make_search(small(max_generations=9))
    whole.run()
    first = make_search(small(max_generations=4))
    first.run()
    second = Search(
        first.evaluator, first.decomposition, small(max_generations=9), state=first.state
    )
    second.run()
    np.testing.assert_array_equal(second.state.global_solution, whole.state.global_solution)
    assert second.state.evaluations == whole.state.evaluations


@pytest.mark.parametrize("strategy", ["rand/1", "best/1", "rand/2", "current-to-best/1"])
@pytest.mark.parametrize("crossover", ["binomial", "exponential"])
def test_every_strategy_improves_the_validation_fitness(strategy, crossover):
    search = make_search(
        small(strategy=strategy, crossover=crossover, population_size=10, max_generations=30)
    )
    search.run()
    history = search.state.history.columns()
    assert history["best_validation"][-1] > history["best_validation"][0]
    assert (np.diff(history["best_validation"]) >= 0).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_evaluations": 500}, StopReason.MAX_EVALUATIONS),
        ({"max_generations": 3}, StopReason.MAX_GENERATIONS),
        ({"max_seconds": 1e-6}, StopReason.MAX_SECONDS),
        ({"target_fitness": 0.01}, StopReason.TARGET_FITNESS),
        ({"patience": 4}, StopReason.PATIENCE),
    ],
)
def test_each_criterion_stops_the_run(change, reason):
    search = make_search(small(**{"max_generations": 1000} | change))
    assert search.run() == reason
    state = search.state
    if reason is StopReason.MAX_EVALUATIONS:
        assert state.evaluations - 72 < 500 <= state.evaluations
    if reason is StopReason.MAX_GENERATIONS:
        assert state.generation == 3
    if reason is StopReason.TARGET_FITNESS:
        assert state.generation == 0  # the initial sampling was good enough
    if reason is StopReason.PATIENCE:
        assert state.generation - state.best_generation == 4


def test_criteria_combine_and_the_first_one_met_counts():
    search = make_search(small(max_generations=5, max_evaluations=10**6, patience=100))
    assert search.run() == StopReason.MAX_GENERATIONS


def test_callbacks_see_each_generation_and_may_stop():
    seen = []

    def watch(search):
        seen.append(search.state.history.latest)

    search = make_search(
        small(max_generations=100), [lambda search: search.state.generation == 5, watch]
    )
    assert search.run() == StopReason.CALLBACK
    assert [generation.generation for generation in seen] == [1, 2, 3, 4, 5]


def test_ctrl_c_returns_the_best_so_far():
    def press(search):
        if search.state.generation == 3:
            os.kill(os.getpid(), signal.SIGINT)

    search = make_search(small(max_generations=1000), [press])
    handler = signal.getsignal(signal.SIGINT)
    assert search.run() == StopReason.INTERRUPTED
    assert search.state.generation == 3
    assert search.state.best_validation > 0
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.fixture
def heeds_ctrl_c():
    """A shell that starts tests in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_twice_does_not_wait_for_the_generation():
    class Impatient(ReferenceEvaluator):
        def validate(self):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            return super().validate()

    search = make_search(small(), evaluator_class=Impatient)
    with pytest.raises(KeyboardInterrupt):
        search.run()


def test_a_run_outside_the_main_thread_works():
    search = make_search(small())
    thread = threading.Thread(target=search.run)
    thread.start()
    thread.join(30)
    assert search.stop_reason == StopReason.MAX_GENERATIONS


@pytest.mark.parametrize("variant", VARIANTS)
def test_history_tells_what_happened(variant):
    search = make_search(small(variant))
    for generation in search:
        outputs = search.evaluator._architecture.forward(
            search.state.global_solution, search.evaluator._batch.inputs
        )
        accuracy = Accuracy()(outputs, search.evaluator._batch.targets)
        assert generation.batch_fitness == accuracy
        validation = search.evaluator.validate_networks(search.state.global_solution[np.newaxis])
        assert generation.validation_fitness == validation[0]
    columns = search.state.history.columns()
    assert columns["generation"].tolist() == list(range(9))
    assert (np.diff(columns["seconds"]) > 0).all()
    assert (columns["validation_fitness"] <= columns["best_validation"]).all()


@given(st.integers(1, 20_000))
def test_history_is_bounded_and_keeps_the_first_and_the_latest(n):
    class Short(History):
        capacity = 16

    history = Short()
    for g in range(n):
        history.append(Generation(g, g * 10, g * 0.5, 0.1, 0.2, 0.3))
    generations = history.columns()["generation"]
    assert len(generations) <= 17
    assert (generations[0], generations[-1]) == (0, n - 1)
    assert n <= 16 or len(generations) >= 8
    kept = np.diff(generations)[:-1]
    assert (kept == history.stride).all()
    np.testing.assert_array_equal(history.columns()["evaluations"], generations * 10)


def test_empty_history_says_so():
    with pytest.raises(ValueError, match="has not begun"):
        History().latest  # noqa: B018


@pytest.mark.parametrize(("fitness", "expected"), [("accuracy", 0.0), ("cross_entropy", None)])
def test_individuals_that_took_no_part_are_never_the_fittest(fitness, expected):
    """Losses are below 0, so a fitness of 0 would put the unmeasured into the global solution."""
    search = make_search(small(sampling_rounds=1, population_size=30, fitness=fitness))
    search._began = 0.0
    search._initialise()
    fitness = search.state.fitness
    values, counts = np.unique(fitness, return_counts=True)
    left_out = values[counts.argmax()]  # with one round, about a third take no part
    assert counts.max() > 10
    assert left_out == (fitness.min() if expected is None else expected)
    assert (fitness[np.arange(len(fitness)), search.state.champions] > left_out).all()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"fitness": "margin"}, True),
        ({"fitness": "squared_error"}, True),
        ({"fitness": "accuracy"}, False),
        ({"fitness": "f1"}, False),
        ({"fitness": lambda targets, outputs: 0.0}, False),
        ({"limited_evaluation": False}, False),
        ({"decomposition": "whole"}, False),
        ({"decomposition": "synapse"}, False),
        ({"decomposition": [[0, 1], [2]]}, False),
        ({"decomposition": "whole", "representative": "mean"}, True),
        ({"representative": "best"}, False),
    ],
)
def test_means_represent_where_they_were_found_better(changes, expected):
    assert Settings(**changes).takes_means == expected


def test_the_global_solution_is_made_of_means():
    search = make_search(small(representative="mean"))
    search.run()
    state = search.state
    for block, individuals in zip(search.decomposition.blocks, state.subpopulations, strict=True):
        for i, members in zip(block, individuals, strict=True):
            part = state.global_solution[search.decomposition.groups[i]]
            np.testing.assert_allclose(part, members.mean(axis=0), rtol=1e-5, atol=1e-6)
