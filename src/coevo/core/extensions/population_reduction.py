"""Subpopulations that shrink along the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer
from coevo.core.extensions.base import Extension
from coevo.core.stopping import spent_share

if TYPE_CHECKING:
    from coevo.core.search import Search


@dataclass
class PopulationReduction(Extension):
    """Lets NP fall linearly from `population_size`; the least fit individuals go.

    Parameters
    ----------
    final_size
        NP when the budget is spent.
    """

    name: ClassVar[str] = "population_reduction"
    final_size: int = 4

    follows_budget: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer("final_size", self.final_size, 1)

    def before_generation(self, search: Search) -> None:
        """Remove individuals, if subpopulations should be smaller by now."""
        state, settings = search.state, search.settings
        share = spent_share(settings, state.evaluations, state.generation)
        first_size = int(settings.population_size)
        size = round(first_size - share * (first_size - self.final_size))
        if size < state.fitness.shape[1]:
            search.keep(choose_survivors(state.fitness, state.champions, size))


def choose_survivors(fitness: Array, champions: Array, size: int) -> Array:
    """Choose the champion and the fittest others; of those equally fit the first ones.

    The fitness is the adjusted one: by it the individuals have competed, and all of a subpopulation
    were measured on the same batch in the last generation.

    Parameters
    ----------
    fitness : array of shape (SP, NP)
    champions : integer array of shape (SP,)
        The individual of each subpopulation that is part of the global solution.
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
