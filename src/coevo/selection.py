"""Selection: who stays in a subpopulation, and what stands for it in the global solution."""

from __future__ import annotations

from typing import NamedTuple

from coevo.compiling import compiled, copy
from coevo.network import Array

REPRESENTATIVES = ("auto", "best", "mean")
"""What may stand for a subpopulation in the global solution; see `Settings`."""

STAYS, NOT_STAGED, IS_MEAN = -1, -2, -3  # answers of `select` besides a candidate's position


class Contest(NamedTuple):
    """The targets of k neighbouring subpopulations and the trials that compete with them.

    Attributes
    ----------
    individuals : array of shape (k, NP, genes), changed by selection
    fitness : array of shape (k, NP), changed by selection
    champions : integer array of shape (k,), changed by selection
        The fittest individual of each subpopulation.
    wins : boolean array of shape (k, NP), changed by selection
        Where a trial has taken its target's place in this generation.
    gains : array of shape (k, NP), changed by selection
        By how much the adjusted fitness of a target's trial is above its own, for those done.
    representatives : array of shape (k, genes), changed by selection
        Each subpopulation's part of the global solution, where it has moved.
    has_moved : boolean array of shape (k,), changed by selection
        Where that part is not what it was before.
    first_target
        Index of the first target; trial t competes with individual first_target + t.
    trials : array of shape (k, n_targets, genes)
    from_targets, from_parents : arrays of shape (k, n_targets)
        Fitness inherited by the targets and by the trials.
    measures_targets
        Whether targets are measured as trials are.
    completes
        Whether these are the subpopulations' last targets, so that champions are chosen.
    takes_means
        Whether subpopulations are represented by their mean, not by their champion.
    accepts_ties
        Whether a trial that is exactly as fit as its target takes its place.
    """

    individuals: Array
    fitness: Array
    champions: Array
    wins: Array
    gains: Array
    representatives: Array
    has_moved: Array
    first_target: int
    trials: Array
    from_targets: Array
    from_parents: Array
    measures_targets: bool
    completes: bool
    takes_means: bool
    accepts_ties: bool = True

    @property
    def targets(self) -> Array:
        """A view of the individuals that are challenged: (k, n_targets, genes)."""
        return self.individuals[:, self.first_target : self.first_target + self.trials.shape[1]]

    @property
    def candidates(self) -> tuple[Array, ...]:
        """The vectors to be measured: the trials, then the targets if they are; (k, n, genes)."""
        return (self.trials, self.targets) if self.measures_targets else (self.trials,)


@compiled
def _average(individuals, mean):
    mean[:] = 0
    for j in range(len(individuals)):
        individual = individuals[j]
        for d in range(len(mean)):
            mean[d] += individual[d]
    for d in range(len(mean)):
        mean[d] /= len(individuals)


@compiled
def select(contest, k, measured):
    """Keep each trial that is fitter than its target, or as fit if ties are accepted.

    Those of the k-th subpopulation compete with their adjusted fitness Ft′, what they inherited
    plus what was measured. A target that is not measured again has what it inherited.

    Parameters
    ----------
    contest : Contest
        Its arrays are changed in place.
    k
        Which of the contest's subpopulations.
    measured : array of shape (n_candidates,)
        Fitness measured of the candidates.

    Returns
    -------
    position among the candidates of the new representative; STAYS if it stays what it was,
    IS_MEAN if it is the mean over what is left of the candidates, NOT_STAGED if it is none of these
    """
    n_targets = contest.trials.shape[1]
    individuals, fitness, wins = contest.individuals[k], contest.fitness[k], contest.wins[k]
    for t in range(n_targets):
        j = contest.first_target + t
        trial_fitness = contest.from_parents[k, t] + measured[t]
        target_fitness = contest.from_targets[k, t]
        if contest.measures_targets:
            target_fitness += measured[n_targets + t]
        contest.gains[k, j] = trial_fitness - target_fitness
        ties = trial_fitness == target_fitness
        if trial_fitness > target_fitness or (ties and contest.accepts_ties):
            copy(contest.trials[k, t], individuals[j])
            fitness[j] = trial_fitness
            wins[j] = True
        else:
            fitness[j] = target_fitness
    if not contest.completes:
        return STAYS
    fittest = fitness.argmax()
    stays = fittest == contest.champions[k] and not wins[fittest]
    contest.champions[k] = fittest
    if contest.takes_means:
        contest.has_moved[k] = True
        _average(individuals, contest.representatives[k])
        return IS_MEAN if contest.measures_targets and n_targets == len(individuals) else NOT_STAGED
    if stays:
        return STAYS
    contest.has_moved[k] = True
    copy(individuals[fittest], contest.representatives[k])
    place = fittest - contest.first_target
    is_target = 0 <= place < n_targets
    if not is_target or not (wins[fittest] or contest.measures_targets):
        return NOT_STAGED
    return place if wins[fittest] else n_targets + place
