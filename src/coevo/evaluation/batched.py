"""Full passes, many networks at once, in blocks that fit in memory.

The same arithmetic as the reference, O(B (n H + H C)) for each evaluation, but as large matrix
products. It serves every decomposition; for changes above the first layer it starts at the layer
that changed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coevo import threads
from coevo.batches import Instances
from coevo.evaluation import Data, SteppingEvaluator
from coevo.evaluation._kernels import ACTIVATION_CODES, activate_in_place
from coevo.evaluation._measures import measure_outputs
from coevo.evaluation.measuring import find_measure
from coevo.evaluation.moves import Moves
from coevo.network import ACTIVATIONS, Array

_ROWS = 512  # neurons of the first layers in one product, unless one network has more
_LEAST_STEP = 64  # instances in one product, unless there are fewer
_BLOCK = 2**18  # activations of a layer held at once: a megabyte
_OUTPUTS = 2**22  # outputs held at once, unless one network has more: 16 megabytes
_GRAIN = 2**16  # activations worth waking another thread for


class Scratch(threading.local):
    """Arrays that a thread uses again and again; fresh memory costs more than filling it."""

    def __init__(self) -> None:
        self._buffers: dict[int, Array] = {}

    def array(self, key: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return memory of the shape; the same for the same key, whatever was in it."""
        size = math.prod(shape)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[key] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)


class BatchedEvaluator(SteppingEvaluator):
    """The Evaluator contract by batched full passes."""

    def _prepare(self) -> None:
        self._training = _with_small_targets(self._training)
        self._validation = _with_small_targets(self._validation)
        dtype = self._training.inputs.dtype
        self._global_solution = np.empty(0, dtype=dtype)
        self._batch = self._training
        self._activations: list[Array] = []
        self._staged: tuple[range, Sequence[Array]] = (range(0), ())
        self._moves = Moves()
        self._scratch = Scratch()
        self._activate = activation_function(self._architecture.activation, dtype)

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Run all networks on the training instances."""
        return self._measure_networks(genotypes, 0, self._training[instances])

    def validate_networks(self, genotypes: Array) -> Array:
        """Run all networks on the validation set."""
        return self._measure_networks(genotypes, 0, self._validation)

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Keep the activations of the global solution below each layer."""
        self._global_solution = global_solution.copy()
        self._batch = self._training[instances]
        self._activations = [self._batch.inputs.T]

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors, and bring the activations below their first layer up to date."""
        self._staged = subpopulations, candidates
        first_layer = self._decomposition.first_layers[subpopulations.start]
        matrices = self._architecture.matrices(self._global_solution)
        del self._activations[1:]
        for matrix in matrices[:first_layer]:
            self._activations.append(self._activate(weighted_sums(matrix, self._activations[-1])))

    def evaluate(self, i: int) -> Array:
        """Put the candidates into copies of the global solution and run these together."""
        subpopulations, candidates = self._staged
        vectors = [vectors[i - subpopulations.start] for vectors in candidates]
        first_layer = self._decomposition.first_layers[i]
        below = replace(self._batch, inputs=self._activations[first_layer].T)
        genes = self._decomposition.groups[i]
        if isinstance(genes, slice) and len(self._decomposition) == 1:  # a vector is a network
            parts = [self._measure_networks(part, first_layer, below) for part in vectors]
        else:
            parts = []
            for part in vectors:
                networks = np.tile(self._global_solution, (len(part), 1))
                networks[:, genes] = part
                parts.append(self._measure_networks(networks, first_layer, below))
        return np.concatenate(parts)

    def replace(self, i: int, individual: Array, candidate: int | None) -> None:
        """Write the individual into the global solution and remember the whole of it."""
        self._global_solution[self._decomposition.groups[i]] = individual
        self._moves.append(self._global_solution, self.validate_networks)

    def evaluate_global_solution(self) -> float:
        """Run the global solution on the instances."""
        networks = self._global_solution[np.newaxis]
        return float(self._measure_networks(networks, 0, self._batch)[0])

    def validate(self) -> Array:
        """Run every remembered global solution on the validation set."""
        return self._moves.validate(self.validate_networks)

    # ------------------------------------------------------------------------ passes and measures

    def _measure_networks(self, networks: Array, first_layer: int, below: Data) -> Array:
        """Return the fitness of networks (m, n_genes), given what their first layer sees."""
        layers = self._architecture.layers[first_layer:]
        step = max(
            1, min(_ROWS // layers[0].n_neurons, _OUTPUTS // (layers[-1].n_neurons * len(below)))
        )
        fitness = np.empty(len(networks))

        def work(first: int, last: int) -> None:
            for start in range(first, last, step):
                here = slice(start, min(start + step, last))
                matrices = self._architecture.matrices(networks[here])[first_layer:]
                fitness[here] = self._measure(self._run(matrices, below.inputs.T), below)

        size = max(layer.n_neurons for layer in layers) * len(below)
        threads.share_out(work, len(networks), grain=1 + _GRAIN // size)
        return fitness

    def _run(self, matrices: Sequence[Array], activations: Array) -> Array:
        """Run what the first of some last layers sees, (n, B), through matrices (m, H, n + 1).

        All networks see the same, so their first layers are one product; it and what follows are
        done some instances at a time, while they are in the cache. The outputs, (m, C, B), lie in
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
            sums = self._scratch.array(0, (n_networks, n_neurons, some.stop - start), dtype)
            np.matmul(
                weights.reshape(-1, len(activations)), activations[:, some],
                out=sums.reshape(-1, sums.shape[-1]),
            )  # fmt: skip
            sums += matrices[0][..., -1:]
            for layer, matrix in enumerate(matrices[1:], start=1):
                self._activate(sums, out=sums)
                above = self._scratch.array(layer % 2, (*matrix.shape[:-1], sums.shape[-1]), dtype)
                sums = weighted_sums(matrix, sums, out=above)
            outputs[..., some] = sums
        return outputs

    def _measure(self, outputs: Array, data: Data) -> Array:
        """Return the fitness of outputs of shape (m, C, B)."""
        measure = find_measure(self._fitness, data)
        if measure is None:
            return self._fitness(np.swapaxes(outputs, -1, -2), data.targets, data.weights)
        measured = np.empty(len(outputs))
        measure_outputs(measure, outputs, measured)
        return measured


