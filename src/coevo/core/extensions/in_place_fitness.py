"""Initial fitness measured in the global solution, after the paper's sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coevo.core.extensions.base import Extension

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch


@dataclass
class InPlaceFitness(Extension):
    """Measures every individual once in its place in the first global solution.

    In the paper an individual's initial fitness is its mean over random networks. Under full
    evaluation it is not measured again. If the sampled networks happen to be better than the one
    assembled from their best individuals, no trial in that one can win, and the search never moves.
    """

    name: ClassVar[str] = "in_place_fitness"

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Measure before the first generation.

        A population of whole networks and one around a given network have been measured so already.
        """
        is_sampled = len(search.decomposition) > 1 and search.initial_network is None
        if search.state.generation == 0 and is_sampled:
            search.measure_in_place(search.state.batches[0])
