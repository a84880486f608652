"""Which genes form each subpopulation: all, a layer's, a neuron's, or the user's own groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coevo.errors import check_name
from coevo.network import Architecture, Array

NAMES = ("whole", "layer", "neuron")
"""The decompositions known by name."""

Genes = slice | Array
"""Where a subpopulation's genes lie in the genotype: a slice if they are neighbours."""


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
        How many genes each subpopulation has.
    layer_of_gene : integer array of shape (n_genes,)
        The layer that each gene of the genotype belongs to.
    layer_inputs
        How many inputs the neurons of each layer have.
    """

    name: str
    groups: tuple[Genes, ...]
    sizes: tuple[int, ...]
    layer_of_gene: Array
    layer_inputs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def first_layers(self) -> tuple[int, ...]:
        """For each subpopulation, the first layer whose neurons it owns genes of."""
        return tuple(int(self.layer_of_gene[group].min()) for group in self.groups)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """Runs of subpopulations that see the same inputs and have equally many genes.

        A subpopulation's genes meet the activations below its first layer. In a run of
        subpopulations with one first layer none can change those activations, so all of their
        individuals can meet them together, in one matrix product.
        """
        blocks: list[range] = []
        start = 0
        for i in range(1, len(self) + 1):
            if i == len(self) or (self.first_layers[i], self.sizes[i]) != (
                self.first_layers[start],
                self.sizes[start],
            ):
                blocks.append(range(start, i))
                start = i
        return tuple(blocks)


def decompose(
    decomposition: str | Sequence[Sequence[int] | Array], architecture: Architecture
) -> Decomposition:
    """Partition an architecture's genotype.

    Parameters
    ----------
    decomposition
        "whole" (one population of complete networks: DE and LEDE), "neuron" (one subpopulation for
        each post-synaptic neuron, the paper's heuristic: CCDE and LECCDE), "layer", or a list of
        arrays of gene indices that together hold every gene exactly once.
    architecture
        The network whose genes are partitioned.
    """
    if not isinstance(decomposition, str):
        groups = _check_groups(decomposition, architecture)
        return _from_groups("custom", groups, architecture)
    check_name("decomposition", decomposition, NAMES)
    layers = architecture.layers
    slices: list[Genes]
    if decomposition == "whole":
        slices = [slice(0, architecture.n_genes)]
    elif decomposition == "layer":
        slices = [slice(layer.start, layer.stop) for layer in layers]
    else:
        slices = [
            slice(start, start + layer.genes_per_neuron)
            for layer in layers
            for start in range(layer.start, layer.stop, layer.genes_per_neuron)
        ]
    return _from_groups(decomposition, slices, architecture)


def _from_groups(name: str, groups: list[Genes], architecture: Architecture) -> Decomposition:
    genes_per_layer = [layer.stop - layer.start for layer in architecture.layers]
    layer_of_gene = np.repeat(np.arange(len(genes_per_layer)), genes_per_layer)
    sizes = tuple(layer_of_gene[group].size for group in groups)
    layer_inputs = tuple(layer.n_inputs for layer in architecture.layers)
    return Decomposition(name, tuple(groups), sizes, layer_of_gene, layer_inputs)


def _check_groups(
    given: Sequence[Sequence[int] | Array], architecture: Architecture
) -> list[Genes]:
    """Turn the user's gene lists into groups, once they are known to be a partition."""
    if len(given) == 0:
        raise ValueError("decomposition must hold at least one group of gene indices")
    groups = [np.asarray(group) for group in given]
    for position, group in enumerate(groups):
        if group.ndim != 1 or group.size == 0 or not np.issubdtype(group.dtype, np.integer):
            raise ValueError(
                f"decomposition[{position}] must be a non-empty one-dimensional array of integers, "
                f"got dtype {group.dtype} and shape {group.shape}"
            )
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
    return [_as_slice(group) for group in groups]


def _as_slice(group: Array) -> Genes:
    """Prefer a slice, which gives views where indices give copies."""
    if (np.diff(group) == 1).all():
        return slice(int(group[0]), int(group[-1]) + 1)
    return group.astype(np.intp)
