"""Global solutions that wait for validation, as many as memory allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coevo.network import Array

_MOST_GENES = 2**24  # held at once: 64 MB in float32


Validate = Callable[[Array], Array]
"""Measures networks (m, n_genes) on the validation set."""


class Moves:
    """The global solution after each move of a generation, validated many at a time.

    It is handed `validate` anew each time: an engine that its own moves held on to would keep its
    instances in memory until the garbage collector comes by.
    """

    def __init__(self) -> None:
        self._networks: list[Array] = []
        self._fitness: list[Array] = []

    def append(self, network: Array, validate: Validate) -> None:
        """Remember a copy of a network."""
        self._networks.append(network.copy())
        if len(self._networks) * network.size >= _MOST_GENES:
            self._measure(validate)

    def validate(self, validate: Validate) -> Array:
        """Return the fitness of all networks since the last call, in order."""
        self._measure(validate)
        fitness, self._fitness = self._fitness, []
        return np.concatenate([np.empty(0), *fitness])

    def _measure(self, validate: Validate) -> None:
        networks, self._networks = self._networks, []
        if networks:
            self._fitness.append(validate(np.stack(networks)))
