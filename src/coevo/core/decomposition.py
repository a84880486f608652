"""Decomposition: which genes form each subpopulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer, check_name
from coevo.core.component import Component, find_component
from coevo.core.network import Architecture

_LONGEST_BLOCK = 4096  # subpopulations, so that the trials of a block take little memory

Genes = slice | Array
"""Positions of a subpopulation's genes in the genotype: a slice if they are contiguous."""


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A partition of the genotype into subcomponents, one subpopulation each.

    Parameters
    ----------
    name
        One of `NAMES`, or "custom".
    groups
        The genes of each subpopulation, in the order in which the search visits them.
    sizes
        Number of genes of each subpopulation.
    layer_of_gene : integer array of shape (n_genes,)
        The layer of each gene of the genotype.
    layer_inputs
        Number of inputs of each layer's neurons.
    gene_order : integer array of shape (n_genes,), or None
        The order of genes that random groups were cut from; None if the groups are not random.
    """

    name: str
    groups: tuple[Genes, ...]
    sizes: tuple[int, ...]
    layer_of_gene: Array
    layer_inputs: tuple[int, ...]
    gene_order: Array | None = None

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def is_random(self) -> bool:
        """Whether the groups are drawn at random."""
        return self.gene_order is not None

    def redraw(self, order: Array) -> Decomposition:
        """Return random groups cut from the genes in another order: as many, of nearly equal size.

        Within a group genes are in the genotype's order. Groups are sorted by first layer and size,
        so that there are few blocks.

        Parameters
        ----------
        order : integer array of shape (n_genes,)
            Every gene once.
        """
        return _cut(order, len(self), self.layer_of_gene, self.layer_inputs)

    @cached_property
    def first_layers(self) -> tuple[int, ...]:
        """For each subpopulation, the first layer whose neurons it owns genes of."""
        return tuple(int(self.layer_of_gene[group].min()) for group in self.groups)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """Runs of subpopulations that see the same inputs and have equally many genes.

        Subpopulations with the same first layer do not change the activations below it, so that
        the pre-activations of all their individuals are one matrix product. Long runs are cut.
        """
        blocks: list[range] = []
        start = 0
        for i in range(1, len(self) + 1):
            if (
                i == len(self)
                or i - start == _LONGEST_BLOCK
                or self.first_layers[i] != self.first_layers[start]
                or self.sizes[i] != self.sizes[start]
            ):
                blocks.append(range(start, i))
                start = i
        return tuple(blocks)

    @cached_property
    def genes_of_blocks(self) -> tuple[Array, ...]:
        """For each block, the genes of its k subpopulations: arrays of shape (k, genes)."""
        genes = np.arange(len(self.layer_of_gene))
        return tuple(np.stack([genes[self.groups[i]] for i in block]) for block in self.blocks)

    def compose(self, subpopulations: Sequence[Array], chosen: Array) -> Array:
        """Assemble a network from one individual of each subpopulation.

        Parameters
        ----------
        subpopulations : arrays of shape (k, NP, genes), one for each block
        chosen : integer array of shape (SP,)
            The individual of each subpopulation.

        Returns
        -------
        array of shape (n_genes,)
        """
        network = np.empty(len(self.layer_of_gene), dtype=subpopulations[0].dtype)
        blocks = zip(self.blocks, self.genes_of_blocks, subpopulations, strict=True)
        for block, genes, individuals in blocks:
            places = chosen[block.start : block.stop]
            network[genes] = individuals[np.arange(len(block)), places]
        return network


@dataclass
class RandomGroups(Component):
    """Random groups of genes, drawn anew every few generations.

    Parameters
    ----------
    size
        Genes in a group; the sizes of groups differ by one at most.
    redraw_every
        Generations between two draws.
    """

    name: ClassVar[str] = "random"
    size: int = 100
    redraw_every: int = 10

    def __post_init__(self) -> None:
        check_integer("size", self.size, 1)
        check_integer("redraw_every", self.redraw_every, 1)


Given = str | RandomGroups | Sequence[Sequence[int] | Array]
"""What a user may give as a decomposition."""


def find_decomposition(given: Any) -> Given:
    """Return a name of a fixed decomposition, a `RandomGroups` object, or the user's groups."""
    if isinstance(given, RandomGroups):
        return given
    if isinstance(given, str):
        if given.startswith(RandomGroups.name):
            known = {RandomGroups.name: RandomGroups}
            found = find_component("decomposition", given, known, RandomGroups)
            assert isinstance(found, RandomGroups)
            return found
        check_name("decomposition", given, NAMES)
    elif not isinstance(given, Sequence | np.ndarray) or getattr(given, "ndim", 1) == 0:
        raise TypeError(
            f"decomposition must be one of {', '.join(NAMES)}, or a list of arrays of gene "
            f"indices, got {given!r}"
        )
    else:
        _find_groups(given)
        given = list(given)  # unlike an array, it can be compared with a name
    chosen: Given = given
    return chosen


