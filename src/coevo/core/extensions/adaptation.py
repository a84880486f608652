"""Adaptation of F and CR: drawn anew for each trial, or learnt from success.

Under limited evaluation a measured fitness can only be compared with another one of the same batch,
so a gain over an earlier generation means nothing. The adjusted fitness Ft′ of a trial and of its
target can be compared: both are measured on the same batch, in the same global solution, on top of
what they inherited. A success is therefore a win in adjusted fitness, and what is gained is the
difference of the two. A tie wins, so that individuals may drift, but nothing is learnt from it: on
the plateaus of accuracy small F and CR tie most often and would be learnt for that alone. With full
evaluation nothing is inherited, and all of this is as in the literature.

The gain includes the difference of what trial and target inherited, which does not depend on F and
CR: the trial of a poor target wins with any F. Learning is slower for that and, where the mean
favours large F as SHADE's does, F drifts upwards. The largest gains on a batch also come from large
steps, whether or not they are gains on the next.

Each subpopulation learns for itself: its individuals compete with each other only, and the gains of
an output neuron and of a hidden one differ by orders of magnitude, so that in a common weighted
mean one would drown the other. Blocks exist for speed only and must not change a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer, check_real
from coevo.core.control import Control, Fixed
from coevo.core.extensions.base import Memory

if TYPE_CHECKING:
    from coevo.core.schedule import TrialLog, Turn
    from coevo.core.search import Search

_LEAST_SCALE_FACTOR = 1e-3  # with less, a trial would be its base again
_SPREAD = 0.1  # of what SHADE draws around its memories
_NAMES = ("scale_factors", "crossover_rates")


def _check_range(low: float, high: float) -> None:
    check_real("low", low, 0, above=True)
    check_real("high", high, low)


@dataclass
class Dither(Control):
    """F is drawn uniformly from [low, high] for each trial, not from scale_factor; CR is fixed.

    Large and small steps are tried side by side, so that neither has to be right all the time.
    """

    name: ClassVar[str] = "dither"
    low: float = 0.04
    high: float = 0.4

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    def draw(self, search: Search, turn: Turn) -> tuple[Array, Array]:
        """Draw F."""
        shape = (len(turn.subpopulations), len(turn.targets))
        scale_factors = search.state.rng.uniform(self.low, self.high, shape)
        return scale_factors, np.full(shape, search.settings.crossover_rate)


@dataclass
class JDE(Control):
    """Each individual carries the F and CR it was made with (Brest et al. 2006).

    A trial is made with its target's F and CR, each redrawn with probability `redraw_probability`:
    F uniformly from [low, high], CR uniformly from [0, 1]. They stay with the trial if it wins,
    ties included.
    """

    name: ClassVar[str] = "jde"
    low: float = 0.04
    high: float = 0.4
    redraw_probability: float = 0.1

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        check_real("redraw_probability", self.redraw_probability, 0, 1)

    def begin(self, search: Search) -> Memory:
        """Everyone begins with the settings' F and CR."""
        return _fill(search, search.state.fitness.shape)

    def fits(self, search: Search, memory: Memory) -> bool:
        """Also refuse impossible rates."""
        return super().fits(search, memory) and _are_rates(memory)

    def draw(self, search: Search, turn: Turn) -> tuple[Array, Array]:
        """Take the targets' own, redrawn now and then."""
        memory, shape = search.memory(self), (len(turn.subpopulations), len(turn.targets))
        carried = (memory[name][turn.here, turn.columns] for name in _NAMES)
        # For F and for CR: whether to redraw, and what.
        chances = search.state.rng.random((4, *shape))
        redrawn = (self.low + (self.high - self.low) * chances[1], chances[3])
        scale_factors, crossover_rates = (
            np.where(chance < self.redraw_probability, new, old)
            for chance, new, old in zip(chances[::2], redrawn, carried, strict=True)
        )
        return scale_factors, crossover_rates

    def after_block(self, search: Search, turn: Turn, log: TrialLog) -> None:
        """Let winners keep theirs."""
        if turn.completes:
            wins = log.wins[turn.here]
            for name in _NAMES:
                search.memory(self)[name][turn.here][wins] = getattr(log, name)[turn.here][wins]

    def keep(self, search: Search, survivors: Array) -> None:
        """Drop those of removed individuals."""
        memory = search.memory(self)
        for name in _NAMES:
            memory[name] = np.take_along_axis(memory[name], survivors, axis=1)


