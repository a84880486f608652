"""A part of the hidden subpopulations evolves in each generation, all of them equally often."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo import Revival, Turnover, evolve
from coevo.core.defaults import ProblemSize, resolve
from coevo.core.settings import Settings
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.delta import DeltaEvaluator
from coevo.estimators.callbacks import most_generations


def follow(search):
    """Run a search; return which subpopulations have evolved in each generation, in order."""
    evolved = []
    compete = search._compete

    def note(turn, offspring, log):
        evolved[-1] += [(i, j) for i in turn.subpopulations for j in turn.targets]
        return compete(turn, offspring, log)

    search._compete = note
    evolved.append([])
    for _ in search:
        evolved.append([])
    return evolved[:-1]


@given(
    parts=st.integers(1, 9), sizes=st.lists(st.integers(1, 7), max_size=3).map(tuple),
    synchronous=st.booleans(), limited=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_all_evolve_equally_often_and_outputs_always(
    make_search, small_settings, parts, sizes, synchronous, limited, seed
):
    """Each hidden subpopulation once in every cycle of as many generations as there are parts."""
    settings = small_settings(
        "LECCDE" if limited else "CCDE", hidden_layer_sizes=sizes, population_size=4, seed=seed,
        sampling_rounds=1, strategy=f"rand/1(synchronous={synchronous})",
        extensions=[Turnover(parts)], max_generations=2 * parts,
    )  # fmt: skip
    search = make_search(settings)
    evolved = follow(search)
    n_hidden, targets = sum(sizes), range(4)
    hidden = [(i, j) for i in range(n_hidden) for j in targets]
    outputs = [(i, j) for i in range(n_hidden, n_hidden + 3) for j in targets]
    for generation in evolved:
        assert generation == sorted(generation)  # in the order of layers
        assert [pair for pair in generation if pair[0] >= n_hidden] == outputs
    for cycle in (evolved[:parts], evolved[parts:]):
        pairs = [pair for generation in cycle for pair in generation if pair[0] < n_hidden]
        assert sorted(pairs) == hidden
    spent = np.diff(search.state.history.rows[:, 1])
    each = [len(generation) * (2 if limited else 1) for generation in evolved]
    np.testing.assert_array_equal(spent, each)
    assert (spent >= search.evaluations_per_generation).all()


def test_what_has_no_turn_stays_as_it_is(make_search, small_settings):
    settings = small_settings(hidden_layer_sizes=(5,), extensions=["turnover(parts=3)"])
    search = make_search(settings)
    state, seen = search.state, set()
    before = None
    for _ in search:
        after = [state.subpopulations[0].copy(), state.fitness[:5].copy(), state.champions.copy()]
        if before is not None:
            part = search.memory(search.extensions[1])["order"][(state.generation - 1) % 3]
            rows = range(5 * part // 3, 5 * (part + 1) // 3)
            others = np.setdiff1d(np.arange(5), rows)
            for old, new in zip(before, after, strict=True):
                np.testing.assert_array_equal(old[others], new[others])
            assert not np.array_equal(before[1][rows], after[1][rows])  # measured on a new batch
            seen.add(int(part))
        before = after
    assert seen == {0, 1, 2}


def test_the_order_of_parts_is_drawn_anew(make_search, small_settings):
    settings = small_settings(hidden_layer_sizes=(8,), extensions=[Turnover(8)], max_generations=32)
    search = make_search(settings)
    orders = {tuple(search.memory(search.extensions[1])["order"]) for _ in search}
    assert len(orders) == 4
    assert all(sorted(order) == list(range(8)) for order in orders)


def test_one_part_is_a_search_without(make_search, small_settings):
    runs = [make_search(small_settings(extensions=e)) for e in ([], [Turnover(1)])]
    assert follow(runs[0]) == follow(runs[1])


@given(
    parts=st.integers(2, 5), sizes=st.lists(st.integers(1, 6), min_size=1, max_size=2).map(tuple),
    fitness=st.sampled_from(["accuracy", "cross_entropy", "f1_macro"]),
    representative=st.sampled_from(["best", "mean"]), limited=st.booleans(),
    engine=st.sampled_from([DeltaEvaluator, BatchedEvaluator]), seed=st.integers(0, 99),
)  # fmt: skip
def test_engines_run_as_the_reference_does(
    make_search, small_settings, parts, sizes, fitness, representative, limited, engine, seed
):
    settings = small_settings(
        "LECCDE" if limited else "CCDE", hidden_layer_sizes=sizes, fitness=fitness, seed=seed,
        representative=representative, dtype="float64", extensions=[Turnover(parts)],
    )  # fmt: skip
    slow, fast = make_search(settings), make_search(settings, evaluator_class=engine)
    slow.run()
    fast.run()
    np.testing.assert_allclose(fast.state.history.rows[:, 3:], slow.state.history.rows[:, 3:])
    np.testing.assert_allclose(fast.state.best_network, slow.state.best_network)
    np.testing.assert_allclose(fast.state.global_solution, slow.state.global_solution)


def test_revival_counts_turns_not_generations(make_search, small_settings):
    """Individuals that are alike are drawn anew after 20 turns of each, here 60 generations."""
    settings = small_settings(
        extensions=[Revival(least=1e9, largest_size=12), Turnover(3)], max_generations=61
    )
    search = make_search(settings)
    sizes = [search.state.fitness.shape[1] for _ in search]
    assert sizes == [6] * 60 + [12]


def test_validation_follows_what_a_generation_measures():
    size = ProblemSize(10_000, 20, 60, n_validation=1000)
    plain = resolve(Settings(strategy="rand/1", extensions=[]), size=size)
    assert plain.validate_every == "replacement"  # 15 × 1000 instances against 40 × 500
    cut = resolve(replace(plain, validate_every="auto", extensions=[Turnover(8)]), size=size)
    assert cut.validate_every == 6


def test_a_run_has_no_more_generations_than_it_is_said_to_have(make_search, small_settings):
    settings = small_settings(
        hidden_layer_sizes=(7,), max_generations=None, max_evaluations=1000,
        extensions=[Turnover(4)],
    )  # fmt: skip
    search = make_search(settings)
    generations = iter(search)
    next(generations)
    at_most = most_generations(search)
    assert len(list(generations)) <= at_most


def test_a_memory_of_other_parts_is_refused(make_search, small_settings):
    search = make_search(small_settings(extensions=[Turnover(4)]))
    turnover = search.extensions[1]
    assert turnover.fits(search, {"order": np.array([2, 0, 3, 1])})
    assert not turnover.fits(search, {"order": np.array([2, 0, 3, 3])})
    assert not turnover.fits(search, {"order": np.array([1, 0])})


@pytest.mark.parametrize("decomposition", ["whole", "layer", "random", [[0, 1], [2]]], ids=str)
def test_other_decompositions_are_refused(decomposition):
    with pytest.raises(ValueError, match="decomposition must be one of neuron, neuron_outgoing"):
        Settings(decomposition=decomposition, extensions=["turnover"])


@pytest.mark.parametrize("decomposition", ["neuron_outgoing", "synapse"])
def test_other_subpopulations_of_a_layer_can_be_cut(make_classification_data, decomposition):
    inputs, targets = make_classification_data(np.random.default_rng(2))
    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], hidden_layer_sizes=(6,), seed=1,
        decomposition=decomposition, extensions=[Turnover(3)], batch_size=20, max_generations=6,
    )  # fmt: skip
    assert result.generations == 6


@pytest.mark.parametrize(("parts", "error"), [(0, ValueError), (1.5, TypeError)])
def test_settings_are_checked(parts, error):
    with pytest.raises(error, match="parts must be"):
        Turnover(parts)
