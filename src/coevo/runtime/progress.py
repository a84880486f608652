"""One progress display for trainings, studies and estimators.

On a terminal it is a live bar, in a Jupyter notebook a bar below the cell, elsewhere lines at
growing intervals. Output goes to stderr. rich and IPython are imported when needed.
"""

from __future__ import annotations

import html
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from coevo.runtime.jit import COMPILING, watching
from coevo.runtime.terminal import printable

_FIRST_LINE = 2.0  # seconds before the first line
_GROWTH = 1.6  # ratio of successive intervals between lines
_LONGEST_INTERVAL = 60.0
_BAR_SECONDS, _NOTEBOOK_SECONDS = 0.1, 0.3  # between two updates


class Progress:
    """A context manager that shows progress.

    Parameters
    ----------
    title
        Name of the activity.
    total
        The value of `done` at the end; None if unknown.
    is_shown
        Whether to show anything.

    Examples
    --------
    >>> with Progress("counting", total=3, is_shown=False) as progress:
    ...     for number in range(3):
    ...         progress.update(number + 1, f"{number} is counted")
    """

    def __init__(
        self,
        title: str,
        total: float | None = None,
        *,
        is_shown: bool = True,
    ) -> None:
        self._title = title
        self._total = total
        self._done: float | None = None
        self._display = _choose_display() if is_shown else _Nothing()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._display)
        self._show(self._title, at_once=True)
        if not isinstance(self._display, _Nothing):
            self._stack.enter_context(watching(lambda _: self._show(COMPILING)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def update(self, done: float | None = None, text: str = "", total: float | None = None) -> None:
        """Update the display.

        Parameters
        ----------
        done
            Amount done, up to `total`; None if unchanged.
        text
            A short description of the state.
        total
            The new total; None if unchanged.
        """
        self._done = self._done if done is None else done
        self._total = self._total if total is None else total
        self._show(text or self._title)

    @property
    def is_due(self) -> bool:
        """Whether an update would be shown; saves computing its text."""
        return self._display.is_due(at_once=False)

    def say(self, title: str) -> None:
        """Change the title and show it at once."""
        self._title = title
        self._show(title, at_once=True)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the display while something else is printed."""
        with self._display.paused():
            yield

    def _show(self, text: str, at_once: bool = False) -> None:
        if self._display.is_due(at_once):
            fraction = None
            if self._done is not None and self._total:
                fraction = min(1.0, self._done / self._total)
            self._display.show(printable(self._title), fraction, printable(text))


def format_seconds(seconds: float) -> str:
    """Return a duration as 0:05 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# ----------------------------------------------------------------------------------------- displays


class _Display(ABC):
    """Shows progress, at most once in each interval."""

    interval = 0.0  # seconds

    def __init__(self) -> None:
        self._due = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - optional
        pass

    def is_due(self, at_once: bool) -> bool:
        """Whether it is time for an update; `at_once` ignores the interval."""
        return at_once or time.monotonic() >= self._due

    def show(self, title: str, fraction: float | None, text: str) -> None:
        """Show an update."""
        self._write(title, fraction, text)
        self._due = time.monotonic() + self.interval

    @abstractmethod
    def _write(self, title: str, fraction: float | None, text: str) -> None: ...

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the display within the context."""
        yield


class _Nothing(_Display):
    def is_due(self, at_once: bool) -> bool:
        return False

    def _write(self, title: str, fraction: float | None, text: str) -> None:
        pass


class _Lines(_Display):
    """Lines at intervals that grow, for a pipe or a log file."""

    def __init__(self) -> None:
        self.interval = _FIRST_LINE
        self._due = time.monotonic() + _FIRST_LINE

    def is_due(self, at_once: bool) -> bool:
        return time.monotonic() >= self._due

    def _write(self, title: str, fraction: float | None, text: str) -> None:
        share = "" if fraction is None else f" {fraction:.0%}"
        rest = "" if text == title else f": {text}"
        print(f"{title}{share}{rest}", file=sys.stderr, flush=True)
        self.interval = min(_GROWTH * self.interval, _LONGEST_INTERVAL)


class _Bar(_Display):
    """A live line on a terminal; it disappears at the end."""

    interval = _BAR_SECONDS

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import
        from rich.progress import BarColumn, SpinnerColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415

        super().__init__()
        self._bar = RichProgress(
            SpinnerColumn("line"),
            BarColumn(bar_width=12),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _write(self, title: str, fraction: float | None, text: str) -> None:
        total = None if fraction is None else 1
        self._bar.update(self._task, completed=fraction or 0, total=total, description=text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._bar.stop()
        yield
        self._bar.start()


class _Notebook(_Display):
    """A bar below a notebook's cell, in plain HTML; its last state stays."""

    interval = _NOTEBOOK_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def _write(self, title: str, fraction: float | None, text: str) -> None:
        from IPython.display import display  # noqa: PLC0415 - there is one, we run in it

        value = "" if fraction is None else f' value="{fraction:.3f}"'
        share = "" if fraction is None else f"{fraction:.0%} "
        content = {
            "text/plain": share + text,
            "text/html": f"<progress{value}></progress> {share}{html.escape(text)}",
        }
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(content, raw=True)


def _choose_display() -> _Display:
    if _is_notebook():
        return _Notebook()
    return _Bar() if sys.stderr.isatty() else _Lines()


def _is_notebook() -> bool:
    """Whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")
