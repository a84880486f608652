"""What an individual's fitness means over time: full, or limited with inheritance.

In both, an individual competes with an adjusted fitness Ft′ = inherited + measured. The two classes
say what is inherited, and which vectors have to be measured at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coevo.network import Array


class Inheritance(Protocol):
    """The switch between evaluating on everything once and on batches again and again."""

    @property
    def measures_targets(self) -> bool:
        """Whether targets are measured again in each generation, as trials are."""
        ...

    def after_redrawing(self) -> Inheritance:
        """Return what holds in a generation whose individuals have just been cut anew."""
        ...

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """Return what targets and trials inherit.

        Parameters
        ----------
        targets : array
            Stored fitness Ft of the targets.
        mutants : array of the same shape
            Fitness Ft_v of the mutants: the mean over the individuals each is made of.

        Returns
        -------
        two arrays of the same shape: inherited fitness of the targets and of the trials
        """
        ...


@dataclass(frozen=True)
class FullEvaluation:
    """Measured once, on all training instances: a target keeps its fitness, a trial has its own.

    Parameters
    ----------
    measures_targets
        Whether the targets, too, are measured now, because their fitness is not known.
    """

    measures_targets: bool = False

    def after_redrawing(self) -> FullEvaluation:
        """Measure the targets once: a mean over their parts' owners is not a measured fitness."""
        return FullEvaluation(measures_targets=True)

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """A target's stored fitness, if known, is all it has; a trial inherits nothing."""
        nothing = np.zeros_like(targets)
        return (nothing if self.measures_targets else targets), nothing


@dataclass(frozen=True)
class LimitedEvaluation:
    """Measured on the batch at hand, on top of a part of what the parents had.

    Parameters
    ----------
    decay
        The part of the parents' fitness that is lost, from 0 to 1.
    """

    decay: float
    measures_targets: bool = True

    def after_redrawing(self) -> LimitedEvaluation:
        """Go on: individuals inherit from the owners of their parts as trials do from parents."""
        return self

    def inherit(self, targets: Array, mutants: Array) -> tuple[Array, Array]:
        """Apply the asexual rule to targets and the sexual rule to trials (paper's appendix)."""
        remaining = 1.0 - self.decay
        return targets * remaining, (targets + mutants) * (0.5 * remaining)


def penalties(vectors: Array, weight_decay: float) -> Array:
    """Return what weight decay takes off the fitness of vectors (k, n, genes): (k, n)."""
    squares = np.einsum("knd,knd->kn", vectors, vectors)
    return np.asarray(squares * (weight_decay / vectors.shape[2]))
