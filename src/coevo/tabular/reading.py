"""Opens a table: CSV or Parquet, by its content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coevo.tabular.csv_table import CsvTable
from coevo.tabular.parquet_table import ParquetTable
from coevo.tabular.table import Table, TableError


def open_table(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    missing: Sequence[str] = (),
) -> Table:
    """Return the table in a file, not yet read.

    Parameters
    ----------
    path
        A CSV file, gzipped or not, or a Parquet file; its content tells, not its name.
    encoding, delimiter
        How a CSV file is written; detected if None.
    missing
        Further texts that stand for a missing value.
    """
    path = Path(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a CSV or Parquet file")
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    if start == b"PAR1":
        return ParquetTable.open(path, tuple(missing))
    if start == b"PK\x03\x04":
        raise TableError(f"{path} is a zip archive, as Excel's files are; save the table as CSV")
    if start[:1] in (b"{", b"[") and path.suffix in (".json", ".jsonl", ".ndjson"):
        raise TableError(f"{path} is a JSON file; save the table as CSV")
    return CsvTable.open(path, encoding, delimiter, tuple(missing))
