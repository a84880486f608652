"""How far a study is, and how long the rest of it takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from coevo.study.plan import Plan
from coevo.study.run import Failure, Outcome, Run
from coevo.study.store import Store


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Parameters
    ----------
    done, failed, running, waiting
        Number of runs in each state, whichever process does them.
    seconds_left
        Estimated time for the rest, None while no run has ended.
    latest
        The run that ended last and its result, None at the start.
    active
        The runs that this process has claimed.
    """

    done: int
    failed: int
    running: int
    waiting: int
    seconds_left: float | None = None
    latest: tuple[Run, Outcome | Failure] | None = None
    active: tuple[Run, ...] = ()

    @property
    def total(self) -> int:
        """Number of runs in the study."""
        return self.done + self.failed + self.running + self.waiting

    @property
    def is_complete(self) -> bool:
        """Whether every run is done or failed."""
        return not self.running + self.waiting


def study_progress(plan: Plan, store: Store) -> Progress:
    """Return how far a study is; runs that are not in the store are waiting."""
    return count_runs(store, [run.key for run in plan.runs])


def count_runs(
    store: Store,
    keys: Sequence[str],
    seconds_left: float | None = None,
    latest: tuple[Run, Outcome | Failure] | None = None,
    active: Iterable[Run] = (),
) -> Progress:
    """Count the runs in each state."""
    states = store.states(keys)
    found = [states.get(key, "waiting") for key in keys]
    counts = {state: found.count(state) for state in ("done", "failed", "running", "waiting")}
    return Progress(**counts, seconds_left=seconds_left, latest=latest, active=tuple(active))


class Forecast:
    """Estimates the time left: the median time of each row's runs, times the pace of this session.

    Rows differ too much to count runs: DE on HAR takes thousands of times as long as LECCDE on WBC.
    The pace, elapsed time over the runs' own time, accounts for parallel runs, loading and
    compilation.
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
        """Return the estimated time for the runs that are left, None without a basis for it.

        Parameters
        ----------
        left
            Keys of the runs that are not done.
        seconds
            How long each finished run took, by key.
        """
        by_row: dict[tuple[str, str], list[float]] = {}
        for key, taken in seconds.items():
            by_row.setdefault(self._row_of[key], []).append(taken)
        weights = {row: median(values) for row, values in by_row.items()}
        if not weights or not self._ended:
            return None
        typical = fmean(weights.values())

        def weigh(keys: Iterable[str]) -> float:
            return sum(weights.get(self._row_of[key], typical) for key in keys)

        pace = (time.monotonic() - self._began) / max(weigh(self._ended), 1e-9)
        return pace * weigh(left)
