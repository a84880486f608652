"""Full passes, many networks at once: serves every decomposition.

O(B (n H + H C)) for each evaluation, as the reference; for changes above the first layer it starts
at the layer that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.engines.passes import FullPassEvaluator, pre_activate
from coevo.engines.replacements import Replacements


class BatchedEvaluator(FullPassEvaluator):
    """The Evaluator contract by batched full passes."""

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Hold the global solution and pick the instances."""
        self._global_solution = global_solution
        self._batch = self._training[instances]
        self._replacements = Replacements(global_solution)

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors, and run the global solution up to their first layer."""
        self._staged = subpopulations, candidates
        self._first_layer = self._decomposition.first_layers[subpopulations.start]
        if not self._is_compiled:  # whole passes, as the reference makes them
            self._first_layer = 0
        activations = self._batch.inputs.T
        for matrix in self._architecture.matrices(self._global_solution)[: self._first_layer]:
            activations = self._activate(pre_activate(matrix, activations))
        self._below = replace(self._batch, inputs=activations.T)

    def evaluate(self, i: int) -> Array:
        """Put the candidates into copies of the global solution and run these together."""
        subpopulations, candidates = self._staged
        genes = self._decomposition.groups[i]
        is_network = isinstance(genes, slice) and len(self._decomposition) == 1
        fitness = []
        for vectors in candidates:
            networks = vectors[i - subpopulations.start]
            if not is_network:
                some, networks = networks, np.tile(self._global_solution, (len(networks), 1))
                networks[:, genes] = some
            fitness.append(self._measure_networks(networks, self._first_layer, self._below))
        return np.concatenate(fitness)

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Write the individual into the global solution."""
        genes = self._decomposition.groups[i]
        self._global_solution[genes] = individual
        self._replacements.append(genes, individual)

    def evaluate_global_solution(self) -> float:
        """Run the global solution on the instances."""
        networks = self._global_solution[np.newaxis]
        return float(self._measure_networks(networks, 0, self._batch)[0])

    def validate(self) -> Array:
        """Run the global solution after each replacement on the validation set."""
        return self._replacements.validate(self.validate_networks)
