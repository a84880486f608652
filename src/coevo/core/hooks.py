"""Hooks observe a run: checkpoints, progress displays and callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coevo._typing import Array
from coevo.core.evaluator import Evaluator
from coevo.core.loop import Callback, SearchLoop
from coevo.core.settings import Settings
from coevo.core.state import SearchState


@dataclass(frozen=True)
class Run:
    """A run that is about to begin, with every "auto" resolved.

    `arguments` (plain values) and `arrays` are all that the result depends on, by the names a user
    knows.
    """

    settings: Settings
    engine: str
    evaluator: Evaluator
    arguments: Mapping[str, Any]
    arrays: Mapping[str, Array | None]


class Hook:
    """Observes a run; all methods do nothing by default."""

    may_stop = False
    """Whether `after_generation` may end the run."""

    def open(self, run: Run) -> None:
        """Called first; `close` is called at the end even if the run fails."""

    def restore(self, run: Run) -> SearchState | None:
        """Return a state to continue from, None for a new search."""
        return None

    def begin(self, search: SearchLoop) -> None:
        """Called before the search runs."""

    def after_generation(self, search: SearchLoop) -> bool | None:
        """Called after each generation; a true answer ends the run."""
        return None

    def end(self, search: SearchLoop) -> None:
        """Called after the search has ended."""

    def close(self) -> None:
        """Called last, whatever happened."""


@dataclass
class CallbackHook(Hook):
    """A user's function, called after each generation."""

    callback: Callback
    may_stop = True

    def after_generation(self, search: SearchLoop) -> bool | None:
        """Call the function."""
        return self.callback(search)


def check_callbacks(given: Any) -> list[Hook | Callback]:
    """Return a user's callbacks as a list; raise if they are not callbacks."""
    message = f"callbacks must be a list of functions of the search, got {given!r}"
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise TypeError(message)
    try:
        callbacks = list(given)
    except TypeError:  # such as an array without an axis
        raise TypeError(message) from None
    for callback in callbacks:
        as_hook(callback)
    return callbacks


def as_hook(given: Hook | Callback) -> Hook:
    """Return a hook as it is, and a function as a hook."""
    if isinstance(given, Hook):
        return given
    if not callable(given):
        raise TypeError(f"callbacks must be functions of the search, got {given!r}")
    return CallbackHook(given)