def decompose(decomposition: Given, architecture: Architecture) -> Decomposition:
    """Partition an architecture's genotype.

    Parameters
    ----------
    decomposition
        "whole" (one population of complete networks: DE and LEDE), "layer", "neuron" (one
        subpopulation for each post-synaptic neuron, the paper's heuristic: CCDE and LECCDE),
        "neuron_outgoing" (a neuron with the weights it feeds others by), "synapse" (one for each
        weight and bias), "random", or a list of arrays of gene indices that together hold every
        gene exactly once.
    architecture
        The network whose genes are partitioned.

    Notes
    -----
    Random groups are runs of consecutive genes here; `draw_state` draws them.
    """
    given = find_decomposition(decomposition)
    if isinstance(given, RandomGroups):
        n_genes = architecture.n_genes
        n_groups = max(1, round(n_genes / given.size))
        return _cut(np.arange(n_genes), n_groups, *_layers_of(architecture))
    if not isinstance(given, str):
        groups = _check_groups(given, architecture)
        return _from_groups("custom", groups, architecture)
    return _from_groups(given, _NAMED[given](architecture), architecture)


def _layers(architecture: Architecture) -> list[Genes]:
    return [slice(layer.start, layer.stop) for layer in architecture.layers]


def _neurons(architecture: Architecture) -> list[Genes]:
    return [
        slice(start, start + layer.genes_per_neuron)
        for layer in architecture.layers
        for start in range(layer.start, layer.stop, layer.genes_per_neuron)
    ]


def _neurons_outgoing(architecture: Architecture) -> list[Genes]:
    """Group each neuron's bias with its outgoing weights, in the first layer also incoming ones.

    A weight between two hidden neurons belongs to the one it comes from. What is left for an output
    neuron is its bias or, without hidden layers, its incoming weights and bias.
    """
    matrices = architecture.matrices(np.arange(architecture.n_genes))
    groups: list[Genes] = []
    for depth, matrix in enumerate(matrices):
        for neuron, incoming in enumerate(matrix):
            own = incoming if depth == 0 else incoming[-1:]
            outgoing = matrices[depth + 1][:, neuron] if depth + 1 < len(matrices) else own[:0]
            groups.append(as_slice(np.concatenate([own, outgoing])))
    return groups


_NAMED: dict[str, Callable[[Architecture], list[Genes]]] = {
    "whole": lambda architecture: [slice(0, architecture.n_genes)],
    "layer": _layers,
    "neuron": _neurons,
    "neuron_outgoing": _neurons_outgoing,
    "synapse": lambda architecture: [slice(d, d + 1) for d in range(architecture.n_genes)],
}

NAMES = (*_NAMED, RandomGroups.name)
"""The decompositions known by name."""


def _from_groups(name: str, groups: list[Genes], architecture: Architecture) -> Decomposition:
    layer_of_gene, layer_inputs = _layers_of(architecture)
    sizes = tuple(layer_of_gene[group].size for group in groups)
    return Decomposition(name, tuple(groups), sizes, layer_of_gene, layer_inputs)


def _layers_of(architecture: Architecture) -> tuple[Array, tuple[int, ...]]:
    """Return the layer of each gene, and the number of inputs of each layer's neurons."""
    genes_per_layer = [layer.stop - layer.start for layer in architecture.layers]
    layer_of_gene = np.repeat(np.arange(len(genes_per_layer)), genes_per_layer)
    return layer_of_gene, tuple(layer.n_inputs for layer in architecture.layers)


def _cut(
    order: Array, n_groups: int, layer_of_gene: Array, layer_inputs: tuple[int, ...]
) -> Decomposition:
    """Cut genes in some order into random groups; see `Decomposition.redraw`."""
    parts = [np.sort(part) for part in np.array_split(order, n_groups)]
    parts.sort(key=lambda part: (layer_of_gene[part[0]], -len(part)))
    groups, sizes = tuple(map(as_slice, parts)), tuple(map(len, parts))
    return Decomposition("random", groups, sizes, layer_of_gene, layer_inputs, order)


def _find_groups(given: Sequence[Any] | Array) -> list[Array]:
    """Return the user's gene lists as arrays of integers."""
    if len(given) == 0:
        raise ValueError("decomposition must hold at least one group of gene indices")
    groups = []
    for position, genes in enumerate(given):
        try:
            group = np.asarray(genes)
        except (TypeError, ValueError) as error:  # a ragged list
            raise ValueError(f"decomposition[{position}] is no array: {error}") from None
        if group.ndim != 1 or group.size == 0 or not np.issubdtype(group.dtype, np.integer):
            raise ValueError(
                f"decomposition[{position}] must be a non-empty one-dimensional array of integers, "
                f"got dtype {group.dtype} and shape {group.shape}"
            )
        groups.append(group)
    return groups


def _check_groups(
    given: Sequence[Sequence[int] | Array], architecture: Architecture
) -> list[Genes]:
    """Return the user's gene lists as groups; raise unless they are a partition of the genes."""
    groups = _find_groups(given)
    n_genes = architecture.n_genes
    indices = np.concatenate(groups)
    outside = indices[(indices < 0) | (indices >= n_genes)]
    if outside.size:
        raise ValueError(
            f"decomposition names gene {outside[0]}; the network's genes are 0 to {n_genes - 1}"
        )
    times = np.bincount(indices, minlength=n_genes)
    for wrong, what in ((times > 1, "more than once"), (times == 0, "in no group")):
        if wrong.any():
            raise ValueError(
                f"decomposition must hold each of the {n_genes} genes exactly once; "
                f"{wrong.sum()} of them are {what}, the first is gene {wrong.argmax()}"
            )
    return [as_slice(group) for group in groups]


def as_slice(positions: Array) -> Genes:
    """Return positions as a slice if they are contiguous: it gives views where indices copy."""
    if positions.size == 0:
        return slice(0, 0)
    if (np.diff(positions) == 1).all():
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions.astype(np.intp)
