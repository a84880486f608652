"""A global solution on some instances, seen from one of its neurons."""

from __future__ import annotations

import numpy as np

from coevo.evaluation.batched import Scratch
from coevo.evaluation.surroundings import Surroundings
from coevo.network import Architecture, Array


class Scene:
    """The surroundings of one neuron at a time, which may move.

    Parameters
    ----------
    architecture
        The network's.
    solution : array of shape (n_genes,)
        The global solution; whoever moves a neuron writes its genes here.
    columns : array of shape (B, n_inputs), in Fortran's order
        The instances' inputs, each input's numbers side by side.
    """

    def __init__(self, architecture: Architecture, solution: Array, columns: Array) -> None:
        self.solution = solution
        self._matrices = architecture.matrices(solution)
        self._surroundings = Surroundings(architecture, columns)
        self._surroundings.run(self._matrices)
        self._layer, self._neuron = len(self._matrices) - 1, 0
        self._scratch = Scratch()

    def turn_to(self, layer: int, neuron: int) -> None:
        """Look at another neuron.

        What lies above the one left and the new one is run afresh: above the next layer it does
        not follow moves, and there rounding shall not pile up over many small moves.
        """
        if (layer, neuron) != (self._layer, self._neuron):
            self._surroundings.run(self._matrices, min(layer, self._layer) + 1)
            self._layer, self._neuron = layer, neuron

    @property
    def inputs(self) -> Array:
        """What the neuron sees: (n, B)."""
        return self._surroundings.activations[self._layer]

    @property
    def sums(self) -> Array:
        """The neuron's sums: (B,)."""
        return np.asarray(self._surroundings.sums[self._layer][self._neuron])

    @property
    def activations(self) -> Array:
        """The hidden neuron's activations: (B,)."""
        return np.asarray(self._surroundings.activations[self._layer + 1][self._neuron])

    @property
    def outgoing(self) -> Array:
        """The hidden neuron's outgoing weights: (neurons of the next layer,)."""
        return np.asarray(self._matrices[self._layer + 1][:, self._neuron])

    def outputs(self) -> Array:
        """Return the outputs, (C, B), of the global solution as it is now."""
        return self._surroundings.outputs_from(self._matrices, self._layer + 1, self._scratch)

    def outputs_with(self, sums: Array, outgoing: Array | None, scratch: Scratch) -> Array:
        """Return the outputs, (m, C, B), that other sums and outgoing weights would give.

        Parameters
        ----------
        sums : array of shape (m, B)
        outgoing : array of shape (m, neurons of the next layer), or None if they stay
        scratch
            Memory of the calling thread.
        """
        return self._surroundings.outputs_with(
            self._matrices, self._layer, self._neuron, sums, scratch, outgoing
        )

    def move(self, sums: Array, outgoing: Array | None) -> None:
        """Give the neuron new sums (B,) and, unless they stay, outgoing weights."""
        self._surroundings.move(self._matrices, self._layer, self._neuron, sums, outgoing)
