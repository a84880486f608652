"""How many threads a run uses, and how work is shared out among them.

Within a run BLAS keeps to one thread and its products are shared out here: its own threads go on
spinning after a product, which slows down compiled loops; and one thread can multiply while another
works on what is done, or on what comes next.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from coevo._typing import Array

Part = TypeVar("Part")
Outcome = TypeVar("Outcome")

_n_threads: ContextVar[int | None] = ContextVar("n_threads", default=None)
LARGE_PRODUCT = 2**24
"""Multiplications worth waking another thread for: some tenths of a millisecond."""
_LEAST_SIDE = 200  # rows or columns of a product below which it gets slow


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="coevo")


def _hand_over(work: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
    """Have another thread of this context do something; there is one fewer than it was granted."""
    n_threads = _n_threads.get() or 1
    return _pool(n_threads - 1).submit(work, *arguments)


class _SingleThreadedBlas:
    """Keeps BLAS to one thread while any run lasts; several may, in threads of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_runs = 0
        self._available = 1
        self._limiter: Any = None

    def available(self) -> int:
        """Return how many threads BLAS may use when no run lasts."""
        with self._lock:
            return self._available if self._n_runs else self._count()

    def __enter__(self) -> None:
        with self._lock:
            if self._n_runs == 0:
                self._available = self._count()
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._n_runs += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_runs = max(0, self._n_runs - 1)
            if self._n_runs == 0:
                self._restore()

    def forget(self) -> None:
        """In a forked child: the runs are the parent's."""
        self._lock = threading.Lock()
        self._n_runs = 0
        self._restore()

    def _restore(self) -> None:
        if self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None

    @staticmethod
    def _count() -> int:
        counts = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
        return max(counts, default=1)


_single_threaded_blas = _SingleThreadedBlas()


def _after_fork() -> None:
    """In a forked child the pool's threads do not exist, and would be waited for for ever."""
    _pool.cache_clear()
    _single_threaded_blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_threads() -> int:
    """Return how many threads may be used.

    Parents that share cores out among processes (joblib, Dask) and users' environment variables
    tell BLAS; its limit is ours.
    """
    granted = _n_threads.get()
    return _single_threaded_blas.available() if granted is None else granted


@contextmanager
def limit(n_threads: int | None) -> Iterator[int]:
    """Share work out among so many threads within this context, all available ones if None."""
    n = available_threads() if n_threads is None else n_threads
    token = _n_threads.set(n)
    try:
        with _single_threaded_blas:
            yield n
    finally:
        _n_threads.reset(token)


def use(n_threads: int) -> None:
    """From now on share work out among so many threads, until the `limit` around this ends."""
    _n_threads.set(n_threads)


@contextmanager
def limit_products(n_threads: int | None) -> Iterator[None]:
    """Let matrix products that others make, scikit-learn's say, use so many threads each."""
    n = available_threads() if n_threads is None else n_threads
    with _controller().limit(limits=n, user_api="blas"):
        yield


def share_out(work: Callable[[int, int], object], n_items: int, grain: int) -> None:
    """Call `work(start, stop)` for ranges that cover n_items, one for each core.

    Parameters
    ----------
    work
        Does the items from start to stop; must be thread-safe and independent of order. What it
        computes must not depend on where ranges end, as these depend on the number of threads.
    n_items
        How many there are.
    grain
        How many are worth beginning a range for.
    """
    n_parts = max(1, min(_n_threads.get() or 1, n_items // max(grain, 1)))
    share_ranges(work, _cut_evenly(range(n_items), n_parts))


def share_ranges(work: Callable[[int, int], object], ranges: Sequence[range]) -> None:
    """Call `work(start, stop)` for each of some ranges; a core that is done takes the next.

    Parameters
    ----------
    work
        Does the items from start to stop; must be thread-safe and independent of order.
    ranges
        In the order in which they are begun.
    """
    untouched = iter(ranges)

    def work_on() -> None:
        for items in untouched:
            work(items.start, items.stop)

    n_threads = _n_threads.get() or 1
    others = [_hand_over(work_on) for _ in range(min(n_threads, len(ranges)) - 1)]
    try:
        work_on()
    finally:
        begun = [other for other in others if not other.cancel()]  # those that found the time
        wait(begun)
    for other in begun:
        other.result()


def begin(work: Callable[[], Outcome], size: int) -> Callable[[], Outcome]:
    """Begin some work on another core, if this context has one, and go on meanwhile.

    Parameters
    ----------
    work
        What to do; must be thread-safe.
    size
        Its multiplications; if they are few, it is done at once.

    Returns
    -------
    function that returns once the work is done, with its result or its exception
    """
    if (_n_threads.get() or 1) == 1 or size < LARGE_PRODUCT // 4:
        result = work()
        return lambda: result
    return _hand_over(work).result


def multiply(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the matrix product (m, n) of (m, k) and (k, n), its longer side shared out.

    Each core rearranges all of the side that it shares, so that should be the smaller one. Bit for
    bit the same on any number of threads.
    """
    n_rows, n_columns = len(left), right.shape[1]
    if out is None:
        out = np.empty((n_rows, n_columns), dtype=right.dtype)

    def work_rows(start: int, stop: int) -> None:
        np.matmul(left[start:stop], right, out=out[start:stop])

    def work_columns(start: int, stop: int) -> None:
        np.matmul(left, right[:, start:stop], out=out[:, start:stop])

    if n_rows >= n_columns:
        grain = max(_LEAST_SIDE, LARGE_PRODUCT // max(1, right.size))
        share_ranges(work_rows, cut(range(n_rows), grain))
    else:
        grain = max(_LEAST_SIDE, LARGE_PRODUCT // max(1, left.size))
        share_ranges(work_columns, cut(range(n_columns), grain))
    return out


def prepare_ahead(
    prepare: Callable[[Part], object], use: Callable[[Part], object], parts: Sequence[Part]
) -> None:
    """Prepare parts on all cores; use each one in order, on this thread, as soon as it is ready.

    Using is sequential, so this thread does it whenever it can, and helps to prepare when it
    cannot.

    Parameters
    ----------
    prepare
        Makes a part ready; must be thread-safe and independent of order.
    use
        Uses a part that is ready.
    parts
        In the order of use.
    """
    if (_n_threads.get() or 1) == 1 or len(parts) == 1:
        for part in parts:
            prepare(part)
            use(part)
        return
    waiting = [_hand_over(prepare, part) for part in parts]
    untouched = iter(range(len(parts)))

    def help_to_prepare() -> bool:
        """Prepare the first part that nobody has begun, if there is one."""
        for place in untouched:
            if waiting[place].cancel():
                prepare(parts[place])
                return True
        return False

    try:
        for place, part in enumerate(parts):
            while not waiting[place].done() and help_to_prepare():
                pass
            if not waiting[place].cancelled():
                waiting[place].result()
            use(part)
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


def cut(items: range, grain: int) -> list[range]:
    """Cut items into nearly equal ranges of at least `grain`.

    The cuts do not depend on the number of threads: BLAS rounds products of other shapes
    differently, and a run must have the same result on any number of threads.
    """
    return _cut_evenly(items, max(1, len(items) // max(1, grain)))


def _cut_evenly(items: range, n_parts: int) -> list[range]:
    ends = [items.start + part * len(items) // n_parts for part in range(n_parts + 1)]
    return [range(*pair) for pair in pairwise(ends)]
