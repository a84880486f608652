"""The number of threads of a run, and the distribution of work among them.

During a run BLAS uses one thread, and matrix products are distributed here. Threads of BLAS keep
spinning after a product, which slows down compiled loops; and here one thread can multiply while
another works on what is done, or on what comes next.
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
"""Multiplications worth another thread: some tenths of a millisecond."""
_LEAST_SIDE = 200  # rows or columns of a product below which it gets slow


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="coevo")


def _hand_over(work: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
    """Submit work to the pool, which has one thread fewer than this context may use."""
    n_threads = _n_threads.get() or 1
    return _pool(n_threads - 1).submit(work, *arguments)


class _SingleThreadedBlas:
    """Limits BLAS to one thread during runs; several may be active, each in its own thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_runs = 0
        self._available = 1
        self._limiter: Any = None

    def available(self) -> int:
        """Return how many threads BLAS may use when no run is active."""
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
        """Reset in a forked child, where the parent's runs are not active."""
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
    """Reset in a forked child, in which the threads of the pool do not exist."""
    _pool.cache_clear()
    _single_threaded_blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_threads() -> int:
    """Return how many threads may be used.

    This is BLAS's own limit, which environment variables set, and libraries that distribute cores
    among processes (joblib, Dask).
    """
    granted = _n_threads.get()
    return _single_threaded_blas.available() if granted is None else granted


@contextmanager
def limit(n_threads: int | None) -> Iterator[int]:
    """Use this many threads within the context, None for all available ones; yield the number."""
    n = available_threads() if n_threads is None else n_threads
    token = _n_threads.set(n)
    try:
        with _single_threaded_blas:
            yield n
    finally:
        _n_threads.reset(token)


def use(n_threads: int) -> None:
    """Use this many threads from now on, until the enclosing `limit` ends."""
    _n_threads.set(n_threads)


@contextmanager
def limit_products(n_threads: int | None) -> Iterator[None]:
    """Limit the threads of matrix products of other libraries, such as scikit-learn."""
    n = available_threads() if n_threads is None else n_threads
    with _controller().limit(limits=n, user_api="blas"):
        yield


def share_out(work: Callable[[int, int], object], n_items: int, grain: int) -> None:
    """Call `work(start, stop)` for ranges that cover all items, one range for each thread.

    Parameters
    ----------
    work
        Must be thread-safe and independent of order. Results must not depend on where ranges end,
        because that depends on the number of threads.
    grain
        Smallest size of a range.
    """
    n_parts = max(1, min(_n_threads.get() or 1, n_items // max(grain, 1)))
    share_ranges(work, _cut_evenly(range(n_items), n_parts))


def share_ranges(work: Callable[[int, int], object], ranges: Sequence[range]) -> None:
    """Call `work(start, stop)` for each range; a thread that is done takes the next one.

    `work` must be thread-safe and independent of order.
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
        begun = [other for other in others if not other.cancel()]  # the others have not started
        wait(begun)
    for other in begun:
        other.result()


def begin(work: Callable[[], Outcome], size: int) -> Callable[[], Outcome]:
    """Begin work on another thread, if this context may use one.

    Parameters
    ----------
    work
        Must be thread-safe.
    size
        Number of multiplications; small work is done at once, on this thread.

    Returns
    -------
    function that waits for the work and returns its result, or raises its exception
    """
    if (_n_threads.get() or 1) == 1 or size < LARGE_PRODUCT // 4:
        result = work()
        return lambda: result
    return _hand_over(work).result


def multiply(
    left: Array, right: Array, out: Array | None = None, n_pieces: int | None = None
) -> Array:
    """Return the matrix product (m, n) of (m, k) and (k, n), distributed along its longer side.

    Each thread rearranges the whole of the other factor, which therefore should be the smaller one.
    The number of pieces follows from the sizes if it is not given. The result is bit-identical for
    any number of threads.
    """
    n_rows, n_columns = len(left), right.shape[1]
    if out is None:
        out = np.empty((n_rows, n_columns), dtype=right.dtype)
    cuts_rows = n_rows > n_columns
    longer = max(n_rows, n_columns)
    if n_pieces is None:
        whole = right if cuts_rows else left
        n_pieces = _count_pieces(longer, max(_LEAST_SIDE, LARGE_PRODUCT // max(1, whole.size)))
    if n_pieces == 1:
        np.matmul(left, right, out=out)
        return out

    def work(start: int, stop: int) -> None:
        if cuts_rows:
            np.matmul(left[start:stop], right, out=out[start:stop])
        else:
            np.matmul(left, right[:, start:stop], out=out[:, start:stop])

    share_ranges(work, _cut_evenly(range(longer), n_pieces))
    return out


def prepare_ahead(
    prepare: Callable[[Part], object], use: Callable[[Part], object], parts: Sequence[Part]
) -> None:
    """Prepare parts on all threads; use them in order on this thread, each once it is prepared.

    While the next part is not prepared, this thread prepares parts too. `prepare` must be
    thread-safe and independent of order.
    """
    if (_n_threads.get() or 1) == 1 or len(parts) == 1:
        for part in parts:
            prepare(part)
            use(part)
        return
    waiting = [_hand_over(prepare, part) for part in parts]
    untouched = iter(range(len(parts)))

    def help_to_prepare() -> bool:
        """Prepare the first part that no thread has begun; return whether there was one."""
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

    The cuts do not depend on the number of threads, because the rounding of a product in BLAS
    depends on its shape, and results must be the same for any number of threads.
    """
    return _cut_evenly(items, _count_pieces(len(items), grain))


def _count_pieces(n_items: int, grain: int) -> int:
    return max(1, n_items // max(1, grain))


def _cut_evenly(items: range, n_parts: int) -> list[range]:
    ends = [items.start + part * len(items) // n_parts for part in range(n_parts + 1)]
    return [range(*pair) for pair in pairwise(ends)]
