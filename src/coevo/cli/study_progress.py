"""Shows how far a study is, also while its runs take long."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from coevo.runtime.progress import Progress, format_seconds

if TYPE_CHECKING:
    from coevo.study.progress import Progress as StudyProgress
    from coevo.study.run import Failure, Outcome, Run

_TICK = 1.0  # seconds; the display decides how often it shows anything


class StudyDisplay:
    """Shows what `run_study` reports; pass `update` to it as `on_progress`.

    A thread repeats the latest report: a run may take hours, and a log should not be silent.
    """

    def __init__(self, name: str) -> None:
        self._display = Progress(name)
        self._done, self._total, self._text, self._latest = 0, 0, "", ""
        self._lock = threading.Lock()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="coevo-progress", daemon=True)

    def __enter__(self) -> Self:
        self._display.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()
        self._display.__exit__()

    def update(self, progress: StudyProgress) -> None:
        """Show a report."""
        with self._lock:
            if progress.latest is not None:
                self._latest = describe_result(*progress.latest)
            self._done, self._total = progress.done + progress.failed, progress.total
            self._text = describe_progress(progress, self._latest)
            self._show()

    def _repeat(self) -> None:
        while not self._has_ended.wait(_TICK):
            with self._lock:
                self._show()

    def _show(self) -> None:
        if self._text:
            self._display.update(self._done, self._text, self._total)


def describe_progress(progress: StudyProgress, latest: str = "") -> str:
    """Return how far a study is in words."""
    parts = [f"{progress.done} of {progress.total} runs done"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.seconds_left is not None:
        parts.append(f"{format_seconds(progress.seconds_left)} left")
    if progress.active:
        parts.append(f"running {' and '.join(map(name_run, progress.active))}")
    if latest:
        parts.append(f"latest {latest}")
    return "; ".join(parts)


def name_run(run: Run) -> str:
    """Return a run in words."""
    return f"{run.variant} on {run.dataset}, seed {run.seed}"


def describe_result(run: Run, result: Outcome | Failure) -> str:
    """Return a run and its test accuracy in words."""
    test = getattr(result, "test", None)
    return f"{name_run(run)}: " + ("failed" if test is None else f"{test:.1%} on test")
