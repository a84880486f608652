"""Pools of worker processes that end with their parent and ignore Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any


def start_pool(n_workers: int) -> Any:
    """Return a loky pool; its processes start when the first task is submitted.

    Unlike the standard library, loky does not import the caller's script again. Submit the first
    task within `sigint_blocked`.
    """
    # Not at the top of the module: the command line should start fast.
    from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415

    return ProcessPoolExecutor(n_workers, initializer=_prepare_worker, initargs=(os.getpid(),))


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C; processes started meanwhile inherit the signal mask."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _prepare_worker(parent: int) -> None:
    """Ignore Ctrl-C, and end this process soon after its parent ends, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, name="coevo-watch-parent", daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Return when this process's parent has ended."""
    if os.name == "nt":  # os.getppid() still returns the id of a parent that has ended
        winapi = import_module("_winapi")
        with suppress(OSError):  # it has ended already
            handle = winapi.OpenProcess(winapi.SYNCHRONIZE, False, parent)
            winapi.WaitForSingleObject(handle, winapi.INFINITE)
        return
    while os.getppid() == parent:
        time.sleep(0.5)
