"""Selection: trials against targets, and the subpopulation's representative in the global solution.

A contest has three parts: the offspring that challenge targets, the rule that decides, and the
outcome. They are tuples of plain arrays, so that compiled loops take them as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from coevo._typing import Array
from coevo.runtime.jit import compiled, copy, fill

REPRESENTATIVES = ("auto", "best", "mean")
"""What may represent a subpopulation in the global solution; see `Settings`."""

STAYS, NOT_STAGED, IS_MEAN = -1, -2, -3  # what `select` returns if it is no candidate's position


class Offspring(NamedTuple):
    """The trials of k neighbouring subpopulations, and the fitness that they and targets inherit.

    Attributes
    ----------
    trials : array of shape (k, n_targets, genes)
    first_target
        Trial t competes with individual first_target + t.
    inherited_by_targets, inherited_by_trials : arrays of shape (k, n_targets)
        Added to the measured fitness.
    """

    trials: Array
    first_target: int
    inherited_by_targets: Array
    inherited_by_trials: Array


class Rule(NamedTuple):
    """What decides between target and trial, and what represents the subpopulation.

    Attributes
    ----------
    measures_targets
        Whether targets are measured as trials are (limited evaluation).
    accepts_ties
        Whether a trial that is exactly as fit as its target replaces it.
    takes_means
        Whether a subpopulation is represented by its mean, not by its fittest individual.
    completes
        Whether these are the subpopulations' last targets of the generation; representatives are
        then chosen.
    """

    measures_targets: bool
    accepts_ties: bool
    takes_means: bool
    completes: bool


class Outcome(NamedTuple):
    """What selection changes, for k subpopulations.

    Attributes
    ----------
    individuals : array of shape (k, NP, genes)
    fitness : array of shape (k, NP)
    champions : integer array of shape (k,)
        The fittest individual of each subpopulation.
    wins : boolean array of shape (k, NP)
        Where a trial has replaced its target in this generation.
    gains : array of shape (k, NP)
        Adjusted fitness of a target's trial minus its own.
    representatives : array of shape (k, genes)
        The subpopulation's part of the global solution, where it has moved.
    has_moved : boolean array of shape (k,)
    """

    individuals: Array
    fitness: Array
    champions: Array
    wins: Array
    gains: Array
    representatives: Array
    has_moved: Array


def find_candidates(offspring: Offspring, rule: Rule, outcome: Outcome) -> tuple[Array, ...]:
    """Return the vectors to measure, (k, n_targets, genes): trials and, if measured, targets."""
    if not rule.measures_targets:
        return (offspring.trials,)
    first, n_targets = offspring.first_target, offspring.trials.shape[1]
    return offspring.trials, outcome.individuals[:, first : first + n_targets]


@compiled
def _average(individuals, mean):
    fill(mean, mean.dtype.type(0))
    for j in range(len(individuals)):
        individual = individuals[j]
        for d in range(len(mean)):
            mean[d] += individual[d]
    for d in range(len(mean)):
        mean[d] /= len(individuals)


@compiled
def _find_largest(numbers):
    """Return the position of the largest number, or of the first NaN, as NumPy's argmax does."""
    place = 0
    for j in range(1, len(numbers)):
        largest, number = numbers[place], numbers[j]
        if number > largest or (number != number and largest == largest):  # noqa: PLR0124 - NaN
            place = j
    return place


@compiled
def select(offspring, rule, outcome, k, measured):
    """Lines 30 to 40 of Algorithm 1 for the k-th subpopulation; `outcome` is changed in place.

    A trial replaces its target if its adjusted fitness Ft′ = inherited + measured is larger, or
    equal if ties are accepted. The fitness of a target that is not measured is what it inherited.
    `measured`, (n_candidates,), is the fitness of the candidates.

    Returns
    -------
    position of the new representative among the candidates; STAYS if the representative is
    unchanged, IS_MEAN if it is the mean of the surviving candidates, NOT_STAGED otherwise
    """
    n_targets = offspring.trials.shape[1]
    individuals, fitness, wins = outcome.individuals[k], outcome.fitness[k], outcome.wins[k]
    for t in range(n_targets):
        j = offspring.first_target + t
        trial_fitness = offspring.inherited_by_trials[k, t] + measured[t]
        target_fitness = offspring.inherited_by_targets[k, t]
        if rule.measures_targets:
            target_fitness += measured[n_targets + t]
        outcome.gains[k, j] = trial_fitness - target_fitness
        ties = trial_fitness == target_fitness
        if trial_fitness > target_fitness or (ties and rule.accepts_ties):
            copy(offspring.trials[k, t], individuals[j])
            fitness[j] = trial_fitness
            wins[j] = True
        else:
            fitness[j] = target_fitness
    if not rule.completes:
        return STAYS
    fittest = _find_largest(fitness)
    stays = fittest == outcome.champions[k] and not wins[fittest]
    outcome.champions[k] = fittest
    if rule.takes_means:
        outcome.has_moved[k] = True
        _average(individuals, outcome.representatives[k])
        return IS_MEAN if rule.measures_targets and n_targets == len(individuals) else NOT_STAGED
    if stays:
        return STAYS
    outcome.has_moved[k] = True
    copy(individuals[fittest], outcome.representatives[k])
    place = fittest - offspring.first_target
    is_target = 0 <= place < n_targets
    if not is_target or not (wins[fittest] or rule.measures_targets):
        return NOT_STAGED
    return place if wins[fittest] else n_targets + place
