"""The history of a run: one row for each generation, in bounded memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array


class Generation(NamedTuple):
    """One row of the history.

    Generation 0 is the initial sampling. `batch_fitness` and `validation_fitness` are those of the
    global solution at the generation's end, `best_validation` that of the best network so far. If
    not every generation is validated, they are as of the last validation.
    """

    generation: int
    evaluations: int
    seconds: float
    batch_fitness: float
    validation_fitness: float
    best_validation: float


class History:
    """The generations of a run, thinned out evenly once there are more than `capacity`.

    When the rows are full, every second one is dropped, and from then on only every second
    generation is kept; and so on. The latest generation is always kept.
    """

    capacity = 8192

    def __init__(self) -> None:
        self.stride = 1
        self._rows = np.empty((self.capacity, len(Generation._fields)))
        self._n_rows = 0
        self._latest: Generation | None = None

    def append(self, generation: Generation) -> None:
        """Add the next generation."""
        self._latest = generation
        if generation.generation % self.stride:
            return
        if self._n_rows == self.capacity:
            self._n_rows = self.capacity // 2
            self._rows[: self._n_rows] = self._rows[::2]
            self.stride *= 2
            if generation.generation % self.stride:
                return
        self._rows[self._n_rows] = generation
        self._n_rows += 1

    def amend(self, validation_fitness: float, best_validation: float) -> None:
        """Give the latest generation the validation fitness that was measured after it ended."""
        latest = self.latest._replace(
            validation_fitness=validation_fitness, best_validation=best_validation
        )
        self._latest = latest
        if latest.generation % self.stride == 0:
            self._rows[self._n_rows - 1] = latest

    @property
    def latest(self) -> Generation:
        """The last generation added."""
        if self._latest is None:
            raise ValueError("the history is empty: the search has not begun")
        return self._latest

    @property
    def least_best_validation(self) -> float:
        """The first best validation fitness, or a lower one of a warm start on harder instances."""
        return float(self.rows[:, Generation._fields.index("best_validation")].min())

    def freeze(self) -> dict[str, Array]:
        """Return the history as arrays, for `thaw`."""
        return {
            "stride": np.array(self.stride),
            "rows": self._rows[: self._n_rows].copy(),
            "latest": np.array(self.latest, dtype=float),
        }

    @classmethod
    def thaw(cls, arrays: dict[str, Array]) -> History:
        """Return the history from the arrays of `freeze`."""
        history = cls()
        history.stride = int(arrays["stride"])
        history._n_rows = len(arrays["rows"])
        history._rows[: history._n_rows] = arrays["rows"]
        generation, evaluations, *rest = arrays["latest"].tolist()
        history._latest = Generation(int(generation), int(evaluations), *rest)
        return history

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> Array:
        """The generations kept: float64 array of shape (n, 6), columns as in `Generation`."""
        rows = self._rows[: self._n_rows]
        if self._latest is not None and self._latest.generation % self.stride:
            rows = np.vstack([rows, np.array(self._latest, dtype=float)])
        return rows.copy()

    def columns(self) -> dict[str, Array]:
        """Return the generations kept, one array for each column."""
        rows = self.rows
        columns = {name: rows[:, c] for c, name in enumerate(Generation._fields)}
        for name in ("generation", "evaluations"):
            columns[name] = columns[name].astype(np.int64)
        return columns
