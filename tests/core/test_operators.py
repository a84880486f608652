"""Mutation and crossover against their formulas; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.operators import CROSSOVERS, MUTATIONS, draw_parents, make_trials, mean_fitness

pytestmark = pytest.mark.without_jit

seeds = st.integers(0, 2**32 - 1)


@st.composite
def blocks(draw):
    """A block of subpopulations with its mutation, targets and fitness."""
    name = draw(st.sampled_from(sorted(MUTATIONS)))
    mutation = MUTATIONS[name]
    size = draw(st.integers(mutation.minimum_population_size, 12))
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
    mutation = MUTATIONS[name]
    parents = draw_parents(rng, mutation, fitness, targets)
    assert parents.shape == (len(fitness), len(targets), len(mutation.parents))
    assert parents.min() >= 0
    assert parents.max() < fitness.shape[1]
    columns = [c for c, kind in enumerate(mutation.parents) if kind in {"random", "donated"}]
    for i in range(len(fitness)):
        for t, j in enumerate(targets):
            drawn = parents[i, t, columns].tolist()
            assert len({*drawn, j}) == len(drawn) + 1
            for kind, parent in zip(mutation.parents, parents[i, t], strict=True):
                assert kind != "target" or parent == j
                assert kind != "best" or parent == fitness[i].argmax()


@given(blocks())
def test_a_mutants_fitness_is_the_mean_of_its_parents(block):
    name, rng, _, fitness, targets = block
    parents = draw_parents(rng, MUTATIONS[name], fitness, targets)
    rows = np.arange(len(fitness))[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(mean_fitness(fitness, parents), fitness[rows, parents].mean(axis=-1))


def test_every_triple_of_parents_is_equally_likely():
    rng = np.random.default_rng(1)
    mutation = MUTATIONS["rand/1"]
    size, n = 5, 40_000
    drawn = draw_parents(rng, mutation, np.zeros((n, size)), range(2, 3))[:, 0]
    triples, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(triples) == 4 * 3 * 2
    # Chi-squared with 23 degrees of freedom: 60 is beyond the 99.99th percentile.
    expected = n / len(triples)
    assert ((counts - expected) ** 2 / expected).sum() < 60


@given(blocks(), st.floats(0.01, 2))
def test_with_crossover_rate_one_the_trial_is_the_mutant(block, scale):
    name, rng, individuals, fitness, targets = block
    mutation = MUTATIONS[name]
    parents = draw_parents(rng, mutation, fitness, targets)
    expected = plain_mutants(name, individuals, fitness, targets, parents, scale)
    for crossover in CROSSOVERS:
        trials = make_trials(rng, individuals, targets, parents, mutation, scale, crossover, 1.0)
        np.testing.assert_allclose(trials, expected, atol=1e-12)


@given(blocks(), st.sampled_from(CROSSOVERS), st.floats(0, 1))
def test_trial_genes_come_from_target_or_mutant_and_one_at_least_from_the_mutant(
    block, crossover, rate
):
    name, rng, individuals, fitness, targets = block
    mutation = MUTATIONS[name]
    parents = draw_parents(rng, mutation, fitness, targets)
    before = individuals.copy()
    trials = make_trials(rng, individuals, targets, parents, mutation, 0.5, crossover, rate)
    np.testing.assert_array_equal(individuals, before)
    mutants = plain_mutants(name, individuals, fitness, targets, parents, 0.5)
    from_mutant = np.isclose(trials, mutants, rtol=1e-12, atol=1e-12)
    from_target = trials == individuals[:, targets.start : targets.stop]
    assert (from_mutant | from_target).all()
    assert from_mutant.any(axis=-1).all()


@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_with_crossover_rate_zero_one_gene_comes_from_the_mutant(crossover, rng):
    individuals = rng.normal(size=(3, 6, 40))
    mutation = MUTATIONS["rand/1"]
    parents = draw_parents(rng, mutation, np.zeros((3, 6)), range(6))
    trials = make_trials(rng, individuals, range(6), parents, mutation, 0.5, crossover, 0.0)
    assert ((trials != individuals).sum(axis=-1) == 1).all()


def test_binomial_crossover_meets_its_rate(rng):
    individuals = rng.normal(size=(10, 10, 1000))
    mutation = MUTATIONS["rand/1"]
    parents = draw_parents(rng, mutation, np.zeros((10, 10)), range(10))
    trials = make_trials(rng, individuals, range(10), parents, mutation, 0.5, "binomial", 0.3)
    share = (trials != individuals).mean()
    assert share == pytest.approx(0.3, abs=0.007)  # five standard deviations


def test_exponential_crossover_takes_a_run_with_geometric_length(rng):
    n_genes, rate = 30, 0.6
    individuals = rng.normal(size=(40, 20, n_genes))
    mutation = MUTATIONS["rand/1"]
    parents = draw_parents(rng, mutation, np.zeros((40, 20)), range(20))
    trials = make_trials(rng, individuals, range(20), parents, mutation, 0.5, "exponential", rate)
    changed = trials != individuals
    # A run that may wrap round: exactly one gene is changed while the one before it is not.
    beginnings = changed & ~np.roll(changed, 1, axis=-1)
    assert (beginnings.sum(axis=-1) == 1).all()
    lengths = changed.sum(axis=-1)
    assert lengths.mean() == pytest.approx(1 / (1 - rate), abs=0.4)
    assert (lengths >= 2).mean() == pytest.approx(rate, abs=0.09)


@given(seeds, st.integers(1, 8), st.integers(0, 6))
def test_pbest_is_among_the_best_and_the_last_parent_may_be_archived(seed, n_best, room):
    rng = np.random.default_rng(seed)
    fitness = rng.integers(0, 5, (3, 8)).astype(float)
    n_archived = rng.integers(0, room + 1, 3)
    mutation = MUTATIONS["current-to-pbest/1"]
    parents = draw_parents(rng, mutation, fitness, range(8), n_best, n_archived)
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
        rng, individuals, range(8), parents, mutation, scales, "binomial", 1.0, archived
    )
    for i in range(3):
        pool = np.concatenate([individuals[i], archived[i]])
        for j in range(8):
            _, pbest, r1, r2 = pool[parents[i, j]]
            x = individuals[i, j]
            expected = x + scales[i, j] * (pbest - x) + scales[i, j] * (r1 - r2)
            np.testing.assert_allclose(trials[i, j], expected, atol=1e-12)


def test_the_last_parent_is_drawn_evenly_from_individuals_and_archive(rng):
    mutation, n = MUTATIONS["current-to-pbest/1"], 30_000
    parents = draw_parents(rng, mutation, np.zeros((n, 4)), range(1), 1, np.full(n, 3))
    counts = np.bincount(parents[:, 0, 3], minlength=7)
    assert counts[0] == 0  # the target
    # 1 to 3 are taken by r1 a third of the time: each of the rest is one of five.
    expected = n / 5 * np.array([0, 2 / 3, 2 / 3, 2 / 3, 1, 1, 1])
    np.testing.assert_allclose(counts, expected, atol=350)


@pytest.mark.parametrize("crossover", ["binomial", "exponential"])
def test_each_target_may_have_its_own_numbers(crossover, rng):
    individuals = rng.normal(size=(2, 5, 50))
    mutation = MUTATIONS["rand/1"]
    parents = draw_parents(rng, mutation, np.zeros((2, 5)), range(5))
    rates = np.array([[0.0, 1.0, 0.5, 0.0, 1.0], [1.0, 0.0, 1.0, 0.5, 0.0]])
    scales = rng.uniform(0.1, 1, (2, 5))
    trials = make_trials(rng, individuals, range(5), parents, mutation, scales, crossover, rates)
    changed = (trials != individuals).sum(axis=2)
    assert (changed[rates == 0] == 1).all()
    assert (changed[rates == 1] == 50).all()
    for i, j in zip(*np.nonzero(rates == 1), strict=True):
        r1, r2, r3 = individuals[i, parents[i, j]]
        np.testing.assert_allclose(trials[i, j], r1 + scales[i, j] * (r2 - r3), atol=1e-12)
