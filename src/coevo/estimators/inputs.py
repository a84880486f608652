"""Turns columns into a network's inputs, some rows at a time, to avoid a copy of all of them."""

from __future__ import annotations

import numpy as np

from coevo._typing import Array
from coevo.estimators.columns import Columns, Rows
from coevo.persistence.encoding import Encoding
from coevo.training.data import check_size

_SAMPLE = 4096  # instances that medians are computed from


def learn_encoding(
    columns: Columns, max_categories: int | None = None, rows: Array | None = None
) -> Encoding:
    """Return the encoding of columns, learnt from `rows` of them; None for all.

    Each categorical column has inputs for its `max_categories` most frequent categories, None for
    all. Medians are computed from at most 4096 instances, evenly spaced.
    """
    everywhere = slice(None) if rows is None else rows
    categories = {
        name: column.find_categories(everywhere, max_categories)
        for name, column in columns.categorical.items()
    }
    low, high, has_missing = columns.find_ranges(rows)
    is_empty = low > high
    low, high = np.where(is_empty, 0.0, low), np.where(is_empty, 0.0, high)
    if len(low):
        check_size("X", low.min(), high.max())
    medians = _find_medians(columns, rows)
    medians = np.where(np.isnan(medians), low / 2 + high / 2, medians)
    names = columns.numeric_names
    return Encoding(
        columns.names,
        dict(zip(names, medians.tolist(), strict=True)),
        categories,
        tuple(name for name, is_in in zip(names, has_missing, strict=True) if is_in),
        dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True)),
    )


def _find_medians(columns: Columns, rows: Array | None) -> Array:
    """Return the median of each numeric column, NaN if all of it is missing."""
    n_rows = len(columns) if rows is None else len(rows)
    sample = np.arange(n_rows)[:: -(-n_rows // _SAMPLE)]
    numbers = columns.find_numbers(sample if rows is None else rows[sample]).astype(np.float64)
    if not np.isnan(numbers).any():
        return np.asarray(np.median(numbers, axis=0, overwrite_input=True))
    known = [column[~np.isnan(column)] for column in numbers.T]
    return np.array([np.median(values) if len(values) else np.nan for values in known])


class Inputs:
    """The network's inputs (n_instances, n_inputs), computed from columns when they are indexed."""

    def __init__(self, columns: Columns, encoding: Encoding) -> None:
        self.columns = columns
        self._encoding = encoding
        self._positions = [
            columns.categorical[name].find_positions(known)
            for name, known in encoding.categories.items()
        ]
        self.shape = (len(columns), len(encoding.input_names))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Array:
        """Compute the inputs of some instances."""
        positions = [position[rows] for position in self._positions]
        return self._encoding.encode(self.columns.find_numbers(rows), positions)
