"""Global solutions that wait for validation, as many as memory allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coevo.network import Array

_MOST_GENES = 2**24  # held at once: 64 MB in float32


class Moves:
    """The global solution after each move of a generation, validated many at a time.

    Parameters
    ----------
    validate
        Measures networks (m, n_genes) on the validation set.
    """

    def __init__(self, validate: Callable[[Array], Array]) -> None:
        self._validate = validate
        self._networks: list[Array] = []
        self._fitness: list[Array] = []

    def append(self, network: Array) -> None:
        """Remember a copy of a network."""
        self._networks.append(network.copy())
        if len(self._networks) * network.size >= _MOST_GENES:
            self._measure()

    def validate(self) -> Array:
        """Return the fitness of all networks since the last call, in order."""
        self._measure()
        fitness, self._fitness = self._fitness, []
        return np.concatenate([np.empty(0), *fitness])

    def _measure(self) -> None:
        networks, self._networks = self._networks, []
        if networks:
            self._fitness.append(self._validate(np.stack(networks)))
