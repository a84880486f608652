"""The columns of X, which may be an array, a sparse matrix or a data frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from coevo._typing import Array
from coevo._validation import check_integer, check_name
from coevo.persistence.encoding import MISSING
from coevo.runtime import memory

ROWS = 4096
"""Instances converted at a time, so that a memory map is never read into memory as a whole."""

_CELLS = 2**19  # numbers converted at a time at most, as sparse matrices may be wide

Rows = slice | Array
"""Selects instances: a slice, indices or a boolean mask."""


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories; `codes` are indices into `texts`, −1 where the value is missing."""

    codes: Array
    texts: tuple[str, ...]

    @classmethod
    def read(cls, values: Any) -> CategoricalColumn:
        """Read a column of a data frame or an array; 1, 1.0 and "1" are the same category."""
        pandas = import_module("pandas")  # slow to import
        if not isinstance(values, pandas.Series):
            values = np.asarray(values)
        codes, found = pandas.factorize(values)
        return cls(codes, tuple(map(_as_text, found)))

    def __getitem__(self, rows: Rows) -> CategoricalColumn:
        return CategoricalColumn(self.codes[rows], self.texts)

    def find_categories(self, rows: Rows, most: int | None = None) -> tuple[str, ...]:
        """Return the most frequent categories of some instances, in alphabetical order."""
        counts: Counter[str] = Counter()
        for code, count in zip(*np.unique(self.codes[rows], return_counts=True), strict=True):
            counts[MISSING if code < 0 else self.texts[code]] += int(count)
        # Ties go by the alphabet, to be independent of the order of the rows.
        ranked = sorted(counts, key=lambda text: (-counts[text], text))
        return tuple(sorted(ranked[:most]))

    def find_positions(self, known: Sequence[str]) -> Array:
        """Return the index of each instance's category in `known`, −1 if it is not there."""
        places = {text: k for k, text in enumerate(known)}
        # The code −1 of missing values picks the last element.
        return np.array([places.get(text, -1) for text in (*self.texts, MISSING)])[self.codes]


def _as_text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


@dataclass(frozen=True)
class Columns:
    """All columns of some instances.

    Parameters
    ----------
    names
        Names of the columns, in the order of X.
    numbers : array or sparse matrix of shape (n_instances, n_columns)
        Contains the numeric columns, NaN where a value is missing.
    numeric
        Which columns of `numbers` are numeric; None for all.
    categorical
        The categorical columns by name.
    """

    names: tuple[str, ...]
    numbers: Any
    numeric: Array | None
    categorical: dict[str, CategoricalColumn]

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def __getitem__(self, rows: Rows) -> Columns:
        some = {name: column[rows] for name, column in self.categorical.items()}
        return Columns(self.names, self.numbers[rows], self.numeric, some)

    @property
    def numeric_names(self) -> list[str]:
        """The names of the numeric columns."""
        return [name for name in self.names if name not in self.categorical]

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a sparse matrix."""
        return bool(sparse.issparse(self.numbers))

    def find_numbers(self, rows: Rows) -> Array:
        """Return the numeric columns of some instances as an array."""
        some = self.numbers[rows]
        if self.is_sparse:
            some = some.toarray()
        return some if self.numeric is None else some[:, self.numeric]  # type: ignore[no-any-return]

    def split_up(self, rows: Array | None = None) -> Iterator[Array | slice]:
        """Yield slices, or parts of `rows`, that together cover all instances or `rows`."""
        n_rows = len(self) if rows is None else len(rows)
        step = min(ROWS, max(1, _CELLS // max(1, self.numbers.shape[1])))
        for start in range(0, n_rows, step):
            here = slice(start, min(start + step, n_rows))
            yield here if rows is None else rows[here]

    def find_ranges(self, rows: Array | None = None) -> tuple[Array, Array, Array]:
        """Return each numeric column's smallest and largest value, and whether any is missing."""
        n_numeric = len(self.numeric_names)
        low, high = np.full(n_numeric, np.inf), np.full(n_numeric, -np.inf)
        has_missing = np.zeros(n_numeric, dtype=bool)
        for here in self.split_up(rows):
            part = self.find_numbers(here)
            least, most = part.min(axis=0), part.max(axis=0)
            is_missing = np.isnan(least)
            if is_missing.any():  # fmin and fmax are slower
                has_missing |= is_missing
                least, most = np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)
            low, high = np.fmin(low, least), np.fmax(high, most)
        return low, high, has_missing

    def arrays(self, name: str) -> dict[str, Array]:
        """Return the contents as arrays, for a fingerprint; their names begin with `name`."""
        found = {name: self.numbers}
        if self.is_sparse:
            parts = ("data", "indices", "indptr")
            found = {f"{name} ({part})": getattr(self.numbers, part) for part in parts}
        for column, content in self.categorical.items():
            found[f"{name}, {column}"] = content.codes
            found[f"{name}, categories of {column}"] = np.array(content.texts, dtype=object)
        return found


