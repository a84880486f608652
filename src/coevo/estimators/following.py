"""Lets others follow a fit: scikit-learn's callbacks where there are any, a progress bar, the log.

scikit-learn's callbacks are experimental and came with version 1.9. Without them the mixin and the
decorator here do nothing.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from coevo.search import Callback, Search
from coevo.settings import Settings

__all__ = ["CallbackSupportMixin", "FitTask", "following", "most_generations", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
    """Whether this version of scikit-learn has callbacks."""
except ImportError:  # scikit-learn before 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


logger = logging.getLogger("coevo")


class FitTask:
    """A fit as scikit-learn's callbacks see it: one task with a subtask for each generation.

    Parameters
    ----------
    estimator
        Being fitted.
    max_generations
        How many subtasks there may be, None if nobody knows.
    data
        The X, y and metadata that callbacks may ask for.
    attributes
        Returns the attributes that make a copy of the estimator ready to predict as if the fit had
        ended now.
    """

    def __init__(
        self,
        estimator: Any,
        max_generations: int | None,
        data: dict[str, Any],
        attributes: Callable[[Search], dict[str, Any]],
    ) -> None:
        self._told = {"estimator": estimator, **data}
        self._attributes = attributes
        self._context = None
        if HAS_CALLBACKS:
            self._context = estimator._init_callback_context(max_subtasks=max_generations)
            self._context.call_on_fit_task_begin(**self._told)

    def after_generation(self, search: Search) -> bool:
        """Tell of a generation that has ended; return whether a callback wants to stop."""
        if self._context is None or not getattr(self._told["estimator"], "_skl_callbacks", None):
            return False
        task = self._context.subcontext(task_name="generation")
        task.call_on_fit_task_begin(**self._told)
        return bool(
            task.call_on_fit_task_end(
                **self._told, reconstruction_attributes=lambda: self._attributes(search)
            )
        )

    def end(self) -> None:
        """Tell that the fit is over and the estimator is ready."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._told, reconstruction_attributes={})


def most_generations(settings: Settings, evaluations_per_generation: int) -> int | None:
    """Return how many generations a fit can take at most, None if nothing limits them."""
    limits = []
    if settings.max_generations is not None:
        limits.append(settings.max_generations)
    if settings.max_evaluations is not None:
        limits.append(math.ceil(settings.max_evaluations / evaluations_per_generation))
    return min(limits, default=None)


@contextmanager
def following(verbose: bool | int, total: int | None) -> Iterator[Sequence[Callback]]:
    """Yield the callbacks that show how a search goes.

    On a terminal that is a progress bar, elsewhere a line for each generation in the log `coevo`.

    Parameters
    ----------
    verbose
        Whether to show anything.
    total
        How many generations there can be, None if nobody knows.
    """
    if not verbose:
        yield ()
    elif not sys.stderr.isatty():
        yield (_log,)
    else:
        from rich.console import Console  # noqa: PLC0415  (slow to import)
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("evolving", total=total)

            def show(search: Search) -> None:
                best = search.state.best_validation
                progress.update(task, advance=1, description=f"validation {best:.4g}")

            yield (show,)


def _log(search: Search) -> None:
    latest = search.state.history.latest
    logger.info(
        "generation %d: %d evaluations, fitness %.4g on the batch, %.4g on validation, best %.4g",
        latest.generation, latest.evaluations, latest.batch_fitness, latest.validation_fitness,
        latest.best_validation,
    )  # fmt: skip
