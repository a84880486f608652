"""Follows the accuracy of the global solution on all three parts of the data along a run."""

from __future__ import annotations

import numpy as np

from coevo.datasets import Split
from coevo.network import Architecture, Array, Network
from coevo.search import Search

COLUMNS = ("evaluations", "train", "validation", "test")
"""What the columns of a trace mean; the accuracies are between 0 and 1."""


class Trace:
    """A callback that scores the present global solution every so often.

    Like `coevo.history.History` it thins itself out when it is full, so a long run costs little
    more than a short one. Callbacks are outside the time that a search counts as its own.

    Parameters
    ----------
    parts
        The data; its test part is looked at only here and never by the search.
    capacity
        How many rows are kept at most.
    """

    def __init__(self, parts: Split, capacity: int = 256) -> None:
        self._parts = (parts.train, parts.validation, parts.test)
        self._classes = np.unique(parts.train.labels)
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def __call__(self, search: Search) -> None:
        """Score the global solution if it is this generation's turn."""
        state = search.state
        if state.generation % self._stride:
            return
        if len(self._rows) >= self._capacity:
            del self._rows[::2]  # the first was generation 1 × stride, so the even ones stay
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
