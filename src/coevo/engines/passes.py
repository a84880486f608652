"""Full passes of many networks at once, in blocks that fit in memory, and what all engines share.

The same arithmetic as the reference, O(B (n H + H C)) for a network with layer sizes n, H, C on B
instances, but as large matrix products.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import BaseEvaluator, Data
from coevo.core.metrics import Metric
from coevo.core.network import ACTIVATIONS, Architecture
from coevo.engines.compiled_metrics import COMPILED, measure_outputs
from coevo.engines.kernels.activations import ACTIVATION_CODES, activate_in_place
from coevo.runtime import threads

_ROWS = 512  # neurons of the first layers in one product, unless one network has more
_LEAST_STEP = 64  # instances in one product, unless there are fewer
_BLOCK = 2**18  # activations of a layer held at once: a megabyte
_OUTPUTS = 2**22  # outputs held at once, unless one network has more: 16 megabytes
_GRAIN = 2**16  # activations worth another thread


class Scratch(threading.local):
    """Arrays that a thread reuses, as allocating memory takes longer than filling it."""

    def __init__(self) -> None:
        self._buffers: dict[int, Array] = {}

    def array(self, key: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an uninitialised array of the shape, in the same memory for the same key."""
        size = math.prod(shape)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[key] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)


class FullPassEvaluator(BaseEvaluator):
    """Measures complete networks; what it adds to `BaseEvaluator` serves every fast engine."""

    def __init__(
        self,
        architecture: Architecture,
        decomposition: Decomposition,
        metric: Metric,
        training: Data,
        validation: Data,
    ) -> None:
        super().__init__(architecture, decomposition, metric, training, validation)
        self._training = _with_small_targets(self._training)
        self._validation = _with_small_targets(self._validation)
        dtype = self._training.inputs.dtype
        self._global_solution = np.empty(0, dtype=dtype)
        self._batch = self._training
        self._scratch = Scratch()
        self._activate = activation_function(self._architecture.activation, dtype)
        self._is_compiled = type(metric) in COMPILED

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Run all networks on the training instances."""
        return self._measure_networks(genotypes, 0, self._training[instances])

    def validate_networks(self, genotypes: Array) -> Array:
        """Run all networks on the validation set."""
        return self._measure_networks(genotypes, 0, self._validation)

    def _measure_networks(self, networks: Array, first_layer: int, below: Data) -> Array:
        """Return the fitness of networks (m, n_genes), given what their first layer sees.

        A metric without compiled loops may depend on whether scores tie exactly. It gets the
        outputs that the network gives to its users, bit for bit.
        """
        layers = self._architecture.layers[first_layer:]
        step = max(
            1, min(_ROWS // layers[0].n_neurons, _OUTPUTS // (layers[-1].n_neurons * len(below)))
        )
        fitness = np.empty(len(networks))

        def work(first: int, last: int) -> None:
            for start in range(first * step, last * step, step):
                here = slice(start, start + step)
                matrices = self._architecture.matrices(networks[here])[first_layer:]
                outputs = self._run(matrices, below.inputs.T)
                fitness[here] = measure_outputs(self._metric, outputs, below)

        def work_plainly(first: int, last: int) -> None:
            for j in range(first, last):
                outputs = self._architecture.forward(networks[j], below.inputs)
                fitness[j] = self._metric(outputs, below.targets, below.weights)

        size = max(layer.n_neurons for layer in layers) * len(below)
        if self._is_compiled:  # whole blocks, as a product's rounding depends on its shape
            n_blocks = -(-len(networks) // step)
            threads.share_out(work, n_blocks, grain=1 + _GRAIN // (size * step))
        else:
            threads.share_out(work_plainly, len(networks), grain=1 + _GRAIN // size)
        return fitness

    def _run(self, matrices: Sequence[Array], activations: Array) -> Array:
        """Run what the first of some last layers sees, (n, B), through matrices (m, H, n + 1).

        All networks see the same, so their first layers are one product; it and what follows are
        done some instances at a time, while they are in the cache. The outputs, (m, C, B), are in
        scratch memory.
        """
        n_networks, n_neurons, _ = matrices[0].shape
        n_instances, dtype = activations.shape[-1], matrices[0].dtype
        outputs = self._scratch.array(2, (n_networks, matrices[-1].shape[1], n_instances), dtype)
        weights = self._scratch.array(3, (n_networks, n_neurons, len(activations)), dtype)
        weights[:] = matrices[0][..., :-1]
        widest = max(matrix.shape[1] for matrix in matrices)
        step = max(_LEAST_STEP, _BLOCK // (n_networks * widest))
        for start in range(0, n_instances, step):
            some = slice(start, min(start + step, n_instances))
            values = self._scratch.array(0, (n_networks, n_neurons, some.stop - start), dtype)
            np.matmul(
                weights.reshape(-1, len(activations)), activations[:, some],
                out=values.reshape(-1, values.shape[-1]),
            )  # fmt: skip
            values += matrices[0][..., -1:]
            for layer, matrix in enumerate(matrices[1:], start=1):
                self._activate(values, out=values)
                above = self._scratch.array(
                    layer % 2, (*matrix.shape[:-1], values.shape[-1]), dtype
                )
                values = pre_activate(matrix, values, out=above)
            outputs[..., some] = values
        return outputs


def pre_activate(matrix: Array, activations: Array, out: Array | None = None) -> Array:
    """Return weights times activations plus biases, (…, H, B), from (…, H, n + 1) and (…, n, B)."""
    multiply = threads.multiply if matrix.ndim == activations.ndim == 2 else np.matmul
    pre_activations: Array = multiply(matrix[..., :-1], activations, out=out)
    pre_activations += matrix[..., -1:]
    return pre_activations


def activation_function(name: str, dtype: Any) -> Callable[..., Array]:
    """Return ψ of arrays, with an `out` argument.

    In float32 it is our own loop, a few times faster than NumPy's. In float64 it is NumPy's, whose
    every bit is the reference's.
    """
    function = ACTIVATIONS[name]
    if dtype != np.float32 or name not in ("tanh", "sigmoid"):
        return function
    code = ACTIVATION_CODES[name]

    def activate_all(pre_activations: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty_like(pre_activations, order="C")
        if out is not pre_activations:
            out[...] = pre_activations
        activate_in_place(out.reshape(-1), code)
        return out

    return activate_all


def share_out_blocks(
    work: Callable[[slice], None], n_networks: int, size: int, held: int | None = None
) -> None:
    """Call `work` for slices of networks whose activations fit in the cache, on all cores.

    A network goes to one core, not a product to all: the products of one network are small.

    Parameters
    ----------
    size
        Activations of a network's widest layer.
    held
        How many of a network's activations are in memory at once, if fewer.
    """
    step = max(1, _BLOCK // (held or size))

    def work_range(first: int, last: int) -> None:
        for start in range(first, last, step):
            work(slice(start, min(start + step, last)))

    threads.share_out(work_range, n_networks, grain=1 + _GRAIN // size)


def _with_small_targets(data: Data) -> Data:
    """Class indices as wide as a float32, so that loops over both can use SIMD."""
    if data.targets.dtype.kind in "iu":
        return replace(data, targets=data.targets.astype(np.int32))
    return data
