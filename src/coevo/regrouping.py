"""Cuts the subpopulations anew when groups of genes have been drawn anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo.decomposition import Decomposition
from coevo.network import Array


def recut(
    subpopulations: Sequence[Array],
    fitness: Array,
    champions: Array,
    before: Decomposition,
    after: Decomposition,
) -> tuple[list[Array], Array]:
    """Cut complete networks, which the subpopulations are laid side by side as, into other parts.

    The j-th individuals of all subpopulations are the j-th network, once each champion has changed
    places with the individual 0: so the first network is the global solution, and stays in one
    piece. An individual's fitness becomes the mean over what its genes' owners had. As the
    champions were the fittest of their subpopulations, the parts of the global solution are the
    fittest of theirs again.

    Parameters
    ----------
    subpopulations : arrays of shape (k, NP, genes), one for each block of `before`
    fitness : array of shape (SP, NP)
    champions : integer array of shape (SP,)
    before, after
        Partitions of the same genes into as many groups.

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
