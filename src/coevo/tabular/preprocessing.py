"""From columns to a network's inputs: median imputation and one-hot encoding.

What scikit-learn's transformers learn is a median for each numeric column and the categories of
each categorical one. These are saved as JSON in the model file; nothing is pickled. Transformers
are rebuilt by fitting them on a single row that consists of those medians and categories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from coevo._typing import Array
from coevo.persistence.model import ModelError, is_name
from coevo.tabular.columns import frame_of
from coevo.tabular.dates import DateColumn
from coevo.tabular.notation import Notation

MISSING_TEXT = ""
"""The category of missing values."""

_KEYS = {"target", "numbers", "ranges", "texts", "notations", "dates"}


def most_frequent(column: Any, max_categories: int) -> list[str]:
    """Return the most frequent categories of a column in alphabetic order, "" for missing values.

    The others have no input of their own: all inputs of the column are 0 for them.
    """
    counts = Counter(column.fillna(MISSING_TEXT))
    # Ties are broken by the alphabet, not by the order of the rows.
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return sorted(ranked[:max_categories])


def make_transformer(
    numeric: list[str], categories: Mapping[str, list[str]], impute: bool = True
) -> ColumnTransformer:
    """Return the transformer of a data frame, not yet fitted.

    Parameters
    ----------
    numeric
        Numeric columns; a missing value becomes the median.
    categories
        The categories of each categorical column, an input each.
    impute
        Whether numbers may be missing.
    """
    parts = []
    if numeric:
        imputer = SimpleImputer(strategy="median") if impute else "passthrough"
        parts.append(("numeric", imputer, numeric))
    if categories:
        encode = make_pipeline(
            SimpleImputer(strategy="constant", fill_value=MISSING_TEXT, keep_empty_features=True),
            OneHotEncoder(
                categories=[np.array(known, dtype=object) for known in categories.values()],
                handle_unknown="ignore",
                sparse_output=False,
            ),
        )
        parts.append(("categorical", encode, list(categories)))
    return ColumnTransformer(parts)


@dataclass(frozen=True)
class Preprocessing:
    """What turns a table's columns into a network's inputs.

    Parameters
    ----------
    medians
        What takes the place of a missing value, by numeric column; None if none may be missing.
    categories
        The categories of each categorical column.
    target
        The name of the predicted column, None if unknown.
    ranges
        The smallest and the largest value in training, by numeric column; empty if unknown.
    notations
        How numbers are written, by numeric column, where they are not plain.
    dates
        How columns of dates become numeric columns.
    """

    medians: dict[str, float | None]
    categories: dict[str, tuple[str, ...]]
    target: str | None = None
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    notations: dict[str, Notation] = field(default_factory=dict)
    dates: dict[str, DateColumn] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        transformer: ColumnTransformer,
        target: str,
        inputs: Any,
        notations: Mapping[str, Notation],
        dates: Mapping[str, DateColumn],
    ) -> Preprocessing:
        """Return what a fitted transformer has learned, and the ranges of the training rows."""
        medians: dict[str, float | None] = {}
        categories: dict[str, tuple[str, ...]] = {}
        for name, part, columns in transformer.transformers_:
            if name == "numeric":
                medians = dict(zip(columns, map(float, part.statistics_), strict=True))
            elif name == "categorical":
                known = part[-1].categories_
                categories = {c: tuple(k) for c, k in zip(columns, known, strict=True)}
        ranges = {n: (float(inputs[n].min()), float(inputs[n].max())) for n in medians}
        return cls(medians, categories, target, ranges, dict(notations), dict(dates))

    @property
    def numeric(self) -> list[str]:
        """The numeric columns that a table needs."""
        parts = {part for name, date in self.dates.items() for part in date.names(name)}
        return [name for name in self.medians if name not in parts]

    @property
    def columns(self) -> list[str]:
        """The columns that a table needs."""
        return [*self.numeric, *self.dates, *self.categories]

    @property
    def inputs_of_columns(self) -> dict[str, list[int]]:
        """Which of the network's inputs are made of each column."""
        places = {name: k for k, name in enumerate(self.medians)}
        found = {name: [places[name]] for name in self.numeric}
        for name, date in self.dates.items():
            found[name] = [places[part] for part in date.names(name)]
        start = len(places)
        for name, known in self.categories.items():
            found[name] = list(range(start, start + len(known)))
            start += len(known)
        return found

    @property
    def feature_names(self) -> list[str]:
        """The names of the network's inputs."""
        return [
            *self.medians,
            *(f"{name}={text}" for name, known in self.categories.items() for text in known),
        ]

    @property
    def input_ranges(self) -> tuple[Array, Array] | None:
        """The smallest and the largest value of each input in training; None if unknown."""
        if len(self.ranges) < len(self.medians):
            return None
        n_encoded = len(self.feature_names) - len(self.medians)
        low, high = np.array([*self.ranges.values(), *([(0.0, 1.0)] * n_encoded)]).T
        return low, high

    def transformer(self) -> ColumnTransformer:
        """Return the transformer, rebuilt."""
        impute = None not in self.medians.values()
        categories = {name: list(known) for name, known in self.categories.items()}
        row = {n: np.array([0.0 if m is None else m]) for n, m in self.medians.items()}
        row |= {n: np.array(known[:1], dtype=object) for n, known in categories.items()}
        fitted = make_transformer(list(self.medians), categories, impute).fit(frame_of(row))
        assert isinstance(fitted, ColumnTransformer)
        return fitted

    # --------------------------------------------------------------------------------------- saving

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values; lists, because the order counts."""
        return {
            "target": self.target,
            "numbers": [[name, median] for name, median in self.medians.items()],
            "ranges": [list(self.ranges[name]) for name in self.medians if self.ranges],
            "texts": [[name, list(known)] for name, known in self.categories.items()],
            "notations": [[name, asdict(how)] for name, how in self.notations.items()],
            "dates": [[name, date.as_json()] for name, date in self.dates.items()],
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Preprocessing:
        """Return what `as_json` described, or raise if it makes no sense."""
        given = {"notations": [], "dates": []} | dict(given)  # which version 0.1 did not have
        if set(given) != _KEYS:
            raise ModelError("its preprocessing lacks something, or has something unknown")
        target, numbers, ranges, texts, notations, dates = (
            given[k] for k in ("target", "numbers", "ranges", "texts", "notations", "dates")
        )
        if not (
            isinstance(target, str | None)
            and all(_are_pairs(part) for part in (numbers, ranges, texts, notations, dates))
            and all(is_name(name) for name, _ in (*numbers, *texts, *notations, *dates))
        ):
            raise ModelError("its preprocessing is malformed")
        names = [name for name, _ in (*numbers, *texts, *dates)]
        if len(set(names)) < len(names) or not names:
            raise ModelError("its preprocessing has no columns, or one twice")
        medians = [median for _, median in numbers]
        if any(m is not None for m in medians) and not all(map(_is_number, medians)):
            raise ModelError("its preprocessing has medians that are no numbers")
        if len(ranges) not in (0, len(numbers)) or not all(
            _is_number(low) and _is_number(high) and low <= high for low, high in ranges
        ):
            raise ModelError("its preprocessing has ranges that make no sense")
        if not all(_are_categories(known) for _, known in texts):
            raise ModelError("its preprocessing has categories that make no sense")
        read = cls(
            dict(numbers),
            {name: tuple(known) for name, known in texts},
            target,
            {name: (low, high) for (name, _), (low, high) in zip(numbers, ranges, strict=False)},
            {name: _read_notation(how) for name, how in notations},
            {name: _read_date(date) for name, date in dates},
        )
        parts = [part for name, date in read.dates.items() for part in date.names(name)]
        if not {*parts, *read.notations} <= {*read.medians}:
            raise ModelError("its preprocessing has dates or notations of unknown columns")
        return read


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


def _are_pairs(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(p, list) and len(p) == 2 for p in given)


def _is_number(given: Any) -> bool:
    return type(given) is float and math.isfinite(given)


def _are_categories(given: Any) -> bool:
    return (
        isinstance(given, list)
        and len(given) > 0
        and all(isinstance(text, str) for text in given)
        and given == sorted(set(given))
    )


def inputs_of(transformer: ColumnTransformer, frame: Any) -> Array:
    """Return the network's inputs, (n_rows, n_inputs), of a data frame."""
    return np.asarray(transformer.transform(frame), dtype=np.float64)
