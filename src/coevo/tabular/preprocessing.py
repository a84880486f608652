"""From columns to a network's inputs: scikit-learn's imputer and encoder, and how they are kept.

What the transformers have learned is a few numbers and texts: a median for each column of numbers,
the categories of each column of texts. These are saved as JSON in the model file; nothing of
scikit-learn's is pickled. Transformers are made from them by fitting on a single row that consists
of those very medians and categories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from coevo.model import ModelError
from coevo.network import Array
from coevo.tabular.columns import frame_of

MISSING_TEXT = ""
"""The category of missing texts."""


def most_frequent(column: Any, max_categories: int) -> list[str]:
    """Return the most frequent texts of a column in alphabetic order, "" for missing ones.

    All others are one more category: the one that none of the network's inputs is on for.
    """
    counts = Counter(column.fillna(MISSING_TEXT))
    # Of texts that are as frequent as each other the alphabet decides, not the order of the rows.
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return sorted(ranked[:max_categories])


def make_transformer(
    numbers: list[str], categories: Mapping[str, list[str]], impute: bool = True
) -> ColumnTransformer:
    """Return the transformer of a data frame, not yet fitted.

    Parameters
    ----------
    numbers
        Columns of numbers: a missing one becomes the median.
    categories
        Columns of texts, each with its categories: an input is 1 for the category that it stands
        for and 0 for others.
    impute
        Whether numbers may be missing.
    """
    parts = []
    if numbers:
        imputer = SimpleImputer(strategy="median") if impute else "passthrough"
        parts.append(("numbers", imputer, numbers))
    if categories:
        encode = make_pipeline(
            SimpleImputer(strategy="constant", fill_value=MISSING_TEXT, keep_empty_features=True),
            OneHotEncoder(
                categories=[np.array(known, dtype=object) for known in categories.values()],
                handle_unknown="ignore",
                sparse_output=False,
            ),
        )
        parts.append(("texts", encode, list(categories)))
    return ColumnTransformer(parts)


@dataclass(frozen=True)
class Preprocessing:
    """What turns a table's columns into a network's inputs.

    Parameters
    ----------
    medians
        For each column of numbers what takes the place of a missing one; None if none may be
        missing.
    categories
        For each column of texts its categories.
    target
        What the predicted column is called; None if nobody said.
    ranges
        For each column of numbers the smallest and the largest seen in training; empty if nobody
        looked.
    """

    medians: dict[str, float | None]
    categories: dict[str, tuple[str, ...]]
    target: str | None = None
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, transformer: ColumnTransformer, target: str, inputs: Any) -> Preprocessing:
        """Take what a fitted transformer has learned, and the ranges of the training rows."""
        medians: dict[str, float | None] = {}
        categories: dict[str, tuple[str, ...]] = {}
        for name, part, columns in transformer.transformers_:
            if name == "numbers":
                medians = dict(zip(columns, map(float, part.statistics_), strict=True))
            elif name == "texts":
                known = part[-1].categories_
                categories = {c: tuple(k) for c, k in zip(columns, known, strict=True)}
        ranges = {n: (float(inputs[n].min()), float(inputs[n].max())) for n in medians}
        return cls(medians, categories, target, ranges)

    @property
    def columns(self) -> list[str]:
        """The columns that are needed."""
        return [*self.medians, *self.categories]

    @property
    def feature_names(self) -> list[str]:
        """What the network's inputs are called, in order."""
        return [
            *self.medians,
            *(f"{name}={text}" for name, known in self.categories.items() for text in known),
        ]

    @property
    def half_ranges(self) -> Array | None:
        """How far each input of the network goes from its centre; None if nobody looked."""
        if len(self.ranges) < len(self.medians):
            return None
        n_texts = len(self.feature_names) - len(self.medians)
        halves = [high / 2 - low / 2 for low, high in self.ranges.values()]
        return np.array([*halves, *([0.5] * n_texts)])

    def transformer(self) -> ColumnTransformer:
        """Return a transformer that does what the one did which this was taken from."""
        impute = None not in self.medians.values()
        categories = {name: list(known) for name, known in self.categories.items()}
        row = {n: np.array([0.0 if m is None else m]) for n, m in self.medians.items()}
        row |= {n: np.array(known[:1], dtype=object) for n, known in categories.items()}
        fitted = make_transformer(list(self.medians), categories, impute).fit(frame_of(row))
        assert isinstance(fitted, ColumnTransformer)
        return fitted

    # --------------------------------------------------------------------------------------- saving

    def as_json(self) -> dict[str, Any]:
        """Return this as values that JSON knows; lists, because the order counts."""
        return {
            "target": self.target,
            "numbers": [[name, median] for name, median in self.medians.items()],
            "ranges": [list(self.ranges[name]) for name in self.medians if self.ranges],
            "texts": [[name, list(known)] for name, known in self.categories.items()],
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Preprocessing:
        """Return what `as_json` described, or raise if it makes no sense."""
        if set(given) != {"target", "numbers", "ranges", "texts"}:
            raise ModelError("its preprocessing lacks something, or has something unknown")
        target, numbers, ranges, texts = (
            given[k] for k in ("target", "numbers", "ranges", "texts")
        )
        if not (
            isinstance(target, str | None)
            and all(_are_pairs(part) for part in (numbers, ranges, texts))
            and all(isinstance(name, str) for name, _ in (*numbers, *texts))
        ):
            raise ModelError("its preprocessing is malformed")
        names = [name for name, _ in (*numbers, *texts)]
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
        return cls(
            dict(numbers),
            {name: tuple(known) for name, known in texts},
            target,
            {name: (low, high) for (name, _), (low, high) in zip(numbers, ranges, strict=False)},
        )


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
