"""The global solution's activations on some instances, and how they follow one changed neuron."""

from __future__ import annotations

import numpy as np

from coevo.evaluation._kernels import ACTIVATION_CODES, run_moved_layer
from coevo.evaluation.batched import Scratch, activation_function, weighted_sums
from coevo.network import Architecture, Array


class Surroundings:
    """The global solution's activations on some instances.

    Parameters
    ----------
    architecture
        The network's.
    inputs : array of shape (n_instances, n_inputs)

    Attributes
    ----------
    activations : list of arrays of shape (n, B)
        What each layer sees: the inputs, then each hidden layer's activations.
    sums : list of arrays of shape (H, B)
        Each layer's weighted sums; the last are the outputs.
    """

    def __init__(self, architecture: Architecture, inputs: Array) -> None:
        self._function = activation_function(architecture.activation, inputs.dtype)
        self._code = ACTIVATION_CODES[architecture.activation]
        self._n_layers = len(architecture.layers)
        self.activations: list[Array] = [inputs.T]
        self.sums: list[Array] = []

    def run(self, matrices: list[Array], first_layer: int = 0) -> None:
        """Run the network from a layer on."""
        del self.activations[first_layer + 1 :], self.sums[first_layer:]
        for matrix in matrices[first_layer:]:
            self._append(weighted_sums(matrix, self.activations[-1]))

    def _append(self, sums: Array) -> None:
        self.sums.append(sums)
        if len(self.sums) < self._n_layers:
            self.activations.append(self._function(sums))

    def move(
        self,
        matrices: list[Array],
        layer: int,
        neuron: int,
        sums: Array,
        outgoing: Array | None = None,
    ) -> None:
        """Give a neuron new sums (B,), and new outgoing weights if they do not stay.

        What it feeds moves along, one layer up.
        """
        if layer < self._n_layers - 1:
            activations = self._function(sums)
            before = self.activations[layer + 1][neuron]
            present = matrices[layer + 1][:, neuron]
            if outgoing is None:
                self.sums[layer + 1] += np.multiply.outer(present, activations - before)
            else:
                self.sums[layer + 1] += np.multiply.outer(outgoing, activations)
                self.sums[layer + 1] -= np.multiply.outer(present, before)
            self.activations[layer + 1][neuron] = activations
        self.sums[layer][neuron] = sums

    def outputs_with(
        self,
        matrices: list[Array],
        layer: int,
        neuron: int,
        sums: Array,
        scratch: Scratch,
        outgoing: Array | None = None,
    ) -> Array:
        """Return the outputs, (m, C, B), that other sums of one neuron, (m, B), would give.

        Its outgoing weights are others as well, (m, H), if these are given.
        """
        present = self.sums[min(layer + 1, self._n_layers - 1)]
        if layer == self._n_layers - 1:
            moved = scratch.array(0, (len(sums), *present.shape), sums.dtype)
            moved[:] = present
            moved[:, neuron] = sums
            return moved
        activations, before = self._function(sums), self.activations[layer + 1][neuron]
        weights = matrices[layer + 1][:, neuron]
        if outgoing is None and layer < self._n_layers - 2:
            matrix, slopes = matrices[layer + 2], np.ascontiguousarray(weights)
            above = scratch.array(0, (len(sums), len(matrix), sums.shape[1]), sums.dtype)
            run_moved_layer(present, slopes, activations - before, self._code, matrix, above)
            return self._run_on(matrices[layer + 3 :], above, scratch)
        moved = scratch.array(0, (len(sums), *present.shape), sums.dtype)
        if outgoing is None:
            shift = activations - before
            np.multiply(shift[:, np.newaxis, :], weights[:, np.newaxis], out=moved)
            moved += present
        else:
            np.multiply(activations[:, np.newaxis, :], outgoing[:, :, np.newaxis], out=moved)
            moved += present - np.multiply.outer(weights, before)
        return self._run_on(matrices[layer + 2 :], moved, scratch)

    def outputs_from(self, matrices: list[Array], layer: int, scratch: Scratch) -> Array:
        """Return the outputs, (C, B), that follow from a layer's present sums."""
        if layer >= self._n_layers - 1:
            return self.sums[-1]
        sums = scratch.array(0, self.sums[layer].shape, self.sums[layer].dtype)
        sums[:] = self.sums[layer]
        return self._run_on(matrices[layer + 1 :], sums, scratch)

    def _run_on(self, matrices: list[Array], sums: Array, scratch: Scratch) -> Array:
        """Run sums that lie in scratch memory, (…, H, B), through further layers."""
        for depth, matrix in enumerate(matrices, start=1):
            shape = (*sums.shape[:-2], len(matrix), sums.shape[-1])
            above = scratch.array(depth % 2, shape, sums.dtype)
            self._function(sums, out=sums)
            sums = weighted_sums(matrix, sums, out=above)
        return sums
