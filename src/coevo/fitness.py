"""What is maximised: accuracy and the other measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coevo.network import Array


class Fitness(Protocol):
    """A measure of how well outputs answer targets; more is better."""

    @property
    def name(self) -> str:
        """The name users choose it by."""
        ...

    def __call__(self, outputs: Array, targets: Array) -> Array:
        """Measure one network or many.

        Parameters
        ----------
        outputs : array of shape (..., n_instances, n_outputs)
        targets : array of shape (n_instances,)

        Returns
        -------
        float64 array of shape (...)
        """
        ...


@dataclass(frozen=True)
class Accuracy:
    """The part of the instances whose largest output, the first one if tied, is their class."""

    name: str = "accuracy"

    def __call__(self, outputs: Array, targets: Array) -> Array:
        """Measure the outputs against class indices."""
        is_right = outputs.argmax(axis=-1) == targets
        # Counted and then divided, so that equal counts are equal fitnesses on every engine.
        return np.asarray(np.count_nonzero(is_right, axis=-1) / float(len(targets)))


FITNESSES: dict[str, Fitness] = {"accuracy": Accuracy()}
"""The measures known by name."""
