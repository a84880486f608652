"""An Evaluator that trains by one metric and validates by another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator, FusedEvaluator, SmoothingEvaluator
from coevo.core.selection import Offspring, Outcome, Rule
from coevo.engines.replacements import Replacements


class TwoMetricEvaluator:
    """Asks one engine for fitness on training instances and another for validation.

    The second engine does not follow the search, so each network is validated by a full pass.

    Parameters
    ----------
    training
        Measures what is maximised.
    validation
        Measures what the best network is chosen by.
    """

    def __init__(
        self, training: Evaluator, validation: Evaluator, decomposition: Decomposition
    ) -> None:
        self._training = training
        self._validation = validation
        self._decomposition = decomposition
        self._replacements = Replacements(np.empty(0))

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return self._training.n_instances

    @property
    def input_size(self) -> float:
        """Root mean square of the training inputs."""
        return self._training.input_size

    @property
    def validates_apart(self) -> bool:
        """Whether validation instances are others than those trained on."""
        return self._smoothing.validates_apart

    def find_input_moments(self) -> tuple[Array, Array]:
        """Ask the training engine."""
        return self._smoothing.find_input_moments()

    def find_direction(self, widths: Array) -> Array:
        """Ask the training engine."""
        return self._smoothing.find_direction(widths)

    @property
    def _smoothing(self) -> SmoothingEvaluator:
        if not isinstance(self._training, SmoothingEvaluator):
            raise TypeError('strategy="smoothing" needs an engine with find_direction')
        return self._training

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
        """Fix the global solution and the instances."""
        self._replacements = Replacements(global_solution)
        self._training.rebase(global_solution, instances)

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Hand the vectors to the training engine."""
        self._training.stage(subpopulations, candidates)

    def evaluate(self, i: int) -> Array:
        """Measure on the training instances."""
        return self._training.evaluate(i)

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Replace, and note it for validation."""
        self._training.replace(i, individual, candidate)
        self._replacements.append(self._decomposition.groups[i], individual)

    def sweep(
        self, subpopulations: range, offspring: Offspring, rule: Rule, outcome: Outcome
    ) -> bool:
        """Sweep with the training engine, if it can, and note its replacements."""
        fused = isinstance(self._training, FusedEvaluator) and self._training.sweep(
            subpopulations, offspring, rule, outcome
        )
        if fused:
            for k in np.flatnonzero(outcome.has_moved):
                genes = self._decomposition.groups[subpopulations[k]]
                self._replacements.append(genes, outcome.representatives[k])
        return fused

    def evaluate_in_place(self, subpopulations: range, vectors: Array) -> Array:
        """Measure on the training instances."""
        return self._training.evaluate_in_place(subpopulations, vectors)

    def evaluate_global_solution(self) -> float:
        """Measure the global solution on the batch."""
        return self._training.evaluate_global_solution()

    def validate(self) -> Array:
        """Run the global solution after each replacement on the validation set."""
        return self._replacements.validate(self.validate_networks)

    def memory(self) -> dict[str, Array]:
        """What the training engine carries along."""
        return self._training.memory()

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Hand the memory to the training engine."""
        self._training.recall(memory, global_solution)
