"""Of which neuron each group of genes is a part, and where in its vector which genes lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coevo.decomposition import Decomposition, Genes
from coevo.network import Architecture, Array


@dataclass(frozen=True)
class Layout:
    """What the genes of one group are.

    Parameters
    ----------
    weights
        Positions of incoming weights in the vector.
    inputs
        Which inputs of the neuron these weigh, in the same order.
    bias
        Position of the bias in the vector, None if the group does not hold it.
    outgoing
        Positions of outgoing weights in the vector.
    fed
        Which neurons of the next layer these go to, in the same order.
    """

    weights: Genes
    inputs: Genes
    bias: int | None
    outgoing: Genes
    fed: Genes

    @property
    def has_outgoing(self) -> bool:
        """Whether there are outgoing weights at all."""
        return self.outgoing is not _NOTHING


_NOTHING = slice(0, 0)


class Parts:
    """The groups of a decomposition as parts of neurons.

    A group is a part of a neuron if it holds some or all of its incoming weights and its bias and,
    besides, nothing but outgoing weights of the same neuron.

    Parameters
    ----------
    architecture, decomposition
        Which genes there are, and which groups.

    Attributes
    ----------
    are_parts
        Whether every group is a part of one neuron. If not, the rest means nothing.
    layers, neurons : lists of integers, one for each group
        Whose part it is.
    are_whole : list of booleans, one for each group
        Whether it holds all of its neuron's incoming weights and the bias, and so do all groups of
        its block, in the same places.
    """

    def __init__(self, architecture: Architecture, decomposition: Decomposition) -> None:
        layers = decomposition.layer_of_gene
        starts, widths = np.array(
            [(layer.start, layer.genes_per_neuron) for layer in architecture.layers]
        ).T
        self._groups = decomposition.groups
        self._layer_of_gene = layers
        self._neuron_of_gene, self._column_of_gene = np.divmod(
            np.arange(len(layers)) - starts[layers], widths[layers]
        )
        self._widths = widths
        genes = np.concatenate([genes.ravel() for genes in decomposition.genes_of_blocks])
        sizes = np.array(decomposition.sizes)
        first_genes = np.cumsum(sizes) - sizes
        owners = np.array(decomposition.first_layers)
        is_incoming = layers[genes] == np.repeat(owners, sizes)
        neurons = self._neuron_of_gene[genes]
        lowest = np.minimum.reduceat(np.where(is_incoming, neurons, len(layers)), first_genes)
        highest = np.maximum.reduceat(np.where(is_incoming, neurons, -1), first_genes)
        is_outgoing = (
            (layers[genes] == np.repeat(owners, sizes) + 1)
            & (self._column_of_gene[genes] == np.repeat(lowest, sizes))
            & (self._column_of_gene[genes] < widths[layers[genes]] - 1)
        )
        are_owned = np.logical_and.reduceat(is_incoming | is_outgoing, first_genes)
        self.are_parts = bool(((lowest == highest) & are_owned).all())
        self.layers: list[int] = owners.tolist()
        self.neurons: list[int] = lowest.tolist()
        self.are_whole: list[bool] = []
        for block, group in zip(decomposition.blocks, decomposition.genes_of_blocks, strict=True):
            owner = self.layers[block.start]
            columns = np.where(layers[group] == owner, self._column_of_gene[group], -1)
            is_whole = (columns[0] >= 0).sum() == widths[owner] and (columns == columns[0]).all()
            self.are_whole += [bool(is_whole)] * len(block)

    def layout(self, i: int) -> Layout:
        """Return what the genes of group i are."""
        group, width = self._groups[i], int(self._widths[self.layers[i]])
        if isinstance(group, slice) and self._layer_of_gene[group.stop - 1] == self.layers[i]:
            first = int(self._column_of_gene[group.start])
            size = group.stop - group.start
            n_weights = min(first + size, width - 1) - first
            bias = n_weights if n_weights < size else None
            return Layout(
                slice(0, n_weights), slice(first, first + n_weights), bias, _NOTHING, _NOTHING
            )
        genes = np.arange(group.start, group.stop) if isinstance(group, slice) else group
        columns = self._column_of_gene[genes]
        is_incoming = self._layer_of_gene[genes] == self.layers[i]
        weights = np.flatnonzero(is_incoming & (columns < width - 1))
        biases = np.flatnonzero(is_incoming & (columns == width - 1))
        outgoing = np.flatnonzero(~is_incoming)
        return Layout(
            _neighbours(weights),
            _neighbours(columns[weights]),
            int(biases[0]) if biases.size else None,
            _neighbours(outgoing),
            _neighbours(self._neuron_of_gene[genes[outgoing]]),
        )


def _neighbours(positions: Array) -> Genes:
    """Prefer a slice, which gives views where indices give copies."""
    if positions.size == 0:
        return _NOTHING
    if (np.diff(positions) == 1).all():
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions
