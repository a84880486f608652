"""Settings, arrays and other objects as JSON values, for the fingerprint of a run."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.component import Component
from coevo.core.settings import Settings

_DIGEST_ROWS = 4096


def plain_settings(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON values: components as text, groups of genes as a digest."""
    plain = {f.name: as_plain(getattr(settings, f.name)) for f in dataclasses.fields(settings)}
    if not isinstance(settings.decomposition, str | Component):
        groups = [np.asarray(group, dtype=np.int64) for group in settings.decomposition]
        sizes = np.array([group.size for group in groups], dtype=np.int64)
        together = digest(np.concatenate([sizes, *groups]))
        plain["decomposition"] = {"n_groups": len(groups), "sha256": together}
    return plain


def as_plain(value: Any) -> Any:
    """Return an object as JSON values that are equal if and only if the objects are.

    Arrays become digests. Functions and unknown objects become their qualified names.
    """
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Component):
        value = str(value)
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
    if array.dtype.kind in "OT":  # arrays of references
        sha.update(json.dumps([[type(v).__name__, str(v)] for v in array.ravel()]).encode())
    else:
        rows = np.atleast_1d(array)
        for start in range(0, len(rows), _DIGEST_ROWS):  # never copies a memory map as a whole
            sha.update(rows[start : start + _DIGEST_ROWS].tobytes())
    return sha.hexdigest()
