"""The file format of checkpoints: a search saved between two generations.

A checkpoint contains the complete state of a search, and the fingerprint of its run: settings,
digests of the data, engine. A run that is killed at any time and resumed ends with the same
network, history and counts as one that was never stopped, on the same machine and with any number
of threads; only the time it took differs.

The file consists of 8 magic bytes, the version of the format, the length of the payload, a SHA-256
of everything else in the file, and the payload in the safetensors format. Reading it executes no
code. The previous checkpoint is kept as `<name>.previous`.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from coevo._typing import Array, StrPath
from coevo._version import __version__
from coevo.core.hooks import Run
from coevo.core.loop import SearchLoop
from coevo.core.settings import Settings
from coevo.core.state import SearchState
from coevo.persistence.atomic import write_atomically
from coevo.persistence.container import (
    FileFormatError,
    pack,
    parse_json,
    read_header,
    read_header_length,
    unpack,
)
from coevo.persistence.freezing import freeze, thaw
from coevo.persistence.plain import digest

FORMAT_VERSION = 2
"""The version of the file format; files of another version are refused."""

BUDGETS = (*Settings.BUDGETS, "n_threads")
"""Settings that may change between a checkpoint and the run that resumes it."""

_MAGIC = b"coevo\x00cp"
_PREFIX = struct.Struct("<8sIQ32s")


class CheckpointError(FileFormatError):
    """A checkpoint is damaged, is not a checkpoint, or was written by another version of coevo."""


class CheckpointMismatchError(ValueError):
    """A checkpoint is valid, but belongs to another run."""


class CheckpointInUseError(RuntimeError):
    """Another run is using the checkpoint."""


@dataclass(frozen=True)
class Fingerprint:
    """Everything that decides the result of a run; only the same run resumes a checkpoint.

    Parameters
    ----------
    arguments
        The arguments as plain values, under the names the user knows.
    data
        A digest of each array by name.
    engine
        Name of the engine; engines differ in rounding.
    versions
        Versions of the libraries that affect rounding.
    """

    arguments: dict[str, Any]
    data: dict[str, str]
    engine: str
    versions: dict[str, str]
    seed: int | None

    @classmethod
    def of(cls, run: Run) -> Fingerprint:
        """Return the fingerprint of a run."""
        return cls(
            dict(run.arguments),
            {name: digest(array) for name, array in run.arrays.items() if array is not None},
            run.engine,
            {"coevo": __version__, "numpy": np.__version__, "numba": version("numba")},
            run.settings.seed,
        )

    def check(self) -> None:
        """Raise unless all fields have the right types; for those read from a file."""
        tables = (self.arguments, self.data, self.versions)
        if not all(isinstance(table, dict) for table in tables):
            raise ValueError("its fingerprint is not made of tables")
        if not isinstance(self.engine, str):
            raise ValueError("the engine in its fingerprint is not a name")
        if not (self.seed is None or (type(self.seed) is int and self.seed >= 0)):
            raise ValueError("the seed in its fingerprint is not a whole number of at least 0")

    def differences(self, other: Fingerprint) -> list[str]:
        """Describe how this fingerprint, a checkpoint's, differs from that of the present run."""
        found = []
        for name in sorted((self.arguments.keys() | other.arguments.keys()) - set(BUDGETS)):
            there, here = (f.arguments.get(name, "unknown") for f in (self, other))
            if there != here:
                found.append(f"{name} is {there!r} in the checkpoint and {here!r} here")
        for name in sorted(self.data.keys() | other.data.keys()):
            if name not in other.data:
                found.append(f"there are {name} in the checkpoint and none here")
            elif name not in self.data:
                found.append(f"there are {name} here and none in the checkpoint")
            elif self.data[name] != other.data[name]:
                found.append(f"the {name} differ")
        if self.engine != other.engine:
            found.append(f"engine is {self.engine!r} in the checkpoint and {other.engine!r} here")
        return found


