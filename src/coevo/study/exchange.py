"""Writes the runs of a store to a small text file that can be committed, and reads it back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from coevo.network import Array
from coevo.study.run import Outcome, Run
from coevo.study.store import Record, Store

FORMAT = "coevo-study-1"
"""The first line of an export says so."""

_ARRAYS = ("history", "trace")


def export_runs(records: Iterable[Record], path: str | Path, points: int = 40) -> int:
    """Write finished and failed runs as JSON, one a line so that changes show well in a diff.

    Parameters
    ----------
    records
        The runs; those that are waiting or running are left out.
    path
        The file to write.
    points
        To how many rows each history is thinned, which is what keeps the file small. The figures
        then have that many points.

    Returns
    -------
    how many runs were written
    """
    lines = [json.dumps({"format": FORMAT})]
    lines += [
        json.dumps(_to_values(record, points), sort_keys=True)
        for record in records
        if record.state in ("done", "failed")
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def import_runs(store: Store, path: str | Path) -> int:
    """Enter the runs of an export into a store, and return how many were new to it.

    Parameters
    ----------
    store
        Where to enter them; what it has done itself stays as it is.
    path
        What `export_runs` wrote.
    """
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    try:
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
    if Path(path).suffix not in (".json", ".jsonl"):
        return Store(path)
    store = Store(":memory:")
    import_runs(store, path)
    return store


def thin(rows: Array, points: int) -> Array:
    """Return about that many of the rows, evenly spread, the first and the last among them."""
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
    run = Run(**values["run"])
    if values.get("error") is not None:
        return Record(run, "failed", error=values["error"], ended=values["ended"])
    content = {entry.name: values[entry.name] for entry in fields(Outcome)}
    for name in _ARRAYS:
        if content[name] is not None:
            content[name] = np.array(content[name], dtype=float)
    return Record(run, "done", outcome=Outcome(**content), ended=values["ended"])
