"""Adaptation of F and CR: drawn anew for each trial, or learnt from success.

Under limited evaluation fitness is comparable only on the same batch, so that a gain over an
earlier generation means nothing. The adjusted fitness Ft′ of a trial and of its target is
comparable: both are measured on the same batch in the same global solution, and added to what they
inherited. A success is therefore a win in adjusted fitness, and the gain is the difference of the
two. A tie wins, so that individuals may drift, but nothing is learnt from it: on the plateaus of
accuracy small F and CR tie most often and would be learnt for that alone. Under full evaluation
nothing is inherited, and this is the rule of the literature.

The gain includes the difference in inherited fitness, which does not depend on F and CR: the trial
of a poor target wins with any F. This slows learning down and, with a mean that favours large F
such as SHADE's, lets F drift upwards. The largest gains on a batch also come from large steps,
whether or not they last on the next batch.

Each subpopulation learns by itself: its individuals compete only with each other, and gains of
output neurons and of hidden neurons differ by orders of magnitude, so that in a common weighted
mean only one kind would count.
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
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.schedule import TrialLog, Turn

_LEAST_SCALE_FACTOR = 1e-3  # with less, a mutant would equal its base
_SPREAD = 0.1  # scale of SHADE's normal and Cauchy distributions
_RATES = ("scale_factors", "crossover_rates")  # in memories and in `TrialLog`


def _check_range(low: float, high: float) -> None:
    check_real("low", low, 0, above=True)
    check_real("high", high, low)


@dataclass
class Dither(Control):
    """F is uniform in [low, high] for each trial, and scale_factor is not used; CR is fixed.

    When NP doubles (`Revival`), low and high are divided by √2.
    """

    name: ClassVar[str] = "dither"
    low: float = 0.04
    high: float = 0.4

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    def draw(self, search: ExtensibleSearch, turn: Turn) -> tuple[Array, Array]:
        """Draw F; return the setting CR."""
        shape = (len(turn.subpopulations), len(turn.targets))
        scale_factors = search.state.rng.uniform(self.low, self.high, shape) * _find_ratio(search)
        return scale_factors, np.full(shape, search.settings.crossover_rate)


@dataclass
class JDE(Control):
    """Each individual carries the F and CR it was made with (Brest et al. 2006).

    A trial takes its target's F and CR, each redrawn with probability `redraw_probability`: F
    uniformly from [low, high], CR uniformly from [0, 1]. It keeps them if it wins or ties. When NP
    doubles (`Revival`), low and high are divided by √2.
    """

    name: ClassVar[str] = "jde"
    low: float = 0.04
    high: float = 0.4
    redraw_probability: float = 0.1

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        check_real("redraw_probability", self.redraw_probability, 0, 1)

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Give every individual the settings' F and CR."""
        return _repeat_settings(search, search.state.fitness.shape)

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Also refuse impossible rates."""
        return super().fits(search, memory) and _are_possible(memory)

    def draw(self, search: ExtensibleSearch, turn: Turn) -> tuple[Array, Array]:
        """Take the targets' F and CR, some of them redrawn."""
        memory, shape = search.memory(self), (len(turn.subpopulations), len(turn.targets))
        carried = (memory[name][turn.here, turn.columns] for name in _RATES)
        # In turn: whether to redraw F, the new F, whether to redraw CR, the new CR.
        chances = search.state.rng.random((4, *shape))
        new_factors = (self.low + (self.high - self.low) * chances[1]) * _find_ratio(search)
        redrawn = (new_factors, chances[3])
        scale_factors, crossover_rates = (
            np.where(chance < self.redraw_probability, new, old)
            for chance, new, old in zip(chances[::2], redrawn, carried, strict=True)
        )
        return scale_factors, crossover_rates

    def after_block(self, search: ExtensibleSearch, turn: Turn, log: TrialLog) -> None:
        """Store the F and CR of winning trials."""
        if turn.completes:
            wins = log.wins[turn.here]
            for name in _RATES:
                search.memory(self)[name][turn.here][wins] = getattr(log, name)[turn.here][wins]

    def keep(self, search: ExtensibleSearch, survivors: Array) -> None:
        """Drop the F and CR of removed individuals."""
        memory = search.memory(self)
        for name in _RATES:
            memory[name] = np.take_along_axis(memory[name], survivors, axis=1)


