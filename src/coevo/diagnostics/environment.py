"""The versions of libraries, and the hardware."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401 - loads the BLAS that is looked for
from threadpoolctl import threadpool_info

_PACKAGES = ("coevo", "numpy", "numba", "scikit-learn", "scipy")


@cache
def versions() -> dict[str, str]:
    """Return the versions that may affect a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = "unknown"
    libraries = blas_libraries()
    if libraries:  # its kernels add up in different orders, so that results differ in the last bits
        parts = (libraries[0][key] for key in ("internal_api", "version", "architecture"))
        found["blas"] = " ".join(filter(None, parts))
    return found


def blas_libraries() -> list[dict[str, Any]]:
    """Return each BLAS that is loaded, NumPy's first, which does the matrix products."""
    keys = ("internal_api", "version", "architecture", "num_threads")
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    found.sort(key=lambda library: "numpy" not in str(library.get("filepath")))  # SciPy has one too
    return [{key: library.get(key) for key in keys} for library in found]


def machine(n_threads: int) -> dict[str, Any]:
    """Return the hardware, without the host's name, and the number of threads of a run."""
    return {**_hardware(), "threads": n_threads}


@cache
def _hardware() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": available_cores(),
    }


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"
