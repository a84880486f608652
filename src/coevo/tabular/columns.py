"""The columns of a table: numeric or categorical, inputs or target, useful or not."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.tabular.table import Table, TableError, import_pandas

TASKS = ("classification", "regression")
MOST_CLASSES = 20
"""A target with more different whole numbers is a quantity."""

_MOSTLY = 5  # one text in so many values: the column was probably meant to be numeric


def as_numbers(column: Any) -> tuple[Array, Array]:
    """Return a column as float64, NaN where missing, and which values are not numbers.

    Parameters
    ----------
    column
        A column of a data frame.

    Returns
    -------
    numbers : float64 array of shape (n_rows,)
    is_wrong : boolean array of shape (n_rows,)
        True where a value is neither missing nor a number.
    """
    pandas = import_pandas()
    is_missing = column.isna().to_numpy()
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64), np.zeros(len(column), dtype=bool)
    texts = column.astype(object)
    are_flags = np.array([isinstance(value, bool | np.bool_) for value in texts], dtype=bool)
    numbers = pandas.to_numeric(texts.mask(are_flags), errors="coerce")
    numbers = np.array(numbers, dtype=np.float64)
    return numbers, np.isnan(numbers) & ~is_missing


def as_texts(column: Any) -> Array:
    """Return a column as an object array of texts without spaces around them, and NaN."""
    values = column.astype(object).to_numpy()
    # Most values repeat: each is looked at once.
    cleaned: dict[Any, Any] = {}
    texts = np.empty(len(values), dtype=object)
    is_missing = column.isna().to_numpy()
    for row, value in enumerate(values):
        if is_missing[row]:
            texts[row] = np.nan
        elif (text := cleaned.get(value)) is not None:
            texts[row] = text
        else:
            texts[row] = cleaned[value] = str(value).strip()
    return texts


def frame_of(columns: Mapping[str, Array]) -> Any:
    """Return a data frame of float64 (numeric) and object (categorical) columns."""
    pandas = import_pandas()
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()}
    )


def check_finite(numbers: Array, name: str, path: object) -> None:
    """Raise if there is an infinite number."""
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        raise TableError(
            f"column {name!r} of {path} holds an infinite number in row {infinite[0] + 1}"
        )


@dataclass(frozen=True)
class Contents:
    """A table that has been read.

    Parameters
    ----------
    inputs
        A data frame: numeric columns of float64, categorical ones of text, NaN where missing.
    target : array of shape (n_rows,)
        Numbers or texts; none missing.
    notes
        What the user should know about the table.
    """

    inputs: Any
    target: Array
    notes: tuple[str, ...]


def read_contents(
    table: Table, target: str, categorical: Collection[str] = (), drop: Collection[str] = ()
) -> Contents:
    """Read a table to learn from.

    Parameters
    ----------
    table
        The table.
    target
        The column to predict.
    categorical
        Columns to take as categorical though they hold numbers.
    drop
        Columns to leave out.
    """
    table.check_columns([target], "the target")
    table.check_columns(sorted(categorical), "named by --categorical")
    table.check_columns(sorted(drop), "named by --drop")
    if target in table.repeated:
        raise TableError(f"{table.path} has several columns called {target!r}, the target")
    frame = _read_all(table, set(categorical))
    notes = list(table.notes)
    if len(frame) == 0:
        raise TableError(f"{table.path} has column names but no rows")
    unnamed = [name for name in frame if name in table.unnamed and name != target]
    if unnamed:
        notes.append(f"columns without a name are left out: {', '.join(unnamed)}")
    known = frame[target].notna().to_numpy()
    if not known.any():
        raise TableError(f"the target {target!r} of {table.path} is missing in every row")
    if not known.all():
        notes.append(f"{(~known).sum()} rows without a value of {target!r} are left out")
    values, wrong = as_numbers(frame[target])
    goal = as_texts(frame[target]) if wrong.any() or target in categorical else values
    if goal is values:
        check_finite(values, target, table.path)
    columns = {}
    for name in frame:
        if name == target or name in unnamed or name in drop:
            continue
        numbers, wrong = as_numbers(frame[name])
        if name not in categorical and not wrong.any():
            check_finite(numbers, name, table.path)
            columns[name] = numbers[known]
            continue
        columns[name] = as_texts(frame[name])[known]
        n_values = frame[name].notna().sum()
        if name not in categorical and 0 < _MOSTLY * wrong.sum() <= n_values:
            first = int(np.flatnonzero(wrong)[0])
            notes.append(
                f"column {name!r} is categorical because of {frame[name].iloc[first]!r} in row "
                f"{first + 1}, though most of it is numbers; if that means a missing value, name "
                "it with --missing"
            )
    if not columns:
        raise TableError(f"{table.path} has no column but the target to learn from")
    return Contents(frame_of(columns), goal[known], tuple(notes))


def _read_all(table: Table, as_text: set[str]) -> Any:
    frame = next(table.frames(as_text=as_text))
    # pandas reads both True and true as booleans; the categories are what the file says.
    flags = {name for name in frame if _holds_flags(frame[name])} - as_text
    return next(table.frames(as_text=as_text | flags)) if flags else frame


def _holds_flags(column: Any) -> bool:
    if column.dtype.kind == "b":
        return True
    return column.dtype == object and any(isinstance(value, bool) for value in column)


# ----------------------------------------------------------------------------------------- the task


def infer_task(target: Array, name: str) -> tuple[str, str]:
    """Return the task that a target suggests, and why.

    Parameters
    ----------
    target : array of shape (n_rows,)
        Numbers or texts.
    name
        The target's name, for the reason.
    """
    if target.dtype == object:
        return "classification", f"{name!r} holds text"
    distinct = np.unique(target)
    if (distinct != np.rint(distinct)).any():
        return "regression", f"{name!r} holds fractions"
    n = len(distinct)
    if n <= 2 or (n <= MOST_CLASSES and n * 5 <= len(target)):
        return "classification", f"{name!r} holds {n} different whole numbers"
    return "regression", f"{name!r} holds {n} different numbers"


def as_labels(target: Array) -> Array:
    """Return a target as labels: whole numbers, or texts."""
    if target.dtype == object:
        return target.astype(str)
    if (target == np.rint(target)).all() and (np.abs(target) < 2**53).all():
        return target.astype(np.int64)
    return np.array([repr(float(value)) for value in target])


def choose_inputs(inputs: Any, asked_for: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Return the columns worth learning from, and a note on those left out.

    Parameters
    ----------
    inputs
        The training rows, as in `Contents`.
    asked_for
        Columns that the user has named as categorical; these stay.
    """
    kept: list[str] = []
    reasons: dict[str, list[str]] = {}
    for name in inputs:
        column = inputs[name]
        is_text = column.dtype == object
        n_distinct = column.nunique(dropna=not is_text)
        if column.notna().sum() == 0:
            reasons.setdefault("empty", []).append(name)
        elif n_distinct < 2:
            reasons.setdefault("the same in every row", []).append(name)
        elif is_text and n_distinct == len(column) and name not in asked_for:
            reasons.setdefault("text that never repeats", []).append(name)
        else:
            kept.append(name)
    notes = [f"left out, {why}: {list_names(names)}" for why, names in reasons.items()]
    if not kept:
        raise TableError(f"no column is left to learn from ({'; '.join(notes)})")
    return kept, notes


def note_scattered(inputs: Any, columns: Sequence[str], max_categories: int) -> list[str]:
    """Return notes on categorical columns whose frequent categories cover few rows.

    Dates and amounts of money with a currency are read as such columns.
    """
    notes = []
    for name in columns:
        if inputs[name].dtype != object:
            continue
        counts = inputs[name].value_counts(dropna=False)
        share = counts.iloc[:max_categories].sum() / len(inputs)
        if share < 0.5:
            notes.append(
                f"{name!r} holds {len(counts):,} different texts, and the {max_categories} most "
                f"frequent, which are kept, cover {share:.0%} of the rows; "
                f"--drop {shlex.quote(name)} leaves it out"
            )
    return notes


def list_names(names: Sequence[str]) -> str:
    """Return the names, the first ten of many."""
    return ", ".join(map(repr, names[:10])) + (
        f" and {len(names) - 10} more" if len(names) > 10 else ""
    )
