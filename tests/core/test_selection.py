"""Selection against its rules; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.selection import IS_MEAN, NOT_STAGED, STAYS, find_candidates, select

pytestmark = pytest.mark.without_jit

seeds = st.integers(0, 2**32 - 1)


@given(st.integers(1, 8), st.booleans(), st.booleans(), st.booleans(), seeds)
def test_selection_keeps_the_trial_if_it_is_fitter_or_ties_are_accepted(
    make_contest, n_targets, measures_targets, completes, accepts_ties, seed
):
    rng = np.random.default_rng(seed)
    size, first = 10, int(rng.integers(0, 10 - n_targets + 1))
    from_targets, from_parents = rng.integers(0, 3, (2, 2, n_targets)).astype(float)
    offspring, _, outcome = contest = make_contest(
        rng.normal(size=(2, size, 3)),
        rng.normal(size=(2, n_targets, 3)),
        first,
        fitness=rng.integers(0, 3, (2, size)).astype(float),
        champions=rng.integers(0, size, 2),
        inherited_by_targets=from_targets,
        inherited_by_trials=from_parents,
        measures_targets=measures_targets,
        completes=completes,
        accepts_ties=accepts_ties,
    )
    measured = rng.integers(0, 3, (1 + measures_targets) * n_targets).astype(float)
    trial_fitness = from_parents[1] + measured[:n_targets]
    target_fitness = from_targets[1] + (measured[n_targets:] if measures_targets else 0)
    old, old_fitness = outcome.individuals.copy(), outcome.fitness.copy()
    old_champions = outcome.champions.copy()
    vectors = np.concatenate([part[1].copy() for part in find_candidates(*contest)])

    answer = select(*contest, 1, measured)

    for j in range(size):
        t = j - first
        if not 0 <= t < n_targets:
            expected, expected_fitness, won = old[1, j], old_fitness[1, j], False
        elif trial_fitness[t] > target_fitness[t] - (0.5 if accepts_ties else 0):  # whole numbers
            expected, expected_fitness, won = offspring.trials[1, t], trial_fitness[t], True
        else:
            expected, expected_fitness, won = old[1, j], target_fitness[t], False
        np.testing.assert_array_equal(outcome.individuals[1, j], expected)
        assert (outcome.fitness[1, j], outcome.wins[1, j]) == (expected_fitness, won)
    # The neighbour is left alone.
    np.testing.assert_array_equal(outcome.individuals[0], old[0])
    np.testing.assert_array_equal(outcome.fitness[0], old_fitness[0])
    # The champion is the first of the fittest, and the answer says where its vector was staged.
    champion = outcome.fitness[1].argmax() if completes else old_champions[1]
    moved = completes and (champion != old_champions[1] or outcome.wins[1, champion])
    assert (outcome.champions[1], outcome.has_moved[1]) == (champion, moved)
    if not moved:
        assert answer == STAYS
    elif answer == NOT_STAGED:
        is_target = first <= champion < first + n_targets
        assert not is_target or not (outcome.wins[1, champion] or measures_targets)
    else:
        np.testing.assert_array_equal(vectors[answer], outcome.individuals[1, champion])
    if moved:
        np.testing.assert_array_equal(outcome.representatives[1], outcome.individuals[1, champion])


@given(st.integers(1, 6), st.booleans(), st.booleans(), seeds)
def test_the_mean_over_those_who_stay_may_represent_a_subpopulation(
    make_contest, n_targets, measures_targets, completes, seed
):
    rng = np.random.default_rng(seed)
    size = 6
    _, _, outcome = contest = make_contest(
        rng.normal(size=(2, size, 3)), rng.normal(size=(2, n_targets, 3)),
        measures_targets=measures_targets, completes=completes, takes_means=True,
    )  # fmt: skip
    answer = select(*contest, 1, rng.normal(size=(1 + measures_targets) * n_targets))
    assert outcome.has_moved.tolist() == [False, completes]
    if not completes:
        assert answer == STAYS
        return
    expected = outcome.individuals[1].mean(axis=0)
    np.testing.assert_allclose(outcome.representatives[1], expected, rtol=1e-12, atol=1e-12)
    assert outcome.champions[1] == outcome.fitness[1].argmax()
    # The sums of all who stay are at hand only if all were candidates, targets too.
    assert answer == (IS_MEAN if measures_targets and n_targets == size else NOT_STAGED)
