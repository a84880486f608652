"""The direction of the smoothed fitness by its definition, slow and obvious.

For each neuron and instance: run the layers above with the neuron's pre-activation moved up and
down, apply the metric to that one instance, and divide the difference by twice the width. The fast
engine is tested against this one.
"""

from __future__ import annotations

import numpy as np

from coevo._typing import Array
from coevo.core.metrics import CountMetric, count_classes
from coevo.core.network import ACTIVATIONS
from coevo.core.smoothing import check_served
from coevo.engines.reference import ReferenceEvaluator


class SmoothedReference(ReferenceEvaluator):
    """The reference engine with `find_direction`: O(neurons × instances × weights above)."""

    def find_direction(self, widths: Array) -> Array:
        """Move each neuron's pre-activations up and down; see `SmoothingEvaluator`."""
        check_served(self._metric)
        matrices = self._architecture.matrices(self._global_solution)
        directions, below = [], self._batch.inputs
        for layer, matrix in enumerate(matrices):
            pre_activations = below @ matrix[:, :-1].T + matrix[:, -1]  # (B, H)
            slopes = np.empty(pre_activations.shape)
            for neuron in range(len(matrix)):
                up, down = pre_activations.copy(), pre_activations.copy()
                up[:, neuron] += widths[layer]
                down[:, neuron] -= widths[layer]
                higher, lower = (self._value(self._run_above(layer, p)) for p in (up, down))
                slopes[:, neuron] = (higher - lower) / (2 * widths[layer])
            directions.append(np.column_stack([slopes.T @ below, slopes.sum(axis=0)]))
            below = ACTIVATIONS[self._architecture.activation](pre_activations)
        return self._architecture.genotype(directions).astype(self._global_solution.dtype)

    def _run_above(self, layer: int, pre_activations: Array) -> Array:
        """Return the outputs, (B, C), that follow from a layer's pre-activations, (B, H)."""
        for matrix in self._architecture.matrices(self._global_solution)[layer + 1 :]:
            activations = ACTIVATIONS[self._architecture.activation](pre_activations)
            pre_activations = activations @ matrix[:, :-1].T + matrix[:, -1]
        return pre_activations

    def _value(self, outputs: Array) -> Array:
        """Return what each instance adds to the fitness: (B,)."""
        batch, metric = self._batch, self._metric
        weights = np.ones(len(batch)) if batch.weights is None else batch.weights
        if isinstance(metric, CountMetric):
            now = self._architecture.forward(self._global_solution, batch.inputs)
            prices = metric.find_prices(count_classes(now, batch.targets, batch.weights))
            return np.asarray(weights * prices[batch.targets, outputs.argmax(axis=1)])
        values = [metric(outputs[k : k + 1], batch.targets[k : k + 1]) for k in range(len(batch))]
        return np.asarray(weights / weights.sum() * np.array(values))
