"""Reads tables: CSV files as they are found, gzipped or not, and Parquet; at once or in chunks.

How a CSV file is written (encoding, delimiter, decimal mark) is found out by looking at it, and
what had to be guessed is said in `notes`. Names of columns are made distinct here, so that the same
file always has the same names.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

CHUNK = 20_000
"""Rows that are held at once when a table is streamed."""

MISSING = ("?",)
"""What stands for a missing value besides pandas' own: the empty text, NA, N/A, NaN, null, …"""

_SAMPLE_BYTES = 2**22
_SAMPLE_ROWS = 200
_DELIMITERS = (",", ";", "\t", "|")
_POINT, _COMMA = re.compile(r"[+-]?\d+\.\d+"), re.compile(r"[+-]?\d+,\d+")


class TableError(ValueError):
    """A file is not a table, or not the table that is needed."""


@dataclass(frozen=True)
class Table:
    """A table in a file.

    Parameters
    ----------
    path
        The file.
    names
        What its columns are called, all different.
    unnamed
        Which of them have no name in the file and are called by their position.
    repeated
        Which occur several times in the file; the later ones got a number.
    notes
        What had to be guessed, each in a sentence.
    """

    path: Path
    names: tuple[str, ...]
    unnamed: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def frames(
        self,
        columns: Sequence[str] | None = None,
        texts: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns.

        Parameters
        ----------
        columns
            Which to read; all if None.
        texts
            Which to take as texts, whatever they look like.
        n_rows
            How many rows at a time; all of them in one frame if None.
        """
        raise NotImplementedError

    def check_columns(self, needed: Sequence[str], why: str) -> None:
        """Raise an error that names the columns which are needed and not there."""
        lacking = [name for name in needed if name not in self.names]
        if lacking:
            raise TableError(
                f"{self.path} has no {_list_names(lacking)}, {why}; its columns are "
                f"{', '.join(map(repr, self.names[:20]))}{', …' if len(self.names) > 20 else ''}"
            )


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")
    return f"column {shown}" if len(names) == 1 else f"columns {shown}"


def open_table(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    missing: Sequence[str] = (),
) -> Table:
    """Look at a file and say how it is read.

    Parameters
    ----------
    path
        A CSV file, gzipped or not, or a Parquet file; its content tells, not its name.
    encoding, delimiter
        How a CSV file is written; found out if None.
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
        return ParquetTable.look_at(path, tuple(missing))
    return CsvTable.look_at(path, encoding, delimiter, tuple(missing))


# ---------------------------------------------------------------------------------------------- CSV


@dataclass(frozen=True)
class CsvTable(Table):
    """A CSV file and how it is written."""

    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def look_at(
        cls, path: Path, encoding: str | None, delimiter: str | None, missing: tuple[str, ...]
    ) -> CsvTable:
        """Find out how a file is written."""
        notes: list[str] = []
        if encoding is None:
            encoding = _find_encoding(path, notes)
        lines = _sample(path, encoding)
        header = next((line for line in lines.splitlines() if line.strip()), None)
        if header is None:
            raise TableError(f"{path} is empty")
        if delimiter is None:
            delimiter = max(
                _DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark)))
            )
        elif len(delimiter) != 1:
            raise TableError(f"--delimiter must be one character, got {delimiter!r}")
        reader = csv.reader(io.StringIO(lines), delimiter=delimiter, skipinitialspace=True)
        try:
            rows = [row for row, _ in zip(filter(any, reader), range(_SAMPLE_ROWS), strict=False)]
        except csv.Error as error:
            raise TableError(f"{path} cannot be read as a table: {error}") from None
        names, unnamed, repeated = _distinct(rows[0], path, notes)
        options: dict[str, Any] = {
            "sep": delimiter,
            "encoding": encoding,
            "compression": "gzip" if _is_gzipped(path) else None,
            "na_values": [*MISSING, *missing],
        }
        fields = [field.strip() for row in rows[1:] for field in row]
        if (
            delimiter != ","
            and any(map(_COMMA.fullmatch, fields))
            and not any(map(_POINT.fullmatch, fields))
        ):
            options["decimal"] = ","
            notes.append(f"{path} is read with decimal commas")
        return cls(path, names, unnamed, repeated, tuple(notes), options)

    def frames(
        self,
        columns: Sequence[str] | None = None,
        texts: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns; see `Table.frames`."""
        pandas = import_pandas()
        with _table_errors(self.path):
            read = pandas.read_csv(
                self.path,
                names=list(self.names),
                header=0,
                index_col=False,
                usecols=None if columns is None else list(columns),
                dtype=dict.fromkeys(texts, str),
                skipinitialspace=True,
                low_memory=False,
                chunksize=n_rows,
                **self.options,
            )
        if n_rows is None:
            yield read
            return
        with read:
            while True:
                with _table_errors(self.path):
                    frame = next(read, None)
                if frame is None:
                    return
                yield frame


def _is_gzipped(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _open_bytes(path: Path) -> Iterator[BinaryIO]:
    with open(path, "rb") as file:
        if not _is_gzipped(path):
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"{path} is a damaged gzip file: {error}") from None


def _find_encoding(path: Path, notes: list[str]) -> str:
    """Return the encoding by the mark at the start, or the first one that the whole file fits."""
    with _open_bytes(path) as file:
        start = file.read(4)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if _fits(path, "utf-8"):
        return "utf-8-sig"  # which also takes the byte order mark away, if there is one
    encoding, name = ("cp1252", "Windows-1252") if _fits(path, "cp1252") else ("latin-1", "Latin-1")
    notes.append(f"{path} is not UTF-8; it is read as {name} (--encoding says otherwise)")
    return encoding


def _fits(path: Path, encoding: str) -> bool:
    with _open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding)
        try:
            while text.read(2**20):
                pass
        except UnicodeDecodeError:
            return False
    return True


def _sample(path: Path, encoding: str) -> str:
    """Return the beginning of a file as text."""
    with _open_bytes(path) as file:
        start = file.read(_SAMPLE_BYTES)
    try:
        # A character may be cut in two at the end of the sample.
        text = io.TextIOWrapper(io.BytesIO(start), encoding, errors="ignore").read()
    except LookupError:
        raise TableError(f"--encoding {encoding} is unknown") from None
    if "\0" in text:
        raise TableError(f"{path} is not a text file; CSV (also gzipped) and Parquet can be read")
    return text


def _distinct(
    given: Sequence[str], path: Path, notes: list[str]
) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """Return names that are all different, those made up, and those that occur several times."""
    names: list[str] = []
    unnamed = set()
    repeated: dict[str, list[str]] = {}
    taken = {name.strip() for name in given}
    for position, name in enumerate((name.strip() for name in given), start=1):
        original = name or f"column {position}"
        chosen, number = original, 2
        while chosen in names or (chosen != name and chosen in taken):
            chosen, number = f"{original}.{number}", number + 1
        names.append(chosen)
        if not name:
            unnamed.add(chosen)
        elif chosen != name:
            repeated.setdefault(name, []).append(chosen)
    notes += [
        f"{path} has several columns called {name!r}; the later ones are called "
        f"{', '.join(map(repr, others))}"
        for name, others in repeated.items()
    ]
    return tuple(names), frozenset(unnamed), frozenset(repeated)


@contextmanager
def _table_errors(path: Path) -> Iterator[None]:
    """Turn what pandas may say into one sentence about the file."""
    pandas = import_pandas()
    try:
        with warnings.catch_warnings():
            # It would go on after dropping the fields that are too many.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            yield
    except pandas.errors.ParserWarning:
        raise TableError(f"{path} has rows with more fields than its first line") from None
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not written in {error.encoding}: {error.reason}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is a damaged gzip file: {error}") from None
    except pandas.errors.EmptyDataError:
        raise TableError(f"{path} is empty") from None
    except pandas.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ")
        raise TableError(f"{path} cannot be read as a table: {what}") from None


# ------------------------------------------------------------------------------------------ Parquet


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file."""

    missing: tuple[str, ...] = ()

    @classmethod
    def look_at(cls, path: Path, missing: tuple[str, ...]) -> ParquetTable:
        """Read what the file says about its columns."""
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
        texts: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns; see `Table.frames`."""
        pandas, arrow = import_pandas(), import_module("pyarrow")
        with _import_parquet().ParquetFile(self.path) as file:
            # Batches end where the file's own groups of rows end, so "all" has to be put together.
            size = n_rows or max(1, file.metadata.num_rows)
            names = None if columns is None else list(columns)
            parts = []
            for batch in file.iter_batches(size, columns=names):
                part = pandas.DataFrame(
                    {
                        name: self._column(batch.column(name), name in texts, arrow)
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

    def _column(self, column: Any, is_text: bool, arrow: Any) -> Any:
        """Return a column as numbers, or as texts with what stands for missing taken out."""
        types = arrow.types
        kind = column.type
        if types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        are_numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if (are_numbers or types.is_null(kind)) and not is_text:
            return column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
        if types.is_boolean(kind):  # as CSV files of Python's have them
            texts = [None if value is None else str(value) for value in column.to_pylist()]
        else:
            try:
                texts = column.cast(arrow.string()).to_pylist()
            except arrow.ArrowInvalid as error:
                raise TableError(f"{self.path} has values of the type {kind}: {error}") from None
        pandas = import_pandas()
        column = pandas.Series(texts, dtype=object)
        return column.mask(column.isin(self.missing) | column.isna(), float("nan"))


def import_pandas() -> Any:
    """Return the module; it is slow to import, and a library's user may do without."""
    return import_module("pandas")


def _import_parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs the package pyarrow: pip install 'coevo[parquet]'"
        ) from error
