"""Mutation, crossover and selection against their formulas; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.operators import CROSSOVERS, STRATEGIES, draw_parents, make_trials, select

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
    columns = [c for c, kind in enumerate(strategy.parents) if kind == "random"]
    for i in range(len(fitness)):
        for t, j in enumerate(targets):
            drawn = parents[i, t, columns].tolist()
            assert len({*drawn, j}) == len(drawn) + 1
            for kind, parent in zip(strategy.parents, parents[i, t], strict=True):
                assert kind != "target" or parent == j
                assert kind != "best" or parent == fitness[i].argmax()


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


@given(st.integers(1, 8), seeds)
def test_selection_keeps_the_trial_if_it_is_at_least_as_fit(n_targets, seed):
    rng = np.random.default_rng(seed)
    size, first = 10, int(rng.integers(0, 10 - n_targets + 1))
    individuals = rng.normal(size=(size, 3))
    fitness = rng.integers(0, 3, size).astype(float)
    wins = np.zeros(size, dtype=bool)
    trials = rng.normal(size=(n_targets, 3))
    target_fitness = rng.integers(0, 3, n_targets).astype(float)
    trial_fitness = rng.integers(0, 3, n_targets).astype(float)
    old, old_fitness = individuals.copy(), fitness.copy()
    best = select(individuals, fitness, wins, first, trials, target_fitness, trial_fitness)
    for j in range(size):
        t = j - first
        if not 0 <= t < n_targets:
            expected, expected_fitness, won = old[j], old_fitness[j], False
        elif trial_fitness[t] >= target_fitness[t]:
            expected, expected_fitness, won = trials[t], trial_fitness[t], True
        else:
            expected, expected_fitness, won = old[j], target_fitness[t], False
        np.testing.assert_array_equal(individuals[j], expected)
        assert (fitness[j], wins[j]) == (expected_fitness, won)
    assert best == fitness.argmax()
