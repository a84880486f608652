"""Mutation, crossover and selection against their formulas; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.operators import (
    CROSSOVERS,
    STRATEGIES,
    draw_parents,
    make_trials,
    mean_fitness,
)
from coevo.randomness import draw_lanes
from coevo.selection import IS_MEAN, NOT_STAGED, STAYS, Contest, select

pytestmark = pytest.mark.without_jit

seeds = st.integers(0, 2**32 - 1)


@st.composite
def blocks(draw):
    """A block of subpopulations with its strategy, targets and fitness."""
    name = draw(st.sampled_from(sorted(STRATEGIES)))
    strategy = STRATEGIES[name]
    size = draw(st.integers(strategy.minimum_population_size, 12))
    shape = (draw(st.integers(1, 4)), size, draw(st.integers(1, 9)))
    rng = np.random.default_rng(draw(seeds))
    start = draw(st.integers(0, size - 1))
    targets = range(start, draw(st.integers(start + 1, size)))
    return name, rng, rng.normal(size=shape), rng.normal(size=shape[:2]), targets


def plain_mutants(name, individuals, fitness, targets, parents, scale):
    """The textbook formulas, one target at a time."""
    mutants = np.empty((len(individuals), len(targets), individuals.shape[2]))
    for i, x in enumerate(individuals):
        best = x[fitness[i].argmax()]
        for t, j in enumerate(targets):
            r = [x[p] for p in parents[i, t]]
            mutants[i, t] = {
                "rand/1": lambda r: r[0] + scale * (r[1] - r[2]),
                "best/1": lambda r, best=best: best + scale * (r[1] - r[2]),
                "rand/2": lambda r: r[0] + scale * (r[1] - r[2]) + scale * (r[3] - r[4]),
                "current-to-best/1": lambda r, x=x, j=j, best=best: (
                    x[j] + scale * (best - x[j]) + scale * (r[2] - r[3])
                ),
                "current-to-pbest/1": lambda r, x=x, j=j: (
                    x[j] + scale * (r[1] - x[j]) + scale * (r[2] - r[3])
                ),
            }[name](r)
    return mutants


@given(blocks())
def test_random_parents_are_distinct_and_not_the_target(block):
    name, rng, _, fitness, targets = block
    strategy = STRATEGIES[name]
    parents = draw_parents(rng, strategy, fitness, targets)
    assert parents.shape == (len(fitness), len(targets), len(strategy.parents))
    assert parents.min() >= 0
    assert parents.max() < fitness.shape[1]
    columns = [c for c, kind in enumerate(strategy.parents) if kind in {"random", "archived"}]
    for i in range(len(fitness)):
        for t, j in enumerate(targets):
            drawn = parents[i, t, columns].tolist()
            assert len({*drawn, j}) == len(drawn) + 1
            for kind, parent in zip(strategy.parents, parents[i, t], strict=True):
                assert kind != "target" or parent == j
                assert kind != "best" or parent == fitness[i].argmax()


@given(blocks())
def test_a_mutants_fitness_is_the_mean_of_its_parents(block):
    name, rng, _, fitness, targets = block
    parents = draw_parents(rng, STRATEGIES[name], fitness, targets)
    rows = np.arange(len(fitness))[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(mean_fitness(fitness, parents), fitness[rows, parents].mean(axis=-1))


def test_every_triple_of_parents_is_equally_likely():
    rng = np.random.default_rng(1)
    strategy = STRATEGIES["rand/1"]
    size, n = 5, 40_000
    drawn = draw_parents(rng, strategy, np.zeros((n, size)), range(2, 3))[:, 0]
    triples, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(triples) == 4 * 3 * 2
    # Chi-squared with 23 degrees of freedom: 60 is beyond the 99.99th percentile.
    expected = n / len(triples)
    assert ((counts - expected) ** 2 / expected).sum() < 60


@given(blocks(), st.floats(0.01, 2))
def test_with_crossover_rate_one_the_trial_is_the_mutant(block, scale):
    name, rng, individuals, fitness, targets = block
    strategy = STRATEGIES[name]
    parents = draw_parents(rng, strategy, fitness, targets)
    expected = plain_mutants(name, individuals, fitness, targets, parents, scale)
    for crossover in CROSSOVERS:
        trials = make_trials(rng, individuals, targets, parents, strategy, scale, crossover, 1.0)
        np.testing.assert_allclose(trials, expected, atol=1e-12)


@given(blocks(), st.sampled_from(CROSSOVERS), st.floats(0, 1))
def test_trial_genes_come_from_target_or_mutant_and_one_at_least_from_the_mutant(
    block, crossover, rate
):
    name, rng, individuals, fitness, targets = block
    strategy = STRATEGIES[name]
    parents = draw_parents(rng, strategy, fitness, targets)
    before = individuals.copy()
    trials = make_trials(rng, individuals, targets, parents, strategy, 0.5, crossover, rate)
    np.testing.assert_array_equal(individuals, before)
    mutants = plain_mutants(name, individuals, fitness, targets, parents, 0.5)
    from_mutant = np.isclose(trials, mutants, rtol=1e-12, atol=1e-12)
    from_target = trials == individuals[:, targets.start : targets.stop]
    assert (from_mutant | from_target).all()
    assert from_mutant.any(axis=-1).all()


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_with_crossover_rate_zero_one_gene_comes_from_the_mutant(crossover, rng):
    individuals = rng.normal(size=(3, 6, 40))
    strategy = STRATEGIES["rand/1"]
    parents = draw_parents(rng, strategy, np.zeros((3, 6)), range(6))
    trials = make_trials(rng, individuals, range(6), parents, strategy, 0.5, crossover, 0.0)
    assert ((trials != individuals).sum(axis=-1) == 1).all()


def test_binomial_crossover_meets_its_rate(rng):
    individuals = rng.normal(size=(10, 10, 1000))
    strategy = STRATEGIES["rand/1"]
    parents = draw_parents(rng, strategy, np.zeros((10, 10)), range(10))
    trials = make_trials(rng, individuals, range(10), parents, strategy, 0.5, "binomial", 0.3)
    share = (trials != individuals).mean()
    assert share == pytest.approx(0.3, abs=0.007)  # five standard deviations


def test_exponential_crossover_takes_a_run_with_geometric_length(rng):
    n_genes, rate = 30, 0.6
    individuals = rng.normal(size=(40, 20, n_genes))
    strategy = STRATEGIES["rand/1"]
    parents = draw_parents(rng, strategy, np.zeros((40, 20)), range(20))
    trials = make_trials(rng, individuals, range(20), parents, strategy, 0.5, "exponential", rate)
    changed = trials != individuals
    # A run that may wrap round: exactly one gene is changed while the one before it is not.
    beginnings = changed & ~np.roll(changed, 1, axis=-1)
    assert (beginnings.sum(axis=-1) == 1).all()
    lengths = changed.sum(axis=-1)
    assert lengths.mean() == pytest.approx(1 / (1 - rate), abs=0.4)
    assert (lengths >= 2).mean() == pytest.approx(rate, abs=0.09)


def make_contest(individuals, trials, first_target=0, **changes):
    k, size, _ = individuals.shape
    defaults = Contest(
        individuals=individuals,
        fitness=np.zeros((k, size)),
        champions=np.zeros(k, dtype=np.int64),
        wins=np.zeros((k, size), dtype=bool),
        gains=np.zeros((k, size)),
        representatives=np.zeros_like(individuals[:, 0]),
        has_moved=np.zeros(k, dtype=bool),
        first_target=first_target,
        trials=trials,
        from_targets=np.zeros(trials.shape[:2]),
        from_parents=np.zeros(trials.shape[:2]),
        measures_targets=True,
        completes=True,
        takes_means=False,
    )
    return defaults._replace(**changes)


@given(st.integers(1, 8), st.booleans(), st.booleans(), st.booleans(), seeds)
def test_selection_keeps_the_trial_if_it_is_fitter_or_ties_are_accepted(
    n_targets, measures_targets, completes, accepts_ties, seed
):
    rng = np.random.default_rng(seed)
    size, first = 10, int(rng.integers(0, 10 - n_targets + 1))
    from_targets, from_parents = rng.integers(0, 3, (2, 2, n_targets)).astype(float)
    contest = make_contest(
        rng.normal(size=(2, size, 3)),
        rng.normal(size=(2, n_targets, 3)),
        first,
        fitness=rng.integers(0, 3, (2, size)).astype(float),
        champions=rng.integers(0, size, 2),
        from_targets=from_targets,
        from_parents=from_parents,
        measures_targets=measures_targets,
        completes=completes,
        accepts_ties=accepts_ties,
    )
    measured = rng.integers(0, 3, (1 + measures_targets) * n_targets).astype(float)
    trial_fitness = from_parents[1] + measured[:n_targets]
    target_fitness = from_targets[1] + (measured[n_targets:] if measures_targets else 0)
    old, old_fitness = contest.individuals.copy(), contest.fitness.copy()
    old_champions = contest.champions.copy()
    vectors = np.concatenate([part[1].copy() for part in contest.candidates])

    answer = select(contest, 1, measured)

    for j in range(size):
        t = j - first
        if not 0 <= t < n_targets:
            expected, expected_fitness, won = old[1, j], old_fitness[1, j], False
        elif trial_fitness[t] > target_fitness[t] - (0.5 if accepts_ties else 0):  # whole numbers
            expected, expected_fitness, won = contest.trials[1, t], trial_fitness[t], True
        else:
            expected, expected_fitness, won = old[1, j], target_fitness[t], False
        np.testing.assert_array_equal(contest.individuals[1, j], expected)
        assert (contest.fitness[1, j], contest.wins[1, j]) == (expected_fitness, won)
    # The neighbour is left alone.
    np.testing.assert_array_equal(contest.individuals[0], old[0])
    np.testing.assert_array_equal(contest.fitness[0], old_fitness[0])
    # The champion is the first of the fittest, and the answer says where its vector was staged.
    champion = contest.fitness[1].argmax() if completes else old_champions[1]
    moved = completes and (champion != old_champions[1] or contest.wins[1, champion])
    assert (contest.champions[1], contest.has_moved[1]) == (champion, moved)
    if not moved:
        assert answer == STAYS
    elif answer == NOT_STAGED:
        is_target = first <= champion < first + n_targets
        assert not is_target or not (contest.wins[1, champion] or measures_targets)
    else:
        np.testing.assert_array_equal(vectors[answer], contest.individuals[1, champion])
    if moved:
        np.testing.assert_array_equal(contest.representatives[1], contest.individuals[1, champion])


@given(st.integers(1, 6), st.booleans(), st.booleans(), seeds)
def test_the_mean_over_those_who_stay_may_represent_a_subpopulation(
    n_targets, measures_targets, completes, seed
):
    rng = np.random.default_rng(seed)
    size = 6
    contest = make_contest(
        rng.normal(size=(2, size, 3)), rng.normal(size=(2, n_targets, 3)),
        measures_targets=measures_targets, completes=completes, takes_means=True,
    )  # fmt: skip
    answer = select(contest, 1, rng.normal(size=(1 + measures_targets) * n_targets))
    assert contest.has_moved.tolist() == [False, completes]
    if not completes:
        assert answer == STAYS
        return
    expected = contest.individuals[1].mean(axis=0)
    np.testing.assert_allclose(contest.representatives[1], expected, rtol=1e-12, atol=1e-12)
    assert contest.champions[1] == contest.fitness[1].argmax()
    # The sums of all who stay are at hand only if all were candidates, targets too.
    assert answer == (IS_MEAN if measures_targets and n_targets == size else NOT_STAGED)


def test_lanes_are_uniform_and_independent():
    lanes = draw_lanes(np.random.default_rng(5), (64, 4099))
    assert lanes.shape == (64, 4099)
    assert lanes.dtype == np.uint16
    for bit in range(16):
        share = ((lanes >> bit) & 1).mean()
        assert share == pytest.approx(0.5, abs=0.005)  # five standard deviations
    counts = np.bincount(lanes.ravel() >> 8, minlength=256)
    expected = lanes.size / 256
    # Chi-squared with 255 degrees of freedom: 350 is beyond the 99.99th percentile.
    assert ((counts - expected) ** 2 / expected).sum() < 350
    # No correlation between neighbours, nor between the streams' successive numbers.
    centred = lanes.ravel() / 65535 - 0.5
    for lag in (1, 2, 32, 64, 65):
        correlation = (centred[lag:] * centred[:-lag]).mean() * 12
        assert abs(correlation) < 0.01


def test_lanes_come_from_the_generator():
    first, second, other = (draw_lanes(np.random.default_rng(seed), (3, 5)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
