"""The replacements of a generation, which wait for validation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coevo._typing import Array
from coevo.core.decomposition import Genes

_MOST_GENES = 2**24  # of networks validated at once: 64 MB in float32


class Replacements:
    """What replaced which genes of the global solution, in order.

    Parameters
    ----------
    global_solution : array of shape (n_genes,)
        As it is before the first replacement; copied.
    """

    def __init__(self, global_solution: Array) -> None:
        self._network = global_solution.copy()
        self._made: list[tuple[Genes, Array]] = []

    def append(self, genes: Genes, individual: Array) -> None:
        """Note a replacement."""
        self._made.append((genes, individual.copy()))

    def validate(self, validate: Callable[[Array], Array]) -> Array:
        """Return the fitness after each replacement since the last call.

        `validate` measures networks (m, n_genes), as many at a time as memory allows.
        """
        made, self._made = self._made, []
        step = max(1, _MOST_GENES // self._network.size)
        fitness = [np.empty(0)]
        for start in range(0, len(made), step):
            some = made[start : start + step]
            networks = np.empty((len(some), self._network.size), dtype=self._network.dtype)
            for place, (genes, individual) in enumerate(some):
                self._network[genes] = individual
                networks[place] = self._network
            fitness.append(validate(networks))
        return np.concatenate(fitness)

    def compose(self, n_made: int) -> Array:
        """Return the global solution after the first n replacements; they stay noted."""
        network = self._network.copy()
        for genes, individual in self._made[:n_made]:
            network[genes] = individual
        return network
