"""Parquet files as tables, with the same values as CSV files would have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from coevo.tabular.table import MISSING, Table, TableError, import_pandas, is_number


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file."""

    missing: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path, missing: tuple[str, ...]) -> ParquetTable:
        """Read the names of the columns."""
        arrow = _import_parquet()
        try:
            with arrow.ParquetFile(path) as file:
                given = file.schema_arrow.names
        except (OSError, ValueError) as error:
            raise TableError(f"{path} is not a good Parquet file: {error}") from None
        if len(set(given)) < len(given):
            twice = next(name for name in given if given.count(name) > 1)
            raise TableError(f"{path} has several columns called {twice!r}; rename them")
        return cls(path, tuple(given), missing=(*MISSING, *missing))

    def frames(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns; see `Table.frames`."""
        pandas, arrow = import_pandas(), import_module("pyarrow")
        with _import_parquet().ParquetFile(self.path) as file:
            # Batches end where the file's row groups end, so "all" has to be put together.
            size = n_rows or max(1, file.metadata.num_rows)
            names = None if columns is None else list(columns)
            parts = []
            for batch in file.iter_batches(size, columns=names):
                part = pandas.DataFrame(
                    {
                        name: self._column(batch.column(name), name in as_text, arrow)
                        for name in batch.schema.names
                    }
                )
                if n_rows is None:
                    parts.append(part)
                else:
                    yield part
        if n_rows is None:
            yield (
                pandas.concat(parts, ignore_index=True)
                if parts
                else pandas.DataFrame({name: [] for name in names or self.names})
            )

    def with_missing(self, texts: Sequence[str]) -> ParquetTable:
        """Return this table, in which further texts stand for a missing value."""
        return replace(self, missing=(*self.missing, *texts))

    @property
    def _missing_numbers(self) -> list[float]:
        """The texts for missing values that are numbers, as -9999 is."""
        return [float(text) for text in self.missing if is_number(text)]

    def _column(self, column: Any, is_text: bool, arrow: Any) -> Any:
        """Return a column as float64, or as text with NaN where missing."""
        types = arrow.types
        kind = column.type
        if types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        are_numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if (are_numbers or types.is_null(kind)) and not is_text:
            numbers = column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
            return np.where(np.isin(numbers, self._missing_numbers), np.nan, numbers)
        if types.is_boolean(kind):  # as pandas writes them to CSV
            texts = [None if value is None else str(value) for value in column.to_pylist()]
        else:
            try:
                texts = column.cast(arrow.string()).to_pylist()
            except arrow.ArrowInvalid as error:
                raise TableError(f"{self.path} has values of the type {kind}: {error}") from None
        pandas = import_pandas()
        column = pandas.Series(texts, dtype=object)
        return column.mask(column.isin(self.missing) | column.isna(), float("nan"))


def _import_parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs the package pyarrow: pip install 'coevo[parquet]'"
        ) from error
