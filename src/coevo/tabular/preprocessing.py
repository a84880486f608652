"""From a table's columns to a network's inputs, as the model file has it.

Dates, and numbers with units or separators, become numeric columns here. How these and the
categorical columns become inputs is the estimator's `Encoding`. All of it is saved as JSON; nothing
is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.estimators.columns import CategoricalColumn, Columns
from coevo.persistence.encoding import Encoding
from coevo.persistence.model import ModelError, is_name
from coevo.tabular.dates import DateColumn
from coevo.tabular.notation import Notation

_OWN = {"target", "notations", "dates", "missing"}


@dataclass(frozen=True)
class Preprocessing:
    """What turns a table's columns into a network's inputs.

    Parameters
    ----------
    encoding
        How numeric and categorical columns become inputs.
    target
        The name of the predicted column, None if unknown.
    notations
        How numbers are written, by numeric column, where they are not plain.
    dates
        How columns of dates become numeric columns.
    missing
        Texts that stand for a missing value, besides those that always do.
    """

    encoding: Encoding
    target: str | None = None
    notations: Mapping[str, Notation] = field(default_factory=dict)
    dates: Mapping[str, DateColumn] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def numeric(self) -> list[str]:
        """The numeric columns that a table needs."""
        parts = {part for name, date in self.dates.items() for part in date.names(name)}
        return [name for name in self.encoding.medians if name not in parts]

    @property
    def columns(self) -> list[str]:
        """The columns that a table needs."""
        return [*self.numeric, *self.dates, *self.encoding.categories]

    @property
    def inputs_of_columns(self) -> dict[str, list[int]]:
        """Which of the network's inputs are made of each column."""
        found = self.encoding.inputs_of_columns
        dates = {
            name: [place for part in date.names(name) for place in found[part]]
            for name, date in self.dates.items()
        }
        return {name: dates.get(name) or found[name] for name in self.columns}

    def gather(self, columns: Mapping[str, Array]) -> Columns:
        """Return some rows as the encoding takes them.

        Parameters
        ----------
        columns
            Numbers by numeric column, parts of dates included, and texts by categorical column;
            NaN where a value is missing.
        """
        n_rows = len(next(iter(columns.values())))
        encoding = self.encoding
        numbers = np.empty((n_rows, len(encoding.medians)))
        for k, name in enumerate(encoding.medians):
            numbers[:, k] = columns[name]
        texts = {name: CategoricalColumn.read(columns[name]) for name in encoding.categories}
        return Columns(encoding.columns, numbers, None, texts)

    # --------------------------------------------------------------------------------------- saving

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values; lists, because the order counts."""
        return {
            "target": self.target,
            **self.encoding.as_json(),
            "notations": [[name, asdict(how)] for name, how in self.notations.items()],
            "dates": [[name, date.as_json()] for name, date in self.dates.items()],
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Preprocessing:
        """Return what `as_json` described, or raise if it makes no sense."""
        # Which version 0.1 did not have.
        given = {"notations": [], "dates": [], "missing": []} | dict(given)
        encoding = Encoding.from_json({k: v for k, v in given.items() if k not in _OWN})
        if "target" not in given or not isinstance(given["target"], str | None):
            raise ModelError("its preprocessing has a target that is no name")
        missing = given["missing"]
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise ModelError("its preprocessing has missing values that are no texts")
        notations, dates = _read_pairs(given["notations"]), _read_pairs(given["dates"])
        read = cls(
            encoding,
            given["target"],
            {name: _read_notation(how) for name, how in notations},
            {name: _read_date(date) for name, date in dates},
            tuple(missing),
        )
        parts = [part for name, date in read.dates.items() for part in date.names(name)]
        is_known = {*parts, *read.notations} <= {*encoding.medians}
        if not is_known or {*read.dates} & {*encoding.columns}:
            raise ModelError("its preprocessing has dates or notations of unknown columns")
        return read


def _read_pairs(given: Any) -> Sequence[tuple[str, Any]]:
    if not (
        isinstance(given, list)
        and all(isinstance(pair, list) and len(pair) == 2 and is_name(pair[0]) for pair in given)
        and len({name for name, _ in given}) == len(given)
    ):
        raise ModelError("its preprocessing is malformed")
    return given


def _read_notation(given: Any) -> Notation:
    if not (
        isinstance(given, dict)
        and set(given) == {"decimal", "unit"}
        and given["decimal"] in (".", ",")
        and isinstance(given["unit"], str)
    ):
        raise ModelError("its preprocessing has a notation that makes no sense")
    return Notation(**given)


def _read_date(given: Any) -> DateColumn:
    try:
        return DateColumn.from_json(given)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"its preprocessing has a date that makes no sense: {error}") from None
