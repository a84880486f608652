"""Reads files that are plain, gzipped or inside a zip, and checks their checksums."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coevo.datasets.errors import WrongContentError
from coevo.datasets.sources import File

_GZIP_MARK = b"\x1f\x8b"
# RuntimeError: encrypted; its subclass NotImplementedError: unknown compression.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


@dataclass(frozen=True)
class Place:
    """Where the content of a file is: on disk, or a member of a zip, or of a zip within a zip."""

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.member})" if self.member else str(self.path)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip, or the zip that it holds; raise WrongContentError where it is broken."""
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            inner = [name for name in archive.namelist() if name.endswith(".zip")]
            if inner:
                content = io.BytesIO(archive.read(inner[0]))
                archive = stack.enter_context(zipfile.ZipFile(content))
            yield archive
    except _BROKEN as error:
        raise WrongContentError(
            f"{path} is not a complete zip ({error}); its {path.stat().st_size} bytes have the "
            f"SHA-256 {checksum(path.read_bytes())}"
        ) from None


def find_members(path: Path, wanted: Iterable[str]) -> dict[str, Place]:
    """Return where a zip holds the wanted files; those it does not hold are left out."""
    found: dict[str, Place] = {}
    with open_zip(path) as archive:
        for member in archive.namelist():
            for name in wanted:
                if member == name or member.endswith(f"/{name}"):
                    found.setdefault(name, Place(path, member))
    return found


def read_places(places: Mapping[str, Place]) -> Iterator[tuple[str, bytes]]:
    """Yield the uncompressed content at each place; each zip is opened once."""
    with ExitStack() as stack:
        archives: dict[Path, zipfile.ZipFile] = {}
        for name, place in places.items():
            if not place.member:
                yield name, _unpack(place.path.read_bytes())
                continue
            if place.path not in archives:
                archives[place.path] = stack.enter_context(open_zip(place.path))
            yield name, _unpack(archives[place.path].read(place.member))


def _unpack(raw: bytes) -> bytes:
    # Recognised by content, not by name: servers and browsers unpack and keep the suffix .gz.
    if raw.startswith(_GZIP_MARK):
        try:
            return gzip.decompress(raw)
        except (EOFError, OSError, zlib.error):
            pass  # returned as it is; its checksum will not match
    return raw


def checksum(content: bytes) -> str:
    """Return the SHA-256 of some content."""
    return hashlib.sha256(content).hexdigest()


def check_content(file: File, place: object, content: bytes) -> None:
    """Raise WrongContentError unless the content at a place is the published one."""
    found = checksum(content)
    if found != file.sha256:
        raise WrongContentError(
            f"{place} does not hold the published {file.path}: its {len(content)} bytes have the "
            f"SHA-256 {found}, expected {file.sha256}"
        )
