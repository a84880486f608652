"""Chooses F and CR for each trial: fixed as in the paper, drawn anew, or learnt from success.

Under limited evaluation a measured fitness is only worth something beside another one of the same
batch, so that a gain over an earlier generation means nothing. The adjusted fitness Ft′ of a trial
and of its target can be compared: both are measured on the same batch, in the same global solution,
on top of what they inherited. So a success is here what it is to selection, a win of adjusted
fitness, and what is gained is the difference of the two. A tie wins, so that individuals may drift,
but teaches nothing: where accuracy is flat, small F and CR tie most often, and would be learnt for
that alone. With full evaluation nothing is inherited and all of this is what it is in the
literature.

There is a limit to it. A gain holds a part that does not depend on F and CR, the difference of what
trial and target inherited: the trial of a poor target wins with any F. Learning is slower for that
and, where the mean favours large F as SHADE's does, F drifts upwards. The largest gains on a batch
come from large steps too, whether or not they are gains on the next. Watch what is learnt.

Each subpopulation learns for itself. It is a population of its own, whose individuals compete with
each other and with nobody else; the gains of an output neuron and of a hidden one differ by orders
of magnitude, so that as weights in a common mean they would silence each other. And a block, in
which subpopulations draw their trials together, is a matter of speed that must not change a result.

What a control remembers are plain arrays by name, which are part of the search's state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from coevo.network import Array

Memory = dict[str, Array]
"""What a control remembers; each array has a row for each subpopulation."""

_LEAST_SCALE_FACTOR = 1e-3  # with less, a trial would be its base again
_SPREAD = 0.1  # of what SHADE draws around its memories


class Control(ABC):
    """The two numbers that mutation and crossover need for each target."""

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, memory: Memory, here: slice, targets: range
    ) -> tuple[Array, Array]:
        """Choose F and CR.

        Parameters
        ----------
        rng
            Source of randomness.
        memory
            What is remembered of all subpopulations.
        here
            The k subpopulations whose trials are about to be made.
        targets
            Which of their individuals are targets.

        Returns
        -------
        two arrays of shape (k, len(targets)): F in (0, 1] unless the user wants more, CR in [0, 1]
        """

    def begin(self, n_subpopulations: int, population_size: int) -> Memory:
        """Return what is remembered at first."""
        return {}

    def learn(  # noqa: B027  (there may be nothing to learn)
        self, memory: Memory, here: slice, drawn: tuple[Array, Array], wins: Array, gains: Array
    ) -> None:
        """Take note of a generation of k subpopulations, all of whose targets have been contested.

        Parameters
        ----------
        memory
            Changed in place.
        here
            The k subpopulations.
        drawn : two arrays of shape (k, NP)
            The F and CR that each target's trial was made with.
        wins : boolean array of shape (k, NP)
            Where the trial took its target's place.
        gains : array of shape (k, NP)
            The trial's adjusted fitness less its target's.
        """

    def keep(self, memory: Memory, survivors: Array) -> None:  # noqa: B027
        """Forget individuals that are removed; survivors: (SP, NP) indices of those that stay."""


@dataclass(frozen=True)
class Fixed(Control):
    """The paper's: the same F and CR for everyone."""

    scale_factor: float
    crossover_rate: float

    def draw(
        self, rng: np.random.Generator, memory: Memory, here: slice, targets: range
    ) -> tuple[Array, Array]:
        """Draw nothing."""
        shape = (here.stop - here.start, len(targets))
        return np.full(shape, self.scale_factor), np.full(shape, self.crossover_rate)


@dataclass(frozen=True)
class Dither(Control):
    """F is drawn from a range for each target anew; CR is fixed.

    Large steps and small ones are tried side by side, so that none has to be right all the time.
    """

    scale_factor_range: tuple[float, float]
    crossover_rate: float

    def draw(
        self, rng: np.random.Generator, memory: Memory, here: slice, targets: range
    ) -> tuple[Array, Array]:
        """Draw F uniformly."""
        shape = (here.stop - here.start, len(targets))
        return rng.uniform(*self.scale_factor_range, shape), np.full(shape, self.crossover_rate)


