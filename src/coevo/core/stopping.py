"""Stopping criteria, and Ctrl-C as one of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import TYPE_CHECKING

from coevo.core.history import Generation

if TYPE_CHECKING:
    from coevo.core.settings import Settings


_LEAST_GAIN = 0.01


class StopReason(StrEnum):
    """Why a run ended."""

    MAX_EVALUATIONS = "max_evaluations"
    MAX_GENERATIONS = "max_generations"
    MAX_SECONDS = "max_seconds"
    TARGET_FITNESS = "target_fitness"
    PATIENCE = "patience"
    STAGNATION = "stagnation"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"


def reached_criterion(
    settings: Settings, latest: Generation, best_generation: int
) -> StopReason | None:
    """Return the first stopping criterion that the latest generation meets, if any.

    Patience counts from `best_generation`.
    """
    max_evaluations, max_generations, max_seconds = settings.limits
    criteria = (
        (StopReason.TARGET_FITNESS, settings.target_fitness, latest.best_validation),
        (StopReason.MAX_EVALUATIONS, max_evaluations, latest.evaluations),
        (StopReason.MAX_GENERATIONS, max_generations, latest.generation),
        (StopReason.MAX_SECONDS, max_seconds, latest.seconds),
        (StopReason.PATIENCE, settings.patience, latest.generation - best_generation),
    )
    for reason, limit, value in criteria:
        if limit is not None and value >= limit:
            return reason
    return None


def gains_too_little(best: float, before: float, first: float) -> bool:
    """Say whether a search stagnates: whether it has gained at most a hundredth of what was left.

    What was left is measured from the best fitness that there can be, 0 for errors and 1 for
    scores, but is no more than what the search has gained at all.

    Parameters
    ----------
    best, before, first
        The best validation fitness now, some time ago, and at the start.
    """
    left = -best if best < 0 else max(0.0, 1 - best)
    return best - before <= _LEAST_GAIN * min(left, best - first)


@contextmanager
def on_interrupt(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop after the generation; the second one raises.

    Does nothing outside the main thread, which alone receives signals, if the process ignores
    Ctrl-C, or if its handler was not installed by Python (as in a program that embeds it) and so
    could not be restored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN):
        yield
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        ask_to_stop()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
