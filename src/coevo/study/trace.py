"""Records the accuracy of the global solution on all three parts of the data along a run."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from coevo._typing import Array
from coevo.core.hooks import Hook
from coevo.core.loop import SearchLoop
from coevo.core.network import Architecture, Network
from coevo.datasets import Split
from coevo.persistence.atomic import write_atomically
from coevo.persistence.checkpoint import CheckpointError
from coevo.persistence.container import FileFormatError, pack, unpack

COLUMNS = ("evaluations", "train", "validation", "test")
"""The columns of a trace; accuracies are between 0 and 1."""


class Trace(Hook):
    """Scores the global solution every few generations.

    Like `coevo.core.history.History` it drops every second row when it is full, so a long run
    costs little more than a short one. The search does not count the time of hooks as its own.

    Parameters
    ----------
    parts
        The data; the search itself never sees the test part.
    path
        File for the rows of a run that may have to be resumed. It is written after each row, so it
        is behind a checkpoint that is saved later in the same generation only if it could not be
        written; `begin` then refuses it.
    """

    def __init__(self, parts: Split, path: Path | None = None, capacity: int = 256) -> None:
        self._parts = (parts.train, parts.validation, parts.test)
        self._classes = np.unique(parts.train.labels)
        self._path = path
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def begin(self, search: SearchLoop) -> None:
        """Take over the rows up to the generation from which the search goes on.

        Some of them may have been dropped after the checkpoint was saved. They would be dropped
        again.

        Raises
        ------
        CheckpointError
            If the file is damaged or lacks rows.
        """
        if self._path is None or search.state.generation == 0:
            return
        try:
            _, arrays = unpack(self._path.read_bytes())
            rows, self._stride = arrays["rows"], int(arrays["stride"])
        except (OSError, FileFormatError, LookupError, TypeError) as error:
            raise CheckpointError(f"the trace {self._path} cannot be read: {error}") from error
        if rows.shape[1:] != (len(COLUMNS),) or self._stride < 1:
            raise CheckpointError(f"the trace {self._path} is damaged")
        self._rows = [tuple(row) for row in rows.tolist() if row[0] <= search.state.evaluations]
        generation = search.state.generation
        while generation // self._stride > self._capacity:  # dropped before the next row was saved
            self._drop_every_second()
        if len(self._rows) != generation // self._stride:  # one for each multiple of the stride
            raise CheckpointError(f"the trace {self._path} is behind its checkpoint")

    def after_generation(self, search: SearchLoop) -> None:
        """Score the global solution if this generation is one of those recorded."""
        state = search.state
        if state.generation % self._stride:
            return
        if len(self._rows) >= self._capacity:
            self._drop_every_second()
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
        self._save()

    def _drop_every_second(self) -> None:
        del self._rows[::2]  # the first is generation 1 × stride; even multiples stay
        self._stride *= 2

    def _save(self) -> None:
        """Write the file; if that fails, for example because the disk is full, only warn."""
        if self._path is None:
            return
        arrays = {"rows": self.rows, "stride": np.array(self._stride)}
        try:
            write_atomically(self._path, [pack(arrays, {})])
        except OSError as error:
            # Without the generation: Python shows the same text once, and there may be many.
            warnings.warn(
                f"the trace {self._path} could not be written: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def rows(self) -> Array:
        """The rows so far, float64 array of shape (n, 4)."""
        return np.array(self._rows, dtype=float).reshape(-1, len(COLUMNS))
