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
_products_use_all: ContextVar[bool] = ContextVar("products_use_all", default=True)


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
def limit(n_threads: int | None, products_use_all: bool = True) -> Iterator[int]:
    """Use so many cores within this context.

    Parameters
    ----------
    n_threads
        How many; as many as are available if None.
    products_use_all
        Whether a matrix product may use all of them. An engine whose products are small is better
        off with one core for each product, and the products shared out: threads that wait for
        each other over small work crawl on a busy machine.
    """
    n = available_threads() if n_threads is None else n_threads
    tokens = _n_threads.set(n), _products_use_all.set(products_use_all)
    try:
        with _controller().limit(limits=n if products_use_all else 1, user_api="blas"):
            yield n
    finally:
        _n_threads.reset(tokens[0])
        _products_use_all.reset(tokens[1])


@contextmanager
def _one_core_a_product() -> Iterator[None]:
    if not _products_use_all.get():
        yield  # so it is already; asking the library again would cost more than it saves
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


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
    with _one_core_a_product():
        others = [_pool(n_parts - 1).submit(work, *part) for part in ranges[1:]]
        try:
            work(*ranges[0])
        finally:
            wait(others)
    for other in others:
        other.result()
