"""The direction of the smoothed fitness, fast.

All neurons are asked in the context of the same global solution, so one forward pass serves them
all: O(B × weights). A neuron of the last hidden layer moves the outputs by its outgoing weights
times its shift, O(B C); an output neuron by its shift alone. Below that the layers above are run,
for as many neurons at once as fit in the cache. The product of all neurons' slopes with what the
layer sees is the direction: O(B × weights) again.

Neurons and products are cut into pieces by their size, never by the number of threads, so that the
result does not depend on it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Data
from coevo.core.metrics import Accuracy, CountMetric, Metric, count_classes
from coevo.core.network import Architecture
from coevo.core.smoothing import check_served
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.compiled_metrics import COMPILED, compile_metric
from coevo.engines.kernels import smoothing as kernels
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.runtime import threads

_INSTANCES = 4096  # handled at once
_NEURONS = 13  # of the last hidden layer handled at once, unless they are many
_PIECES = 16  # of a layer or a product, at most
_BLOCK = 2**18  # activations above the neurons handled at once: a megabyte
_PRODUCT = 2**22  # multiplications worth another thread
_GRAIN = 2**16  # outputs worth another thread


class _Pass(NamedTuple):
    """A forward pass: what each layer sees, (n, B), and its pre-activations, (H, B)."""

    data: Data
    activations: list[Array]
    pre_activations: list[Array]


class SmoothedEvaluator(BatchedEvaluator):
    """Full passes as `BatchedEvaluator` has them, and `find_direction`."""

    def __init__(
        self,
        architecture: Architecture,
        decomposition: Decomposition,
        metric: Metric,
        training: Data,
        validation: Data,
    ) -> None:
        check_served(metric)
        if not isinstance(metric, CountMetric) and type(metric) not in COMPILED:
            raise ValueError(
                f'there is no compiled loop for {type(metric).__name__}; strategy="smoothing" '
                'serves it with engine="reference" only'
            )
        super().__init__(architecture, decomposition, metric, training, validation)
        dtype = training.inputs.dtype
        self._code = ACTIVATION_CODES[architecture.activation]
        self._matrices: list[Array] = []
        self._last_pass: _Pass | None = None
        self._fitness: Any = None
        self._outputs = np.empty((architecture.n_outputs, 0), dtype=dtype)

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Run the global solution on the instances."""
        super().rebase(global_solution, instances)
        self._fitness = None
        self._matrices = self._architecture.matrices(global_solution)
        n_instances = len(self._batch)
        self._parts = [
            slice(start, min(start + _INSTANCES, n_instances))
            for start in range(0, n_instances, _INSTANCES)
        ]
        self._outputs = np.empty((len(self._outputs), n_instances), self._outputs.dtype)
        for part in self._parts:
            self._last_pass = self._run_forward(part)
            self._outputs[:, part] = self._last_pass.pre_activations[-1]

    def evaluate_global_solution(self) -> float:
        """Measure the outputs that `rebase` found."""
        if isinstance(self._metric, CountMetric):
            return float(self._metric.from_counts(self._count_classes()))
        fitness = self._find_fitness()
        values = np.empty(len(self._batch), dtype=self._outputs.dtype)
        kernels.find_values_of_outputs(fitness, self._outputs[:, np.newaxis], values)
        return float(values @ fitness.weights)

    def find_direction(self, widths: Array) -> Array:
        """Ask all neurons; see `coevo.core.evaluator.SmoothingEvaluator`."""
        direction = np.zeros_like(self._global_solution)
        for part in self._parts:
            run = self._last_pass
            if run is None or len(self._parts) > 1:
                run = self._run_forward(part)
            matrices = self._architecture.matrices(direction)
            for matrix, slopes, seen in zip(
                matrices, self._find_slopes(run, part, widths), run.activations, strict=True
            ):
                if len(self._parts) == 1:
                    _multiply(slopes, seen.T, matrix[:, :-1])
                else:
                    matrix[:, :-1] += _multiply(slopes, seen.T)
                matrix[:, -1] += slopes.sum(axis=1)
        return direction

    # ------------------------------------------------------------------------------------ passes

    def _run_forward(self, part: slice) -> _Pass:
        data = self._batch if len(self._parts) == 1 else self._batch[part]
        activations: list[Array] = [data.inputs.T]
        pre_activations: list[Array] = []
        for matrix in self._matrices:
            if pre_activations:
                activations.append(self._activate(pre_activations[-1]))
            product = _multiply(matrix[:, :-1], activations[-1])
            product += matrix[:, -1:]
            pre_activations.append(product)
        return _Pass(data, activations, pre_activations)

    def _find_slopes(self, run: _Pass, part: slice, widths: Array) -> list[Array]:
        """Return the slopes of each layer's neurons: arrays of shape (H, B)."""
        fitness = self._find_fitness(part)
        slopes = [np.empty_like(pre_activations) for pre_activations in run.pre_activations]
        pieces = [
            (layer, first, last)
            for layer in reversed(range(len(slopes)))
            for first, last in self._cut(layer, len(run.data))
        ]
        outputs = run.pre_activations[-1][:, np.newaxis]

        def work(start: int, stop: int) -> None:
            for layer, first, last in pieces[start:stop]:
                into, width = slopes[layer][first:last], float(widths[layer])
                if layer == len(slopes) - 1:
                    kernels.find_slopes_of_outputs(fitness, outputs, width, into)
                    continue
                neurons = (
                    run.pre_activations[layer][first:last],
                    run.activations[layer + 1][first:last],
                    self._code,
                    np.ascontiguousarray(self._matrices[layer + 1][:, first:last].T),
                )
                if layer == len(slopes) - 2:
                    kernels.find_slopes_of_hidden(fitness, outputs, neurons, width, into)
                else:
                    above = run.pre_activations[layer + 1]
                    moved = self._run_above(layer, neurons, width, above)
                    kernels.find_slopes_from_outputs(fitness, moved, width, into)

        size = 2 * self._architecture.n_neurons * outputs.size
        grain = 1 + len(pieces) * _GRAIN // size
        threads.share_ranges(work, threads.cut(range(len(pieces)), grain))
        return slopes

    def _cut(self, layer: int, n_instances: int) -> list[tuple[int, int]]:
        """Return the ranges of a layer's neurons that are handled at once."""
        layers = self._architecture.layers
        n_neurons = layers[layer].n_neurons
        if layer == len(layers) - 1:
            return [(0, n_neurons)]
        step = max(_NEURONS, -(-n_neurons // _PIECES))
        if layer < len(layers) - 2:
            step = max(1, _BLOCK // (2 * layers[layer + 1].n_neurons * n_instances))
        n_pieces = -(-n_neurons // step)
        ends = [piece * n_neurons // n_pieces for piece in range(n_pieces + 1)]
        return list(pairwise(ends))

    def _run_above(self, layer: int, neurons: Any, width: float, above: Array) -> Array:
        """Return the outputs, (C, 2 H, B), with the neurons of a layer moved up and down."""
        n_candidates, n_instances = 2 * len(neurons[0]), above.shape[1]
        shape = (len(above), n_candidates, n_instances)
        moved = self._scratch.array(0, shape, above.dtype)
        kernels.shift_layer(neurons, width, above, moved)
        for depth, matrix in enumerate(self._matrices[layer + 2 :], start=1):
            if depth > 1:
                self._activate(moved, out=moved)
            shape = (len(matrix), n_candidates, n_instances)
            into = self._scratch.array(depth % 2, shape, above.dtype)
            np.matmul(
                np.ascontiguousarray(matrix[:, :-1]),
                moved.reshape(len(moved), -1),
                out=into.reshape(len(matrix), -1),
            )
            into += matrix[:, -1:, np.newaxis]
            moved = into
        return moved

    # ----------------------------------------------------------------------------------- fitness

    def _count_classes(self) -> Array:
        return count_classes(self._outputs.T, self._batch.targets, self._batch.weights)

    def _find_fitness(self, part: slice | None = None) -> Any:
        """Return what kernels measure of each instance of the batch, or of a part of it."""
        if self._fitness is None:
            self._fitness = self._make_fitness()
        if part is None or len(self._parts) == 1:
            return self._fitness
        return self._fitness._replace(
            targets=np.ascontiguousarray(self._fitness.targets[..., part]),
            weights=self._fitness.weights[part],
        )

    def _make_fitness(self) -> Any:
        batch, n_classes, dtype = self._batch, len(self._outputs), self._outputs.dtype
        weights = np.ones(len(batch)) if batch.weights is None else batch.weights.astype(float)
        if isinstance(self._metric, CountMetric):
            prices = self._metric.find_prices(self._count_classes())
            return kernels.PricesOn(batch.targets, weights, prices.astype(dtype))
        if isinstance(self._metric, Accuracy):
            shares = weights / weights.sum()
            return kernels.PricesOn(batch.targets, shares, np.eye(n_classes, dtype=dtype))
        return compile_metric(self._metric, batch)


def _multiply(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the product (m, n) of (m, k) and (k, n), cut along its longer side if it is large."""
    n_pieces = max(1, min(_PIECES, left.size * right.shape[1] // _PRODUCT))
    return threads.multiply(left, right, out, n_pieces)
