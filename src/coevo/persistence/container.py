"""Arrays and texts in the safetensors format, for model files and checkpoints.

A file contains the length of a JSON header, the header, and the arrays as plain bytes. Reading it
executes no code. The safetensors library checks the types, sizes and offsets of the arrays. This
module adds checks that the library lacks, before the arrays are read into memory: the header has at
most 4 MiB (library: 100 MB), and no repeated names (the library keeps the last) or unknown fields
(the library ignores them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from coevo._typing import Array

MAX_HEADER_BYTES = 4 * 2**20
"""The largest header written or read; parsed JSON takes many times the memory of its text."""

_ENTRY = {"dtype", "shape", "data_offsets"}
_DTYPES = {"BOOL", "U8", "I8", "U16", "I16", "F16", "U32", "I32", "F32", "U64", "I64", "F64"}


class FileFormatError(ValueError):
    """A file is damaged, is of another kind, or was written by a newer version of coevo."""


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


def unpack(content: bytes) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the texts and the arrays of a safetensors file."""
    length = read_header_length(content, len(content))
    metadata, _ = read_header(content[8 : 8 + length])
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError) as error:
        # ValueError: more dimensions than NumPy supports.
        raise FileFormatError(f"its arrays cannot be read: {error}") from None
    # Copies, because these arrays are read-only and may be unaligned.
    return metadata, {name: np.array(array) for name, array in arrays.items()}


def read_header_length(first_bytes: bytes, size: int) -> int:
    """Return the length of the header of a file of this size, from at least its first 8 bytes."""
    if len(first_bytes) < 8:
        raise FileFormatError(f"it ends after {len(first_bytes)} bytes")
    length = int.from_bytes(first_bytes[:8], "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise FileFormatError(
            f"its header would be {length} bytes long, but the file has {size} bytes and a header "
            f"at most {MAX_HEADER_BYTES}"
        )
    return length


def read_header(header: bytes) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the texts in a header, and its entry for each array.

    The entries (`dtype`, `shape`, `data_offsets`) are not checked here, but by `unpack`.
    """
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"its header is not text: {error}") from None
    entries = parse_json(text, "its header", dict)
    metadata = entries.pop("__metadata__", {})
    if not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise FileFormatError("its metadata is not a table of texts")
    for name, entry in entries.items():
        if not (isinstance(entry, dict) and set(entry) == _ENTRY):
            raise FileFormatError(f"its entry for the array {name!r:.100} is malformed")
        dtype = entry["dtype"]
        if not (isinstance(dtype, str) and dtype in _DTYPES):
            raise FileFormatError(f"the array {name!r:.100} has the unknown dtype {dtype!r:.100}")
    return metadata, entries


def parse_json(text: str, what: str, kind: type) -> Any:
    """Parse JSON whose value must be of the Python type `kind`; errors call it `what`."""

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
