"""A search frozen to disk and thawed bit for bit.

A checkpoint holds all that a search carries from one generation to the next, and what it was a
search for: the settings, digests of the data, the engine. A run that is killed at any moment and
resumed ends with the same network, history and counts as one that was left alone, on the same
machine with the same number of threads. Only the time it took differs.

The file: 8 bytes that say what it is, the format's version, the payload's length, a SHA-256 over
everything else in the file, and the payload, which is in the safetensors format. Reading it
executes nothing. The checkpoint before is kept beside it as `<name>.previous`.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numba
import numpy as np

import coevo
from coevo.batches import Batches
from coevo.files import (
    FileFormatError,
    StrPath,
    digest,
    pack,
    parse_json,
    plain_settings,
    read_header,
    read_header_length,
    unpack,
    write_atomically,
)
from coevo.history import History
from coevo.network import Array
from coevo.search import Search
from coevo.settings import Settings
from coevo.state import SearchState

FORMAT_VERSION = 1
"""The version of the file format written; older ones are read, newer ones refused."""

BUDGETS = (
    "max_evaluations", "max_generations", "max_seconds", "target_fitness", "patience", "n_threads",
)  # fmt: skip
"""Settings that may change between a checkpoint and the run that resumes it."""

_MAGIC = b"coevo\x00cp"
_PREFIX = struct.Struct("<8sIQ32s")


class CheckpointError(FileFormatError):
    """A checkpoint is damaged, is no checkpoint, or is newer than this version of coevo."""


class CheckpointMismatchError(ValueError):
    """A checkpoint is good, but belongs to another run."""


class CheckpointInUseError(RuntimeError):
    """Another run is writing the checkpoint at this moment."""


@dataclass(frozen=True)
class Purpose:
    """What a run is for: a checkpoint is only resumed for the purpose it was written for.

    Parameters
    ----------
    settings
        The run's settings as plain values.
    data
        A digest of each array the run learns from, by name.
    engine
        The Evaluator's name; engines agree up to rounding, which is not bit for bit.
    versions
        Of the libraries that may change the rounding.
    seed
        The seed that was drawn for the run, if that was not left to the search; the run that
        resumes it takes it over.
    """

    settings: dict[str, Any]
    data: dict[str, str]
    engine: str
    versions: dict[str, str]
    seed: int | None = None

    @classmethod
    def of(cls, settings: Settings, engine: str, data: Mapping[str, Array | None]) -> Purpose:
        """Describe a run by its settings, its engine's name and its arrays by name."""
        return cls(
            plain_settings(settings),
            {name: digest(array) for name, array in data.items() if array is not None},
            engine,
            {"coevo": coevo.__version__, "numpy": np.__version__, "numba": numba.__version__},
        )

    def differences(self, other: Purpose) -> list[str]:
        """Say in what this purpose, a checkpoint's, differs from that of the run here."""
        found = []
        for name in sorted((self.settings.keys() | other.settings.keys()) - set(BUDGETS)):
            there, here = (p.settings.get(name, "unknown") for p in (self, other))
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
class Checkpoint:
    """A frozen search, read from a file.

    Parameters
    ----------
    state
        Where the search was.
    memory
        What its engine carried over to the next generation, by name.
    purpose
        What it was for.
    """

    state: SearchState
    memory: dict[str, Array]
    purpose: Purpose


# -------------------------------------------------------------------------------------------- files


def previous_path(path: StrPath) -> Path:
    """Return where the checkpoint before the last one is kept."""
    path = Path(path)
    return path.with_name(path.name + ".previous")


def save(path: StrPath, search: Search, purpose: Purpose) -> None:
    """Freeze a search between two generations.

    Parameters
    ----------
    path
        The file. It is replaced at once, and kept as `<path>.previous`.
    search
        The search, with at least the initial sampling done.
    purpose
        What it is for.
    """
    values, arrays = _freeze(search.state)
    arrays |= {f"memory.{name}": array for name, array in search.evaluator.memory().items()}
    payload = pack(arrays, {"state": json.dumps(values), "purpose": json.dumps(asdict(purpose))})
    sha = _digest(FORMAT_VERSION, payload)
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(payload), sha)
    write_atomically(path, [prefix, payload], previous_path(path))


