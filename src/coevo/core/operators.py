"""Mutation and crossover: mutant and trial vectors from subpopulations.

The operators work on a block of k subpopulations at once, an array of shape (k, NP, genes). Inner
loops are compiled; the random numbers they use are drawn beforehand from one NumPy generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coevo._typing import Array
from coevo.runtime.jit import compiled, copy
from coevo.runtime.random_streams import draw_lanes

TARGET, BEST, PBEST, RANDOM, DONATED = "target", "best", "pbest", "random", "donated"


@dataclass(frozen=True)
class Mutation:
    """How a mutant is made: a base individual plus scaled differences of others.

    Parameters
    ----------
    parents
        The kind of each parent: the target, the subpopulation's best, one of its best (pbest), or
        random. Random parents come last, distinct from each other and from the target. The last of
        them may be donated: drawn from individuals and donors (an archive) together.
    differences
        Pairs of positions in `parents`; each pair (p, m) adds F (x_p − x_m) to the base, which is
        the first parent.
    """

    parents: tuple[str, ...]
    differences: tuple[tuple[int, int], ...]

    @property
    def n_random(self) -> int:
        """Number of parents drawn at random."""
        return self.parents.count(RANDOM) + self.parents.count(DONATED)

    @property
    def uses_donors(self) -> bool:
        """Whether a parent may be a donor."""
        return DONATED in self.parents

    @property
    def minimum_population_size(self) -> int:
        """The random parents and the target must all be different individuals."""
        return self.n_random + 1


MUTATIONS: dict[str, Mutation] = {
    # v = x_r1 + F (x_r2 − x_r3), equation 1 of the paper
    "rand/1": Mutation((RANDOM, RANDOM, RANDOM), ((1, 2),)),
    # v = x_best + F (x_r1 − x_r2)
    "best/1": Mutation((BEST, RANDOM, RANDOM), ((1, 2),)),
    # v = x_r1 + F (x_r2 − x_r3) + F (x_r4 − x_r5)
    "rand/2": Mutation((RANDOM, RANDOM, RANDOM, RANDOM, RANDOM), ((1, 2), (3, 4))),
    # v = x_j + F (x_best − x_j) + F (x_r1 − x_r2)
    "current-to-best/1": Mutation((TARGET, BEST, RANDOM, RANDOM), ((1, 0), (2, 3))),
    # v = x_j + F (x_pbest − x_j) + F (x_r1 − x_r2), x_r2 perhaps from the archive (JADE, SHADE)
    "current-to-pbest/1": Mutation((TARGET, PBEST, RANDOM, DONATED), ((1, 0), (2, 3))),
}

CROSSOVERS = ("binomial", "exponential")


def draw_parents(
    rng: np.random.Generator,
    mutation: Mutation,
    fitness: Array,
    targets: range,
    n_best: int = 1,
    n_donors: Array | None = None,
) -> Array:
    """Choose the parents of each target's mutant: r1, r2, r3 for rand/1.

    Parameters
    ----------
    fitness : array of shape (k, NP)
        Fitness of a block of subpopulations; the best individual is the first of the fittest.
    targets
        The individuals to make mutants for.
    n_best
        Number of the fittest individuals that a pbest is drawn from.
    n_donors : integer array of shape (k,), optional
        Number of donors of each subpopulation; none if not given.

    Returns
    -------
    integer array of shape (k, len(targets), len(mutation.parents)); NP + a stands for the a-th
    donor
    """
    shape = (len(fitness), len(targets))
    parents = np.empty((*shape, len(mutation.parents)), dtype=np.int64)
    for column, kind in enumerate(mutation.parents):
        if kind == TARGET:
            parents[..., column] = np.arange(targets.start, targets.stop)
        elif kind == BEST:
            parents[..., column] = fitness.argmax(axis=1)[:, np.newaxis]
        elif kind == PBEST:
            fittest = np.argsort(-fitness, axis=1, kind="stable")[:, :n_best]
            places = rng.integers(n_best, size=shape)
            parents[..., column] = np.take_along_axis(fittest, places, axis=1)
    if n_donors is None or not mutation.uses_donors:
        n_donors = np.zeros(len(fitness), dtype=np.int64)
    uniforms = rng.random((*shape, mutation.n_random))
    others = parents[..., -mutation.n_random :]
    _draw_distinct(uniforms, targets.start, fitness.shape[1], n_donors, others)
    return parents


@compiled
def _draw_distinct(uniforms, first_target, population_size, n_donors, others):
    """Turn uniform numbers into indices that differ from each other and from the target.

    The c-th index is drawn from the population_size − 1 − c individuals not yet taken, the last one
    also from the donors: a number below that count, increased by one for each taken index that is
    not above it, in ascending order.
    """
    n_subpopulations, n_targets, n_random = uniforms.shape
    taken = np.empty(n_random + 1, dtype=np.int64)  # ascending
    for i in range(n_subpopulations):
        for t in range(n_targets):
            taken[0] = first_target + t
            for c in range(n_random):
                n_choices = population_size - 1 - c
                if c == n_random - 1:
                    n_choices += n_donors[i]
                index = int(uniforms[i, t, c] * n_choices)
                place = 0
                while place <= c and taken[place] <= index:
                    index += 1
                    place += 1
                for later in range(c, place - 1, -1):
                    taken[later + 1] = taken[later]
                taken[place] = index
                others[i, t, c] = index


@compiled
def mean_fitness(fitness, parents):
    """Line 25: the mutants' fitness Ft_v, the mean over their parents: (k, n_targets).

    Donors do not count: their fitness was measured on another batch and is not comparable.

    fitness: (k, NP), parents: (k, n_targets, n_parents).
    """
    n_subpopulations, n_targets, n_parents = parents.shape
    size = fitness.shape[1]
    means = np.empty((n_subpopulations, n_targets))
    for i in range(n_subpopulations):
        for t in range(n_targets):
            total, n_counted = 0.0, 0
            for c in range(n_parents):
                parent = parents[i, t, c]
                if parent < size:
                    total += fitness[i, parent]
                    n_counted += 1
            means[i, t] = total / n_counted
    return means


def make_trials(
    rng: np.random.Generator,
    subpopulations: Array,
    targets: range,
    parents: Array,
    mutation: Mutation,
    scale_factor: float | Array,
    crossover: str,
    crossover_rate: float | Array,
    donors: Array | None = None,
) -> Array:
    """Mutate and cross: one trial vector for each target.

    Parameters
    ----------
    subpopulations : array of shape (k, NP, genes)
    targets
        The individuals to make trials for.
    parents : integer array of shape (k, len(targets), n_parents)
        As `draw_parents` gives them.
    scale_factor : one number, or array of shape (k, len(targets))
        The paper's F.
    crossover_rate : one number, or array of shape (k, len(targets))
        The paper's CR.
    donors : array of shape (k, n, genes), optional
        Individuals outside of each subpopulation, if parents may be from there.

    Returns
    -------
    array of shape (k, len(targets), genes)
    """
    n_genes, dtype = subpopulations.shape[2], subpopulations.dtype
    shape = (len(subpopulations), len(targets))
    # Binomial: the gene that always comes from the mutant; exponential: the first that does.
    mutant_starts = rng.integers(n_genes, size=shape)
    trials = np.empty((*shape, n_genes), dtype=dtype)
    differences = np.array(mutation.differences)
    scales = _fill_array(shape, scale_factor).astype(dtype)
    rates = _fill_array(shape, crossover_rate)
    if donors is not None:
        # One array, so that the loops need not branch for each parent.
        subpopulations = np.concatenate([subpopulations, donors], axis=1)
    if crossover == "binomial":
        lanes = draw_lanes(rng, (*shape, n_genes))
        thresholds = np.rint(rates * 2**16).astype(np.uint32)  # meets the rate to within 2⁻¹⁷
        _cross_binomial(
            subpopulations, targets.start, parents, differences, scales,
            lanes, thresholds, mutant_starts, trials,
        )  # fmt: skip
    else:
        lengths = _draw_lengths(rng, rates, n_genes)
        _cross_exponential(
            subpopulations, targets.start, parents, differences, scales,
            lengths, mutant_starts, trials,
        )  # fmt: skip
    return trials


def _fill_array(shape: tuple[int, int], value: float | Array) -> Array:
    """Return one number for each target, in the memory layout that kernels are compiled for."""
    each = np.empty(shape)
    each[:] = value
    return each


def _draw_lengths(rng: np.random.Generator, rates: Array, n_genes: int) -> Array:
    """Draw how many neighbouring genes come from the mutant: L ≥ l with probability CR^(l−1)."""
    uniforms = 1.0 - rng.random(rates.shape)  # in (0, 1], so that the logarithm is finite
    inner = (rates > 0.0) & (rates < 1.0)
    lengths = 1.0 + np.floor(np.log(uniforms) / np.log(np.where(inner, rates, 0.5)))
    lengths = np.where(inner, lengths, np.where(rates == 0.0, 1, n_genes))
    return np.asarray(np.minimum(lengths, n_genes), dtype=np.int64)


@compiled
def _mutate_gene(individuals, parents, differences, scale, d):
    """Return gene d of the mutant v = x_base + F Σ (x_plus − x_minus); individuals: (NP, genes)."""
    gene = individuals[parents[0], d]
    for pair in range(len(differences)):
        plus, minus = parents[differences[pair, 0]], parents[differences[pair, 1]]
        gene += scale * (individuals[plus, d] - individuals[minus, d])
    return gene


@compiled
def _cross_binomial(
    subpopulations, first_target, parents, differences, scales, lanes, thresholds, starts, trials
):
    """Equations 1 and 2: u_d = v_d where rand ≤ CR or d is the one index drawn, else x_d.

    Mutation and crossover share one loop over the genes, for SIMD; each further difference takes
    one more such loop.
    """
    n_subpopulations, n_targets, n_genes = trials.shape
    for i in range(n_subpopulations):
        individuals = subpopulations[i]
        for t in range(n_targets):
            chosen, lane, trial = parents[i, t], lanes[i, t], trials[i, t]
            scale, threshold = scales[i, t], thresholds[i, t]
            target, base = individuals[first_target + t], individuals[chosen[0]]
            plus = individuals[chosen[differences[0, 0]]]
            minus = individuals[chosen[differences[0, 1]]]
            for d in range(n_genes):
                gene = base[d] + scale * (plus[d] - minus[d])
                trial[d] = gene if lane[d] < threshold else target[d]
            for pair in range(1, len(differences)):
                plus = individuals[chosen[differences[pair, 0]]]
                minus = individuals[chosen[differences[pair, 1]]]
                for d in range(n_genes):
                    gene = trial[d] + scale * (plus[d] - minus[d])
                    trial[d] = gene if lane[d] < threshold else trial[d]
            start = starts[i, t]
            trial[start] = _mutate_gene(individuals, chosen, differences, scale, start)


@compiled
def _cross_exponential(
    subpopulations, first_target, parents, differences, scales, lengths, starts, trials
):
    """Give u a run of genes from v that begins at a random gene and wraps round."""
    n_subpopulations, n_targets, n_genes = trials.shape
    for i in range(n_subpopulations):
        for t in range(n_targets):
            copy(subpopulations[i, first_target + t], trials[i, t])
            for step in range(lengths[i, t]):
                d = (starts[i, t] + step) % n_genes
                trials[i, t, d] = _mutate_gene(
                    subpopulations[i], parents[i, t], differences, scales[i, t], d
                )
