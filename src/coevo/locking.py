"""One run at a time: a lock that the system lets go when its process ends, however it ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from coevo.files import StrPath

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class LockedError(RuntimeError):
    """Somebody else holds the lock."""


_held: set[int] = set()


def _let_go() -> None:
    """In a forked child: the lock is the parent's, and must not outlive it in its children."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def hold(path: StrPath) -> Iterator[None]:
    """Hold the lock of a file that is there for this only; it is removed at the end.

    A process that is killed leaves the file behind, but not the lock: the next one takes it.

    Parameters
    ----------
    path
        The lock's file, whose folder exists.

    Raises
    ------
    LockedError
        If another process, or another thread of this one, holds the lock.
    """
    descriptor = _open_locked(path)
    _held.add(descriptor)
    try:
        yield
    finally:
        if descriptor in _held:  # not in a child forked meanwhile
            _held.remove(descriptor)
            # Removed before it is let go, so that nobody takes the lock of a file that is going.
            with suppress(OSError):
                os.unlink(path)
            os.close(descriptor)
            if sys.platform == "win32":  # open files cannot be removed there
                with suppress(OSError):
                    os.unlink(path)


def _open_locked(path: StrPath) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            raise LockedError(f"{os.fspath(path)} is held by another process or thread") from None
        except OSError as error:
            warnings.warn(
                f"{os.fspath(path)} cannot be locked ({error}); take care that no other process "
                "uses it",
                RuntimeWarning,
                stacklevel=2,
            )
            return descriptor
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # its last holder has just removed it; take the next one
