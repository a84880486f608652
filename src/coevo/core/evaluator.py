"""The Evaluator contract: what the search asks of an engine, and nothing about how it is done.

A generation, as the search drives it::

    rebase(X, instances)                  fix the global solution and the batch
    for each block of subpopulations that see the same inputs:
        stage(subpopulations, candidates) all vectors of the block that will be measured
        for each subpopulation i in turn:
            evaluate(i)                   fitness of its candidates in place i of X
            replace(i, individual)        X_i ← individual
    evaluate_global_solution()
    validate()                            fitness of X after each replacement since the last call

Staging takes a whole block because one matrix product gives the pre-activations of all its
candidates; only selecting and replacing is sequential. Blocks come in order, each after the
replacements of those before it. `validate` comes last because the search does not depend on
validation, so an engine may validate a whole generation at once.

An engine may offer `sweep`, a fused override of the inner loop; see `FusedEvaluator`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition
from coevo.core.metrics import Metric
from coevo.core.network import Architecture
from coevo.core.selection import Offspring, Outcome, Rule

_ROWS = 4096


@dataclass(frozen=True)
class Data:
    """Instances with the targets of the network.

    Parameters
    ----------
    inputs : array of shape (n_instances, n_inputs)
    targets : integer array of shape (n_instances,), or array of shape (n_instances, n_outputs)
        Class indices, or numbers to predict.
    weights : array of shape (n_instances,), optional
        Weight of each instance; equal if not given.
    """

    inputs: Array
    targets: Array
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, instances: Instances) -> Data:
        """Return some of the instances."""
        weights = None if self.weights is None else self.weights[instances]
        return Data(self.inputs[instances], self.targets[instances], weights)


class Evaluator(Protocol):
    """Measures the fitness of networks; see the module's docstring for the order of calls."""

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        ...

    @property
    def input_size(self) -> float:
        """Root mean square of the training inputs, 1 if they are all zero."""
        ...

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Return the fitness of complete networks (m, n_genes) on training instances: (m,)."""
        ...

    def validate_networks(self, genotypes: Array) -> Array:
        """Return the fitness of complete networks (m, n_genes) on the validation set: (m,)."""
        ...

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over other groups of genes, from the next `rebase` on."""
        ...

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Fix the global solution X, which `replace` changes in place, and the instances."""
        ...

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Take over all vectors of a block of subpopulations that are going to be measured.

        Parameters
        ----------
        subpopulations
            A block of the decomposition, or a part of one.
        candidates : arrays of equal shape (len(subpopulations), n, genes)
            A subpopulation's candidates are its rows of the first array, then of the second. Its
            rows may change once they have been evaluated.
        """
        ...

    def evaluate(self, i: int) -> Array:
        """Return the fitness of the candidates of subpopulation i in place i of X: (n,)."""
        ...

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Put an individual into place i of X.

        Parameters
        ----------
        i
            The subpopulation, one of those staged.
        individual : array of shape (genes,)
        candidate
            Its position among the staged candidates of subpopulation i, None if it is not one.
        """
        ...

    def evaluate_in_place(self, subpopulations: range, vectors: Array) -> Array:
        """Return the fitness of vectors (k, n, genes), each in its place in X: (k, n)."""
        ...

    def evaluate_global_solution(self) -> float:
        """Return the fitness of X on the training instances of the last `rebase`."""
        ...

    def validate(self) -> Array:
        """Return the validation fitness of X after each replacement since the last call.

        Where validation is costly, all but the last may be left out as −∞. Not called if X is
        validated every so many generations, by `validate_networks`.
        """
        ...

    def memory(self) -> dict[str, Array]:
        """Return what the engine carries from one generation to the next, for a checkpoint."""
        ...

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Take over what `memory` returned when this was the global solution."""
        ...


@runtime_checkable
class FusedEvaluator(Protocol):
    """An engine that measures, selects and replaces a whole block in one compiled loop.

    The exception, for speed: it must make the decisions that the loop in `core.search` makes.
    """

    def sweep(
        self, subpopulations: range, offspring: Offspring, rule: Rule, outcome: Outcome
    ) -> bool:
        """Do `stage`, and `evaluate`, `select` and `replace` for each subpopulation in turn.

        Returns False, and does nothing, if there is no fused loop for this block.
        """
        ...


