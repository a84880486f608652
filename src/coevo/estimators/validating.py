"""An Evaluator that trains by one measure and validates by another."""

from __future__ import annotations

import numpy as np

from coevo.batches import Instances
from coevo.decomposition import Decomposition
from coevo.evaluation import Evaluator
from coevo.evaluation.moves import Moves
from coevo.network import Array
from coevo.selection import Contest


class TwoMeasureEvaluator:
    """Asks one engine for fitness on training instances and another for validation.

    The second engine has not seen the moves, so each network is validated by a full pass.

    Parameters
    ----------
    training
        Measures what is maximised.
    validation
        Measures what the best network is chosen by.
    decomposition
        Which genes each subpopulation owns.
    """

    def __init__(
        self, training: Evaluator, validation: Evaluator, decomposition: Decomposition
    ) -> None:
        self._training = training
        self._validation = validation
        self._decomposition = decomposition
        self._global_solution = np.empty(0)
        self._moves = Moves()

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return self._training.n_instances

    @property
    def input_size(self) -> float:
        """Root mean square of the training inputs."""
        return self._training.input_size

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Measure networks on training instances."""
        return self._training.evaluate_networks(genotypes, instances)

    def validate_networks(self, genotypes: Array) -> Array:
        """Measure networks on the validation set."""
        return self._validation.validate_networks(genotypes)

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over new groups, and hand them on."""
        self._decomposition = decomposition
        self._training.regroup(decomposition)

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Fix the surroundings."""
        self._training.rebase(global_solution, instances)
        self._global_solution = global_solution.copy()

    def sweep(self, subpopulations: range, contest: Contest) -> None:
        """Hold a contest and remember the global solution after each move."""
        self._training.sweep(subpopulations, contest)
        for k in np.flatnonzero(contest.has_moved):
            genes = self._decomposition.groups[subpopulations[k]]
            self._global_solution[genes] = contest.representatives[k]
            self._moves.append(self._global_solution, self.validate_networks)

    def evaluate_global_solution(self) -> float:
        """Measure the global solution on the batch."""
        return self._training.evaluate_global_solution()

    def validate(self) -> Array:
        """Measure the remembered global solutions on the validation set."""
        return self._moves.validate(self.validate_networks)

    def memory(self) -> dict[str, Array]:
        """What the training engine carries along."""
        return self._training.memory()

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Hand the memory to the training engine."""
        self._training.recall(memory, global_solution)