@dataclass
class SHADE(Control):
    """F and CR are drawn around values that have succeeded (Tanabe and Fukunaga 2013).

    A subpopulation remembers `memory_size` pairs of F and CR. Each trial picks a pair at random and
    draws CR from a normal distribution around it, clipped to [0, 1], and F from a Cauchy
    distribution, redrawn until it is above 0 and clipped to 1. After a generation with successes
    the next pair, in turn, is replaced by their means, weighted by gain: the arithmetic mean of CR,
    and the Lehmer mean Σ w F² / Σ w F, which compensates for small steps succeeding more often.

    It was published with the strategy current-to-pbest/1 and an archive, but works with any.
    """

    name: ClassVar[str] = "shade"
    memory_size: int = 5

    def __post_init__(self) -> None:
        check_integer("memory_size", self.memory_size, 1)

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Fill all pairs with the settings' F and CR."""
        n_subpopulations = len(search.state.fitness)
        places = {"places": np.zeros(n_subpopulations, dtype=np.int64)}
        return _repeat_settings(search, (n_subpopulations, self.memory_size)) | places

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Also refuse impossible rates and places."""
        if not (super().fits(search, memory) and _are_possible(memory)):
            return False
        places = memory["places"]
        return bool(((places >= 0) & (places < self.memory_size)).all())

    def draw(self, search: ExtensibleSearch, turn: Turn) -> tuple[Array, Array]:
        """Draw around remembered pairs."""
        rng, memory = search.state.rng, search.memory(self)
        shape = (len(turn.subpopulations), len(turn.targets))
        pairs = rng.integers(self.memory_size, size=shape)
        scale_factors, crossover_rates = (
            np.take_along_axis(memory[name][turn.here], pairs, axis=1) for name in _RATES
        )
        crossover_rates += _SPREAD * rng.standard_normal(shape)
        # Redrawing until F is above 0 is drawing from that part of the distribution.
        not_above_0 = 0.5 - np.arctan(scale_factors / _SPREAD) / np.pi
        quantiles = 1.0 - rng.random(shape) * (1.0 - not_above_0)
        scale_factors += _SPREAD * np.tan(np.pi * (quantiles - 0.5))
        return (
            np.clip(scale_factors, _LEAST_SCALE_FACTOR, 1.0),
            np.clip(crossover_rates, 0.0, 1.0),
        )

    def after_block(self, search: ExtensibleSearch, turn: Turn, log: TrialLog) -> None:
        """Replace the next pair of each subpopulation with a success."""
        if not turn.completes:
            return
        memory, here = search.memory(self), turn.here
        wins, gains = log.wins[here], log.gains[here]
        # A gain over a target whose fitness is −∞ is no weight.
        weights = np.where(wins & (gains > 0) & np.isfinite(gains), gains, 0.0)
        learnt = np.flatnonzero(weights.any(axis=1))
        # Scaled, so that products with tiny gains do not underflow.
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


def _find_ratio(search: ExtensibleSearch) -> float:
    """Return what the setting F has been multiplied by since the start; ranges follow it.

    Above its critical value, which falls as NP grows, F would let weights grow without end.
    """
    return float(search.settings.scale_factor) / float(search.first_settings.scale_factor)


def _repeat_settings(search: ExtensibleSearch, shape: tuple[int, ...]) -> Memory:
    settings = search.settings
    values = (settings.scale_factor, settings.crossover_rate)
    return {
        name: np.full(shape, value, dtype=np.float64)
        for name, value in zip(_RATES, values, strict=True)
    }


def _are_possible(memory: Memory) -> bool:
    """Return whether all remembered F and CR are finite and at least 0."""
    return all(bool(((memory[name] >= 0) & np.isfinite(memory[name])).all()) for name in _RATES)


CONTROLS: dict[str, type[Control]] = {
    kind.name: kind for kind in (Fixed, Dither, JDE, SHADE)
}  # fmt: skip
"""The controls by name."""