@dataclass(frozen=True)
class SavedSearch:
    """A search read from a file: its state, its engine's memory and the fingerprint of its run."""

    state: SearchState
    memory: dict[str, Array]
    fingerprint: Fingerprint


# -------------------------------------------------------------------------------------------- files


def previous_path(path: StrPath) -> Path:
    """Return the path of the previous checkpoint."""
    path = Path(path)
    return path.with_name(path.name + ".previous")


def save(path: StrPath, search: SearchLoop, fingerprint: Fingerprint) -> None:
    """Save a search between two generations, once it is initialised.

    The file is replaced atomically, and the old one kept as `<path>.previous`.
    """
    values, arrays = freeze(search.state)
    arrays |= {f"memory.{name}": array for name, array in search.evaluator.memory().items()}
    texts = {"state": json.dumps(values), "fingerprint": json.dumps(asdict(fingerprint))}
    payload = pack(arrays, texts)
    sha = _digest(FORMAT_VERSION, payload)
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(payload), sha)
    write_atomically(path, [prefix, payload], previous_path(path))


def load(path: StrPath) -> SavedSearch:
    """Read a checkpoint.

    Raises
    ------
    CheckpointError
        If the file is damaged, is not a checkpoint or is of another version. The message says
        whether the previous checkpoint is valid.
    """
    try:
        return _load(path)
    except FileFormatError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}{_offer_previous(path)}") from None


def _offer_previous(path: StrPath) -> str:
    previous = previous_path(path)
    try:
        generation = _load(previous).state.generation
    except (OSError, FileFormatError):
        return ""
    return (
        f". The checkpoint before it, {previous}, is good and was written after generation "
        f"{generation}; rename it to {Path(path).name} to resume from it"
    )


def _load(path: StrPath) -> SavedSearch:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        prefix = file.read(_PREFIX.size)
        if not prefix.startswith(_MAGIC[: len(prefix)]) or not prefix:
            raise CheckpointError("this is not a checkpoint of coevo")
        if len(prefix) < _PREFIX.size:
            raise CheckpointError(f"the checkpoint is cut off after {len(prefix)} bytes")
        _, version, length, sha = _PREFIX.unpack(prefix)
        if version != FORMAT_VERSION:
            began = "coevo 0.1" if version < FORMAT_VERSION else "the newer coevo"
            raise CheckpointError(
                f"the checkpoint has format version {version}, and this version of coevo reads "
                f"version {FORMAT_VERSION} only; finish the run with {began}, which began it, or "
                "remove the file to begin anew"
            )
        if length != size - _PREFIX.size:
            raise CheckpointError(
                f"the checkpoint should have {length + _PREFIX.size} bytes and has {size}"
            )
        payload = _read_payload(file, length)
    if _digest(version, payload) != sha:
        raise CheckpointError("the checkpoint is damaged: its SHA-256 does not match its content")
    metadata, arrays = unpack(payload)
    try:
        values = parse_json(metadata["state"], "its state", dict)
        fingerprint = Fingerprint(**parse_json(metadata["fingerprint"], "its fingerprint", dict))
        fingerprint.check()
        state, memory = thaw(values, arrays)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The digest is right: another program wrote this file.
        raise CheckpointError(f"the checkpoint's content is malformed: {error!r}") from None
    return SavedSearch(state, memory, fingerprint)


def _read_payload(file: BinaryIO, length: int) -> bytes:
    """Read the payload; its header is checked before the arrays are read."""
    start = file.read(min(8, length))
    try:
        n_header_bytes = read_header_length(start, length)
        header = file.read(n_header_bytes)
        read_header(header)
    except FileFormatError as error:
        raise CheckpointError(f"the checkpoint is damaged: {error}") from None
    return start + header + file.read(length - 8 - n_header_bytes)


def _digest(version: int, payload: bytes) -> bytes:
    sha = hashlib.sha256(_MAGIC + struct.pack("<IQ", version, len(payload)))
    sha.update(payload)
    return sha.digest()
