"""Follows the global solution on the validation set, replacement by replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.core.metrics import Metric
from coevo.core.network import Architecture
from coevo.engines.candidates import BLOCK_ELEMENTS
from coevo.engines.compiled_metrics import COMPILED, compile_metric, measure_outputs
from coevo.engines.context import Context
from coevo.engines.groups import NeuronGroups
from coevo.engines.kernels import metrics as kernels
from coevo.engines.passes import Scratch, activation_function, pre_activate, share_out_blocks

Replaced = Sequence[tuple[int, Array]]
"""Subpopulations and their new representatives, in order."""


class Validator:
    """Measures the global solution on the validation set after each replacement.

    It has the global solution of the last validation, with its activations. If groups are whole
    neurons, these are kept from one generation to the next: every replacement computes a neuron's
    anew. Smaller groups shift them, and rounding would pile up.
    """

    def __init__(
        self, architecture: Architecture, groups: NeuronGroups, metric: Metric, data: Data
    ) -> None:
        self._architecture, self._groups = architecture, groups
        self._metric, self._compiled_metric = metric, compile_metric(metric, data)
        self._data = data
        # Groups that are not whole neurons multiply with few inputs, each in one piece of memory.
        self._inputs = data.inputs if groups.are_neurons else np.asfortranarray(data.inputs)
        self._activate = activation_function(architecture.activation, data.inputs.dtype)
        self._context: Context | None = None
        self._scratch = Scratch()

    def rebase(self, global_solution: Array) -> None:
        """Begin a generation from a global solution; where it is known, nothing is to be done."""
        context = self._context
        if (
            context is None
            or not self._groups.are_neurons
            or not np.array_equal(context.global_solution, global_solution)
        ):
            self._context = Context(
                self._architecture, global_solution.copy(), self._inputs,
                keeps_ties=type(self._metric) not in COMPILED,
            )  # fmt: skip

    def follow(self, replaced: Replaced) -> Array:
        """Make replacements, all in one layer if they are neurons, and measure after each."""
        context = self._context
        if not replaced or context is None:
            return np.empty(0)
        if not self._groups.are_neurons:
            return self._measure_each(replaced, [None] * len(replaced))
        layer = self._groups.layers[replaced[0][0]]
        neurons = [self._groups.neurons[i] for i, _ in replaced]
        incoming = np.stack([individual for _, individual in replaced])
        rows = pre_activate(incoming, context.activations[layer])  # one product for all
        if self._compiled_metric is not None and layer == len(context.matrices) - 2:
            fitness = self._measure_in_one_loop(neurons, rows)
            context.matrices[layer][neurons] = incoming
        else:
            fitness = self._measure_each(replaced, list(rows))
        context.run(layer + 1)
        return fitness

    def _measure_in_one_loop(self, neurons: list[int], pre_activations: Array) -> Array:
        """Move neurons of the last hidden layer."""
        context = self._context
        assert context is not None
        after = self._activate(pre_activations)
        before = context.activations[-1][neurons]
        outgoing = np.ascontiguousarray(context.matrices[-1][:, neurons].T)
        fitness = np.empty(len(neurons))
        outputs = context.pre_activations[-1][np.newaxis]
        kernels.measure_outputs(self._compiled_metric, outputs, outgoing, before, after, fitness)
        context.pre_activations[-2][neurons] = pre_activations
        context.activations[-1][neurons] = after
        return fitness

    def _measure_each(self, replaced: Replaced, rows: Sequence[Array | None]) -> Array:
        """Make the replacements, given the neurons' pre-activations where they are known."""
        context = self._context
        assert context is not None
        shape = context.pre_activations[-1].shape
        step = max(1, BLOCK_ELEMENTS // math.prod(shape))
        outputs = np.empty((min(step, len(replaced)), *shape), dtype=self._inputs.dtype)
        fitness = np.empty(len(replaced))
        for start in range(0, len(replaced), step):
            some = replaced[start : start + step]
            for place, (i, individual) in enumerate(some):
                group, row = self._groups[i], rows[start + place]
                if row is None:
                    context.turn_to(group)
                    row = context.find_pre_activations(group, individual)
                context.replace(group, individual, row)
                outputs[place] = context.find_outputs(self._scratch)
            measured = fitness[start : start + step]

            def work(here: slice, measured: Array = measured) -> None:
                measured[here] = measure_outputs(self._metric, outputs[here], self._data)

            share_out_blocks(work, len(some), math.prod(shape))
        return fitness

    def memory(self) -> dict[str, Array]:
        """Return pre-activations and activations, if they are kept between generations.

        They differ in their last bits from those of a fresh run.
        """
        context = self._context
        if context is None or not self._groups.are_neurons:
            return {}
        arrays = {
            "pre_activations": context.pre_activations,
            "activations": context.activations[1:],
        }
        return {
            f"{name}.{k}": array for name, kept in arrays.items() for k, array in enumerate(kept)
        }

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Take over pre-activations and activations, if they have the right shapes."""
        self._context = None
        self.rebase(global_solution)
        fresh = self.memory()
        if {name: array.shape for name, array in memory.items()} != {
            name: array.shape for name, array in fresh.items()
        }:
            raise ValueError("its activations of the validation set have other shapes")
        for name, array in fresh.items():
            array[...] = memory[name]