def load(path: StrPath) -> Checkpoint:
    """Thaw a search, or raise an error and change nothing.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Raises
    ------
    CheckpointError
        If the file is damaged, foreign or newer. The error says whether the previous checkpoint is
        good.
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


def _load(path: StrPath) -> Checkpoint:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        prefix = file.read(_PREFIX.size)
        if not prefix.startswith(_MAGIC[: len(prefix)]) or not prefix:
            raise CheckpointError("this is not a checkpoint of coevo")
        if len(prefix) < _PREFIX.size:
            raise CheckpointError(f"the checkpoint is cut off after {len(prefix)} bytes")
        _, version, length, sha = _PREFIX.unpack(prefix)
        if version > FORMAT_VERSION:
            raise CheckpointError(
                f"the checkpoint has format version {version}; this version of coevo reads "
                f"versions up to {FORMAT_VERSION}"
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
        purpose = Purpose(**parse_json(metadata["purpose"], "its purpose", dict))
        if not all(isinstance(t, dict) for t in (purpose.settings, purpose.data, purpose.versions)):
            raise ValueError("its purpose is not made of tables")
        state, memory = _thaw(values, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        # The digest is right, so whoever wrote this did not mean it for us.
        raise CheckpointError(f"the checkpoint's content is malformed: {error!r}") from None
    return Checkpoint(state, memory, purpose)


def _read_payload(file: BinaryIO, length: int) -> bytes:
    """Read the payload once its header has shown that its size makes sense."""
    start = file.read(min(8, length))
    try:
        n_header_bytes = read_header_length(start, length)
        header = file.read(n_header_bytes)
        read_header(header, length - 8 - n_header_bytes)
    except FileFormatError as error:
        raise CheckpointError(f"the checkpoint is damaged: {error}") from None
    return start + header + file.read(length - 8 - n_header_bytes)


def _digest(version: int, payload: bytes) -> bytes:
    sha = hashlib.sha256(_MAGIC + struct.pack("<IQ", version, len(payload)))
    sha.update(payload)
    return sha.digest()


# --------------------------------------------------------------------------- freezing and thawing

_COUNTERS = ("best_generation", "generation", "evaluations")
_MEASURES = ("best_validation", "seconds")
_ARRAYS = ("fitness", "champions", "n_archived", "global_solution", "best_network")


def _freeze(state: SearchState) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a state apart into plain values and arrays."""
    generator = state.rng.bit_generator.state
    batches = state.batches
    values: dict[str, Any] = {
        **{name: int(getattr(state, name)) for name in _COUNTERS},
        **{name: float(getattr(state, name)) for name in _MEASURES},
        "n_blocks": len(state.subpopulations),
        "control": sorted(state.control),
        "bit_generator": generator["bit_generator"],
        "has_uint32": int(generator["has_uint32"]),
        "uinteger": int(generator["uinteger"]),
        "n_batches": int(batches.n_batches),
        "reshuffles": bool(batches.reshuffles),
        "position": int(batches.position),
    }
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    arrays |= {f"subpopulations.{b}": part for b, part in enumerate(state.subpopulations)}
    arrays |= {f"archives.{b}": part for b, part in enumerate(state.archives)}
    arrays |= {f"control.{name}": array for name, array in state.control.items()}
    arrays |= {f"history.{name}": array for name, array in state.history.freeze().items()}
    arrays |= {"rng": generator["state"]["state"], "batches": batches.order}
    if state.gene_order is not None:
        arrays["gene_order"] = state.gene_order
    return values, arrays


def _thaw(values: dict[str, Any], arrays: dict[str, Array]) -> tuple[SearchState, dict[str, Array]]:
    """Put a state together again; what is left over is the engine's memory."""
    bit_generator = np.random.SFC64(0)
    bit_generator.state = {
        "bit_generator": values["bit_generator"],
        "state": {"state": arrays.pop("rng")},
        "has_uint32": values["has_uint32"],
        "uinteger": values["uinteger"],
    }
    history = {name: arrays.pop(f"history.{name}") for name in ("stride", "rows", "latest")}
    parts: dict[str, Any] = {
        "rng": np.random.Generator(bit_generator),
        "batches": Batches(
            arrays.pop("batches"), values["n_batches"], values["reshuffles"], values["position"]
        ),
        "subpopulations": [arrays.pop(f"subpopulations.{b}") for b in range(values["n_blocks"])],
        "archives": [arrays.pop(f"archives.{b}") for b in range(values["n_blocks"])],
        "control": {name: arrays.pop(f"control.{name}") for name in values["control"]},
        "history": History.thaw(history),
        "gene_order": arrays.pop("gene_order", None),
        **{name: arrays.pop(name) for name in _ARRAYS},
        **{name: values[name] for name in (*_COUNTERS, *_MEASURES)},
    }
    state = SearchState(**parts)
    n_subpopulations, size = state.fitness.shape
    shapes = [part.shape for part in state.subpopulations]
    n_genes = sum(k * genes for k, _, genes in shapes)
    rooms = [part.shape for part in state.archives]
    if not (
        [(k, genes) for k, _, genes in shapes] == [(k, genes) for k, _, genes in rooms]
        and state.n_archived.shape == (n_subpopulations,)
        and all(0 <= n <= min(size for _, size, _ in rooms) for n in state.n_archived)
        and all(len(array) == n_subpopulations for array in state.control.values())
    ):
        raise ValueError("what it has learnt and archived contradicts its subpopulations")
    if not (
        sum(k for k, _, _ in shapes) == n_subpopulations == len(state.champions)
        and all(individuals == size for _, individuals, _ in shapes)
        and state.global_solution.shape == state.best_network.shape == (n_genes,)
        and (state.gene_order is None or np.array_equal(np.sort(state.gene_order), range(n_genes)))
    ):
        raise ValueError("the shapes of its arrays contradict each other")
    return state, {name.removeprefix("memory."): array for name, array in arrays.items()}
