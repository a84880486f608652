"""Compiles kernels: one decorator for every inner loop of the package.

Nothing here imports Numba: a kernel does, once it is first called (`runtime.compiler`).
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any

COMPILING = "compiling kernels, once"
"""Shown while Numba compiles, because the first run on a machine would seem to hang."""

_lock = threading.Lock()


class Kernel:
    """A loop over plain arrays, compiled when it is first called, once for each machine.

    A kernel may be called by Python and by other kernels, which contain a copy of it; it is
    compiled separately for the two. The machine code for Python is cached on disk beside the
    package or, if that is read-only, in the user's cache folder. If neither can be written, each
    process compiles for itself. Kernels release the GIL, and divide by zero as NumPy does.
    `fast_math` has LLVM's fast-math flags; `py_func` is the undecorated function.
    """

    def __init__(self, function: Callable[..., Any], fast_math: tuple[str, ...] = ()) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._fast_math = fast_math
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call it from Python."""
        return (self._entry or self.entry)(*arguments)

    @property
    def entry(self) -> Any:
        """The function for Python: Numba's dispatcher, or `py_func` if the JIT is disabled."""
        with _lock:  # two threads would compile it twice
            if self._entry is None:
                from coevo.runtime.compiler import make_entry  # noqa: PLC0415 - imports Numba

                self._entry = make_entry(self.py_func, self._fast_math)
        return self._entry

    @cached_property
    def inner(self) -> Any:
        """The dispatcher for other kernels; Numba holds a lock of its own when it asks for it."""
        from coevo.runtime.compiler import make_inner  # noqa: PLC0415 - imports Numba

        return make_inner(self.py_func, self._fast_math)

    @property
    def _numba_type_(self) -> Any:
        """The type of this object within a kernel."""
        return self.inner._numba_type_


class Choice:
    """Calls the kernel for the type of the first argument.

    A kernel that calls it contains only the chosen kernel, so no other is compiled. The type is
    that of a named tuple, or of a NumPy scalar.
    """

    def __init__(self, kernels: Mapping[type, Callable[..., Any]]) -> None:
        self._kernels = kernels

    def __call__(self, first: Any, *others: Any) -> Any:
        """Call it from Python."""
        return self._kernels[type(first)](first, *others)

    @cached_property
    def inner(self) -> Any:
        """The dispatcher for other kernels."""
        from coevo.runtime.compiler import Chooser  # noqa: PLC0415 - imports Numba

        return Chooser(self._kernels)

    @property
    def _numba_type_(self) -> Any:
        return self.inner.numba_type


def compiled(function: Callable[..., Any]) -> Kernel:
    """Make a function a `Kernel`."""
    return Kernel(function)


def compiled_with(*fast_math: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel whose last bits may differ between machines, but not between runs on one.

    A process may contain several copies of a kernel, one in each kernel that calls it, that are
    optimised separately; which of them runs depends on what was loaded first. Therefore each
    product must have only one sum that it can be fused with: a + b × c, not a × b + c × d.

    Parameters
    ----------
    *fast_math
        LLVM's fast-math flags: "contract" (fused multiply-add), "reassoc" (sums in any order, which
        SIMD reductions need).
    """
    return lambda function: Kernel(function, fast_math)


def cache_folder(kernel: Kernel) -> Path | None:
    """Return the folder that a kernel is cached in, None if nothing is cached."""
    stats = getattr(kernel.entry, "stats", None)  # none if the JIT is switched off
    folder = None if stats is None else stats.cache_path
    return None if folder is None else Path(folder)


@compiled
def copy(source: Any, into: Any) -> None:
    """Copy an array of one axis into another.

    Kernels call this instead of assigning to a slice, for which Numba would also compile the error
    message for different lengths, which takes seconds.
    """
    for k in range(len(source)):
        into[k] = source[k]


@compiled
def fill(array: Any, value: Any) -> None:
    """Set all numbers of an array of one axis; see `copy`."""
    for k in range(len(array)):
        array[k] = value


# ---------------------------------------------------------------------------- while Numba compiles


class _Compilations:
    """Records what Numba compiles; loading a kernel from the cache is not compiling."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.watchers: list[Callable[[str], None]] = []
        self._depth = 0
        self._began = 0.0
        self._collects_garbage = False

    def begin(self, name: str) -> None:
        """Record that a function is compiled from now on, perhaps for another one."""
        if self._depth == 0:
            self._began = time.perf_counter()
            # Compiling makes many objects and little garbage; collecting it would take a fifth of
            # the time.
            self._collects_garbage = gc.isenabled()
            gc.disable()
        self._depth += 1
        for tell in self.watchers:
            tell(name)

    def end(self) -> None:
        """Record that the function begun last is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began
            if self._collects_garbage:
                gc.enable()


compilations = _Compilations()


def _follow_compilations() -> None:
    """Have Numba report what it compiles, if any module has imported it."""
    if "numba" in sys.modules:
        import coevo.runtime.compiler  # noqa: F401, PLC0415 - reports what is compiled


@contextmanager
def watching(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with the name of each function that is compiled within this context."""
    _follow_compilations()
    compilations.watchers.append(tell)
    try:
        yield
    finally:
        compilations.watchers.remove(tell)


def clock() -> float:
    """Return a time in seconds that stands still while kernels are compiled.

    A budget of seconds is for the search; on a new machine compiling could use it up.
    """
    _follow_compilations()
    return time.perf_counter() - compilations.seconds
