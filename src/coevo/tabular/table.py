"""The interface of tables in files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

MISSING = ("?",)
"""What stands for a missing value besides pandas' own: the empty text, NA, N/A, NaN, null, …"""


class TableError(ValueError):
    """A file is not a table, or not the table that is needed."""


@dataclass(frozen=True)
class Table(ABC):
    """A table in a file.

    Parameters
    ----------
    names
        The names of its columns, all different.
    unnamed
        Those that have no name in the file and are named by their position.
    repeated
        Those that occur several times in the file; the later ones got a number.
    notes
        What was guessed, each in a sentence.
    decimal
        The decimal mark of its numbers.
    """

    path: Path
    names: tuple[str, ...]
    unnamed: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    decimal: str = "."

    @abstractmethod
    def frames(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),
        n_rows: int | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of these columns.

        Parameters
        ----------
        columns
            Which to read; all if None.
        as_text
            Which to read as text, whatever they look like.
        n_rows
            How many rows at a time; all of them in one frame if None.
        """

    @abstractmethod
    def with_missing(self, texts: Sequence[str]) -> Table:
        """Return this table, in which further texts stand for a missing value."""

    def check_columns(self, needed: Sequence[str], why: str) -> None:
        """Raise an error that names the columns that are missing, and why they are needed."""
        lacking = [name for name in needed if name not in self.names]
        if lacking:
            columns = "column" if len(lacking) == 1 else "columns"
            raise TableError(
                f"{self.path} has no {columns} {list_names(lacking)}, {why}; its columns are "
                f"{', '.join(map(repr, self.names[:20]))}{', …' if len(self.names) > 20 else ''}"
                + self._how_to_cut
            )

    @property
    def _how_to_cut(self) -> str:
        """What to do about a table of one column, the end of a sentence."""
        if len(self.names) > 1:
            return ""
        return " (names must be in the first line; --delimiter says what stands between them)"


def list_names(names: Sequence[str]) -> str:
    """Return the names, the first ten of many."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(map(repr, names[:10])) + more


def is_number(text: str) -> bool:
    """Whether a text is a plain number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def import_pandas() -> Any:
    """Return pandas, which is slow to import."""
    return import_module("pandas")