@runtime_checkable
class SmoothingEvaluator(Evaluator, Protocol):
    """An engine that says how the fitness follows each neuron; see `coevo.core.smoothing`."""

    @property
    def validates_apart(self) -> bool:
        """Whether validation instances are others than those trained on."""
        ...

    def find_input_moments(self) -> tuple[Array, Array]:
        """Return the mean and the deviation of each training input: float64, (n_inputs,) each."""
        ...

    def find_direction(self, widths: Array) -> Array:
        """Return the slopes of the smoothed fitness of X along its genes: (n_genes,).

        The fitness is that on the instances of the last `rebase`, each neuron's in the context of
        X. A neuron with pre-activations s_k and inputs a_k has the slopes
        Σ_k (f_k(s_k + width) − f_k(s_k − width)) / (2 width) a_k along its weights, where f_k is
        what instance k adds to the fitness, and the same without a_k along its bias.

        Parameters
        ----------
        widths : array of shape (n_layers,)
            The width of each layer's neurons.
        """
        ...


class BaseEvaluator(ABC):
    """What all engines of this package have in common.

    Parameters
    ----------
    architecture, decomposition
        The networks, and which of their genes each subpopulation owns.
    metric
        The fitness.
    training, validation
        The instances.

    Attributes
    ----------
    follows_validation
        Whether `validate` is going to be called. If not, an engine need not follow replacements on
        the validation set. Set it before the first `rebase`.
    """

    follows_validation: bool = True

    def __init__(
        self,
        architecture: Architecture,
        decomposition: Decomposition,
        metric: Metric,
        training: Data,
        validation: Data,
    ) -> None:
        self._architecture = architecture
        self._decomposition = decomposition
        self._metric = metric
        self._training = training
        self._validation = validation

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self._training)

    @property
    def validates_apart(self) -> bool:
        """Whether the two sets are different arrays."""
        return self._validation.inputs is not self._training.inputs

    def find_input_moments(self) -> tuple[Array, Array]:
        """Return the moments over at most some thousand instances, evenly spaced."""
        step = -(-len(self._training) // (2 * _ROWS))
        sample = self._training.inputs[::step]
        n_inputs = sample.shape[1]
        n_rows = max(1, 2**18 // n_inputs)  # at once: a copy in float64 may be large
        sums, squares = np.zeros(n_inputs), np.zeros(n_inputs)
        first = sample[0].astype(np.float64)
        for start in range(0, len(sample), n_rows):
            part = sample[start : start + n_rows] - first
            sums += part.sum(axis=0)
            squares += np.square(part).sum(axis=0)
        mean = sums / len(sample)
        return first + mean, np.sqrt(np.maximum(squares / len(sample) - mean**2, 0))

    @cached_property
    def input_size(self) -> float:
        """Root mean square of the training inputs."""
        inputs = self._training.inputs
        # In chunks: a float64 copy could be larger than memory.
        squares = (
            np.square(inputs[start : start + _ROWS], dtype=np.float64).sum()
            for start in range(0, len(inputs), _ROWS)
        )
        return float(np.sqrt(sum(squares) / inputs.size)) or 1.0

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over the new groups."""
        self._decomposition = decomposition

    def evaluate_in_place(self, subpopulations: range, vectors: Array) -> Array:
        """Stage the vectors and evaluate each subpopulation; X stays as it is."""
        self.stage(subpopulations, [vectors])
        return np.stack([self.evaluate(i) for i in subpopulations])

    def memory(self) -> dict[str, Array]:
        """Nothing: every generation starts from X alone."""
        return {}

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Nothing to recall."""
        if memory:
            raise ValueError(f"unknown memory: {', '.join(sorted(memory))}")

    @abstractmethod
    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """See `Evaluator`."""

    @abstractmethod
    def evaluate(self, i: int) -> Array:
        """See `Evaluator`."""
