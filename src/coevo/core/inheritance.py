"""Fitness inheritance: none under full evaluation, from the parents under limited evaluation (LE).

In both, an individual competes with its adjusted fitness Ft′ = inherited + measured. The classes
say what is inherited, and whether targets are measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coevo._typing import Array


class Inheritance(Protocol):
    """The switch between full and limited evaluation."""

    @property
    def measures_targets(self) -> bool:
        """Whether targets are measured again in each generation, as trials are."""
        ...

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """Return the fitness that targets and trials inherit.

        Parameters
        ----------
        targets : array
            Stored fitness Ft of the targets.
        mutants : array of the same shape
            Fitness Ft_v of the mutants: the mean over the individuals each is made of.

        Returns
        -------
        two arrays of the same shape: of the targets, of the trials
        """
        ...


@dataclass(frozen=True)
class FullEvaluation:
    """Measured once, on all training instances; nothing is inherited."""

    measures_targets: bool = False

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """A target keeps its stored fitness; a trial inherits nothing."""
        return targets, np.zeros_like(targets)


@dataclass(frozen=True)
class LimitedEvaluation:
    """Measured on each batch, added to a share of the parents' fitness.

    Parameters
    ----------
    decay
        Share of the parents' fitness that is not inherited, from 0 to 1.
    """

    decay: float
    measures_targets: bool = True

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """Lines 23 and 29: the asexual rule for targets, the sexual rule for trials."""
        remaining = 1.0 - self.decay
        return targets * remaining, (targets + mutants) * (0.5 * remaining)
