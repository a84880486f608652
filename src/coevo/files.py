"""Files that are whole or not there: atomic writes, and reads that trust nothing.

Model files and checkpoints share the safetensors format: the length of a JSON header, the header,
and then plain numbers. Reading it executes nothing. What the header claims is checked against the
size of the file before memory is set aside for it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from coevo.network import Array
from coevo.settings import Settings

StrPath = str | os.PathLike[str]

MAX_HEADER_BYTES = 4 * 2**20
"""The longest header written or read; parsed JSON takes many times the memory of its text."""

_MAX_DIMENSIONS = 8
_DIGEST_ROWS = 4096
_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


class FileFormatError(ValueError):
    """A file is damaged, of another kind, or newer than this version of coevo."""


# ------------------------------------------------------------------------------------------ writing


def write_atomically(
    path: StrPath, parts: Iterable[bytes], previous: StrPath | None = None
) -> None:
    """Replace a file at once: whoever looks, at any moment, sees the old one or the new one.

    Parameters
    ----------
    path
        The file.
    parts
        Its new content; may be made while it is written. If that fails, the file stays as it was.
    previous
        Where the old file is kept, if it is to be kept.

    Notes
    -----
    The content is first written to `<path>.partial`. A process that is killed on the way leaves
    that file behind; the next write reuses it, so such files do not pile up.
    """
    path = Path(path)
    partial = _beside(path, ".partial")
    try:
        with open(partial, "wb") as file:
            for part in parts:
                file.write(part)
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
    """Give a file a second name; the first one is there all the time."""
    partial = _beside(previous, ".partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(path, partial)
    except OSError:  # not every file system has hard links
        shutil.copyfile(path, partial)
    os.replace(partial, previous)
    # Renaming one name of a file to another name of the same file does nothing at all.
    partial.unlink(missing_ok=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _sync_folder(folder: Path) -> None:
    """Make a renaming last through a power cut, where the system has a way to ask for it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def pack(arrays: Mapping[str, Array], metadata: dict[str, str]) -> bytes:
    """Return arrays and texts as the content of a safetensors file."""
    content = safetensors.numpy.save(
        {name: np.asarray(array, order="C") for name, array in arrays.items()}, metadata
    )
    if int.from_bytes(content[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(
            f"names and other texts take more than {MAX_HEADER_BYTES} bytes, the most that a file "
            "may hold"
        )
    return content


# ------------------------------------------------------------------------------------------ reading


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """What a header says about one tensor."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header_length(first_bytes: bytes, size: int) -> int:
    """Return the length of the header of a safetensors file.

    Parameters
    ----------
    first_bytes
        At least the first 8 bytes of the file.
    size
        The size of the file.
    """
    if len(first_bytes) < 8:
        raise FileFormatError(f"it ends after {len(first_bytes)} bytes")
    length = int.from_bytes(first_bytes[:8], "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise FileFormatError(
            f"its header would be {length} bytes long, but the file has {size} bytes and a header "
            f"at most {MAX_HEADER_BYTES}"
        )
    return length


def read_header(header: bytes, n_data_bytes: int) -> tuple[dict[str, str], dict[str, TensorInfo]]:
    """Return the texts and the tensors that a header announces.

    Parameters
    ----------
    header
        The JSON text.
    n_data_bytes
        How many bytes follow it in the file; the tensors must fill them exactly.
    """
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"its header is not text: {error}") from None
    entries = parse_json(text, "its header", dict)
    metadata = entries.pop("__metadata__", {})
    if not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise FileFormatError("its metadata is not a table of texts")
    tensors = {name: _check_entry(name, entry, n_data_bytes) for name, entry in entries.items()}
    stop = 0
    for info in sorted(tensors.values(), key=lambda info: (info.start, info.stop)):
        if info.start != stop:
            raise FileFormatError("its arrays overlap or leave gaps")
        stop = info.stop
    if stop != n_data_bytes:
        raise FileFormatError(f"its arrays take {stop} bytes, but {n_data_bytes} bytes follow")
    return metadata, tensors


def _check_entry(name: str, entry: Any, n_data_bytes: int) -> TensorInfo:
    def is_count(value: Any) -> bool:
        return type(value) is int and 0 <= value <= n_data_bytes

    if not (isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}):
        raise FileFormatError(f"its entry for the array {name!r} is malformed")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not (isinstance(dtype, str) and dtype in _ITEM_BYTES):
        raise FileFormatError(f"the array {name!r} has the unknown dtype {dtype!r}")
    if not (
        isinstance(shape, list)
        and len(shape) <= _MAX_DIMENSIONS
        and all(is_count(size) for size in shape)
    ):
        raise FileFormatError(f"the array {name!r} has an impossible shape")
    if not (
        isinstance(offsets, list)
        and len(offsets) == 2
        and all(is_count(offset) for offset in offsets)
        and offsets[1] - offsets[0] == math.prod(shape) * _ITEM_BYTES[dtype]
    ):
        raise FileFormatError(f"the array {name!r} has a place that does not fit its shape")
    return TensorInfo(dtype, tuple(shape), offsets[0], offsets[1])


def unpack(content: bytes) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the texts and the arrays of a safetensors file."""
    length = read_header_length(content, len(content))
    metadata, _ = read_header(content[8 : 8 + length], len(content) - 8 - length)
    try:
        arrays = safetensors.numpy.load(content)
    except safetensors.SafetensorError as error:
        raise FileFormatError(f"its arrays cannot be read: {error}") from None
    # Copies are aligned in memory and may be written to.
    return metadata, {name: np.array(array) for name, array in arrays.items()}


def parse_json(text: str, what: str, kind: type) -> Any:
    """Return what a JSON text says if that is of the kind, a Python type."""

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            raise ValueError("a name occurs twice")
        return table

    try:
        value = json.loads(text, object_pairs_hook=refuse_repeats)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} is not valid JSON: {error}") from None
    if type(value) is not kind:
        raise FileFormatError(f"{what} is not a JSON {kind.__name__}")
    return value


# --------------------------------------------------------------------------------- plain and digest


def plain_settings(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON values; the user's own groups of genes become a digest."""
    plain = {f.name: as_plain(getattr(settings, f.name)) for f in dataclasses.fields(settings)}
    if not isinstance(settings.decomposition, str):
        groups = [np.asarray(group, dtype=np.int64) for group in settings.decomposition]
        sizes = np.array([group.size for group in groups], dtype=np.int64)
        together = digest(np.concatenate([sizes, *groups]))
        plain["decomposition"] = {"n_groups": len(groups), "sha256": together}
    return plain


def as_plain(value: Any) -> Any:
    """Return a value as JSON values that are equal exactly if the values are.

    Arrays become digests. Functions and other objects become their names, as nothing more can be
    known about them.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "sha256": digest(value)}
    if isinstance(value, functools.partial):
        value = {"function": value.func, "arguments": value.args, "keywords": value.keywords}
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list | range):
        return [as_plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.compare}
        fields = {name: as_plain(part) for name, part in fields.items()}
        return {"type": type(value).__qualname__, **fields}
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def digest(array: Array) -> str:
    """Return the SHA-256 of an array's dtype, shape and values, in hexadecimal."""
    sha = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    if array.dtype.kind in "OT":  # references, not values
        sha.update(json.dumps([[type(v).__name__, str(v)] for v in array.ravel()]).encode())
    else:
        rows = np.atleast_1d(array)
        for start in range(0, len(rows), _DIGEST_ROWS):  # a memory map is never copied whole
            sha.update(rows[start : start + _DIGEST_ROWS].tobytes())
    return sha.hexdigest()