@dataclass
class SHADE(Control):
    """F and CR are drawn around what has succeeded before (Tanabe and Fukunaga 2013).

    A subpopulation remembers `memory_size` pairs of F and CR. Each trial picks a pair at random and
    draws CR from a normal distribution around it, limited to [0, 1], and F from a Cauchy
    distribution, again if it is not above 0 and limited to 1. After a generation with successes the
    next pair, in turn, is replaced by the means over them, weighted with what each has gained: for
    CR the arithmetic mean, for F the Lehmer mean Σ w F² / Σ w F, which makes up for small steps
    succeeding more easily.

    It was published with the strategy current-to-pbest/1 and its archive, and works with any.
    """

    name: ClassVar[str] = "shade"
    memory_size: int = 5

    def __post_init__(self) -> None:
        check_integer("memory_size", self.memory_size, 1)

    def begin(self, search: Search) -> Memory:
        """All pairs are the settings' F and CR."""
        n_subpopulations = len(search.state.fitness)
        places = {"places": np.zeros(n_subpopulations, dtype=np.int64)}
        return _fill(search, (n_subpopulations, self.memory_size)) | places

    def fits(self, search: Search, memory: Memory) -> bool:
        """Also refuse impossible rates, and places that the memory does not have."""
        if not (super().fits(search, memory) and _are_rates(memory)):
            return False
        places = memory["places"]
        return bool(((places >= 0) & (places < self.memory_size)).all())

    def draw(self, search: Search, turn: Turn) -> tuple[Array, Array]:
        """Draw around remembered pairs."""
        rng, memory = search.state.rng, search.memory(self)
        shape = (len(turn.subpopulations), len(turn.targets))
        pairs = rng.integers(self.memory_size, size=shape)
        scale_factors, crossover_rates = (
            np.take_along_axis(memory[name][turn.here], pairs, axis=1) for name in _NAMES
        )
        crossover_rates += _SPREAD * rng.standard_normal(shape)
        # Drawing again until F is above 0 is drawing from that part of the distribution.
        not_above_0 = 0.5 - np.arctan(scale_factors / _SPREAD) / np.pi
        quantiles = 1.0 - rng.random(shape) * (1.0 - not_above_0)
        scale_factors += _SPREAD * np.tan(np.pi * (quantiles - 0.5))
        return (
            np.clip(scale_factors, _LEAST_SCALE_FACTOR, 1.0),
            np.clip(crossover_rates, 0.0, 1.0),
        )

    def after_block(self, search: Search, turn: Turn, log: TrialLog) -> None:
        """Replace the next pair of each subpopulation that has had a success."""
        if not turn.completes:
            return
        memory, here = search.memory(self), turn.here
        wins, gains = log.wins[here], log.gains[here]
        # A gain over a target of infinitely low fitness says nothing about how much it is worth.
        weights = np.where(wins & (gains > 0) & np.isfinite(gains), gains, 0.0)
        learnt = np.flatnonzero(weights.any(axis=1))
        # Scaled so that the smallest gains do not vanish when they are multiplied.
        weights = weights[learnt] / weights[learnt].max(axis=1, keepdims=True)
        scale_factors = log.scale_factors[here][learnt]
        crossover_rates = log.crossover_rates[here][learnt]
        weighted = weights * scale_factors
        rows, places = here.start + learnt, memory["places"][here][learnt]
        lehmer_means = (weighted * scale_factors).sum(axis=1) / weighted.sum(axis=1)
        means = (weights * crossover_rates).sum(axis=1) / weights.sum(axis=1)
        memory["scale_factors"][rows, places] = lehmer_means
        memory["crossover_rates"][rows, places] = means
        memory["places"][rows] = (places + 1) % self.memory_size


def _fill(search: Search, shape: tuple[int, ...]) -> Memory:
    settings = search.settings
    values = (settings.scale_factor, settings.crossover_rate)
    return {
        name: np.full(shape, value, dtype=np.float64)
        for name, value in zip(_NAMES, values, strict=True)
    }


def _are_rates(memory: Memory) -> bool:
    """Return whether all remembered F and CR are possible; NaN and infinity are not."""
    return all(bool(((memory[name] >= 0) & np.isfinite(memory[name])).all()) for name in _NAMES)


CONTROLS: dict[str, type[Control]] = {
    kind.name: kind for kind in (Fixed, Dither, JDE, SHADE)
}  # fmt: skip
"""The controls by name."""
