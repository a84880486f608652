"""Says what a benchmark ran on."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import numba
import numpy as np
from threadpoolctl import threadpool_info


def processor() -> str:
    """Return the processor's name as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe_machine() -> str:
    """Return one paragraph: date, processor, cores and versions."""
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    # SciPy may bring a second one; the matrix products are NumPy's.
    libraries.sort(key=lambda lib: "numpy" not in lib["filepath"])
    blas = libraries[0] if libraries else {}
    return (
        f"{datetime.date.today().isoformat()}; {processor()}, {os.cpu_count()} cores; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"{blas.get('internal_api', 'unknown BLAS')} {blas.get('version', '')}."
    )
