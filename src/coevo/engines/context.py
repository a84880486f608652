"""The global solution on some instances, and how it follows one changed neuron."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.network import Architecture
from coevo.engines.groups import Group
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.engines.kernels.layers import multiply_in_order, run_shifted_layer
from coevo.engines.passes import Scratch, activation_function, pre_activate


class Surroundings(NamedTuple):
    """What a neuron adds to: the next layer's pre-activations are base + outgoing (a − before).

    For an output neuron base is the outputs.

    Attributes
    ----------
    base : array of shape (H, B)
    outgoing, before : arrays of shape (H,) and (B,), None for an output neuron
        The neuron's outgoing weights, and its activations in base.
    """

    base: Array
    outgoing: Array | None
    before: Array | None


class Context:
    """The global solution's pre-activations and activations on some instances.

    A changed neuron moves the next layer's pre-activations along; what is above is out of date
    until `turn_to` or `run`.

    Parameters
    ----------
    global_solution : array of shape (n_genes,)
        Changed in place by `replace`.
    inputs : array of shape (n_instances, n_inputs)
    keeps_ties
        Whether instances with equal activations must get exactly equal outputs. Outputs are then
        computed from activations, not moved along.

    Attributes
    ----------
    activations : list of arrays of shape (n, B)
        What each layer sees: the inputs, then each hidden layer's activations.
    pre_activations : list of arrays of shape (H, B)
        Each layer's; the last are the outputs.
    matrices : list of views of the global solution, (H, n + 1)
    """

    def __init__(
        self, architecture: Architecture, global_solution: Array, inputs: Array, keeps_ties: bool
    ) -> None:
        self.global_solution = global_solution
        self.matrices = architecture.matrices(global_solution)
        self._activate = activation_function(architecture.activation, inputs.dtype)
        self._code = ACTIVATION_CODES[architecture.activation]
        self._last = len(self.matrices) - 1
        self._keeps_ties = keeps_ties and self._last > 0
        self.activations: list[Array] = [inputs.T]
        self.pre_activations: list[Array] = []
        self.run()

    def run(self, first_layer: int = 0) -> None:
        """Run the network from a layer on."""
        del self.activations[first_layer + 1 :], self.pre_activations[first_layer:]
        for matrix in self.matrices[first_layer:]:
            self.pre_activations.append(pre_activate(matrix, self.activations[-1]))
            if len(self.pre_activations) <= self._last:
                self.activations.append(self._activate(self.pre_activations[-1]))
        self._lowest_moved, self._n_moves = self._last + 1, 0  # since this run

    def turn_to(self, group: Group) -> None:
        """Bring up to date what the group's neuron sees and feeds.

        After as many moves as the layer has neurons, what they moved is run afresh too, so that
        rounding does not pile up over many small moves.
        """
        many = len(self.matrices[group.layer])
        if self._lowest_moved < group.layer or self._n_moves >= many:
            self.run(self._lowest_moved + 1)

    def count_moves(self, layer: int, n_moves: int = 1) -> None:
        """Note that neurons of a layer have moved, and what they feed with them."""
        if n_moves:
            self._lowest_moved = min(self._lowest_moved, layer)
            self._n_moves += n_moves

    def find_pre_activations(self, group: Group, vectors: Array) -> Array:
        """Return the neuron's pre-activations, (…, B), with vectors (…, genes) in place of a group.

        If some of the incoming weights w go to w′, they go from s to s + Σ (w′_d − w_d) x_d.
        """
        shift = vectors if group.is_whole else vectors - self.global_solution[group.genes]
        inputs, weights = self.activations[group.layer][group.inputs], shift[..., group.weights]
        # One weight needs no product.
        pre_activations: Array = weights * inputs[0] if len(inputs) == 1 else weights @ inputs
        if group.bias is not None:
            pre_activations += shift[..., [group.bias]]
        if not group.is_whole:
            pre_activations += self.pre_activations[group.layer][group.neuron]
        return pre_activations

    def replace(self, group: Group, individual: Array, pre_activations: Array) -> None:
        """Put an individual into the global solution, given the pre-activations that it makes.

        If the neuron's outgoing weights go from v to v′ while its activation goes from a to a′, the
        next layer's pre-activations go from t to t − v a + v′ a′.
        """
        layer, neuron = group.layer, group.neuron
        if layer < self._last:
            activations = self._activate(pre_activations)
            before = self.activations[layer + 1][neuron]
            present, above = self.matrices[layer + 1][:, neuron], self.pre_activations[layer + 1]
            if group.has_outgoing:
                outgoing = self.find_outgoing(group, individual)
                above += np.multiply.outer(outgoing, activations)
                above -= np.multiply.outer(present, before)
            else:
                above += np.multiply.outer(present, activations - before)
            self.activations[layer + 1][neuron] = activations
        self.pre_activations[layer][neuron] = pre_activations
        self.global_solution[group.genes] = individual
        self.count_moves(layer)

    def find_outgoing(self, group: Group, vectors: Array) -> Array:
        """Return all outgoing weights, (…, H), that vectors (…, genes) in place of a group give."""
        present = self.matrices[group.layer + 1][:, group.neuron]
        outgoing = np.broadcast_to(present, (*vectors.shape[:-1], len(present))).copy()
        outgoing[..., group.fed] = vectors[..., group.outgoing]
        return outgoing

    # --------------------------------------------------------------------------------- outputs

    def find_outputs(self, scratch: Scratch) -> Array:
        """Return the outputs, (C, B), of the global solution as it is now."""
        layer = min(self._lowest_moved + 1, self._last)  # its pre-activations have moved along
        if self._keeps_ties:
            values = self._multiply(self.matrices[layer], self.activations[layer])
        elif layer == self._last:
            return self.pre_activations[-1]
        else:
            present = self.pre_activations[layer]
            values = scratch.array(0, present.shape, present.dtype)
            values[:] = present
        return self._run_on(self.matrices[layer + 1 :], values, scratch)

    def look_around(self, group: Group) -> Surroundings:
        """Return what the group's neuron adds to."""
        layer, neuron = group.layer, group.neuron
        above = min(layer + 1, self._last)
        if layer == self._last:
            base = self.pre_activations[-1]
            if self._keeps_ties:
                base = self._multiply(self.matrices[-1], self.activations[-1])
            return Surroundings(base, None, None)
        outgoing = np.ascontiguousarray(self.matrices[above][:, neuron])
        before = self.activations[above][neuron]
        if not self._keeps_ties:
            return Surroundings(self.pre_activations[above], outgoing, before)
        matrix = self.matrices[above].copy()
        matrix[:, neuron] = 0
        base = self._multiply(matrix, self.activations[above])
        return Surroundings(base, outgoing, np.zeros_like(before))

    def find_outputs_with(
        self,
        group: Group,
        around: Surroundings,
        pre_activations: Array,
        outgoing: Array | None,
        scratch: Scratch,
    ) -> Array:
        """Return the outputs, (m, C, B), that other pre-activations of a neuron, (m, B), give.

        Its outgoing weights are others as well, (m, H), if these are given.
        """
        shape = (len(pre_activations), *around.base.shape)
        if around.outgoing is None or around.before is None:
            moved = scratch.array(0, shape, pre_activations.dtype)
            moved[:] = around.base
            moved[:, group.neuron] = pre_activations
            return moved
        activations = self._activate(pre_activations)
        if outgoing is None and group.layer < self._last - 1:
            # The activations of the layer that the neuron feeds are not held.
            matrix = self.matrices[group.layer + 2]
            shape = (len(pre_activations), len(matrix), pre_activations.shape[1])
            above = scratch.array(0, shape, pre_activations.dtype)
            run_shifted_layer(
                around.base, around.outgoing, activations - around.before, self._code, matrix, above
            )
            return self._run_on(self.matrices[group.layer + 3 :], above, scratch)
        moved = scratch.array(0, shape, pre_activations.dtype)
        if outgoing is None:
            shift = activations - around.before
            np.multiply(shift[:, np.newaxis, :], around.outgoing[:, np.newaxis], out=moved)
            moved += around.base
        else:
            np.multiply(activations[:, np.newaxis, :], outgoing[:, :, np.newaxis], out=moved)
            moved += around.base - np.multiply.outer(around.outgoing, around.before)
        return self._run_on(self.matrices[group.layer + 2 :], moved, scratch)

    def _run_on(self, matrices: list[Array], values: Array, scratch: Scratch) -> Array:
        """Run pre-activations in scratch memory, (…, H, B), through further layers."""
        for depth, matrix in enumerate(matrices, start=1):
            self._activate(values, out=values)
            if self._keeps_ties:
                values = self._multiply(matrix, values)
            else:
                shape = (*values.shape[:-2], len(matrix), values.shape[-1])
                above = scratch.array(depth % 2, shape, values.dtype)
                values = pre_activate(matrix, values, out=above)
        return values

    def _multiply(self, matrix: Array, activations: Array) -> Array:
        """Return the pre-activations, (…, N, B), of activations (…, H, B), ties kept."""
        *networks, n_inputs, n_instances = activations.shape
        above = np.empty((*networks, len(matrix), n_instances), dtype=activations.dtype)
        multiply_in_order(
            matrix,
            activations.reshape(-1, n_inputs, n_instances),
            above.reshape(-1, len(matrix), n_instances),
        )
        return above
