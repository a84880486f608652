"""Records the accuracy of the global solution on all three parts of the data along a run."""

from __future__ import annotations

import numpy as np

from coevo._typing import Array
from coevo.core.loop import SearchLoop
from coevo.core.network import Architecture, Network
from coevo.datasets import Split

COLUMNS = ("evaluations", "train", "validation", "test")
"""The columns of a trace; accuracies are between 0 and 1."""


class Trace:
    """A callback that scores the global solution every few generations.

    Like `coevo.core.history.History` it drops every second row when it is full, so a long run
    costs little more than a short one. The search does not count the time of callbacks as its own.

    Parameters
    ----------
    parts
        The data; the search itself never sees the test part.
    capacity
        Maximum number of rows.
    """

    def __init__(self, parts: Split, capacity: int = 256) -> None:
        self._parts = (parts.train, parts.validation, parts.test)
        self._classes = np.unique(parts.train.labels)
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def __call__(self, search: SearchLoop) -> None:
        """Score the global solution if this generation is one of those recorded."""
        state = search.state
        if state.generation % self._stride:
            return
        if len(self._rows) >= self._capacity:
            del self._rows[::2]  # the first is generation 1 × stride; even multiples stay
            self._stride *= 2
            if state.generation % self._stride:
                return
        settings, train = search.settings, self._parts[0]
        architecture = Architecture(
            train.inputs.shape[1],
            settings.hidden_layer_sizes,
            len(self._classes),
            settings.activation,
        )
        network = Network(architecture, state.global_solution)
        accuracies = (
            float((self._classes[network.predict(part.inputs)] == part.labels).mean())
            for part in self._parts
        )
        self._rows.append((float(state.evaluations), *accuracies))

    @property
    def rows(self) -> Array:
        """The rows so far, float64 array of shape (n, 4)."""
        return np.array(self._rows, dtype=float).reshape(-1, len(COLUMNS))
