"""In which order targets meet their trials in a generation, and the tally of what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coevo.network import Array


@dataclass(frozen=True)
class Turn:
    """Targets of neighbouring subpopulations that can meet their trials at the same time.

    Synchronously these are all targets of a block. Asynchronously it is one target of one
    subpopulation, because the next trial may be made from the outcome.
    """

    block: int
    rows: slice
    subpopulations: range
    targets: range
    completes: bool

    @property
    def here(self) -> slice:
        """Where the subpopulations are among all."""
        return slice(self.subpopulations.start, self.subpopulations.stop)


def plan_turns(blocks: Sequence[range], population_size: int, synchronous: bool) -> list[Turn]:
    """Return the turns of a generation, in order.

    Parameters
    ----------
    blocks
        The subpopulations of each block of the decomposition.
    population_size
        How many individuals a subpopulation has; each of them is a target once.
    synchronous
        Whether all targets of a block take one turn.
    """
    turns = []
    for b, block in enumerate(blocks):
        if synchronous:
            everyone = range(population_size)
            turns.append(Turn(b, slice(0, len(block)), block, everyone, completes=True))
            continue
        for k, i in enumerate(block):
            turns += [
                Turn(b, slice(k, k + 1), range(i, i + 1), range(j, j + 1), j == population_size - 1)
                for j in range(population_size)
            ]
    return turns


@dataclass(frozen=True)
class Tally:
    """What the trials of a generation were made with and how they did: arrays of shape (SP, NP)."""

    scale_factors: Array
    crossover_rates: Array
    wins: Array
    gains: Array

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> Tally:
        """Return the tally of a generation that begins."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape))
