"""Compiles kernels: one decorator for every inner loop of the package."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.event import Listener, install_listener, register
from numba.extending import overload

from coevo.runtime.kernel_cache import KernelCache

COMPILING = "compiling kernels, once"
"""What people are told while Numba compiles; the first run on a machine would seem to hang."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over plain arrays, once for each machine.

    The machine code is cached on disk beside the package or, where that is read-only, in the
    user's cache folder. Where nothing can be written at all, each process compiles for itself.
    Kernels release the GIL, and divide by zero as NumPy does.
    """
    return _compile(function)


def compiled_with(*liberties: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop whose last bits may differ between machines, but not between runs on one.

    A process may hold several copies of a kernel, one in each kernel that calls it, optimised apart
    from each other; which of them runs depends on what was loaded first. So each product must
    have one sum only that it can be fused with: a + b × c, not a × b + c × d.

    Parameters
    ----------
    *liberties
        LLVM's fast-math flags: "contract" (fused multiply-add), "reassoc" (sums in any order, which
        SIMD reductions need).
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        return _compile(function, fastmath=set(liberties))

    return compile_it


def _compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    kernel: Callable[..., Any] = njit(function, nogil=True, error_model="numpy", **options)
    if isinstance(kernel, Dispatcher):  # not if the JIT is switched off
        with suppress(RuntimeError):  # Numba found no folder for its cache
            kernel._cache = KernelCache(function)  # type: ignore[attr-defined]
    return kernel


def chosen_by_type(kernels: dict[type, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function that calls the kernel for the type of its first argument, a named tuple.

    Kernels that call it hold no more than the one chosen, so nothing is compiled in vain.
    """

    def choose(first: Any, *others: Any) -> Any:
        return kernels[type(first)](first, *others)

    @overload(choose)
    def choose_compiled(first, *others):  # type: ignore[no-untyped-def]
        kernel = kernels[first.instance_class]
        return lambda first, *others: kernel(first, *others)  # noqa: PLW0108 - takes no kernel

    return choose


@compiled
def copy(source: Any, into: Any) -> None:
    """Copy an array of one axis into another.

    Kernels call this instead of assigning to a slice: Numba would compile the error message for
    arrays of different lengths too, with all its strings, which takes seconds.
    """
    for k in range(len(source)):
        into[k] = source[k]


class _Watcher(Listener):
    """Told by Numba when a kernel is compiled; loading one from the cache is not reported."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def on_start(self, event: Any) -> None:
        self._tell(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def watching(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with the name of each kernel that has to be compiled within this context."""
    with install_listener("numba:compile", _Watcher(tell)):
        yield


class _Stopwatch(Listener):
    """Adds up the seconds in which kernels are compiled."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:  # compiling a kernel compiles those it calls
            self.seconds += time.perf_counter() - self._began


_stopwatch = _Stopwatch()
register("numba:compile", _stopwatch)  # type: ignore[no-untyped-call]


def clock() -> float:
    """Return a time in seconds that stands still while kernels are compiled.

    A budget of seconds is for searching; on a new machine compiling could use it up.
    """
    return time.perf_counter() - _stopwatch.seconds
