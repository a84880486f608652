"""The memory available to this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def find_size() -> int | None:
    """Return the memory in bytes that this process can use, None if unknown.

    It is that of the machine, or the limit of a container. On Windows it is unknown.
    """
    sizes = []
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # the limit may be the word max
            sizes.append(int(Path(path).read_text(encoding="ascii")))
    return min((size for size in sizes if size > 0), default=None)
