"""Subpopulations that shrink along the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo.core.component import is_auto
from coevo.core.extensions.along_budget import AlongBudget, interpolate
from coevo.core.extensions.revival import Revival

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.settings import Settings


@dataclass
class PopulationReduction(AlongBudget):
    """Lets NP fall linearly from `population_size`; the least fit individuals are removed.

    Parameters
    ----------
    final_size
        NP when the budget is spent.
    """

    name: ClassVar[str] = "population_reduction"
    final_size: int = 4

    def check(self, settings: Settings) -> None:
        """Refuse sizes that are too small, or that would grow."""
        super().check(settings)
        if any(isinstance(other, Revival) for other in settings.known_extensions):
            raise ValueError(
                "extensions holds population_reduction and revival: the one lets NP fall, the "
                "other lets it grow"
            )
        settings.check_population_size("final_size", self.final_size)
        size = settings.population_size
        if not is_auto(size) and self.final_size > int(size):
            raise ValueError(
                f"final_size={self.final_size} must be at most population_size={size}: "
                "subpopulations can only shrink"
            )

    def population_sizes(self, size: int) -> tuple[int, int]:
        """From the final size to the first."""
        return self.final_size, size

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Remove individuals, if subpopulations should be smaller by now."""
        state = search.state
        size = interpolate(search, int(search.settings.population_size), self.final_size)
        if size < state.fitness.shape[1]:
            search.keep(choose_survivors(state.fitness, state.champions, size))


def choose_survivors(fitness: Array, champions: Array, size: int) -> Array:
    """Choose the champion and the fittest others; of those equally fit the first ones.

    Adjusted fitness is comparable within a subpopulation: all of its individuals were measured on
    the same batch in the last generation.

    Parameters
    ----------
    fitness : array of shape (SP, NP)
    champions : integer array of shape (SP,)
    size
        How many survive.

    Returns
    -------
    integer array of shape (SP, size), ascending in each row
    """
    ranked = fitness.copy()
    ranked[np.arange(len(fitness)), champions] = np.inf
    fittest = np.argsort(-ranked, axis=1, kind="stable")[:, :size]
    return np.sort(fittest, axis=1)
