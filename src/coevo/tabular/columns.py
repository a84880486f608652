"""Columns of a data frame as numbers or texts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.tabular.dates import ISO
from coevo.tabular.notation import Notation
from coevo.tabular.table import TableError, import_pandas


def as_numbers(column: Any) -> tuple[Array, Array]:
    """Return a column as float64, NaN where missing, and which values are not numbers.

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


def read_numbers(column: Any, decimal: str) -> tuple[Array, Array, Notation | None]:
    """Return the numbers of a column, which values are not numbers, and how the others are written.

    Returns
    -------
    numbers, is_wrong
        As for `as_numbers`.
    notation
        None if the numbers are plain.
    """
    numbers, is_wrong = as_numbers(column)
    if not is_wrong.any():
        return numbers, is_wrong, None
    notation = Notation.find(column.dropna().astype(str).unique(), decimal)
    if notation is None:
        return numbers, is_wrong, None
    written, is_unread = notation.read(column)
    if is_unread.sum() < is_wrong.sum():
        return written, is_unread, notation
    return numbers, is_wrong, None


def check_finite(numbers: Array, column: Any, path: object, first_row: int = 0) -> None:
    """Raise if there is an infinite number in a column that was read as these numbers."""
    is_infinite = np.isinf(numbers)
    if is_infinite.any():
        row = first_row + find_row(column, is_infinite) + 1
        raise TableError(f"column {column.name!r} of {path} holds an infinite number in row {row}")


def check_dates(moments: Array, column: Any, form: str, path: object, first_row: int = 0) -> None:
    """Raise if a value of a column that was read as these dates is not missing and no date."""
    is_wrong = np.isnat(moments) & column.notna().to_numpy()
    if is_wrong.any():
        where = find_row(column, is_wrong)
        how = "as in 2020-01-31" if form == ISO else f"written as {form}"
        raise TableError(
            f"column {column.name!r} of {path} must hold dates {how} and holds {column[where]!r} "
            f"in row {first_row + where + 1}{advise_missing(column[where])}"
        )


def advise_missing(value: object) -> str:
    """Return the end of a sentence: what to do if a value that is refused means a missing one."""
    return f"; --missing={shlex.quote(str(value))} takes that as missing"


def find_row(column: Any, mask: Array) -> int:
    """Return the label of the first row, which is its place in the file."""
    return int(column.index[int(mask.argmax())])
