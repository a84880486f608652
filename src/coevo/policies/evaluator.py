"""The Evaluator contract for black boxes: networks go in, fitness comes out, from wherever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition


class Source(Protocol):
    """Measures complete networks: episodes of a simulator, or a user's function."""

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        ...

    @property
    def input_size(self) -> float:
        """Root mean square of the inputs that networks see, about."""
        ...

    def begin_generation(self) -> None:
        """Take over what is held constant within a generation."""
        ...

    def measure(self, genotypes: Array, instances: Instances) -> Array:
        """Return the fitness of networks (m, n_genes) on training instances: (m,)."""
        ...

    def validate(self, genotypes: Array) -> Array:
        """Return the fitness of networks (m, n_genes) on the validation instances: (m,)."""
        ...

    def settle(self) -> None:
        """Measure from now on as when the network that validated best did so."""
        ...

    def memory(self) -> dict[str, Array]:
        """Return what is carried from one generation to the next, for a checkpoint."""
        ...

    def recall(self, memory: dict[str, Array]) -> None:
        """Go on where a source with this memory stood."""
        ...


class SourceEvaluator:
    """Puts candidates into the global solution and has a source measure the networks.

    Validation is by the global solution at the end of each generation alone: an episode costs far
    more than a pass through a network.

    Parameters
    ----------
    source
        Measures networks.
    decomposition
        The genes of each subpopulation.
    simultaneous
        Whether all subpopulations of a generation are measured in the global solution as it was at
        the generation's start (Jacobi), those of a block at once; otherwise each is measured in
        the one that those before it left (Gauss-Seidel), as in the paper.
    """

    def __init__(self, source: Source, decomposition: Decomposition, simultaneous: bool) -> None:
        self.source = source
        self._decomposition = decomposition
        self._simultaneous = simultaneous

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return self.source.n_instances

    @property
    def input_size(self) -> float:
        """Root mean square of the inputs."""
        return self.source.input_size

    def evaluate_networks(self, genotypes: Array, instances: Instances) -> Array:
        """Measure complete networks on training instances."""
        return self.source.measure(genotypes, instances)

    def validate_networks(self, genotypes: Array) -> Array:
        """Measure complete networks on the validation instances."""
        return self.source.validate(genotypes)

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over the new groups."""
        self._decomposition = decomposition

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Hold the global solution and the instances; a generation begins."""
        self.source.begin_generation()
        self._global_solution = global_solution
        self._context = global_solution.copy() if self._simultaneous else global_solution
        self._instances = instances
        self._n_replaced = 0

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Compose the networks; if simultaneous, measure those of the whole block."""
        self._staged = {
            i: np.concatenate([vectors[place] for vectors in candidates])
            for place, i in enumerate(subpopulations)
        }
        self._measured: dict[int, Array] = {}
        if self._simultaneous:
            networks = np.concatenate([self._compose(i) for i in subpopulations])
            fitness = self.source.measure(networks, self._instances)
            parts = np.split(fitness, len(subpopulations))
            self._measured = dict(zip(subpopulations, parts, strict=True))

    def _compose(self, i: int) -> Array:
        vectors = self._staged[i]
        networks = np.tile(self._context, (len(vectors), 1))
        networks[:, self._decomposition.groups[i]] = vectors
        return networks

    def evaluate(self, i: int) -> Array:
        """Measure the candidates in place i of the global solution, all at once."""
        if i in self._measured:
            return self._measured[i]
        return self.source.measure(self._compose(i), self._instances)

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Write the individual into the global solution."""
        self._global_solution[self._decomposition.groups[i]] = individual
        self._n_replaced += 1

    def evaluate_in_place(self, subpopulations: range, vectors: Array) -> Array:
        """Measure vectors (k, n, genes), each in its place: (k, n)."""
        self.stage(subpopulations, [vectors])
        return np.stack([self.evaluate(i) for i in subpopulations])

    def evaluate_global_solution(self) -> float:
        """Measure the global solution on the instances."""
        return float(self.source.measure(self._global_solution[np.newaxis], self._instances)[0])

    def validate(self) -> Array:
        """Validate the global solution as it is now; those between count as −∞."""
        n_replaced, self._n_replaced = self._n_replaced, 0
        fitness = np.full(n_replaced, -np.inf)
        if n_replaced:
            fitness[-1] = self.source.validate(self._global_solution[np.newaxis])[0]
        return fitness

    def memory(self) -> dict[str, Array]:
        """Return the source's memory."""
        return self.source.memory()

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Have the source go on where it stood."""
        self.source.recall(memory)
