"""Writes the runs of a store to a small text file for version control, and reads it back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.persistence.atomic import write_atomically
from coevo.study.run import Outcome, Run
from coevo.study.store import Record, Store, StoreError

FORMAT = "coevo-study-1"
"""The first line of an export says so."""

_ARRAYS = ("history", "trace")


def export_runs(records: Iterable[Record], path: str | Path, points: int = 40) -> int:
    """Write finished and failed runs as JSON lines, which make readable diffs.

    Parameters
    ----------
    records
        The runs; those that are waiting or running are left out.
    path
        The file to write.
    points
        Rows kept of each history; the figures then have that many points.

    Returns
    -------
    the number of runs written
    """
    lines = [json.dumps({"format": FORMAT})]
    lines += [
        json.dumps(_to_values(record, points), sort_keys=True)
        for record in records
        if record.state in ("done", "failed")
    ]
    write_atomically(path, [("\n".join(lines) + "\n").encode()])
    return len(lines) - 1


def import_runs(store: Store, path: str | Path) -> int:
    """Add the runs of an export to a store, and return how many were new to it.

    Runs that the store has done itself stay as they are.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        if not lines or json.loads(lines[0]).get("format") != FORMAT:
            raise ValueError(f"its first line does not say {FORMAT}")
        records = [_from_values(json.loads(line)) for line in lines[1:]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no export of a study: {error}") from error
    return sum(store.insert(record) for record in records)


def open_results(path: str | Path) -> Store:
    """Open a store, or an export as if it were one.

    Parameters
    ----------
    path
        The file; an export is known by its name, which ends in .json or .jsonl.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there are no results at {path}: run the study first")
    if not Path(path).stat().st_size:
        raise StoreError(f"{path} is empty, no store of runs")
    if Path(path).suffix not in (".json", ".jsonl"):
        return Store(path)
    store = Store(":memory:")
    import_runs(store, path)
    return store


def thin(rows: Array, points: int) -> Array:
    """Return about that many of the rows, evenly spread, with the first and the last."""
    if len(rows) <= points:
        return rows
    chosen: Array = rows[np.unique(np.linspace(0, len(rows) - 1, points).round().astype(int))]
    return chosen


def _to_values(record: Record, points: int) -> dict[str, Any]:
    values: dict[str, Any] = {"run": json.loads(record.run.to_json()), "ended": record.ended}
    if record.outcome is None:
        return values | {"error": record.error}
    for entry in fields(Outcome):
        value = getattr(record.outcome, entry.name)
        if entry.name in _ARRAYS and value is not None:
            value = [[_short(number) for number in row] for row in thin(value, points)]
        values[entry.name] = value
    return values


def _short(number: float) -> float | int | None:
    """Return a number with no more digits than a figure shows; JSON has no NaN."""
    if np.isnan(number):
        return None
    return int(number) if float(number).is_integer() else float(f"{number:.5g}")


def _from_values(values: dict[str, Any]) -> Record:
    run = Run.from_json(json.dumps(values["run"]))
    if values.get("error") is not None:
        return Record(run, "failed", error=values["error"], ended=values["ended"])
    content = {entry.name: values[entry.name] for entry in fields(Outcome)}
    for name in _ARRAYS:
        if content[name] is not None:
            content[name] = np.array(content[name], dtype=float)
    return Record(run, "done", outcome=Outcome(**content), ended=values["ended"])
