"""Finds by measuring whether a run is faster on one thread or on all that it may use.

Handing work over to another thread takes some ten microseconds, and more on some machines. Whether
it pays depends on the machine, on what else runs there, on the sizes of the problem and, as fewer
instances stay open, on how far the search is. The result does not depend on the choice.
"""

from __future__ import annotations

from collections.abc import Generator
from statistics import median

from coevo.core.hooks import Hook
from coevo.core.loop import SearchLoop
from coevo.runtime import threads

N_TRIES = 5
"""Generations on one thread and as many on all, in turn, before each choice."""
FIRST_REST, LONGEST_REST = 60, 1920
"""Generations from a choice to the next tries: doubled each time, up to the longest."""
LONG = 0.05
"""Seconds of a generation in which handing work over does not matter: all threads are used."""
GAIN = 1.05
"""How many times faster all threads must be to be chosen; below this it may be noise."""


class ThreadChoice(Hook):
    """Changes the number of threads from generation to generation.

    Parameters
    ----------
    n_threads
        How many the run may use.
    """

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
    """Yield the number of threads for each generation; is sent the seconds that it took.

    Parameters
    ----------
    n_threads
        The most that may be used.
    """
    yield n_threads  # its seconds include the loading of compiled kernels
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
