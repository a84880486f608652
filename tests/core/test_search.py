"""The search as a whole: counting, remembering, stepping."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo import Strategy
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import Accuracy, SquaredError
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.core.stopping import StopReason
from coevo.engines.reference import ReferenceEvaluator
from coevo.training.variants import VARIANTS


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize(
    ("variant", "initial", "per_generation"),
    [("DE", 6, 6), ("LEDE", 6, 12), ("CCDE", 30, 6 * 6), ("LECCDE", 30, 2 * 6 * 6)],
)
def test_evaluations_are_counted_as_the_paper_counts_them(
    make_search, small_settings, counting_evaluator, variant, initial, per_generation, synchronous
):
    search = make_search(
        small_settings(variant, max_generations=3, strategy=Strategy(synchronous=synchronous)),
        evaluator_class=counting_evaluator,
    )
    counts = [generation.evaluations for generation in search]
    assert search.state.history.rows[0, 1] == initial
    assert counts == [initial + g * per_generation for g in (1, 2, 3)]
    assert search.evaluator.n_evaluated == counts[-1]


@pytest.mark.parametrize("variant", VARIANTS)
@given(seed=st.integers(0, 2**16))
def test_remembered_network_is_the_best_validation_fitness_seen(
    make_search, small_settings, counting_evaluator, variant, seed
):
    settings = small_settings(variant, seed=seed, max_generations=5)
    search = make_search(settings, evaluator_class=counting_evaluator)
    search.run()
    fitness = [f for f, _ in search.evaluator.validated]
    assert search.state.best_validation == max(fitness)
    # The first of the best: later ones must be strictly better.
    first = search.evaluator.validated[int(np.argmax(fitness))][1]
    np.testing.assert_array_equal(search.state.best_network, first)
    again = search.evaluator.validate_networks(search.state.best_network[np.newaxis])
    assert again[0] == search.state.best_validation


@pytest.mark.parametrize("variant", VARIANTS)
def test_global_solution_is_made_of_the_fittest_individuals(make_search, small_settings, variant):
    search = make_search(small_settings(variant))
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
            validate_every="replacement", extensions=(),
        )  # fmt: skip
        decomposition = decompose(name, architecture)
        evaluator = ReferenceEvaluator(architecture, decomposition, SquaredError(), data, data)
        search = assemble(evaluator, decomposition, resolve(settings))
        search.run()
        ends.append(search.state)
    np.testing.assert_array_equal(ends[0].subpopulations[0], ends[1].subpopulations[0])
    np.testing.assert_array_equal(ends[0].fitness, ends[1].fitness)
    np.testing.assert_array_equal(ends[0].best_network, ends[1].best_network)
    assert ends[0].evaluations == ends[1].evaluations == 20 + 40 * 20
    assert ends[0].best_validation > -0.5  # and it learns


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_run(make_search, small_settings, variant, synchronous):
    first, second, other = (
        make_search(small_settings(variant, seed=seed, strategy=Strategy(synchronous=synchronous)))
        for seed in (3, 3, 4)
    )
    for search in (first, second, other):
        search.run()
    np.testing.assert_array_equal(first.state.global_solution, second.state.global_solution)
    columns = [0, 1, 3, 4, 5]  # all but the seconds
    np.testing.assert_array_equal(
        first.state.history.rows[:, columns], second.state.history.rows[:, columns]
    )
    assert not np.array_equal(first.state.global_solution, other.state.global_solution)


def test_stepping_is_running(make_search, small_settings):
    stepped, run = make_search(small_settings()), make_search(small_settings())
    for generation in stepped:
        assert generation == stepped.state.history.latest
    assert run.run() == stepped.stop_reason == StopReason.MAX_GENERATIONS
    np.testing.assert_array_equal(stepped.state.best_network, run.state.best_network)


def test_a_search_goes_on_from_a_given_state(make_search, small_settings):
    whole = make_search(small_settings(max_generations=9))
    whole.run()
    first = make_search(small_settings(max_generations=4))
    first.run()
    settings = small_settings(max_generations=9)
    second = assemble(first.evaluator, first.decomposition, settings, state=first.state)
    second.run()
    np.testing.assert_array_equal(second.state.global_solution, whole.state.global_solution)
    assert second.state.evaluations == whole.state.evaluations


@pytest.mark.parametrize("strategy", ["rand/1", "best/1", "rand/2", "current-to-best/1"])
@pytest.mark.parametrize("crossover", ["binomial", "exponential"])
def test_every_strategy_improves_the_validation_fitness(
    make_search, small_settings, strategy, crossover
):
    search = make_search(
        small_settings(
            strategy=Strategy(strategy, crossover), population_size=10, max_generations=30
        )
    )
    search.run()
    history = search.state.history.columns()
    assert history["best_validation"][-1] > history["best_validation"][0]
    assert (np.diff(history["best_validation"]) >= 0).all()


def test_callbacks_see_each_generation_and_may_stop(make_search, small_settings):
    seen = []

    def watch(search):
        seen.append(search.state.history.latest)

    search = make_search(
        small_settings(max_generations=100), [lambda search: search.state.generation == 5, watch]
    )
    assert search.run() == StopReason.CALLBACK
    assert [generation.generation for generation in seen] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("variant", VARIANTS)
def test_history_tells_what_happened(make_search, small_settings, variant):
    search = make_search(small_settings(variant))
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


@pytest.mark.parametrize(("fitness", "expected"), [("accuracy", 0.0), ("cross_entropy", None)])
def test_individuals_that_took_no_part_are_never_the_fittest(
    make_search, small_settings, fitness, expected
):
    """Losses are below 0, so a fitness of 0 would put the unmeasured into the global solution."""
    search = make_search(small_settings(sampling_rounds=1, population_size=30, fitness=fitness))
    search._began = 0.0
    search._initialise()
    fitness = search.state.fitness
    values, counts = np.unique(fitness, return_counts=True)
    left_out = values[counts.argmax()]  # with one round, about a third take no part
    assert counts.max() > 10
    assert left_out == (fitness.min() if expected is None else expected)
    assert (fitness[np.arange(len(fitness)), search.state.champions] > left_out).all()


def test_the_global_solution_is_made_of_means(make_search, small_settings):
    search = make_search(small_settings(representative="mean"))
    search.run()
    state = search.state
    for block, individuals in zip(search.decomposition.blocks, state.subpopulations, strict=True):
        for i, members in zip(block, individuals, strict=True):
            part = state.global_solution[search.decomposition.groups[i]]
            np.testing.assert_allclose(part, members.mean(axis=0), rtol=1e-5, atol=1e-6)


# -------------------------------------------------------- validation every so many generations


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_global_solution_is_validated_every_so_many_generations_and_at_the_end(
    make_search, small_settings, counting_evaluator, variant
):
    settings = small_settings(variant, max_generations=8, validate_every=3)
    search = make_search(settings, evaluator_class=counting_evaluator)
    solutions = [search.state.global_solution.copy() for _ in search]
    assert len(search.evaluator.validated) == 3  # generations 0, 3 and 6
    column = search.state.history.columns()["validation_fitness"]
    expected = [f for f, _ in search.evaluator.validated]
    assert column.tolist() == [expected[g // 3] for g in range(9)]
    search.settle()
    assert len(search.evaluator.validated) == 4
    for (_, validated), g in zip(search.evaluator.validated[1:], (2, 5, 7), strict=True):
        np.testing.assert_array_equal(validated, solutions[g])
    fitness = [f for f, _ in search.evaluator.validated]
    assert search.state.best_validation == max(fitness) == search.state.history.latest[5]
    best = search.evaluator.validated[int(np.argmax(fitness))][1]
    np.testing.assert_array_equal(search.state.best_network, best)
    # The search itself is the same, however it is validated.
    often = make_search(small_settings(variant, max_generations=8))
    often.run()
    np.testing.assert_array_equal(often.state.global_solution, search.state.global_solution)


def test_a_run_that_ends_with_a_validation_has_nothing_to_settle(
    make_search, small_settings, counting_evaluator
):
    for validate_every in ("replacement", 4):
        settings = small_settings(max_generations=8, validate_every=validate_every)
        search = make_search(settings, evaluator_class=counting_evaluator)
        search.run()
        n_validated, rows = len(search.evaluator.validated), search.state.history.rows
        search.settle()
        assert len(search.evaluator.validated) == n_validated
        np.testing.assert_array_equal(search.state.history.rows, rows)


def test_patience_and_target_are_looked_at_when_there_is_a_validation(make_search, small_settings):
    settings = small_settings(max_generations=100, validate_every=4, patience=1)
    search = make_search(settings)
    assert search.run() == StopReason.PATIENCE
    assert search.state.generation % 4 == 0
    assert search.state.best_generation < search.state.generation
    search = make_search(small_settings(max_generations=100, validate_every=4, target_fitness=0.5))
    assert search.run() == StopReason.TARGET_FITNESS
    assert search.state.generation % 4 == 0
