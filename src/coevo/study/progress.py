"""Foretells how long the rest of a study takes, from what its finished runs took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from statistics import fmean, median

from coevo.study.plan import Plan


class Forecast:
    """Weighs each run by what runs of its row take, and the whole by the pace of this session.

    A run of DE on HAR takes many times as long as one of LECCDE on WBC, so counting runs would
    tell little. How many are done at once, loading and compiling are all in the pace.

    Parameters
    ----------
    plan
        The study.
    """

    def __init__(self, plan: Plan) -> None:
        self._row_of = {
            run.key: (experiment.name, row.label)
            for experiment in plan.experiments
            for row in experiment.rows
            for run in row.runs
        }
        self._began = time.monotonic()
        self._ended: list[str] = []

    def note(self, key: str) -> None:
        """Count a run that ended in this session."""
        self._ended.append(key)

    def seconds_left(self, left: Iterable[str], seconds: Mapping[str, float]) -> float | None:
        """Return how long the runs that are left will take, None if there is nothing to go by.

        Parameters
        ----------
        left
            Keys of the runs that are not done.
        seconds
            How long each finished run took, by key.
        """
        weights = self._weights(seconds)
        if not weights or not self._ended:
            return None
        typical = fmean(weights.values())

        def weight(keys: Iterable[str]) -> float:
            return sum(weights.get(self._row_of[key], typical) for key in keys)

        pace = (time.monotonic() - self._began) / max(weight(self._ended), 1e-9)
        return pace * weight(left)

    def _weights(self, seconds: Mapping[str, float]) -> dict[tuple[str, str], float]:
        by_row: dict[tuple[str, str], list[float]] = {}
        for key, taken in seconds.items():
            by_row.setdefault(self._row_of[key], []).append(taken)
        return {row: median(values) for row, values in by_row.items()}