def weighted_sums(matrix: Array, activations: Array, out: Array | None = None) -> Array:
    """Return weights times activations plus biases, (…, H, B), from (…, H, n + 1) and (…, n, B)."""
    multiply = threads.multiply if matrix.ndim == activations.ndim == 2 else np.matmul
    sums: Array = multiply(matrix[..., :-1], activations, out=out)
    sums += matrix[..., -1:]
    return sums


def activation_function(name: str, dtype: Any) -> Callable[..., Array]:
    """Return ψ of arrays, with an `out` argument.

    In float32 it is our own loop, a few times faster than NumPy's. In float64 it is NumPy's, whose
    every bit is the reference's.
    """
    function = ACTIVATIONS[name]
    if dtype != np.float32 or name not in ("tanh", "sigmoid"):
        return function
    code = ACTIVATION_CODES[name]

    def activate_all(sums: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty_like(sums, order="C")
        if out is not sums:
            out[...] = sums
        activate_in_place(out.reshape(-1), code)
        return out

    return activate_all


def share_out_blocks(
    work: Callable[[slice], None], n_networks: int, size: int, held: int | None = None
) -> None:
    """Call `work` for blocks of networks whose activations fit in the cache, on all cores.

    A network goes to one core, not a product to all: the products of one network are small.

    Parameters
    ----------
    work
        Does the networks of a slice.
    n_networks
        How many there are.
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
    """Class indices as wide as a float32, so that loops over both become vector instructions."""
    if data.targets.dtype.kind in "iu":
        return replace(data, targets=data.targets.astype(np.int32))
    return data
