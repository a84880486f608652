"""How a CSV file is written: delimiter, header, comments, and Excel's `sep=` line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from coevo.tabular.table import TableError, is_number

_SAMPLE_ROWS = 200
_COMPARED_ROWS = 20
_DELIMITERS = (",", ";", "\t", "|")
_DECLARATION = re.compile(r"(?i)sep=(.|\\t)")  # as Excel writes it


@dataclass(frozen=True)
class Layout:
    """How the beginning of a file is written.

    Parameters
    ----------
    delimiter
        A space stands for any number of them.
    rows
        The first rows after it.
    has_header_row
        Whether the names are a row of their own; otherwise they are in a comment.
    n_skipped
        Lines before the header.
    has_comments
        Whether lines that begin with # are comments.
    """

    delimiter: str
    header: list[str]
    rows: list[list[str]]
    has_header_row: bool
    n_skipped: int
    has_comments: bool

    @classmethod
    def detect(cls, sample: str, delimiter: str | None, path: Path) -> Layout:
        """Look at the beginning of a file."""
        lines = list(io.StringIO(sample))
        n_skipped = 0
        first = next((k for k, line in enumerate(lines) if line.strip()), 0)
        declared = _DECLARATION.fullmatch(lines[first].strip()) if lines else None
        if declared:
            delimiter, n_skipped = delimiter or declared[1].replace(r"\t", "\t"), first + 1
            lines = lines[n_skipped:]
        start = next((k for k, line in enumerate(lines) if not _is_marked(line)), 0)
        marked = [line for line in lines[:start] if line.strip()]
        body = [line for line in lines[start:] if line.strip()]
        if not body:
            raise TableError(f"{path} is empty")
        with _long_fields(path, len(sample)):
            if delimiter is None:
                delimiter = _find_delimiter(body)
            n_fields = len(_split(body[:_SAMPLE_ROWS], delimiter, 1)[0])
            kept = list(without_comments(lines, delimiter, n_fields))
            rows = _split(kept, delimiter, _SAMPLE_ROWS)
            if not rows:
                raise TableError(f"{path} is empty")
            title = _header_in(marked[-1], rows[0], delimiter) if marked else None
            header = title or rows.pop(0)
        return cls(delimiter, header, rows, title is None, n_skipped, len(kept) < len(lines))


def _is_marked(line: str) -> bool:
    return line.startswith("#") or not line.strip()


def _header_in(marked: str, first_row: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the names of columns in a line such as "# x y z", None if it is a comment.

    A comment may have as many fields as the table; names stand above numbers.
    """
    if not marked[1:2].isspace():
        return None  # "#x y z" is a row like others
    header = next(iter(_split([marked[1:].lstrip()], delimiter, 1)), [])
    is_above_numbers = any(map(is_number, first_row)) and not any(map(is_number, header))
    return header if len(header) == len(first_row) and is_above_numbers else None


def without_comments(lines: Iterable[str], delimiter: str, n_fields: int) -> Iterator[str]:
    """Yield the lines that are not comments.

    These begin with # and a space, or have not as many fields as the table has; # may also be the
    name of a column, or begin a value.
    """
    is_quoted = False
    for line in lines:
        if (
            line.startswith("#")
            and not is_quoted
            and (line[1:2].isspace() or len(_split([line], delimiter, 1)[0]) != n_fields)
        ):
            continue
        is_quoted ^= line.count('"') % 2 == 1
        yield line


def _find_delimiter(lines: Sequence[str]) -> str:
    """Return the mark that cuts all rows into as many fields, or the first one into the most."""

    def rank(mark: str) -> tuple[bool, int]:
        widths = [len(row) for row in _split(lines[:_SAMPLE_ROWS], mark, _COMPARED_ROWS)]
        return len(set(widths)) == 1 and widths[0] > 1, widths[0]

    best = max(_DELIMITERS, key=rank)
    # A table has two columns or more, unless it is one to predict.
    return " " if rank(best)[1] == 1 and rank(" ")[0] else best


def _split(lines: Iterable[str], delimiter: str, n_rows: int) -> list[list[str]]:
    """Return the fields of the first rows that are not blank."""
    if delimiter == " ":
        lines = (line.strip() + "\n" for line in lines)
    rows = filter(any, csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    return list(islice(rows, n_rows))


@contextmanager
def _long_fields(path: Path, length: int) -> Iterator[None]:
    """Let csv read fields of this length."""
    usual = csv.field_size_limit(max(length, csv.field_size_limit()))
    try:
        yield
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from None
    finally:
        csv.field_size_limit(usual)
