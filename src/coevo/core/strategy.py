"""Strategies of differential evolution, in the notation DE/mutation/crossover, and their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from coevo._validation import check_flag, check_name, check_real
from coevo.core.component import Component, find_component, is_auto
from coevo.core.operators import CROSSOVERS, MUTATIONS
from coevo.core.smoothing import Smoothing

_SHORT = {"bin": "binomial", "exp": "exponential"}


@dataclass
class Strategy(Component):
    """How trials are made, and when they replace their targets.

    Parameters
    ----------
    mutation
        rand/1 (the paper's), best/1, rand/2 or current-to-best/1; `CurrentToPBest` is a class of
        its own.
    crossover
        binomial (the paper's) or exponential.
    synchronous
        Replace individuals together after the last of the subpopulation, not one by one.
    accept_ties
        Let a trial replace a target of exactly equal fitness, so that the search drifts along
        plateaus, of which accuracy has many.
    """

    in_name: ClassVar[tuple[str, ...]] = ("mutation",)
    mutations: ClassVar[tuple[str, ...]] = tuple(m for m in MUTATIONS if m != "current-to-pbest/1")
    """The mutations that this class serves."""

    mutation: str = "rand/1"
    crossover: str = "binomial"
    synchronous: bool = True
    accept_ties: bool = True

    def __post_init__(self) -> None:
        check_name("mutation", self.mutation, self.mutations)
        check_name("crossover", self.crossover, CROSSOVERS)
        check_flag("synchronous", self.synchronous)
        check_flag("accept_ties", self.accept_ties)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The mutation's name."""
        return self.mutation

    @property
    def minimum_population_size(self) -> int:
        """The random parents and the target must all be different individuals."""
        return MUTATIONS[self.mutation].minimum_population_size

    def count_best(self, population_size: int) -> int:
        """Return how many of the fittest individuals a pbest is drawn from."""
        return 1


@dataclass
class CurrentToPBest(Strategy):
    """The mutation of JADE and SHADE: towards one of the fittest, away from replaced individuals.

    Parameters
    ----------
    share
        Share of a subpopulation that the pbest is drawn from, one individual at least.
    archive_rate
        Size of the archive of replaced individuals as a multiple of NP, 0 for none.
    crossover, synchronous, accept_ties
        As for `Strategy`.
    """

    mutations: ClassVar[tuple[str, ...]] = ("current-to-pbest/1",)

    mutation: str = field(default="current-to-pbest/1", init=False)
    share: float = 0.1
    archive_rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("share", self.share, 0, 1)
        check_real("archive_rate", self.archive_rate, 0)

    def count_best(self, population_size: int) -> int:
        """Return how many of the fittest individuals a pbest is drawn from."""
        return max(1, round(self.share * population_size))


STRATEGIES: dict[str, Callable[..., Component]] = {
    **{name: partial(Strategy, name) for name in Strategy.mutations},
    "current-to-pbest/1": CurrentToPBest,
    **{
        f"{name}/{short}": partial(Strategy, name, crossover)
        for name in Strategy.mutations
        for short, crossover in _SHORT.items()
    },
    Smoothing.name: Smoothing,
}
"""The strategies by name; `rand/1` is short for `rand/1/bin`."""


def find_strategy(given: Any, setting: str = "") -> Any:
    """Return the strategy that a name, a text or an object stands for.

    "auto" stays "auto", unless the name of a setting is given that only some strategies have.
    """
    if is_auto(given) and setting:
        given = Smoothing.name if setting in Smoothing().get_params() else "rand/1"
    if isinstance(given, Smoothing) or is_auto(given):
        return given
    return find_component("strategy", given, STRATEGIES, Strategy)
