"""Atomic writes: a reader sees the complete old file or the complete new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from coevo._typing import StrPath


def write_atomically(
    path: StrPath, chunks: Iterable[bytes], previous: StrPath | None = None
) -> None:
    """Write a file beside `path`, flush it to disk and rename it to `path`.

    Parameters
    ----------
    path
        The file.
    chunks
        The new content; may be a generator. If it raises, the file is unchanged.
    previous
        Where to keep the old file; None to discard it.

    Notes
    -----
    The content is first written to `<path>.partial`. A process that is killed meanwhile leaves that
    file behind; the next write overwrites it.
    """
    path = Path(path)
    partial = _partial(path)
    try:
        with open(partial, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if previous is not None and path.exists():
        _keep(path, Path(previous))
    os.replace(partial, path)
    _sync_folder(path.parent)


def _keep(path: Path, previous: Path) -> None:
    """Give a file a second name; the first one exists throughout."""
    partial = _partial(previous)
    partial.unlink(missing_ok=True)
    try:
        os.link(path, partial)
    except OSError:  # the file system has no hard links
        shutil.copyfile(path, partial)
    os.replace(partial, previous)
    # os.replace does nothing if both names are hard links to the same file.
    partial.unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _sync_folder(folder: Path) -> None:
    """Flush a renaming to disk, on systems that can open a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
