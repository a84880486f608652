"""Groups of genes within one neuron: which are weights, which is the bias, what they connect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coevo.core.decomposition import Decomposition, Genes, as_slice
from coevo.core.network import Architecture

_NOTHING = slice(0, 0)


@dataclass(frozen=True)
class Group:
    """The genes of one subpopulation: some or all incoming weights of a neuron, its bias, and maybe
    outgoing weights of the same neuron.

    Parameters
    ----------
    layer, neuron
        The neuron that owns the genes.
    genes
        Their positions in the genotype.
    weights
        Positions of incoming weights in a vector of the subpopulation.
    inputs
        The neuron's inputs that these weights belong to, in the same order.
    bias
        Position of the bias in the vector, None if the group does not hold it.
    outgoing
        Positions of outgoing weights in the vector.
    fed
        The neurons of the next layer that these lead to, in the same order.
    is_whole
        Whether the group, as all groups of its block, holds all incoming weights and the bias, in
        the same positions.
    """

    layer: int
    neuron: int
    genes: Genes
    weights: Genes
    inputs: Genes
    bias: int | None
    outgoing: Genes
    fed: Genes
    is_whole: bool

    @property
    def has_outgoing(self) -> bool:
        """Whether the group holds outgoing weights."""
        return not (isinstance(self.outgoing, slice) and self.outgoing == _NOTHING)


class NeuronGroups:
    """The groups of a decomposition, if each is within one neuron.

    Attributes
    ----------
    are_within_neurons
        Whether every group is within one neuron. If not, the other attributes are meaningless.
    are_neurons
        Whether the groups are the neurons, in the genotype's order.
    layers, neurons : lists of integers, one for each group
    """

    def __init__(self, architecture: Architecture, decomposition: Decomposition) -> None:
        layers = decomposition.layer_of_gene
        starts, widths = np.array(
            [(layer.start, layer.genes_per_neuron) for layer in architecture.layers]
        ).T
        self._groups = decomposition.groups
        self._layer_of_gene, self._widths = layers, widths
        self._neuron_of_gene, self._column_of_gene = np.divmod(
            np.arange(len(layers)) - starts[layers], widths[layers]
        )
        genes = np.concatenate([genes.ravel() for genes in decomposition.genes_of_blocks])
        sizes = np.array(decomposition.sizes)
        first_genes = np.cumsum(sizes) - sizes
        # A group's neuron is in the lowest layer of its genes. Its genes there must be incoming
        # weights or the bias of one neuron; the others, outgoing weights of the same neuron.
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
        self.are_within_neurons = bool(((lowest == highest) & are_owned).all())
        self.layers: list[int] = owners.tolist()
        self.neurons: list[int] = lowest.tolist()
        n_neurons = [layer.n_neurons for layer in architecture.layers]
        self.are_neurons = np.array_equal(sizes, np.repeat(widths, n_neurons)) and np.array_equal(
            genes, np.arange(len(genes))
        )
        self._are_whole: list[bool] = []
        for block, group in zip(decomposition.blocks, decomposition.genes_of_blocks, strict=True):
            owner = self.layers[block.start]
            columns = np.where(layers[group] == owner, self._column_of_gene[group], -1)
            is_whole = (columns[0] >= 0).sum() == widths[owner] and (columns == columns[0]).all()
            self._are_whole += [bool(is_whole)] * len(block)

    def __getitem__(self, i: int) -> Group:
        """Return the genes of subpopulation i."""
        layer, genes = self.layers[i], self._groups[i]
        place = (layer, self.neurons[i], genes)
        width = int(self._widths[layer])
        if isinstance(genes, slice) and self._layer_of_gene[genes.stop - 1] == layer:
            first, size = int(self._column_of_gene[genes.start]), genes.stop - genes.start
            n_weights = min(first + size, width - 1) - first
            bias = n_weights if n_weights < size else None
            inputs = slice(first, first + n_weights)
            return Group(
                *place, slice(0, n_weights), inputs, bias, _NOTHING, _NOTHING, self._are_whole[i]
            )
        indices = np.arange(genes.start, genes.stop) if isinstance(genes, slice) else genes
        columns = self._column_of_gene[indices]
        is_incoming = self._layer_of_gene[indices] == layer
        weights = np.flatnonzero(is_incoming & (columns < width - 1))
        biases = np.flatnonzero(is_incoming & (columns == width - 1))
        outgoing = np.flatnonzero(~is_incoming)
        return Group(
            *place,
            as_slice(weights),
            as_slice(columns[weights]),
            int(biases[0]) if biases.size else None,
            as_slice(outgoing),
            as_slice(self._neuron_of_gene[indices[outgoing]]),
            self._are_whole[i],
        )