@dataclass(frozen=True)
class JDE(Control):
    """Each individual carries the F and CR it was made with, and hands them on (Brest et al. 2006).

    A trial is made with its target's F and CR, each redrawn with a small probability: F uniformly
    from a range, CR uniformly from [0, 1]. They stay with the trial if it wins, ties included, as
    they are part of the individual; otherwise they are lost with it.
    """

    scale_factor: float
    crossover_rate: float
    scale_factor_range: tuple[float, float]
    redraw_probability: float

    def begin(self, n_subpopulations: int, population_size: int) -> Memory:
        """Everyone begins with the same F and CR."""
        shape = (n_subpopulations, population_size)
        return {
            "scale_factors": np.full(shape, self.scale_factor, dtype=np.float64),
            "crossover_rates": np.full(shape, self.crossover_rate, dtype=np.float64),
        }

    def draw(
        self, rng: np.random.Generator, memory: Memory, here: slice, targets: range
    ) -> tuple[Array, Array]:
        """Take the targets' own, now and then others."""
        columns = slice(targets.start, targets.stop)
        carried = (memory[name][here, columns] for name in ("scale_factors", "crossover_rates"))
        low, high = self.scale_factor_range
        # Each of the two: whether to redraw, and what.
        chances = rng.random((4, here.stop - here.start, len(targets)))
        redrawn = (low + (high - low) * chances[1], chances[3])
        scale_factors, crossover_rates = (
            np.where(chance < self.redraw_probability, new, old)
            for chance, new, old in zip(chances[::2], redrawn, carried, strict=True)
        )
        return scale_factors, crossover_rates

    def learn(
        self, memory: Memory, here: slice, drawn: tuple[Array, Array], wins: Array, gains: Array
    ) -> None:
        """Let winners keep theirs."""
        for name, values in zip(("scale_factors", "crossover_rates"), drawn, strict=True):
            memory[name][here][wins] = values[wins]

    def keep(self, memory: Memory, survivors: Array) -> None:
        """Only survivors carry any."""
        for name, carried in memory.items():
            memory[name] = np.take_along_axis(carried, survivors, axis=1)


@dataclass(frozen=True)
class SHADE(Control):
    """F and CR are drawn around what has succeeded before (Tanabe and Fukunaga 2013).

    A subpopulation remembers `memory_size` pairs of F and CR. Each trial picks a pair at random and
    draws CR from a normal distribution around it, limited to [0, 1], and F from a Cauchy
    distribution, again if it is not above 0 and limited to 1. After a generation with successes the
    next pair, in turn, is replaced by the means over them, weighted with what each has gained: for
    CR the arithmetic mean, for F the Lehmer mean Σ w F² / Σ w F, which makes up for small steps
    succeeding more easily.

    The mutation it was published with is the strategy current-to-pbest/1, with its archive. It
    works with the others just as well.
    """

    scale_factor: float
    crossover_rate: float
    memory_size: int

    def begin(self, n_subpopulations: int, population_size: int) -> Memory:
        """All pairs are the same at first."""
        shape = (n_subpopulations, self.memory_size)
        return {
            "scale_factors": np.full(shape, self.scale_factor, dtype=np.float64),
            "crossover_rates": np.full(shape, self.crossover_rate, dtype=np.float64),
            "places": np.zeros(n_subpopulations, dtype=np.int64),
        }

    def draw(
        self, rng: np.random.Generator, memory: Memory, here: slice, targets: range
    ) -> tuple[Array, Array]:
        """Draw around remembered pairs."""
        shape = (here.stop - here.start, len(targets))
        pairs = rng.integers(self.memory_size, size=shape)
        scale_factors, crossover_rates = (
            np.take_along_axis(memory[name][here], pairs, axis=1)
            for name in ("scale_factors", "crossover_rates")
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

    def learn(
        self, memory: Memory, here: slice, drawn: tuple[Array, Array], wins: Array, gains: Array
    ) -> None:
        """Replace the next pair of each subpopulation that has had a success."""
        # A gain over a target of infinitely low fitness says nothing about how much it is worth.
        weights = np.where(wins & (gains > 0) & np.isfinite(gains), gains, 0.0)
        learnt = np.flatnonzero(weights.any(axis=1))
        # Scaled so that the smallest gains do not vanish when they are multiplied.
        weights = weights[learnt] / weights[learnt].max(axis=1, keepdims=True)
        scale_factors, crossover_rates = (values[learnt] for values in drawn)
        weighted = weights * scale_factors
        rows, places = here.start + learnt, memory["places"][here][learnt]
        lehmer_means = (weighted * scale_factors).sum(axis=1) / weighted.sum(axis=1)
        means = (weights * crossover_rates).sum(axis=1) / weights.sum(axis=1)
        memory["scale_factors"][rows, places] = lehmer_means
        memory["crossover_rates"][rows, places] = means
        memory["places"][rows] = (places + 1) % self.memory_size


CONTROLS: dict[str, type[Fixed | Dither | JDE | SHADE]] = {
    "fixed": Fixed,
    "dither": Dither,
    "jde": JDE,
    "shade": SHADE,
}
"""The controls by name; what they are made of are the settings of the same names."""
