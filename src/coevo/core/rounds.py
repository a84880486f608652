"""Rounds: the rate and the weight decay of a smoothed search, generation by generation.

A network is best when the rate of its moves has fallen to 0, but how many moves it needs is not
known beforehand. The search therefore goes in rounds, each twice as long as the one before; within
a round the rate falls linearly to 0, and the next one continues from there. When the budget has no
room for another round and one after it, this round is the last and takes what is left.

The weight decay that generalises best is not known either. Each round but the last is therefore
made twice from the same start, with twice and with half the weight decay of the round before, and
the try that validates better is kept, with its decay. Without validation instances of their own
there is one try, with the decay as it was set.

The search stagnates when two rounds, three quarters of all moves, have gained at most a hundredth
of what was left to gain: then one more round, half as long again as the next would be and with one
try, is the last. If nobody has said how long to search, it begins with a first budget,
which doubles as long as that pays: when there is only room for the last round, and the round before
it has gained more than a hundredth of all that was gained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.extensions.base import Memory
from coevo.core.settings import Settings
from coevo.core.stopping import gains_too_little

LENGTH = 500
"""Moves of the first round."""
FACTOR = 2.0
"""How much stronger and weaker than before the weight decay of the two tries is."""
_LEAST_SHARE = 0.01  # of all that was gained, for which another round pays
_ROOM = {1: 2.5, 2: 5.0}  # lengths of a round for which a budget must have room: 2.5 for each try
_LAST = 1.5  # lengths of a round that the last one has if the search stagnates
_MEASURED = (3, 10, 30)  # generations after which their seconds are known, better and better


class Clock(NamedTuple):
    """What has been spent, or may be."""

    evaluations: float
    generations: float
    seconds: float

    @classmethod
    def limits(cls, settings: Settings) -> Clock:
        """Return the budget of a search, infinite where there is no limit."""
        return cls(*(math.inf if limit is None else limit for limit in settings.limits))


class Rounds:
    """The position in a sequence of rounds; its memory goes into checkpoints.

    Parameters
    ----------
    memory
        As `begin` returns it; changed in place.
    arrays
        What a search changes by its moves: copied, and put back for another try.
    n_tries
        2 to try two weight decays in each round, 1 for none.
    """

    def __init__(
        self, memory: Memory, arrays: Sequence[Array], limits: Clock, n_tries: int
    ) -> None:
        self._memory = memory
        self._arrays = arrays
        self._limits = limits
        self._n_tries = n_tries

    @staticmethod
    def begin(
        arrays: Sequence[Array], decay: float, now: Clock, limits: Clock,
        first_budget: float = math.inf,
    ) -> Memory:  # fmt: skip
        """Return the memory of a sequence that begins now, with a budget.

        first_budget: generations granted at first, of those that the limits allow.
        """
        starts = {f"start_{k}": array.copy() for k, array in enumerate(arrays)}
        others = {f"other_{k}": np.zeros_like(array) for k, array in enumerate(arrays)}
        return {
            "round": np.zeros(3, dtype=np.int64),  # number, try, is the last
            "began": np.array(now, dtype=float),  # of this try
            "limits": np.array(limits, dtype=float),
            "granted": np.array([now.generations, first_budget]),  # from where, how many
            "pace": np.ones(1),  # by which rates are multiplied
            "decay": np.array([decay]),  # of the round before
            "other_fitness": np.zeros(1),  # of the first try
            "gained": np.full(2, -np.inf),  # best fitness after the last round, and before it
            **starts,
            **others,
        }

    @property
    def length(self) -> int:
        """Generations of this round."""
        return int(LENGTH * 2 ** int(self._memory["round"][0]))

    @property
    def has_its_limits(self) -> bool:
        """Whether the budget is the one that the rounds were planned for."""
        return bool((self._memory["limits"] == self._limits).all())

    @property
    def granted(self) -> Clock:
        """The budget, as far as it is granted."""
        last = float(self._memory["granted"].sum())
        return self._limits._replace(generations=min(self._limits.generations, last))

    @property
    def is_last(self) -> bool:
        """Whether this round takes what is left of the budget."""
        return bool(self._memory["round"][2])

    @property
    def judged_from(self) -> int:
        """The generation from which patience may count in this try.

        A round raises the rate again, so that fitness may fall at first. It has as many generations
        to recover as a try of the round before had; the first round has nothing to recover.
        """
        waits = self.length // 2 if self._memory["round"][0] else 0
        return int(self._memory["began"][1]) + waits

    def stagnates(self, now: Clock) -> bool:
        """Say whether it no longer pays to go on."""
        return bool(now.generations >= self._memory["granted"].sum())

    @property
    def decay(self) -> float:
        """The weight decay of this try."""
        decay = float(self._memory["decay"][0])
        if self.is_last or self._n_tries == 1:
            return decay
        return decay / FACTOR if self._memory["round"][1] else decay * FACTOR

    def share_left(self, now: Clock) -> float:
        """Return the share of the rate that the next move has."""
        spent = np.array(now) - self._memory["began"]
        granted = np.array([math.inf, self.length, math.inf])
        if self.is_last:
            granted = np.maximum(np.array(self.granted) - self._memory["began"], 1e-9)
        return max(0.0, 1 - float((spent / granted).max()))

    def plan(self, now: Clock, per_generation: Clock, pays: bool = False) -> None:
        """Make this the last round unless its tries and 1.5 times their moves after them fit.

        If it pays to go on, more of the budget is granted.
        """
        room, needed = self._find_room(now, per_generation), _ROOM[self._n_tries] * self.length
        while pays and room < needed:
            self._memory["granted"][1] *= 2
            before, room = room, self._find_room(now, per_generation)
            if room == before:
                break  # a limit is nearer
        self._memory["round"][2] = room < needed

    def _find_room(self, now: Clock, per_generation: Clock) -> float:
        """Return how many generations are left of what is granted."""
        left = np.array(self.granted) - np.array(now)
        return float((left / np.maximum(per_generation, 1e-9)).min())

    def wants_measured_plan(self, now: Clock) -> bool:
        """Say whether it is time to plan again because seconds are known now."""
        number, attempt = self._memory["round"][:2]
        n_generations = now.generations - self._memory["began"][1]
        return bool(number == 0 and attempt == 0 and n_generations in _MEASURED)

    def is_over(self, now: Clock) -> bool:
        """Say whether this try has had its moves."""
        n_generations = now.generations - self._memory["began"][1]
        return not self.is_last and bool(n_generations >= self.length)

    def end_try(
        self, fitness: float, best_fitness: float, first_fitness: float, now: Clock
    ) -> None:
        """Go on to the next try or round; the arrays may be put back.

        Parameters
        ----------
        fitness
            Validation fitness at the end of this try; NaN if its network cannot be used.
        best_fitness, first_fitness
            The best there has been, and that of the first network.
        """
        memory = self._memory
        fitness = -math.inf if math.isnan(fitness) else fitness
        span = np.array(now, dtype=float) - memory["began"]
        memory["began"][:] = now
        if self._n_tries == 2 and memory["round"][1] == 0:
            self._copy("other", into_memory=True)
            memory["other_fitness"][0] = fitness
            self._copy("start", into_memory=False)
            memory["round"][1] = 1
            return
        other_fitness = float(memory["other_fitness"][0]) if self._n_tries == 2 else -math.inf
        if max(fitness, other_fitness) == -math.inf:
            self._copy("start", into_memory=False)  # there is no try to go on from
        elif self._n_tries == 2:
            is_first_better = other_fitness >= fitness
            if is_first_better:
                self._copy("other", into_memory=False)
            memory["decay"] *= FACTOR if is_first_better else 1 / FACTOR
        gained, before = memory["gained"]
        pays = best_fitness - gained > _LEAST_SHARE * (best_fitness - first_fitness)
        memory["gained"][:] = best_fitness, gained
        memory["round"][:2] = memory["round"][0] + 1, 0
        self._copy("start", into_memory=True)
        if gains_too_little(best_fitness, before, first_fitness):
            self._go_to_the_last(now)
        else:
            self.plan(now, Clock(*(span / span[1])), pays)

    def _go_to_the_last(self, now: Clock) -> None:
        """Make this the last round, and grant no more than it needs."""
        self._memory["round"][2] = 1
        began, granted = self._memory["granted"]
        needed = now.generations + _LAST * self.length - began
        self._memory["granted"][1] = min(granted, needed)

    def _copy(self, name: str, into_memory: bool) -> None:
        for k, array in enumerate(self._arrays):
            kept = self._memory[f"{name}_{k}"]
            if into_memory:
                kept[...] = array
            else:
                array[...] = kept
