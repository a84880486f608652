"""File locks, each held by at most one process or thread."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coevo._typing import StrPath


class LockedError(RuntimeError):
    """Another process, or another thread of this one, holds the lock."""


@contextmanager
def hold(path: StrPath) -> Iterator[None]:
    """Hold a lock, whose file is used for nothing else and removed at the end; its folder exists.

    A killed process leaves the file behind, but not the lock. A forked child neither holds nor
    releases its parent's lock (with `filelock` 4; with version 3 it held it).

    Raises
    ------
    LockedError
        If the lock is held.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - slow to import, and rarely needed

    os.stat(os.path.dirname(path) or ".")  # raises if there is no folder; filelock creates it
    lock = FileLock(path, blocking=False, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(f"{os.fspath(path)} is held by another process or thread") from None
    except OSError as error:
        if error.filename is not None:  # the file cannot be opened
            raise
        warnings.warn(
            f"{os.fspath(path)} cannot be locked ({error}); take care that no other process uses "
            "it",
            RuntimeWarning,
            stacklevel=3,
        )
    try:
        yield
    finally:
        if lock.is_locked:  # False in a forked child
            # Removed while it is held: a process waiting for it finds it gone and tries again. On
            # Windows, where an open file cannot be removed, filelock removes it afterwards.
            with suppress(OSError):
                os.unlink(path)
            lock.release()
