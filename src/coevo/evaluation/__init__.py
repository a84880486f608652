"""The Evaluator contract: what the search asks of an engine, and nothing about how it is done.

A generation, as the search drives it::

    rebase(global_solution, instances)   the surroundings for one batch
    for each block of subpopulations that see the same inputs:
        sweep(subpopulations, contest)   for each subpopulation in turn: measure its candidates in
                                         the global solution of this moment, select, and move the
                                         global solution
    evaluate_global_solution()
    validate()                           one fitness for each move since the last call

A sweep gets a whole block because its candidates can all meet the block's inputs in one matrix
product; only selecting and moving is sequential. Blocks come in order, each after the moves of
those before it: in a deep network the second layer's candidates meet the first layer as it is by
then. `validate` comes last because validation does not feed back into the search, so an engine may
do a whole generation's at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from coevo.batches import Instances
from coevo.decomposition import Decomposition
from coevo.fitness import Fitness
from coevo.network import Architecture, Array
from coevo.selection import Contest, select

_ROWS = 4096


@dataclass(frozen=True)
class Data:
    """Instances with what the network should answer.

    Parameters
    ----------
    inputs : array of shape (n_instances, n_inputs)
    targets : integer array of shape (n_instances,), or array of shape (n_instances, n_outputs)
        The class index of each instance, or the numbers it should give.
    weights : array of shape (n_instances,), optional
        How much each instance counts; all alike if not given.
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
        """How large the training inputs are: their root mean square, 1 if they are all zero."""
        ...

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Return the fitness, on some training instances, of complete networks.

        Parameters
        ----------
        genotypes : array of shape (n_networks, n_genes)
        instances
            Which training instances.

        Returns
        -------
        float64 array of shape (n_networks,)
        """
        ...

    def validate_networks(self, genotypes: Array) -> Array:
        """Return the fitness of complete networks on the validation set, as above."""
        ...

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over other groups of genes, from the next `rebase` on."""
        ...

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Fix the surroundings: the global solution and the training instances."""
        ...

    def sweep(self, subpopulations: range, contest: Contest) -> None:
        """Hold a contest: measure, select and move, one subpopulation after the other.

        Parameters
        ----------
        subpopulations
            A block of the decomposition, or a part of one.
        contest
            Their individuals and trials; what selection changes is changed in place.
        """
        ...

    def evaluate_global_solution(self) -> float:
        """Return the fitness of the global solution as it is now on the training instances."""
        ...

    def memory(self) -> dict[str, Array]:
        """Return what the engine carries from one generation to the next, for a checkpoint."""
        ...

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Go on where the engine that had this memory and this global solution stood."""
        ...

    def validate(self) -> Array:
        """Measure, on the validation set, the global solution after each move since the last call.

        Returns
        -------
        float64 array of shape (n_moves,)
        """
        ...


class SteppingEvaluator(ABC):
    """An engine that sweeps in plain steps: stage a block, then evaluate, select and replace.

    This is the inner loop of Algorithm 1 as it stands in the paper. An engine may take it in other
    steps as long as the outcome is the same.

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
        self._training = training
        self._validation = validation
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027  (there may be nothing to prepare)
        """Finish the engine, once it has its parts; refuse those that it does not serve."""

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self._training)

    @cached_property
    def input_size(self) -> float:
        """Root mean square of the training inputs."""
        inputs = self._training.inputs
        # In pieces, because a copy in double precision could be larger than memory.
        squares = (
            np.square(inputs[start : start + _ROWS], dtype=np.float64).sum()
            for start in range(0, len(inputs), _ROWS)
        )
        return float(np.sqrt(sum(squares) / inputs.size)) or 1.0

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over the new groups."""
        self._decomposition = decomposition

    def sweep(self, subpopulations: range, contest: Contest) -> None:
        """Take the subpopulations one after the other."""
        self.stage(subpopulations, contest.candidates)
        self._step_through(subpopulations, contest)

    def _step_through(self, subpopulations: range, contest: Contest) -> None:
        """Evaluate, select and replace, in a block that has been staged."""
        for k, i in enumerate(subpopulations):
            candidate = int(select(contest, k, self.evaluate(i)))
            if contest.has_moved[k]:
                representative = contest.representatives[k]
                self.replace(i, representative, candidate if candidate >= 0 else None)

    def memory(self) -> dict[str, Array]:
        """Nothing: every generation begins afresh."""
        return {}

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Nothing to recall."""
        if memory:
            raise ValueError(f"unknown memory: {', '.join(sorted(memory))}")

    @abstractmethod
    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Take over all vectors of a block of subpopulations that are going to be measured.

        Parameters
        ----------
        subpopulations
            Whose they are.
        candidates : arrays of equal shape (len(subpopulations), n, genes)
            A subpopulation's candidates are its rows of the first array, then of the second. Its
            rows may change once they have been evaluated.
        """

    @abstractmethod
    def evaluate(self, i: int) -> Array:
        """Measure each candidate of subpopulation i in its place in the global solution of now.

        Returns
        -------
        float64 array of shape (n_candidates,)
        """

    @abstractmethod
    def replace(self, i: int, individual: Array, candidate: int | None) -> None:
        """Put an individual into place i of the global solution.

        Parameters
        ----------
        i
            The subpopulation, one of those staged.
        individual : array of shape (genes,)
        candidate
            Its position among the staged candidates of subpopulation i, None if it is not one.
        """