# ------------------------------------------------------------------------------------------ reading


def find_categorical(given: Any, X: Any) -> Array | None:
    """Return which columns of X are categorical, as a boolean array; None for none of them.

    `given` is the argument `categorical_features`: "from_dtype", None, or names, positions or a
    mask.
    """
    names = list(X.columns) if _is_frame(X) else None
    if given is None:
        return None
    if isinstance(given, str):
        check_name("categorical_features", given, ("from_dtype",))
        dtypes = [_take_column(X, k).dtype for k in range(len(names or ()))]
        is_categorical = np.array([_is_category(dtype) for dtype in dtypes], dtype=bool)
        return is_categorical if is_categorical.any() else None
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        return None  # scikit-learn raises the error
    n_columns, chosen = shape[1], np.asarray(given)
    if chosen.ndim != 1:
        raise ValueError(
            "categorical_features must be 'from_dtype', None or a list of names, positions or "
            f"True and False, got {given!r}"
        )
    if chosen.dtype == bool and len(chosen) != n_columns:
        raise ValueError(
            f"categorical_features has {len(chosen)} flags, and X has {n_columns} columns"
        )
    is_categorical = np.zeros(n_columns, dtype=bool)
    for each in np.flatnonzero(chosen) if chosen.dtype == bool else chosen.tolist():
        if isinstance(each, str):
            check_name("categorical_features", each, names or ())
            is_categorical[names.index(each)] = True  # type: ignore[union-attr]
        else:
            check_integer("categorical_features", each, 0, n_columns - 1)
            is_categorical[each] = True
    return is_categorical if is_categorical.any() else None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape")


def _is_category(dtype: Any) -> bool:
    # pandas: category; polars: Categorical and Enum(categories=[...])
    return str(dtype).lower().startswith(("categor", "enum"))


def read_columns(estimator: Any, X: Any, is_categorical: Array | None, *, reset: bool) -> Columns:
    """Return the columns of X, checked by scikit-learn; plain arrays are not copied.

    Sets the estimator's `n_features_in_` and `feature_names_in_` if `reset`; else X must match.
    """
    accepted = {"dtype": "numeric", "accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
    if is_categorical is None:
        numbers = _as_numbers(validate_data(estimator, X, reset=reset, **accepted))
        return Columns(_find_names(estimator), numbers, None, {})
    if not hasattr(X, "dtype") and not _is_frame(X):
        X = np.asarray(X, dtype=object)  # a list, which may mix numbers and texts
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    names = _find_names(estimator)
    numeric = np.flatnonzero(~is_categorical)
    if _is_frame(X) or X.dtype.kind not in "biuf":
        if len(numeric):
            part = X.iloc[:, numeric] if hasattr(X, "iloc") else X[:, numeric.tolist()]
            part = check_array(part, input_name="X", estimator=estimator, **accepted)
            numbers = _as_numbers(part)
        else:
            numbers = np.empty((X.shape[0], 0))
        within = None
    else:
        numbers = X = check_array(X, input_name="X", estimator=estimator, **accepted)
        within = numeric
    categorical = {
        names[k]: CategoricalColumn.read(_take_column(X, int(k)))
        for k in np.flatnonzero(is_categorical)
    }
    return Columns(names, numbers, within, categorical)


def _as_numbers(numbers: Any) -> Any:
    """Convert objects, which scikit-learn leaves in frames of several dtypes, to numbers."""
    return numbers.astype(np.float64) if numbers.dtype.kind == "O" else numbers


def check_memory(columns: Columns, dtype: Any) -> None:
    """Raise if a sparse matrix would not fit into memory as a dense one."""
    n_rows, n_columns = columns.numbers.shape
    needed, available = n_rows * n_columns * np.dtype(dtype).itemsize, memory.find_size()
    if columns.is_sparse and available is not None and needed > available:
        raise ValueError(
            f"X is sparse, and the search takes its {n_rows:,} × {n_columns:,} numbers dense: "
            f"{needed / 1e9:,.3f} GB of memory, and there are {available / 1e9:,.3f} GB; reduce "
            "the features first, for example with sklearn.decomposition.TruncatedSVD"
        )


def _take_column(X: Any, k: int) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[:, k]
    return X[:, [k]].toarray().ravel() if sparse.issparse(X) else X[:, k]


def _find_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns; x0, x1, ... if there are none, or not unique ones."""
    names = getattr(estimator, "feature_names_in_", ())
    if len(names) and len(set(names)) == len(names):
        return tuple(map(str, names))
    return tuple(f"x{k}" for k in range(estimator.n_features_in_))
