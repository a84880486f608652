"""How many cores a run uses: the matrix products and our own loops together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise

from threadpoolctl import ThreadpoolController

_n_threads: ContextVar[int] = ContextVar("n_threads", default=1)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="coevo")


def available_threads() -> int:
    """Return how many threads NumPy's matrix products use as things stand.

    Parents that share cores out among processes (joblib, Dask) and users' environment variables
    say it to the BLAS library; what holds for it holds for us.
    """
    counts = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
    return max(counts, default=1)


@contextmanager
def limit(n_threads: int | None) -> Iterator[int]:
    """Use `n_threads` cores within this context, as many as are available if None."""
    n = available_threads() if n_threads is None else n_threads
    token = _n_threads.set(n)
    try:
        with _controller().limit(limits=n, user_api="blas"):
            yield n
    finally:
        _n_threads.reset(token)


def share_out(work: Callable[[int, int], object], n_items: int, grain: int) -> None:
    """Call `work(start, stop)` for ranges that cover n_items, on the cores of this context.

    Matrix products within `work` use one core each if the work is shared out at all.

    Parameters
    ----------
    work
        Does the items from start to stop; must not mind the order or the company.
    n_items
        How many there are.
    grain
        How many are worth the trouble of waking another thread.
    """
    n_parts = max(1, min(_n_threads.get(), n_items // max(grain, 1)))
    cuts = [part * n_items // n_parts for part in range(n_parts + 1)]
    ranges = list(pairwise(cuts))
    if n_parts == 1:
        work(0, n_items)
        return
    with _controller().limit(limits=1, user_api="blas"):
        others = [_pool(n_parts - 1).submit(work, *part) for part in ranges[1:]]
        try:
            work(*ranges[0])
        finally:
            wait(others)
    for other in others:
        other.result()
