"""Fitness of the first individuals in the global solution, where the paper has it by sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coevo.core.extensions.base import Extension

if TYPE_CHECKING:
    from coevo.core.search import Search


@dataclass
class InPlaceFitness(Extension):
    """Measures every individual once in its place in the first global solution.

    By the paper an individual's first fitness is its mean over random networks. Under full
    evaluation that is never measured again. If the networks that are sampled happen to be better
    than the one assembled from their best individuals, no trial measured there can ever win, and
    the search stands still from the start.
    """

    name: ClassVar[str] = "in_place_fitness"

    def before_generation(self, search: Search) -> None:
        """Measure before the first generation, unless that has been done.

        It has for a population of whole networks, and around a given network.
        """
        is_sampled = len(search.decomposition) > 1 and search.initial_network is None
        if search.state.generation == 0 and is_sampled:
            search.measure_in_place(search.state.batches[0])
