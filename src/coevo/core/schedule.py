"""The order in which targets meet their trials in a generation, and the log of how they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coevo._typing import Array


@dataclass(frozen=True)
class Turn:
    """Targets of neighbouring subpopulations that can meet their trials at the same time.

    Synchronously these are all targets of a block. Asynchronously it is one target of one
    subpopulation, because the next trial may be made from the outcome.

    Parameters
    ----------
    block
        Index of the block.
    rows
        The subpopulations within the block.
    subpopulations
        The same among all subpopulations.
    targets
        The individuals that are challenged.
    completes
        Whether they are the subpopulations' last of the generation.
    """

    block: int
    rows: slice
    subpopulations: range
    targets: range
    completes: bool

    def cut(self, rows: range) -> Turn | None:
        """Return its part with these of the block's subpopulations, None if it has none of them."""
        start, stop = max(self.rows.start, rows.start), min(self.rows.stop, rows.stop)
        if start >= stop:
            return None
        first = self.subpopulations.start - self.rows.start
        here = range(first + start, first + stop)
        return replace(self, rows=slice(start, stop), subpopulations=here)

    @property
    def here(self) -> slice:
        """The subpopulations as an index into arrays over all of them."""
        return slice(self.subpopulations.start, self.subpopulations.stop)

    @property
    def columns(self) -> slice:
        """The targets as an index into arrays over individuals."""
        return slice(self.targets.start, self.targets.stop)


def plan_turns(blocks: Sequence[range], population_size: int, synchronous: bool) -> list[Turn]:
    """Return the turns of a generation, in order.

    Parameters
    ----------
    blocks
        The subpopulations of each block of the decomposition.
    population_size
        Individuals in a subpopulation; each of them is a target once.
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
class TrialLog:
    """F and CR of a generation's trials and how they did: arrays of shape (SP, NP).

    `gains` is the adjusted fitness of the trial minus that of its target.
    """

    scale_factors: Array
    crossover_rates: Array
    wins: Array
    gains: Array

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> TrialLog:
        """Return the log of a generation that begins."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape))
