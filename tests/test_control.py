"""Control of F and CR, the archive and shrinking subpopulations, by hand and by property."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_search import make_search, small

from coevo.archive import archive_replaced
from coevo.control import CONTROLS, JDE, SHADE, Dither, Fixed
from coevo.decomposition import NAMES, decompose
from coevo.evaluation import Data
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import find_fitness
from coevo.network import Architecture
from coevo.operators import STRATEGIES, draw_parents, make_trials, mean_fitness
from coevo.reduction import choose_survivors
from coevo.search import Search
from coevo.settings import Settings
from coevo.stopping import spent_share
from coevo.turns import Tally

pytestmark = pytest.mark.without_jit

seeds = st.integers(0, 2**32 - 1)
MAKES = {
    "fixed": Fixed(0.1, 0.3),
    "dither": Dither((0.05, 0.5), 0.3),
    "jde": JDE(0.1, 0.3, (0.05, 0.5), 0.5),
    "shade": SHADE(0.1, 0.3, 4),
}


# ------------------------------------------------------------------------------------ F and CR


@pytest.mark.parametrize("name", MAKES)
@given(seed=seeds)
def test_every_control_draws_within_its_limits(name, seed):
    control, rng = MAKES[name], np.random.default_rng(seed)
    memory = control.begin(5, 8)
    for _ in range(4):
        scale_factors, crossover_rates = control.draw(rng, memory, slice(1, 4), range(8))
        assert scale_factors.shape == crossover_rates.shape == (3, 8)
        assert (scale_factors > 0).all()
        assert (scale_factors <= 1).all()
        assert (crossover_rates >= 0).all()
        assert (crossover_rates <= 1).all()
        gains = rng.normal(size=(3, 8))
        control.learn(memory, slice(1, 4), (scale_factors, crossover_rates), gains >= 0, gains)
        for array in memory.values():
            assert np.isfinite(array).all()
            assert len(array) == 5
    fresh = control.begin(5, 8)
    for array_name, array in memory.items():  # nobody else has learnt anything
        np.testing.assert_array_equal(array[[0, 4]], fresh[array_name][[0, 4]])


def test_fixed_is_fixed_and_takes_no_random_numbers():
    scale_factors, crossover_rates = Fixed(0.1, 0.3).draw(None, {}, slice(0, 2), range(3, 6))
    np.testing.assert_array_equal(scale_factors, np.full((2, 3), 0.1))
    np.testing.assert_array_equal(crossover_rates, np.full((2, 3), 0.3))


def test_dither_is_uniform(rng):
    scale_factors, crossover_rates = MAKES["dither"].draw(rng, {}, slice(0, 100), range(100))
    assert (crossover_rates == 0.3).all()
    assert scale_factors.min() >= 0.05
    assert scale_factors.max() <= 0.5
    assert scale_factors.mean() == pytest.approx(0.275, abs=0.007)  # five standard deviations


def test_jde_winners_keep_what_they_were_made_with():
    control = JDE(0.1, 0.3, (0.2, 0.4), 0.25)
    memory = control.begin(2, 3)
    drawn = np.array([[0.21, 0.1, 0.25]]), np.array([[0.9, 0.3, 0.8]])
    wins = np.array([[True, True, False]])
    control.learn(memory, slice(1, 2), drawn, wins, np.array([[0.0, 1.0, -1.0]]))  # a tie wins
    np.testing.assert_array_equal(memory["scale_factors"], [[0.1] * 3, [0.21, 0.1, 0.1]])
    np.testing.assert_array_equal(memory["crossover_rates"], [[0.3] * 3, [0.9, 0.3, 0.3]])

    class Chances:
        def random(self, shape):
            assert shape == (4, 1, 2)
            # Redraw F? New F at this part of the range. Redraw CR? New CR.
            return np.array([[[0.3, 0.2]], [[0.5, 0.5]], [[0.1, 0.25]], [[0.7, 0.7]]])

    scale_factors, crossover_rates = control.draw(Chances(), memory, slice(1, 2), range(2))
    np.testing.assert_allclose(scale_factors, [[0.21, 0.3]])
    np.testing.assert_allclose(crossover_rates, [[0.7, 0.3]])
    control.keep(memory, np.array([[0, 1], [0, 2]]))
    np.testing.assert_array_equal(memory["scale_factors"], [[0.1, 0.1], [0.21, 0.1]])


def test_jde_redraws_as_often_as_it_should(rng):
    control = JDE(0.1, 0.3, (0.2, 0.4), 0.1)
    drawn = control.draw(rng, control.begin(100, 100), slice(0, 100), range(100))
    for values, carried in zip(drawn, (0.1, 0.3), strict=True):
        assert (values != carried).mean() == pytest.approx(0.1, abs=0.015)


def test_shade_memory_by_hand():
    control = SHADE(0.5, 0.6, 2)
    memory = control.begin(3, 4)
    drawn = (
        np.array([[0.2, 0.4, 0.9, 0.8], [0.1, 0.2, 0.3, 0.4]]),
        np.array([[0.1, 0.5, 0.7, 0.9], [0.1, 0.2, 0.3, 0.4]]),
    )
    gains = np.array([[0.3, 0.1, 0.0, -0.5], [0.0, -1.0, np.inf, np.nan]])
    control.learn(memory, slice(1, 3), drawn, gains >= 0, gains)
    # Subpopulation 1: the first two trials are better, the third ties, the fourth loses. Weights ¾
    # and ¼. F: (.75 · .04 + .25 · .16) / (.75 · .2 + .25 · .4) = .07 / .25; CR: .075 + .125.
    # Subpopulation 2 has no success that could be weighed.
    np.testing.assert_allclose(memory["scale_factors"], [[0.5, 0.5], [0.28, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(memory["crossover_rates"], [[0.6, 0.6], [0.2, 0.6], [0.6, 0.6]])
    np.testing.assert_array_equal(memory["places"], [0, 1, 0])
    for _ in range(2):
        gains = np.array([[-1, -1, 1e-300, -1], [-1, 2.0, -1, -1]])
        control.learn(memory, slice(1, 3), drawn, gains >= 0, gains)
    np.testing.assert_allclose(memory["scale_factors"], [[0.5, 0.5], [0.9, 0.9], [0.2, 0.2]])
    np.testing.assert_array_equal(memory["places"], [0, 1, 0])


def test_shade_draws_around_its_memories(rng):
    control = SHADE(0.4, 0.5, 3)
    memory = control.begin(200, 1)
    scale_factors, crossover_rates = control.draw(rng, memory, slice(0, 200), range(200))
    assert crossover_rates.mean() == pytest.approx(0.5, abs=0.003)
    assert crossover_rates.std() == pytest.approx(0.1, abs=0.003)
    # The Cauchy distribution's quartiles lie a spread away; 7.8 % of it, below 0, is drawn again.
    below = 0.5 - np.arctan(4) / np.pi
    for limit, quantile in ((0.3, 0.25), (0.4, 0.5), (0.5, 0.75)):
        expected = (quantile - below) / (1 - below)
        assert (scale_factors < limit).mean() == pytest.approx(expected, abs=0.012)


# ------------------------------------------------------------------------- pbest and the archive


@given(seeds, st.integers(1, 8), st.integers(0, 6))
def test_pbest_is_among_the_best_and_the_last_parent_may_be_archived(seed, n_best, room):
    rng = np.random.default_rng(seed)
    fitness = rng.integers(0, 5, (3, 8)).astype(float)
    n_archived = rng.integers(0, room + 1, 3)
    strategy = STRATEGIES["current-to-pbest/1"]
    parents = draw_parents(rng, strategy, fitness, range(8), n_best, n_archived)
    for i in range(3):
        worst_of_the_best = np.sort(fitness[i])[-n_best]
        for j in range(8):
            target, pbest, r1, r2 = parents[i, j]
            assert target == j
            assert fitness[i, pbest] >= worst_of_the_best
            assert len({j, r1, r2}) == 3
            assert 0 <= r1 < 8
            assert 0 <= r2 < 8 + n_archived[i]
    # What is archived has no fitness that counts.
    means = mean_fitness(fitness, parents)
    counted = [[fitness[i, p[p < 8]].mean() for p in parents[i]] for i in range(3)]
    np.testing.assert_allclose(means, counted)
    individuals, archived = rng.normal(size=(3, 8, 4)), rng.normal(size=(3, room, 4))
    scales = rng.uniform(0.1, 1, (3, 8))
    trials = make_trials(
        rng, individuals, range(8), parents, strategy, scales, "binomial", 1.0, archived
    )
    for i in range(3):
        pool = np.concatenate([individuals[i], archived[i]])
        for j in range(8):
            _, pbest, r1, r2 = pool[parents[i, j]]
            x = individuals[i, j]
            expected = x + scales[i, j] * (pbest - x) + scales[i, j] * (r1 - r2)
            np.testing.assert_allclose(trials[i, j], expected, atol=1e-12)


def test_the_last_parent_is_drawn_evenly_from_individuals_and_archive(rng):
    strategy, n = STRATEGIES["current-to-pbest/1"], 30_000
    parents = draw_parents(rng, strategy, np.zeros((n, 4)), range(1), 1, np.full(n, 3))
    counts = np.bincount(parents[:, 0, 3], minlength=7)
    assert counts[0] == 0  # the target
    # 1 to 3 are taken by r1 a third of the time: each of the rest is one of five.
    expected = n / 5 * np.array([0, 2 / 3, 2 / 3, 2 / 3, 1, 1, 1])
    np.testing.assert_allclose(counts, expected, atol=350)


@pytest.mark.parametrize("crossover", ["binomial", "exponential"])
def test_each_target_may_have_its_own_numbers(crossover, rng):
    individuals = rng.normal(size=(2, 5, 50))
    strategy = STRATEGIES["rand/1"]
    parents = draw_parents(rng, strategy, np.zeros((2, 5)), range(5))
    rates = np.array([[0.0, 1.0, 0.5, 0.0, 1.0], [1.0, 0.0, 1.0, 0.5, 0.0]])
    scales = rng.uniform(0.1, 1, (2, 5))
    trials = make_trials(rng, individuals, range(5), parents, strategy, scales, crossover, rates)
    changed = (trials != individuals).sum(axis=2)
    assert (changed[rates == 0] == 1).all()
    assert (changed[rates == 1] == 50).all()
    for i, j in zip(*np.nonzero(rates == 1), strict=True):
        r1, r2, r3 = individuals[i, parents[i, j]]
        np.testing.assert_allclose(trials[i, j], r1 + scales[i, j] * (r2 - r3), atol=1e-12)


def test_only_targets_that_were_bettered_are_archived():
    archived, n_archived = np.zeros((2, 3, 1)), np.array([0, 2])
    targets = np.array([[[1.0], [2], [3]], [[4], [5], [6]]])
    gains = np.array([[0.5, 0.0, -1.0], [0.1, 0.2, 0.3]])

    class Places:
        def random(self, shape):
            assert shape == (2, 3)
            return np.array([[0.9, 0.9, 0.9], [0.9, 0.0, 0.4]])

    archive_replaced(Places(), archived, n_archived, targets, gains)
    np.testing.assert_array_equal(n_archived, [1, 3])
    # The second archive has room for one; the next two go to places 0 and 1.
    np.testing.assert_array_equal(archived[..., 0], [[1, 0, 0], [5, 6, 4]])


# ---------------------------------------------------------------------------------- whole searches

SHADE_SETTINGS = {"control": "shade", "strategy": "current-to-pbest/1", "memory_size": 3}
CASES = {
    "dither": {"control": "dither"},
    "jde": {"control": "jde", "redraw_probability": 0.3},
    "shade": SHADE_SETTINGS,
    "shade, rand/1": {"control": "shade"},
    "no archive": {"strategy": "current-to-pbest/1", "archive_rate": 0.0},
    "shrinking": {"final_population_size": 4, "control": "jde"},
    "all": {
        **SHADE_SETTINGS, "final_population_size": 4, "reshuffle_batches": True,
        "final_batch_size": 20, "weight_decay": 0.1, "scale_initial_range": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_searches_with_every_control(case, synchronous):
    changes = {"population_size": 8, "max_generations": 20} | CASES[case]
    search = make_search(small(synchronous=synchronous, **changes))
    for _ in search:
        state = search.state
        size = state.fitness.shape[1]
        np.testing.assert_array_equal(state.champions, state.fitness.argmax(axis=1))
        np.testing.assert_array_equal(state.global_solution, search._compose(state.champions))
        assert {part.shape[1] for part in state.subpopulations} == {size}
        room = size if case in {"shade", "all"} else 0
        assert {archive.shape[1] for archive in state.archives} == {room}
        assert (state.n_archived <= room).all()
    assert state.best_validation > state.history.rows[0, 5]
    if case in {"shade", "all"}:
        assert state.n_archived.min() > 0


def test_a_search_learns_what_it_is_told():
    search = make_search(small(**SHADE_SETTINGS, max_generations=5))
    fresh = search.control.begin(*search.state.fitness.shape)
    search.run()
    memory = search.state.control
    assert (memory["places"] > 0).any()
    assert not np.array_equal(memory["scale_factors"], fresh["scale_factors"])


def test_another_control_begins_with_a_memory_of_its_own():
    first = make_search(small(max_generations=3))
    first.run()
    for changes in ({"control": "jde"}, SHADE_SETTINGS):
        settings = small(max_generations=first.state.generation + 3, **changes)
        search = Search(first.evaluator, first.decomposition, settings, state=first.state)
        search.run()
        assert set(search.state.control) == set(search.control.begin(1, 1))


# ------------------------------------------------------------------------------------- shrinking


def test_the_fittest_and_the_champion_stay():
    fitness = np.array([[0.1, 0.9, 0.5, 0.5], [0.0, 1.0, 1.0, 2.0]])
    survivors = choose_survivors(fitness, np.array([1, 0]), 2)
    # Of two equally fit the first one; the second subpopulation's champion is its least fit.
    np.testing.assert_array_equal(survivors, [[1, 2], [0, 3]])


def test_the_population_falls_linearly_along_the_budget():
    settings = small(population_size=12, final_population_size=4, max_generations=8)
    search = make_search(settings)
    sizes = [search.state.fitness.shape[1] for _ in search]
    assert sizes == [12, 11, 10, 9, 8, 7, 6, 5]


def test_the_share_of_a_budget():
    settings = Settings(max_evaluations=1000, max_generations=10)
    assert spent_share(settings, 100, 0) == 0.1
    assert spent_share(settings, 100, 3) == 0.3  # the nearer end counts
    assert spent_share(settings, 5000, 3) == 1.0


def test_archives_shrink_along():
    search = make_search(
        small(**SHADE_SETTINGS, population_size=12, final_population_size=4, max_generations=8)
    )
    search.run()
    assert {archive.shape[1] for archive in search.state.archives} == {5}
    assert search.state.n_archived.max() == 5
    assert search.state.evaluations == 30 * 2 + 2 * 6 * sum(range(5, 13))


# --------------------------------------------------------------------------------- search options


def test_batches_grow_along_the_budget():
    search = make_search(small(reshuffle_batches=True, final_batch_size=40, max_generations=8))
    sizes = []
    for _ in search:
        sizes.append(len(search.evaluator._batch))
    # 40 instances. Four batches of 10; after half the budget batches should have 25: two of 20.
    # After six of eight generations they should have 32 or 33: one of 40.
    assert sizes == [10, 10, 10, 10, 20, 20, 40, 40]


@pytest.mark.parametrize("decomposition", NAMES)
@pytest.mark.parametrize("limited", [True, False])
def test_weight_decay_is_taken_off_what_is_measured(decomposition, limited):
    changes = {"decomposition": decomposition, "group_size": 5, "limited_evaluation": limited}
    settings = replace(small(dtype="float64"), **changes)
    plain, decayed = (make_search(replace(settings, weight_decay=decay)) for decay in (0.0, 0.01))
    for search in (plain, decayed):
        search._timed(search._initialise)
    squares = np.concatenate([(p**2).mean(axis=2) for p in plain.state.subpopulations])
    np.testing.assert_allclose(decayed.state.fitness, plain.state.fitness - 0.01 * squares)
    # Validation does without.
    latest = decayed.state.history.latest
    networks = decayed.state.global_solution[np.newaxis]
    assert latest.validation_fitness == decayed.evaluator.validate_networks(networks)[0]


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("decomposition", NAMES)
def test_weight_decay_in_a_contest(decomposition, limited):
    changes = {"decomposition": decomposition, "group_size": 5, "limited_evaluation": limited}
    search = make_search(replace(small(weight_decay=0.5, dtype="float64"), **changes))
    search._timed(search._initialise)
    turn, shape = search._turns[0], search.state.fitness.shape
    tally = Tally.blank(shape)
    fitness = search.state.fitness[turn.here].copy()
    contest = search._reproduce(turn, tally)
    of_targets = 0.5 * (contest.targets**2).mean(axis=2)
    of_trials = 0.5 * (contest.trials**2).mean(axis=2)
    if not limited:  # a target's stored fitness has it off already, a trial inherits nothing
        np.testing.assert_allclose(contest.from_targets, fitness)
        np.testing.assert_allclose(contest.from_parents, -of_trials)
    else:
        np.testing.assert_allclose(contest.from_targets, 0.8 * fitness - of_targets)
        assert (contest.from_parents < 0.8 * fitness.max() - of_trials + 1e-12).all()


def test_weight_decay_keeps_weights_small():
    ends = [make_search(small(weight_decay=decay, max_generations=40)) for decay in (0.0, 0.1)]
    for search in ends:
        search.run()
    plain, decayed = ((search.state.global_solution**2).mean() for search in ends)
    assert decayed < plain / 2


def test_input_size_is_the_root_mean_square():
    data = Data(np.array([[3.0, -4.0], [0.0, 0.0]] * 5000), np.zeros(10_000, dtype=int))
    evaluator = ReferenceEvaluator(
        architecture := Architecture(2, (), 2), decompose("neuron", architecture),
        find_fitness("accuracy"), data, data,
    )  # fmt: skip
    assert evaluator.input_size == 2.5


@pytest.mark.parametrize("decomposition", NAMES)
@pytest.mark.parametrize("initial_range", [2.0, (2.0, 2.0)])
def test_initial_ranges_scaled_to_the_inputs(decomposition, initial_range):
    settings = Settings(
        hidden_layer_sizes=(9,), decomposition=decomposition, group_size=9, seed=1, batch_size=20,
        initial_range=initial_range, scale_initial_range=True,
    )  # fmt: skip
    search = make_search(settings)
    networks = np.stack([search._compose(np.full(len(search.decomposition), j)) for j in range(20)])
    reach = 2 / np.sqrt(4) / search.evaluator.input_size
    assert 0.98 < np.abs(networks[:, :45]).max() / reach <= 1.000001
    assert 0.65 < np.abs(networks[:, 45:]).max() <= 2 / 3  # 2 / √9


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"control": "magic"}, ValueError, "control='magic' is unknown; .* fixed, dither, jde, sh"),
        ({"scale_factor_range": 0.5}, TypeError, "scale_factor_range must be two numbers"),
        ({"scale_factor_range": (0, 1)}, ValueError, r"scale_factor_range\[0\] must be above 0"),
        ({"scale_factor_range": (0.5, 0.1)}, ValueError, r"range\[1\] must be at least 0.5"),
        ({"redraw_probability": 2}, ValueError, "redraw_probability must be"),
        ({"memory_size": 0}, ValueError, "memory_size must be at least 1"),
        ({"pbest_share": -1}, ValueError, "pbest_share must be"),
        ({"archive_rate": -1}, ValueError, "archive_rate must be"),
        ({"weight_decay": -1}, ValueError, "weight_decay must be"),
        ({"scale_initial_range": 1}, TypeError, "scale_initial_range must be True or False"),
        ({"final_population_size": 3}, ValueError, "final_population_size must be at least 4 for"),
        ({"final_population_size": 21}, ValueError, "must be at most population_size=20"),
        (
            {"final_population_size": 4, "max_evaluations": None, "max_seconds": 1},
            ValueError,
            "final_population_size needs a budget",
        ),
        ({"final_batch_size": 10}, ValueError, "must be at least batch_size=500"),
        (
            {"final_batch_size": 1000, "reshuffle_batches": False},
            ValueError,
            "needs limited_evaluation=True and reshuffle",
        ),
    ],
)
def test_settings_are_checked(change, error, message):
    with pytest.raises(error, match=message):
        Settings(**change)


def test_every_control_has_a_name():
    assert {name: type(control) for name, control in MAKES.items()} == CONTROLS
