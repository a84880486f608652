"""Random groups of genes that are drawn anew every few generations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer
from coevo.core.decomposition import Decomposition
from coevo.core.extensions.base import Extension, Memory

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch


@dataclass
class Regrouping(Extension):
    """Draws new groups; the global solution and the individuals' genes are kept.

    Memories of other extensions belong to subpopulations that no longer exist, and are reset. Under
    full evaluation, where fitness is not measured again, all individuals are measured in place.
    Under limited evaluation an individual inherits the mean fitness of its genes' former owners, as
    trials inherit from parents.

    Parameters
    ----------
    every
        Generations between two draws.
    """

    name: ClassVar[str] = "regrouping"
    every: int = 10

    def __post_init__(self) -> None:
        check_integer("every", self.every, 1)

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Remember the order of genes that the groups were cut from."""
        order = search.decomposition.gene_order
        assert order is not None
        return {"gene_order": order}

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Refuse what is not a permutation of the genes."""
        return super().fits(search, memory) and np.array_equal(
            np.sort(memory["gene_order"]), np.arange(len(memory["gene_order"]))
        )

    def resume(self, search: ExtensibleSearch) -> None:
        """Restore the groups that the search had."""
        order = search.memory(self)["gene_order"]
        if not np.array_equal(order, self.begin(search)["gene_order"]):
            search.regroup(search.decomposition.redraw(order))

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Draw new groups every so many generations."""
        state = search.state
        if state.generation == 0 or state.generation % self.every:
            return
        before = search.decomposition
        after = before.redraw(state.rng.permutation(len(state.global_solution)))
        state.subpopulations, state.fitness = recut(
            state.subpopulations, state.fitness, state.champions, before, after
        )
        state.champions[:] = 0
        search.regroup(after)
        search.forget()
        if not search.inheritance.measures_targets:
            search.measure_in_place(slice(0, search.evaluator.n_instances))


def recut(
    subpopulations: Sequence[Array],
    fitness: Array,
    champions: Array,
    before: Decomposition,
    after: Decomposition,
) -> tuple[list[Array], Array]:
    """Join subpopulations into complete networks and cut these along other groups.

    The j-th network consists of the j-th individuals of all subpopulations, after each champion has
    been swapped with individual 0; so the first network is the global solution. An individual's
    fitness becomes the mean over its genes' former owners. As champions were the fittest of their
    subpopulations, the parts of the global solution are the fittest of the new ones.

    Parameters
    ----------
    subpopulations : arrays of shape (k, NP, genes), one for each block of `before`
    fitness : array of shape (SP, NP)
    champions : integer array of shape (SP,)
    before, after
        Partitions of the same genes into equally many groups.

    Returns
    -------
    the subpopulations, one array for each block of `after`, and their fitness
    """
    size, n_genes = fitness.shape[1], len(before.layer_of_gene)
    networks = np.empty((size, n_genes), dtype=subpopulations[0].dtype)
    fitness_of_genes = np.empty((size, n_genes))
    for block, genes, individuals in zip(
        before.blocks, before.genes_of_blocks, subpopulations, strict=True
    ):
        here = np.arange(len(block))
        rows = np.tile(np.arange(size), (len(block), 1))
        rows[here, champions[block.start : block.stop]] = 0
        rows[:, 0] = champions[block.start : block.stop]
        networks[:, genes] = individuals[here, rows.T]
        fitness_of_genes[:, genes] = fitness[block.start : block.stop][here, rows.T][..., None]
    parts = [np.swapaxes(networks[:, genes], 0, 1).copy() for genes in after.genes_of_blocks]
    means = [fitness_of_genes[:, genes].mean(axis=2).T for genes in after.genes_of_blocks]
    return parts, np.concatenate(means)
