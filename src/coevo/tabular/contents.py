"""What a table holds: numeric and categorical columns and dates, inputs and target."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.tabular.columns import (
    as_texts,
    check_dates,
    check_finite,
    find_row,
    frame_of,
    read_numbers,
)
from coevo.tabular.dates import SWAPPED, find_format, is_ambiguous, parse_dates
from coevo.tabular.notation import Notation
from coevo.tabular.table import Table, TableError, list_names

TASKS = ("classification", "regression")
MOST_CLASSES = 20
"""A target with more different whole numbers is a quantity."""

_MOSTLY = 5  # one text in so many values: the column was probably meant to be numeric


@dataclass(frozen=True)
class Contents:
    """A table that has been read.

    Parameters
    ----------
    inputs
        A data frame: numeric columns of float64, categorical ones of text, dates of datetime64;
        NaN or NaT where missing.
    target : array of shape (n_rows,)
        Numbers or texts; none missing.
    notes
        What the user should know about the table.
    notations
        How numbers are written, by column, where they are not plain.
    formats
        How dates are written, by column.
    """

    inputs: Any
    target: Array
    notes: tuple[str, ...]
    notations: dict[str, Notation] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)


def read_contents(
    table: Table,
    target: str,
    *,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    dates: Mapping[str, str | None] | None = None,
    task: str | None = None,
) -> Contents:
    """Read a table to learn from.

    Parameters
    ----------
    categorical
        Columns to take as categorical though they hold numbers or dates.
    dates
        Columns to take as dates, with their formats or None.
    task
        classification or regression; None if it is to be inferred.
    """
    dates = dates or {}
    table.check_columns([target], "the target")
    table.check_columns(sorted(categorical), "named by --categorical")
    table.check_columns(sorted(drop), "named by --drop")
    table.check_columns(sorted(dates), "named by --date")
    if target in table.repeated:
        raise TableError(f"{table.path} has several columns called {target!r}, the target")
    if target in dates:
        raise TableError(f"--date names {target!r}, the target, which cannot be a date")
    frame = _read_all(table, {*categorical, *dates})
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
        n_unknown = int((~known).sum())
        rows, are = ("row", "is") if n_unknown == 1 else ("rows", "are")
        notes.append(f"{n_unknown} {rows} without a value of {target!r} {are} left out")
        # Such a row, a footer perhaps, says nothing about what a column holds.
        frame = frame[known]
    reader = _Reader(table, notes)
    goal = reader.read_target(frame[target], task, is_categorical=target in categorical)
    columns = {
        name: reader.read_input(frame[name], name in categorical, name in dates, dates.get(name))
        for name in frame
        if name != target and name not in unnamed and name not in drop
    }
    if not columns:
        raise TableError(f"{table.path} has no column but the target to learn from")
    return Contents(frame_of(columns), goal, tuple(notes), reader.notations, reader.formats)


@dataclass(frozen=True)
class _Reader:
    """Reads the columns of a table, and notes what is not plain."""

    table: Table
    notes: list[str]
    notations: dict[str, Notation] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)

    def read_input(
        self, column: Any, is_categorical: bool, is_date: bool, form: str | None
    ) -> Array:
        """Return a column as numbers, dates or texts."""
        if is_date:
            return self._read_dates(column, form)
        if is_categorical:
            return as_texts(column)
        numbers, is_wrong, notation = read_numbers(column, self.table.decimal)
        if not is_wrong.any():
            check_finite(numbers, column, self.table.path)
            self._note_notation(column, numbers, notation)
            return numbers
        found = find_format(column.dropna().unique())
        if found is not None:
            moments = parse_dates(column, found)
            is_no_date = np.isnat(moments) & column.notna().to_numpy()
            if not is_no_date.any():
                self._note_format(column, found)
                return moments
            self._note_exception(column, is_no_date, "dates")
        self._note_exception(column, is_wrong, "numbers")
        return as_texts(column)

    def read_target(self, column: Any, task: str | None, is_categorical: bool) -> Array:
        """Return the target as numbers or texts."""
        if is_categorical:
            return as_texts(column)
        numbers, is_wrong, notation = read_numbers(column, self.table.decimal)
        if task == "classification" and notation is not None:
            return as_texts(column)
        if not is_wrong.any():
            check_finite(numbers, column, self.table.path)
            self._note_notation(column, numbers, notation)
            return numbers
        is_mostly_numbers = _MOSTLY * is_wrong.sum() <= len(column)
        if task == "regression" or (
            task is None
            and is_mostly_numbers
            and infer_task(numbers[~is_wrong], column.name)[0] == "regression"
        ):
            where = find_row(column, is_wrong)
            message = (
                f"the target {column.name!r} holds text, {column[where]!r} in row {where + 1}, and "
                "regression needs numbers"
            )
            if is_mostly_numbers:
                text = shlex.quote(str(column[where]))
                message += f"; --missing={text} leaves out rows with that text"
            if task is None:
                message += ", --task classification takes every value as a label"
            raise TableError(message)
        return as_texts(column)

    def _read_dates(self, column: Any, form: str | None) -> Array:
        found = form or find_format(column.dropna().unique(), is_forced=True)
        if found is None:
            raise TableError(
                f"column {column.name!r} of {self.table.path} holds no dates that are recognised, "
                f"such as {column[column.first_valid_index()]!r}; --date "
                f"{shlex.quote(column.name + '=%d.%m.%Y')} says how they are written"
            )
        moments = parse_dates(column, found)
        check_dates(moments, column, found, self.table.path)
        self._note_format(column, found)
        return moments

    def _note_notation(self, column: Any, numbers: Array, notation: Notation | None) -> None:
        if notation is None:
            return
        self.notations[column.name] = notation
        lengths = column.dropna().astype(str).str.len()
        where = lengths.idxmax()
        number = numbers[column.index.get_loc(where)]
        self.notes.append(
            f"{column.name!r} is read as numbers: {column[where]!r} is {number:.12g}; "
            f"--categorical {shlex.quote(column.name)} takes it as text"
        )

    def _note_format(self, column: Any, form: str) -> None:
        self.formats[column.name] = form
        example = str(column[column.first_valid_index()])
        moment = str(parse_dates([example], form)[0].astype("datetime64[s]")).replace(
            "T00:00:00", ""
        )
        note = f"{column.name!r} is read as dates: {example!r} is {moment}"
        swapped = form.translate(SWAPPED)
        if is_ambiguous(form) and not np.isnat(parse_dates(column.dropna(), swapped)).any():
            argument = shlex.quote(f"{column.name}={swapped}")
            note += f" (--date {argument} says otherwise)"
        self.notes.append(note)

    def _note_exception(self, column: Any, is_wrong: Array, what: str) -> None:
        if 0 < _MOSTLY * is_wrong.sum() <= column.notna().sum():
            where = find_row(column, is_wrong)
            self.notes.append(
                f"column {column.name!r} is categorical because of {column[where]!r} in row "
                f"{where + 1}, though most of it is {what}; if that means a missing value, "
                f"--missing={shlex.quote(str(column[where]))} says so"
            )


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
    """Return the task that a target suggests, and why."""
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
    """Return the columns to learn from, and a note on those left out.

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
