"""Hooks of a fit: scikit-learn's callbacks and the progress display.

scikit-learn has callbacks since version 1.9, and they are experimental. With an older version the
mixin and the decorator here do nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from coevo.core.hooks import Hook, Run
from coevo.core.loop import SearchLoop
from coevo.runtime.progress import Progress
from coevo.training.progress import SearchProgress, describe_choices

__all__ = ["CallbackSupportMixin", "FitTask", "ProgressHook", "most_generations", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks

    HAS_CALLBACKS = True
    """Whether this version of scikit-learn has callbacks."""
except ImportError:  # scikit-learn before 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's."""


def with_callbacks(method: Method) -> Method:
    """Decorate a method with scikit-learn's support of callbacks, if there is any."""
    return cast(Method, _with_callbacks(method)) if HAS_CALLBACKS else method


class FitTask(Hook):
    """A fit as scikit-learn's callbacks see it: a task with a subtask for each generation.

    Parameters
    ----------
    data
        X, y and metadata, which are passed to callbacks.
    attributes
        Returns the attributes with which a copy of the estimator predicts as if the fit had ended
        now.
    """

    def __init__(
        self,
        estimator: Any,
        data: dict[str, Any],
        attributes: Callable[[SearchLoop], dict[str, Any]],
    ) -> None:
        self._arguments = {"estimator": estimator, **data}
        self._attributes = attributes
        self._context: Any = None

    def begin(self, search: SearchLoop) -> None:
        """Report the beginning of the fit."""
        if HAS_CALLBACKS:
            estimator = self._arguments["estimator"]
            self._context = estimator._init_callback_context(max_subtasks=most_generations(search))
            self._context.call_on_fit_task_begin(**self._arguments)

    def after_generation(self, search: SearchLoop) -> bool:
        """Report a generation; return whether a callback asks to stop."""
        if self._context is None or not getattr(
            self._arguments["estimator"], "_skl_callbacks", None
        ):
            return False
        task = self._context.subcontext(task_name="generation")
        task.call_on_fit_task_begin(**self._arguments)
        return bool(
            task.call_on_fit_task_end(
                **self._arguments, reconstruction_attributes=lambda: self._attributes(search)
            )
        )

    def finish(self) -> None:
        """Report that the estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})


def most_generations(search: SearchLoop) -> int | None:
    """Return how many more generations a search can run, None if there is no limit."""
    settings, state = search.settings, search.state
    limits = []
    max_evaluations, max_generations, _ = settings.limits
    if max_generations is not None:
        limits.append(math.ceil(max_generations - state.generation))
    if max_evaluations is not None:
        left = max_evaluations - state.evaluations
        limits.append(math.ceil(left / search.evaluations_per_generation))
    return max(0, min(limits)) if limits else None


class ProgressHook(Hook):
    """Shows the progress of a fit on a terminal, in a notebook or line by line; see `Progress`."""

    def __init__(self, verbose: bool | int) -> None:
        self._is_shown = bool(verbose)
        self._progress = Progress("evolving", total=1, is_shown=self._is_shown)
        self._follow = SearchProgress(self._progress)

    def open(self, run: Run) -> None:
        """Show the display, and the settings that were chosen."""
        self._progress.__enter__()
        if self._is_shown:
            with self._progress.pause():
                print(describe_choices(run.settings), file=sys.stderr)

    def after_generation(self, search: SearchLoop) -> None:
        """Update the display."""
        self._follow.after_generation(search)

    def close(self) -> None:
        """Remove the display."""
        self._progress.__exit__()
