"""CSV files as tables, gzipped or not.

Encoding, delimiter and decimal mark are detected, and guesses are noted in `notes`. Names of
columns are made distinct here, so that the same file always has the same names.
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from coevo.tabular.csv_layout import Layout, without_comments
from coevo.tabular.table import MISSING, Table, TableError, import_pandas

_SAMPLE_BYTES = 2**22
_POINT, _COMMA = re.compile(r"[+-]?\d+\.\d+"), re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class CsvTable(Table):
    """A CSV file and how it is written.

    Parameters
    ----------
    options
        Arguments of `pandas.read_csv`.
    has_comments
        Whether it has lines that begin with # and are left out.
    """

    options: dict[str, Any] = field(default_factory=dict)
    has_comments: bool = False

    @classmethod
    def open(
        cls, path: Path, encoding: str | None, delimiter: str | None, missing: tuple[str, ...]
    ) -> CsvTable:
        """Detect how a file is written."""
        if delimiter is not None and len(delimiter) != 1:
            raise TableError(f"--delimiter must be one character, got {delimiter!r}")
        notes: list[str] = []
        if encoding is None:
            encoding = _find_encoding(path, notes)
        layout = Layout.detect(_sample(path, encoding), delimiter, path)
        names, unnamed, repeated = _distinct(layout.header, path, notes)
        options: dict[str, Any] = {
            "sep": r"\s+" if layout.delimiter == " " else layout.delimiter,
            "encoding": encoding,
            "compression": "gzip" if _is_gzipped(path) else None,
            "na_values": [*MISSING, *missing],
            "header": 0 if layout.has_header_row else None,
            "skiprows": layout.n_skipped,
        }
        if layout.has_comments:
            notes.append(f"lines of {path} that begin with # are left out as comments")
        fields = [field.strip() for row in layout.rows for field in row]
        if (
            layout.delimiter != ","
            and any(map(_COMMA.fullmatch, fields))
            and not any(map(_POINT.fullmatch, fields))
        ):
            options["decimal"] = ","
            notes.append(f"{path} is read with decimal commas")
        decimal = options.get("decimal", ".")
        return cls(
            path, names, unnamed, repeated, tuple(notes), decimal, options, layout.has_comments
        )

    def frames(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns; see `Table.frames`."""
        pandas = import_pandas()
        with self._source() as source:
            with _table_errors(self.path):
                read = pandas.read_csv(
                    source,
                    names=list(self.names),
                    index_col=False,
                    usecols=None if columns is None else list(columns),
                    dtype=dict.fromkeys(as_text, str),
                    skipinitialspace=True,
                    low_memory=False,
                    chunksize=n_rows,
                    **self.options | ({"compression": None} if self.has_comments else {}),
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

    def with_missing(self, texts: Sequence[str]) -> CsvTable:
        """Return this table, in which further texts stand for a missing value."""
        return replace(
            self, options=self.options | {"na_values": [*self.options["na_values"], *texts]}
        )

    @contextmanager
    def _source(self) -> Iterator[Path | io.TextIOBase]:
        """Yield what pandas is to read: the file, or its lines without comments."""
        if not self.has_comments:
            yield self.path
            return
        with _open_bytes(self.path) as file:
            text = io.TextIOWrapper(file, self.options["encoding"], newline="")
            delimiter = self.options["sep"].replace(r"\s+", " ")
            yield _LineReader(without_comments(text, delimiter, len(self.names)))


class _LineReader(io.TextIOBase):
    """A file made of lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def read(self, size: int | None = -1) -> str:
        """Return at least so many characters, if there are as many."""
        parts: list[str] = []
        n_read = 0
        for line in self._lines:
            parts.append(line)
            n_read += len(line)
            if size is not None and 0 <= size <= n_read:
                break
        return "".join(parts)


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
    """Return the encoding by the byte order mark, or the first one that fits the whole file.

    charset-normalizer would know more encodings, but needs prose: of a few short names it makes
    Big5 or Windows-1250, which is worse than a guess that the user is told of.
    """
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
    """Return distinct names, those that were made up, and those that occur several times."""
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
    """Turn errors of pandas into one sentence about the file."""
    pandas = import_pandas()
    try:
        with warnings.catch_warnings():
            # Otherwise pandas drops the fields that are too many and goes on.
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
