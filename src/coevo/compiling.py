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
    try:
        kernel: Callable[..., Any] = njit(function, nogil=True, error_model="numpy", cache=True)
    except RuntimeError:  # Numba found no folder for its cache
        kernel = njit(function, nogil=True, error_model="numpy")
    return kernel
