"""A function of networks and instances as the source of their fitness, for `SourceEvaluator`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.policies.backends import Backend, Shares
from coevo.policies.episodes import Parcel


def check_fitness(argument: str, answer: Any, n: int) -> Array:
    """Return the fitness of n networks, or raise an error that names who gave it."""
    try:
        fitness = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must give {n} numbers, one for each network, got {answer!r:.200}"
        ) from None
    if fitness.shape != (n,):
        raise ValueError(
            f"{argument} must give {n} numbers, one for each network, got shape {fitness.shape}"
        )
    if not np.isfinite(fitness).all():
        wrong = fitness[~np.isfinite(fitness)][0]
        raise ValueError(f"{argument} must give finite numbers, got {wrong}")
    return fitness


@dataclass
class FunctionSource:
    """Measures networks by a function.

    Parameters
    ----------
    function
        Of genotypes and instances, as the backend packed it.
    backend
        Where it is called.
    training, validation
        The instances.
    """

    function: Any
    backend: Backend
    training: Any
    validation: Any
    input_size: float = 1.0

    def __post_init__(self) -> None:
        self._shares = Shares()

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self.training)

    def begin_generation(self) -> None:
        """Nothing is held constant."""

    def settle(self) -> None:
        """Nothing changes."""

    def measure(self, genotypes: Array, instances: Instances) -> Array:
        """Call the function on training instances."""
        return self._measure(genotypes, _pick(self.training, instances))

    def validate(self, genotypes: Array) -> Array:
        """Call the function on the validation instances."""
        return self._measure(genotypes, self.validation)

    def _measure(self, genotypes: Array, instances: Any) -> Array:
        parts = self._shares.cut(len(genotypes), self.backend.n_workers)
        tasks = [(self.function, genotypes[part], instances) for part in parts]
        fitness, seconds = zip(*self.backend.run(_call, tasks), strict=True)
        self._shares.note(len(genotypes), sum(seconds))
        return np.concatenate(fitness)

    def memory(self) -> dict[str, Array]:
        """Nothing is carried over."""
        return {}

    def recall(self, memory: dict[str, Array]) -> None:
        """Nothing to recall."""
        if memory:
            raise ValueError(f"unknown memory: {', '.join(sorted(memory))}")


def _pick(instances: Any, which: Instances) -> Any:
    """Return some instances: an array of an array, otherwise a list."""
    if isinstance(instances, np.ndarray):
        return instances[which]
    return [instances[k] for k in np.arange(len(instances))[which]]


def split_instances(given: Any, validation: Any) -> tuple[Any, Any]:
    """Return training and validation instances as sequences."""
    training = _as_sequence("instances", given)
    if validation is not None:
        return training, _as_sequence("validation_instances", validation)
    if len(training) < 5:
        return training, training
    every_fifth = np.arange(len(training)) % 5 == 4
    return _pick(training, np.flatnonzero(~every_fifth)), _pick(
        training, np.flatnonzero(every_fifth)
    )


def _as_sequence(argument: str, given: Any) -> Any:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        given = np.arange(given)
    if not isinstance(given, np.ndarray | Sequence) or isinstance(given, str) or not len(given):
        raise ValueError(
            f"{argument} must be a sequence that is not empty, or how many there are, got {given!r}"
        )
    return given


def _call(function: Any, *arguments: Any) -> tuple[Array, float]:
    if isinstance(function, Parcel):
        function = function.unpack()
    answer: tuple[Array, float] = function(*arguments)
    return answer
