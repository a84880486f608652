"""How many cores a run uses, and how work is shared out among them.

Within a run the matrix library keeps to one core and we share out its products ourselves. Its own
threads go on spinning after a product, in the way of our loops; and one thread can multiply while
another already works on what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from coevo.network import Array

Part = TypeVar("Part")

_n_threads: ContextVar[int | None] = ContextVar("n_threads", default=None)
LARGE_PRODUCT = 2**24
"""Multiplications worth waking another thread for: some tenths of a millisecond."""


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="coevo")


def available_threads() -> int:
    """Return how many threads may be used as things stand.

    Parents that share cores out among processes (joblib, Dask) and users' environment variables
    say it to the BLAS library; what holds for it holds for us.
    """
    granted = _n_threads.get()
    if granted is not None:
        return granted
    counts = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
    return max(counts, default=1)


@contextmanager
def limit(n_threads: int | None) -> Iterator[int]:
    """Share work out among so many cores within this context; as many as are available if None."""
    n = available_threads() if n_threads is None else n_threads
    token = _n_threads.set(n)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield n
    finally:
        _n_threads.reset(token)


@contextmanager
def limit_products(n_threads: int | None) -> Iterator[None]:
    """Let matrix products that others make, scikit-learn's say, use so many cores each."""
    n = available_threads() if n_threads is None else n_threads
    with _controller().limit(limits=n, user_api="blas"):
        yield


def share_out(work: Callable[[int, int], object], n_items: int, grain: int) -> None:
    """Call `work(start, stop)` for ranges that cover n_items, on the cores of this context.

    Parameters
    ----------
    work
        Does the items from start to stop; must not mind the order or the company.
    n_items
        How many there are.
    grain
        How many are worth the trouble of waking another thread.
    """
    n_parts = max(1, min(_n_threads.get() or 1, n_items // max(grain, 1)))
    cuts = [part * n_items // n_parts for part in range(n_parts + 1)]
    ranges = list(pairwise(cuts))
    if n_parts == 1:
        work(0, n_items)
        return
    others = [_pool(n_parts - 1).submit(work, *part) for part in ranges[1:]]
    try:
        work(*ranges[0])
    finally:
        wait(others)
    for other in others:
        other.result()


def multiply(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the matrix product (m, n) of (m, k) and (k, n), its rows shared out."""
    if out is None:
        out = np.empty((len(left), right.shape[1]), dtype=right.dtype)

    def work(start: int, stop: int) -> None:
        np.matmul(left[start:stop], right, out=out[start:stop])

    share_out(work, len(left), grain=1 + LARGE_PRODUCT // max(1, right.size))
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
        Makes a part ready; must not mind the order or the company.
    use
        Uses a part that is ready.
    parts
        In the order of use.
    """
    n_others = (_n_threads.get() or 1) - 1
    if n_others == 0 or len(parts) == 1:
        for part in parts:
            prepare(part)
            use(part)
        return
    waiting = [_pool(n_others).submit(prepare, part) for part in parts]
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


def cut_ahead(items: range, grain: int, size: int) -> list[range]:
    """Cut items into ranges for `prepare_ahead`: large ones first, small ones to end together.

    Parameters
    ----------
    items
        What to cut.
    grain
        The smallest range worth preparing.
    size
        Multiplications of an item; if they are few in all, nothing is cut.
    """
    n_threads = _n_threads.get() or 1
    if n_threads == 1 or size * len(items) < LARGE_PRODUCT:
        return [items]
    ranges, start = [], items.start
    while start < items.stop:
        stop = min(items.stop, start + max(grain, (items.stop - start) // (2 * n_threads)))
        ranges.append(range(start, stop))
        start = stop
    return ranges
