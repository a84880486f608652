"""Makes mutant and trial vectors from subpopulations, and selects who survives.

The operators work on a block of k subpopulations at once, an array of shape (k, NP, genes). Inner
loops are compiled; the random numbers they use are drawn beforehand from one NumPy generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coevo.compiling import compiled
from coevo.network import Array

TARGET, BEST, RANDOM = "target", "best", "random"


@dataclass(frozen=True)
class Strategy:
    """How a mutant is made: a base individual plus scaled differences of others.

    Parameters
    ----------
    parents
        What each parent is: the target, the subpopulation's best, or drawn at random. Random
        parents are distinct from each other and from the target.
    differences
        Pairs of positions in `parents`; each pair (p, m) adds F (x_p − x_m) to the base, which is
        the first parent.
    """

    parents: tuple[str, ...]
    differences: tuple[tuple[int, int], ...]

    @property
    def n_random(self) -> int:
        """Number of parents drawn at random."""
        return self.parents.count(RANDOM)

    @property
    def minimum_population_size(self) -> int:
        """The random parents and the target must all be different individuals."""
        return self.n_random + 1


STRATEGIES: dict[str, Strategy] = {
    # v = x_r1 + F (x_r2 − x_r3), equation 1 of the paper
    "rand/1": Strategy((RANDOM, RANDOM, RANDOM), ((1, 2),)),
    # v = x_best + F (x_r1 − x_r2)
    "best/1": Strategy((BEST, RANDOM, RANDOM), ((1, 2),)),
    # v = x_r1 + F (x_r2 − x_r3) + F (x_r4 − x_r5)
    "rand/2": Strategy((RANDOM, RANDOM, RANDOM, RANDOM, RANDOM), ((1, 2), (3, 4))),
    # v = x_j + F (x_best − x_j) + F (x_r1 − x_r2)
    "current-to-best/1": Strategy((TARGET, BEST, RANDOM, RANDOM), ((1, 0), (2, 3))),
}

CROSSOVERS = ("binomial", "exponential")


def draw_parents(
    rng: np.random.Generator, strategy: Strategy, fitness: Array, targets: range
) -> Array:
    """Choose the parents of each target's mutant.

    Parameters
    ----------
    rng
        Source of randomness.
    strategy
        Says what each parent is.
    fitness : array of shape (k, NP)
        Fitness of a block of subpopulations; the best individual is the first of the fittest.
    targets
        The individuals to make mutants for.

    Returns
    -------
    integer array of shape (k, len(targets), len(strategy.parents))
    """
    n_subpopulations, population_size = fitness.shape
    shape = (n_subpopulations, len(targets))
    target_indices = np.broadcast_to(np.arange(targets.start, targets.stop), shape)
    uniforms = rng.random((*shape, strategy.n_random))
    others = _distinct_others(uniforms, targets.start, population_size)
    parents = np.empty((*shape, len(strategy.parents)), dtype=np.int64)
    next_random = 0
    for column, kind in enumerate(strategy.parents):
        if kind == TARGET:
            parents[..., column] = target_indices
        elif kind == BEST:
            parents[..., column] = fitness.argmax(axis=1)[:, np.newaxis]
        else:
            parents[..., column] = others[..., next_random]
            next_random += 1
    return parents


@compiled
def _distinct_others(uniforms, first_target, population_size):
    """Turn uniform numbers into indices that differ from each other and from the target.

    The c-th index is drawn from the population_size − 1 − c individuals not yet taken: a number
    below that count is moved past every taken index that is not above it, in ascending order.
    """
    n_subpopulations, n_targets, n_random = uniforms.shape
    others = np.empty((n_subpopulations, n_targets, n_random), dtype=np.int64)
    taken = np.empty(n_random + 1, dtype=np.int64)  # ascending
    for i in range(n_subpopulations):
        for t in range(n_targets):
            taken[0] = first_target + t
            for c in range(n_random):
                index = int(uniforms[i, t, c] * (population_size - 1 - c))
                place = 0
                while place <= c and taken[place] <= index:
                    index += 1
                    place += 1
                for later in range(c, place - 1, -1):
                    taken[later + 1] = taken[later]
                taken[place] = index
                others[i, t, c] = index
    return others


def make_trials(
    rng: np.random.Generator,
    subpopulations: Array,
    targets: range,
    parents: Array,
    strategy: Strategy,
    scale_factor: float,
    crossover: str,
    crossover_rate: float,
) -> Array:
    """Mutate and cross: one trial vector for each target.

    Parameters
    ----------
    rng
        Source of randomness.
    subpopulations : array of shape (k, NP, genes)
    targets
        The individuals to make trials for.
    parents : integer array of shape (k, len(targets), n_parents)
        As `draw_parents` gives them.
    strategy
        How the parents make the mutant.
    scale_factor
        The paper's F.
    crossover
        One of `CROSSOVERS`.
    crossover_rate
        The paper's CR.

    Returns
    -------
    array of shape (k, len(targets), genes)
    """
    n_genes = subpopulations.shape[2]
    shape = (len(subpopulations), len(targets))
    mutant_starts = rng.integers(n_genes, size=shape)
    trials = np.empty((*shape, n_genes), dtype=subpopulations.dtype)
    differences = np.array(strategy.differences)
    scale = subpopulations.dtype.type(scale_factor)
    if crossover == "binomial":
        lanes, threshold = _draw_lanes(rng, (*shape, n_genes), crossover_rate)
        _cross_binomial(
            subpopulations, targets.start, parents, differences, scale,
            lanes, threshold, mutant_starts, trials,
        )  # fmt: skip
    else:
        lengths = _draw_lengths(rng, shape, n_genes, crossover_rate)
        _cross_exponential(
            subpopulations, targets.start, parents, differences, scale,
            lengths, mutant_starts, trials,
        )  # fmt: skip
    return trials


def _draw_lanes(
    rng: np.random.Generator, shape: tuple[int, ...], crossover_rate: float
) -> tuple[Array, int]:
    """Draw a 16-bit number for each gene, and the threshold below which the mutant's is taken.

    Four genes share one 64-bit draw: random numbers would otherwise cost more than making the
    trials. The rate is met to within 2⁻¹⁷.
    """
    n_lanes = int(np.prod(shape))
    words = rng.integers(2**64 - 1, size=-(-n_lanes // 4), dtype=np.uint64, endpoint=True)
    lanes = words.view(np.uint16)[:n_lanes].reshape(shape)
    return lanes, round(crossover_rate * 2**16)


def _draw_lengths(
    rng: np.random.Generator, shape: tuple[int, ...], n_genes: int, crossover_rate: float
) -> Array:
    """Draw how many neighbouring genes come from the mutant: L ≥ l with probability CR^(l−1)."""
    uniforms = 1.0 - rng.random(shape)  # in (0, 1], so that the logarithm is finite
    if crossover_rate in (0.0, 1.0):
        return np.full(shape, 1 if crossover_rate == 0.0 else n_genes)
    lengths = 1.0 + np.floor(np.log(uniforms) / np.log(crossover_rate))
    return np.asarray(np.minimum(lengths, n_genes), dtype=np.int64)


@compiled
def _mutate(individuals, parents, differences, scale, mutant):
    """Make one mutant v = x_base + F Σ (x_plus − x_minus); individuals: (NP, genes)."""
    base = individuals[parents[0]]
    for pair in range(len(differences)):
        plus = individuals[parents[differences[pair, 0]]]
        minus = individuals[parents[differences[pair, 1]]]
        for d in range(len(mutant)):
            mutant[d] = base[d] + scale * (plus[d] - minus[d])
        base = mutant


@compiled
def _cross_binomial(
    subpopulations, first_target, parents, differences, scale, lanes, threshold, starts, trials
):
    """Equation 2: u_d = v_d where rand ≤ CR or d is the one index drawn, else x_d."""
    n_subpopulations, n_targets, n_genes = trials.shape
    mutant = np.empty(n_genes, dtype=trials.dtype)
    for i in range(n_subpopulations):
        for t in range(n_targets):
            _mutate(subpopulations[i], parents[i, t], differences, scale, mutant)
            target = subpopulations[i, first_target + t]
            trial = trials[i, t]
            lane = lanes[i, t]
            for d in range(n_genes):
                trial[d] = mutant[d] if lane[d] < threshold else target[d]
            trial[starts[i, t]] = mutant[starts[i, t]]


@compiled
def _cross_exponential(
    subpopulations, first_target, parents, differences, scale, lengths, starts, trials
):
    """Give u a run of genes from v, beginning at a random one and wrapping round."""
    n_subpopulations, n_targets, n_genes = trials.shape
    mutant = np.empty(n_genes, dtype=trials.dtype)
    for i in range(n_subpopulations):
        for t in range(n_targets):
            _mutate(subpopulations[i], parents[i, t], differences, scale, mutant)
            trial = trials[i, t]
            trial[:] = subpopulations[i, first_target + t]
            start, stop = starts[i, t], starts[i, t] + lengths[i, t]
            for d in range(start, min(stop, n_genes)):
                trial[d] = mutant[d]
            for d in range(stop - n_genes):
                trial[d] = mutant[d]


@compiled
def select(individuals, fitness, wins, first_target, trials, target_fitness, trial_fitness):
    """Keep each trial that is at least as fit as its target, with its fitness.

    Parameters
    ----------
    individuals : array of shape (NP, genes), changed in place
        One subpopulation.
    fitness : array of shape (NP,), changed in place
        Its fitness.
    wins : boolean array of shape (NP,), changed in place
        Set where a trial takes its target's place.
    first_target
        Index of the first target; trial t competes with individual first_target + t.
    trials : array of shape (n_targets, genes)
    target_fitness, trial_fitness : arrays of shape (n_targets,)
        Adjusted fitness of the competitors.

    Returns
    -------
    index of the fittest individual afterwards, the first one if tied
    """
    for t in range(len(trials)):
        j = first_target + t
        if trial_fitness[t] >= target_fitness[t]:
            individuals[j] = trials[t]
            fitness[j] = trial_fitness[t]
            wins[j] = True
        else:
            fitness[j] = target_fitness[t]
    return fitness.argmax()
