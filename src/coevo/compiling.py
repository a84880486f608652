"""Compiles the inner loops: one decorator for every kernel of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over plain arrays, once for each machine.

    The machine code is cached on disk beside the package or, where that is read-only, in the
    user's cache folder. Where nothing can be written at all, each process compiles for itself.
    Kernels release the interpreter lock, and divide by zero as NumPy does.
    """
    return _compile(function)


def compiled_with(*liberties: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop whose last bits do not matter; the same machine still repeats them.

    Parameters
    ----------
    *liberties
        "contract": products are added without rounding in between. "reassoc": sums are taken in any
        order, which vector instructions need to add up an array.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        return _compile(function, fastmath=set(liberties))

    return compile_it


def _compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        kernel: Callable[..., Any] = njit(function, cache=True, **options)
    except RuntimeError:  # Numba found no folder for its cache
        kernel = njit(function, **options)
    return kernel
