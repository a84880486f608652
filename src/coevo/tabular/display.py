"""Shows how a training goes, live, if there is a terminal to show it on; silent elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from coevo.compiling import COMPILING, watching
from coevo.search import Search
from coevo.settings import Settings

_REFRESH_SECONDS = 0.1


class Display:
    """A line with a bar; a callback of the search keeps it up to date.

    What Numba compiles is shown as that, because the first run on a machine takes up to half a
    minute for it and would seem to hang.
    """

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()
        self._bar = Progress(
            SpinnerColumn("line"),
            BarColumn(bar_width=12),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            disable=not self.is_shown,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._stack = ExitStack()
        self._pace: Pace | None = None
        self._shown_at = -1.0

    def __enter__(self) -> Self:
        if self.is_shown:
            self._stack.enter_context(self._bar)
            self._stack.enter_context(watching(lambda _: self.say(COMPILING)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Take the line away while something else is printed."""
        if not self.is_shown:
            yield
            return
        self._bar.stop()
        yield
        self._bar.start()

    def say(self, what: str) -> None:
        """Show what is going on."""
        self._bar.update(self._task, description=what)

    def __call__(self, search: Search) -> None:
        """Show where a search is, after a generation."""
        if not self.is_shown:
            return
        now = time.monotonic()
        if self._pace is None:
            self._pace = Pace(search.settings, search.state.evaluations, search.state.seconds)
        elif now < self._shown_at + _REFRESH_SECONDS:
            return
        self._shown_at = now
        done, text = self._pace.describe(search)
        self._bar.update(self._task, completed=done, total=1, description=text)


class Pace:
    """How fast a search goes, and how long it still takes.

    Parameters
    ----------
    settings
        Hold the limits.
    evaluations, seconds
        Where it was when somebody began to look; a resumed search is not faster for its past.
    """

    def __init__(self, settings: Settings, evaluations: int, seconds: float) -> None:
        self._settings = settings
        self._evaluations = evaluations
        self._seconds = seconds
        self._done: float | None = None

    def describe(self, search: Search) -> tuple[float | None, str]:
        """Return which part is done, None if nobody knows, and all in words."""
        state, settings = search.state, self._settings
        parts = [
            value / limit
            for value, limit in (
                (state.evaluations, settings.max_evaluations),
                (state.generation, settings.max_generations),
                (state.seconds, settings.max_seconds),
            )
            if limit is not None
        ]
        done = min(1.0, max(parts)) if parts else None
        if self._done is None:
            self._done = done
        seconds = state.seconds - self._seconds
        words = [
            f"{state.evaluations:,} evaluations",
            f"gen. {state.generation:,}",
            f"best {state.best_validation:.4g}",
        ]
        if seconds > 0:
            words.append(f"{(state.evaluations - self._evaluations) / seconds:,.0f}/s")
            if done is not None and self._done is not None and done > self._done:
                words.append(_left(seconds * (1 - done) / (done - self._done)))
        return done, "  ".join(words)


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"
