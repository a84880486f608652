"""Notes on columns that look wrong but may be right; the user decides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coevo._typing import Array

_SENTINELS = {sign * (10**digits - 1) for digits in range(2, 10) for sign in (-1, 1)}
_ROW_NAME = re.compile(r"(?i:(^|.*[\W_])(id|index|key|no|nr|num|number|row))|.*[a-z]I[dD]")
_FEWEST_ROWS = 10


def note_columns(inputs: Any, max_categories: int) -> Iterator[str]:
    """Yield notes on the columns of a data frame, as in `Contents`."""
    for name in inputs:
        column = inputs[name]
        if column.dtype == object:
            yield from note_scattered(column, max_categories)
            yield from note_similar(name, column.dropna().unique())
        elif column.dtype.kind == "f":
            yield from note_sentinels(name, column.dropna().to_numpy())
            yield from note_row_numbers(name, column.dropna().to_numpy())
        elif column.dtype.kind == "M":
            yield from note_year_9999(name, column.dropna().to_numpy())


def note_scattered(column: Any, max_categories: int) -> Iterator[str]:
    """Yield a note if the most frequent categories of a column cover few rows."""
    counts = column.value_counts(dropna=False)
    share = counts.iloc[:max_categories].sum() / len(column)
    if share < 0.5:
        yield (
            f"{column.name!r} holds {len(counts):,} different texts, and the {max_categories} most "
            f"frequent, which are kept, cover {share:.0%} of the rows; "
            f"--max-categories keeps more, --drop {shlex.quote(column.name)} leaves it out"
        )


def note_similar(name: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield a note if texts differ in case or spaces only."""
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        groups.setdefault("".join(text.casefold().split()), []).append(text)
    similar = [group for group in groups.values() if len(group) > 1]
    if similar:
        shown = "; ".join(" and ".join(map(repr, group)) for group in similar[:3])
        yield (
            f"{name!r} holds texts that differ in case or spaces only and count as different: "
            f"{shown}{'; …' if len(similar) > 3 else ''}; if they mean the same, write them alike "
            "in the table"
        )


def note_sentinels(name: str, numbers: Array) -> Iterator[str]:
    """Yield a note on an extreme such as -9999 that is far from all other numbers."""
    distinct = np.unique(numbers)
    if len(distinct) < 3:
        return
    for value, others in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1])):
        gap = np.abs(others - value).min()
        if value in _SENTINELS and gap > others[-1] - others[0]:
            n_rows = int((numbers == value).sum())
            yield (
                f"{name!r} holds {value:g} in {n_rows} row{'s' * (n_rows > 1)}, far from the other "
                f"numbers ({others[0]:g} to {others[-1]:g}); if that means a missing value, "
                f"--missing={value:g} says so"
            )


def note_year_9999(name: str, moments: Array) -> Iterator[str]:
    """Yield a note on dates in the year 9999."""
    n_rows = int((moments >= np.datetime64("9999-01-01")).sum())
    if n_rows:
        yield (
            f"{name!r} holds dates in the year 9999 in {n_rows} row{'s' * (n_rows > 1)}; if that "
            "means a missing value, name the date with --missing"
        )


def note_row_numbers(name: str, numbers: Array) -> Iterator[str]:
    """Yield a note if whole numbers seem to number the rows."""
    if len(numbers) < _FEWEST_ROWS or (numbers != np.rint(numbers)).any():
        return
    distinct = np.unique(numbers)
    is_consecutive = distinct[-1] - distinct[0] == len(distinct) - 1
    if len(distinct) == len(numbers) and (is_consecutive or _ROW_NAME.fullmatch(name)):
        yield (
            f"{name!r} holds another whole number in each row; if it only numbers them, "
            f"--drop {shlex.quote(name)} leaves it out"
        )
