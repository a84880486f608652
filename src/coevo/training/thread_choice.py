"""Measures whether a run is faster with one thread or with all that it may use.

Handing work to another thread takes about ten microseconds, on some machines more. Whether that is
faster depends on the machine and its load, on the sizes of the problem and, because fewer instances
stay open, on the progress of the search. The result does not depend on the choice.
"""

from __future__ import annotations

from collections.abc import Generator
from statistics import median

from coevo.core.hooks import Hook
from coevo.core.loop import SearchLoop
from coevo.runtime import threads

N_TRIES = 5
"""Generations with one thread and with all threads, alternating, before each choice."""
FIRST_REST, LONGEST_REST = 60, 1920
"""Generations from a choice to the next measurement: doubled each time, up to the longest."""
LONG = 0.05
"""Generations of more seconds use all threads without measuring."""
GAIN = 1.05
"""All threads must be this many times faster to be chosen; less may be noise."""


class ThreadChoice(Hook):
    """Sets the number of threads for each generation, at most `n_threads`."""

    def __init__(self, n_threads: int) -> None:
        self._schedule = schedule(n_threads)
        self._seconds = 0.0

    def begin(self, search: SearchLoop) -> None:
        """Begin on all threads."""
        self._seconds = search.state.seconds
        threads.use(next(self._schedule))

    def after_generation(self, search: SearchLoop) -> None:
        """Set the number of threads for the next generation."""
        seconds = search.state.seconds - self._seconds
        self._seconds = search.state.seconds
        threads.use(self._schedule.send(seconds))


def schedule(n_threads: int) -> Generator[int, float, None]:
    """Yield the number of threads for each generation; receives the seconds it took by `send`."""
    yield n_threads  # not measured, because compiled kernels are loaded
    rest = FIRST_REST
    while True:
        taken: dict[int, list[float]] = {n_threads: [], 1: []}
        for n in (n_threads, 1) * N_TRIES:
            taken[n].append((yield n))
            if taken[n_threads][-1] > LONG:
                break
        is_long = median(taken[n_threads]) > LONG
        is_faster = is_long or median(taken[n_threads]) * GAIN < median(taken[1])
        for _ in range(rest):
            yield n_threads if is_faster else 1
        rest = min(2 * rest, LONGEST_REST)
