"""Says what a benchmark ran on, and how much of it other processes took."""

from __future__ import annotations

import datetime
import os
import platform
import time
from pathlib import Path

import numba
import numpy as np
from threadpoolctl import threadpool_info

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
QUIET_SECONDS = 0.5
QUIET_CORES = 0.1


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
        f"{blas.get('internal_api', 'unknown BLAS')} {blas.get('version', '')} "
        f"{blas.get('architecture', '')}".rstrip()
        + "."
    )


def busy_seconds() -> float | None:
    """Return the processor time the whole machine has spent, where /proc/stat tells."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    times = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
    idle = times[3] + times[4]
    return (sum(times) - idle) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(patience: float) -> None:
    """Return when the machine does nothing while this process sleeps, or when patience is over."""
    end = time.perf_counter() + patience
    busy = busy_seconds()
    while busy is not None and time.perf_counter() < end:
        time.sleep(QUIET_SECONDS)
        before, busy = busy, busy_seconds()
        if busy - before < QUIET_CORES * QUIET_SECONDS:
            return


class Others:
    """How much of the processor other processes take from now on."""

    def __init__(self) -> None:
        self._busy, self._own = busy_seconds(), time.process_time()
        self._began = time.perf_counter()

    def cores(self) -> float | None:
        """Return how many cores they took on average, where the operating system tells."""
        now, busy, own = time.perf_counter(), busy_seconds(), time.process_time()
        if busy is None or self._busy is None:
            return None
        return max(0.0, (busy - self._busy) - (own - self._own)) / (now - self._began)


class PeakMemory:
    """How much more memory this process comes to hold than it holds now, where Linux tells."""

    def __init__(self) -> None:
        self._before = None
        if _STATUS.exists() and _FORGET.exists():
            _FORGET.write_text("5")  # forgets the peak so far
            self._before = self._read("VmRSS")

    def gigabytes(self) -> float | None:
        """Return the most that it has held since, beyond what it held then."""
        return None if self._before is None else (self._read("VmHWM") - self._before) / 1e6

    @staticmethod
    def _read(name: str) -> int:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1])
