"""Slow and obvious: rebuild the network, run it, score it.

One evaluation of a network with layer sizes n, H, C on B instances costs O(B (n H + H C)),
whichever of its genes changed. Every faster engine is tested against this one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.evaluator import BaseEvaluator, Data


class ReferenceEvaluator(BaseEvaluator):
    """The Evaluator contract by full forward passes, one network at a time."""

    def _score(self, genotype: Array, data: Data) -> float:
        outputs = self._architecture.forward(genotype, data.inputs)
        return float(self._metric(outputs, data.targets, data.weights))

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Run each network on the training instances."""
        batch = self._training[instances]
        return np.array([self._score(genotype, batch) for genotype in genotypes])

    def validate_networks(self, genotypes: Array) -> Array:
        """Run each network on the validation set."""
        return np.array([self._score(genotype, self._validation) for genotype in genotypes])

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Hold the global solution and pick the instances."""
        self._global_solution = global_solution
        self._batch = self._training[instances]
        self._moves: list[Array] = []

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors until they are asked for."""
        self._staged = {
            i: [vector for vectors in candidates for vector in vectors[place]]
            for place, i in enumerate(subpopulations)
        }

    def evaluate(self, i: int) -> Array:
        """Put each candidate into a copy of the global solution and run that."""
        network = self._global_solution.copy()
        fitness = []
        for vector in self._staged[i]:
            network[self._decomposition.groups[i]] = vector
            fitness.append(self._score(network, self._batch))
        return np.array(fitness)

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Write the individual into the global solution and remember the whole of it."""
        self._global_solution[self._decomposition.groups[i]] = individual
        self._moves.append(self._global_solution.copy())

    def evaluate_global_solution(self) -> float:
        """Run the global solution on the instances."""
        return self._score(self._global_solution, self._batch)

    def validate(self) -> Array:
        """Run every remembered global solution on the validation set."""
        moves, self._moves = self._moves, []
        return np.array([self._score(network, self._validation) for network in moves])
