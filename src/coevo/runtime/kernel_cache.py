"""The on-disk cache of compiled kernels: Numba's, protected against stale and damaged files.

Numba compares only the age of a kernel's own source file, so that a change in a function of another
file that the kernel calls is not detected. Here a digest of all sources of kernels is compared.
Files have a checksum: a damaged one is removed and the kernel compiled again. If several processes
need a kernel, one compiles it and the others wait.
"""

from __future__ import annotations

import hashlib
import logging
import pickle  # Numba's own format, in the folder of its cache
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from coevo.runtime.jit import compilations

logger = logging.getLogger("coevo")

_CHECKSUM_BYTES = 32
_PATIENCE = 60.0  # seconds to wait for another process, which may have been stopped


@cache
def digest_sources() -> str:
    """Return a digest of all source files that kernels may be compiled from."""
    sha = hashlib.sha256()
    package = Path(__file__).parents[1]
    for folder in ("core", "engines", "runtime"):
        for path in sorted((package / folder).rglob("*.py")):
            sha.update(str(path.relative_to(package)).encode())
            sha.update(path.read_bytes())
    return sha.hexdigest()


class _CheckedFile(IndexDataCacheFile):
    """Numba's cache files, beginning with a checksum."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return hashlib.sha256(data).digest() + data

    def _load_data(self, name: str) -> Any:
        return _unpack(Path(self._data_path(name)).read_bytes())

    def _load_index(self) -> dict[Any, str]:
        try:
            content = Path(self._index_path).read_bytes()
        except FileNotFoundError:
            return {}
        stamp, overloads = _unpack(content)
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._source_stamp, overloads)))

    def discard(self) -> None:
        """Remove the files of this kernel."""
        pattern = self._data_name_pattern.format(number=0).removesuffix("0.nbc") + "*"
        for path in Path(self._cache_path).glob(pattern):
            with suppress(OSError):
                path.unlink()


def _unpack(content: bytes) -> Any:
    checksum, data = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if hashlib.sha256(data).digest() != checksum:
        raise ValueError("the checksum does not match")
    return pickle.loads(data)


class KernelCache(FunctionCache):
    """The cache of one kernel."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = f"{numba.__version__} {digest_sources()}"
        self._file = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)
        self._cache_file = self._file
        self._turn: Any = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel; None if there is none or it cannot be read."""
        kernel = self._load(sig, target_context)
        if kernel is None:
            self._take_turn()
            kernel = self._load(sig, target_context)
            if kernel is not None:  # another process has compiled it meanwhile
                self._end_turn()
        return kernel

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file may cause any error
            logger.debug("%s: the cached kernel cannot be read (%r)", self._name, error)
            self._file.discard()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; errors are ignored, as the next process can compile it again."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            logger.debug("%s: the kernel cannot be cached (%r)", self._name, error)
            self._file.discard()
            with suppress(Exception):
                super().save_overload(sig, data)
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        """Keep other processes from compiling the kernel; wait if one is compiling it."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - only if something is compiled

        path = Path(self._cache_path) / f"{self._impl.filename_base}.lock"
        self._turn = FileLock(path, thread_local=False, fallback_to_soft=False)
        try:
            self._turn.acquire(blocking=False)
        except Timeout:
            compilations.begin(self._name)
            with suppress(Timeout):
                self._turn.acquire(_PATIENCE)
            compilations.end()
        except (OSError, NotImplementedError) as error:  # no folder, or one without locks
            logger.debug("%s: others may compile it too (%r)", self._name, error)

    def _end_turn(self) -> None:
        lock, self._turn = self._turn, None
        if lock is not None and lock.is_locked:
            # Removed while it is held: a process waiting for it finds it gone and tries again.
            with suppress(OSError):
                Path(lock.lock_file).unlink()
            lock.release()
