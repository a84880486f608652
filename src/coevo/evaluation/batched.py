"""Full passes, many networks at once, in blocks that fit in memory.

The same arithmetic as the reference, O(B (n H + H C)) for each evaluation, but as large matrix
products. It serves every decomposition; for changes above the first layer it starts at the layer
that changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo import threads
from coevo.batches import Instances
from coevo.decomposition import Decomposition
from coevo.evaluation import Data, SteppingEvaluator
from coevo.evaluation._kernels import count_right
from coevo.fitness import Accuracy, Fitness
from coevo.network import ACTIVATIONS, Architecture, Array

BLOCK_ELEMENTS = 4 * 2**20
"""Numbers in the largest array of activations held at once: 16 MB in float32. A single network's
layer on all instances may be larger."""


class BatchedEvaluator(SteppingEvaluator):
    """The Evaluator contract by batched full passes.

    Parameters
    ----------
    architecture, decomposition
        The networks, and which of their genes each subpopulation owns.
    fitness
        The measure.
    training, validation
        The instances.
    """

    def __init__(
        self,
        architecture: Architecture,
        decomposition: Decomposition,
        fitness: Fitness,
        training: Data,
        validation: Data,
    ) -> None:
        self._architecture = architecture
        self._decomposition = decomposition
        self._fitness = fitness
        self._training = _with_small_targets(training)
        self._validation = _with_small_targets(validation)
        self._global_solution = np.empty(0, dtype=training.inputs.dtype)
        self._batch = self._training
        self._activations: list[Array] = []
        self._staged: tuple[range, Sequence[Array]] = (range(0), ())
        self._moves: list[Array] = []

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self._training)

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Run all networks on the training instances."""
        return self._measure_networks(genotypes, 0, select_instances(self._training, instances))

    def validate_networks(self, genotypes: Array) -> Array:
        """Run all networks on the validation set."""
        return self._measure_networks(genotypes, 0, self._validation)

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Keep the activations of the global solution below each layer."""
        self._global_solution = global_solution.copy()
        self._batch = select_instances(self._training, instances)
        self._activations = [self._batch.inputs.T]

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors, and bring the activations below their first layer up to date."""
        self._staged = subpopulations, candidates
        first_layer = self._decomposition.first_layers[subpopulations.start]
        matrices = self._architecture.matrices(self._global_solution)
        del self._activations[1:]
        for layer in range(first_layer):
            sums = weighted_sums(matrices[layer], self._activations[-1])
            self._activations.append(self._activate(sums, layer))

    def evaluate(self, i: int) -> Array:
        """Put the candidates into copies of the global solution and run these together."""
        subpopulations, candidates = self._staged
        vectors = [vectors[i - subpopulations.start] for vectors in candidates]
        first_layer = self._decomposition.first_layers[i]
        below = Data(self._activations[first_layer].T, self._batch.targets)
        if len(self._decomposition) == 1:  # a vector is a network
            parts = [self._measure_networks(part, first_layer, below) for part in vectors]
        else:
            genes = self._decomposition.groups[i]
            parts = []
            for part in vectors:
                networks = np.tile(self._global_solution, (len(part), 1))
                networks[:, genes] = part
                parts.append(self._measure_networks(networks, first_layer, below))
        return np.concatenate(parts)

    def replace(self, i: int, individual: Array, candidate: int | None) -> None:
        """Write the individual into the global solution and remember the whole of it."""
        self._global_solution[self._decomposition.groups[i]] = individual
        self._moves.append(self._global_solution.copy())

    def evaluate_global_solution(self) -> float:
        """Run the global solution on the instances."""
        networks = self._global_solution[np.newaxis]
        return float(self._measure_networks(networks, 0, self._batch)[0])

    def validate(self) -> Array:
        """Run every remembered global solution on the validation set."""
        moves, self._moves = self._moves, []
        return self.validate_networks(np.stack(moves)) if moves else np.empty(0)

    # ------------------------------------------------------------------------ passes and measures

    def _measure_networks(self, networks: Array, first_layer: int, below: Data) -> Array:
        """Return the fitness of networks (m, n_genes), given what their first layer sees."""
        widest = max(layer.n_neurons for layer in self._architecture.layers)
        step = max(1, BLOCK_ELEMENTS // (widest * len(below)))
        fitness = np.empty(len(networks))
        for start in range(0, len(networks), step):
            block = networks[start : start + step]
            matrices = self._architecture.matrices(block)[first_layer:]
            outputs = self._run(matrices, below.inputs.T)
            fitness[start : start + step] = self._measure(outputs, below.targets)
        return fitness

    def _run(self, matrices: Sequence[Array], activations: Array) -> Array:
        """Run activations (…, n, B) through the last layers' matrices (…, H, n + 1)."""
        first_layer = len(self._architecture.layers) - len(matrices)
        for layer, matrix in enumerate(matrices, start=first_layer):
            activations = self._activate(weighted_sums(matrix, activations), layer)
        return activations

    def _activate(self, sums: Array, layer: int) -> Array:
        """Apply a layer's activation function to its sums; outputs stay sums."""
        if layer == len(self._architecture.layers) - 1:
            return sums
        function = ACTIVATIONS[self._architecture.activation]
        activations = np.empty_like(sums)

        def work(start: int, stop: int) -> None:
            activations[start:stop] = function(sums[start:stop])

        threads.share_out(work, len(sums), grain=1 + 2**16 // max(1, sums[0].size))
        return activations

    def _measure(self, outputs: Array, targets: Array) -> Array:
        """Return the fitness of outputs of shape (m, C, B)."""
        if not isinstance(self._fitness, Accuracy):
            return self._fitness(np.swapaxes(outputs, -1, -2), targets)
        counts = np.empty(len(outputs), dtype=np.int64)
        count_right(outputs, targets, counts)
        return counts / float(len(targets))


def weighted_sums(matrix: Array, activations: Array) -> Array:
    """Return weights times activations plus biases, (…, H, B), from (…, H, n + 1) and (…, n, B)."""
    sums: Array = np.matmul(matrix[..., :-1], activations)
    sums += matrix[..., -1:]
    return sums


def select_instances(data: Data, instances: Instances) -> Data:
    """Return some of the instances."""
    return Data(data.inputs[instances], data.targets[instances])


def _with_small_targets(data: Data) -> Data:
    """Class indices as wide as a float32, so that loops over both become vector instructions."""
    if data.targets.dtype.kind in "iu":
        return Data(data.inputs, data.targets.astype(np.int32))
    return data
