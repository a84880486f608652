"""How columns become a network's inputs: imputed numbers, indicators and one-hot categories.

The inputs are, in this order: each numeric column, with the median in place of missing values; for
each numeric column that had missing values in training, an indicator that is 1 where the value is
missing; and for each categorical column a one-hot encoding. A category is a text; missing values
are the category "". An unknown category is encoded as 0 in all inputs of its column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from coevo._typing import Array
from coevo.persistence.model import Model, ModelError, is_name

MISSING = ""
"""The category of missing values."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of each column, by its name.

    Parameters
    ----------
    columns
        All columns in the order of X.
    medians
        The median of each numeric column, in place of missing values; None if unknown.
    categories
        The categories of each categorical column.
    indicators
        The numeric columns that have an indicator of missing values.
    ranges
        The smallest and the largest value in training of each numeric column; empty if unknown.
    """

    columns: tuple[str, ...]
    medians: Mapping[str, float | None]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether the inputs are the columns, except for missing values."""
        return not (self.categories or self.indicators)

    @cached_property
    def input_names(self) -> list[str]:
        """The names of the network's inputs."""
        return [
            *self.medians,
            *(f"{name} is missing" for name in self.indicators),
            *(f"{name}={text}" for name, known in self.categories.items() for text in known),
        ]

    @cached_property
    def inputs_of_columns(self) -> dict[str, list[int]]:
        """The indices of the inputs that encode each column."""
        found = {name: [k] for k, name in enumerate(self.medians)}
        for k, name in enumerate(self.indicators, start=len(self.medians)):
            found[name].append(k)
        start = len(self.medians) + len(self.indicators)
        for name, known in self.categories.items():
            found[name] = list(range(start, start + len(known)))
            start += len(known)
        return {name: found[name] for name in self.columns}

    @cached_property
    def input_ranges(self) -> tuple[Array, Array] | None:
        """The smallest and the largest value of each input in training; None if unknown."""
        if len(self.ranges) < len(self.medians):
            return None
        n_flags = len(self.input_names) - len(self.medians)
        low, high = np.array([*self.ranges.values(), *([(0.0, 1.0)] * n_flags)]).reshape(-1, 2).T
        return low, high

    def encode(self, numbers: Array, positions: Sequence[Array] = ()) -> Array:
        """Return the network's inputs, (n_instances, n_inputs).

        Parameters
        ----------
        numbers : array of shape (n_instances, n_numeric)
            The numeric columns, NaN where a value is missing.
        positions : integer arrays of shape (n_instances,)
            For each categorical column, the index of each instance's category, −1 if unknown.
        """
        is_missing = np.isnan(numbers)
        if is_missing.any():
            if None in self.medians.values():
                raise ValueError(
                    "X holds NaN, and the model does not know what to put in place of a missing "
                    "value"
                )
            numbers = np.where(is_missing, self._medians, numbers)
        if self.is_plain:
            return numbers
        inputs = np.zeros((len(numbers), len(self.input_names)))
        n_numeric, start = len(self.medians), len(self.medians) + len(self.indicators)
        inputs[:, :n_numeric] = numbers
        inputs[:, n_numeric:start] = is_missing[:, self._indicated]
        for known, here in zip(self.categories.values(), positions, strict=True):
            rows = np.flatnonzero(here >= 0)
            inputs[rows, start + here[rows]] = 1
            start += len(known)
        return inputs

    @cached_property
    def _medians(self) -> Array:
        return np.array(list(self.medians.values()), dtype=np.float64)

    @cached_property
    def _indicated(self) -> list[int]:
        positions = {name: k for k, name in enumerate(self.medians)}
        return [positions[name] for name in self.indicators]

    def widen(self, low: Array, high: Array) -> Self:
        """Return this with ranges extended to include others, given as arrays (n_numeric,)."""
        ranges = {
            name: (float(np.fmin(old[0], least)), float(np.fmax(old[1], most)))
            for (name, old), least, most in zip(self.ranges.items(), low, high, strict=True)
        }
        return replace(self, ranges=ranges)

    # --------------------------------------------------------------------------------------- saving

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values: lists, because the order matters."""
        return {
            "columns": list(self.columns),
            "numbers": [[name, median] for name, median in self.medians.items()],
            "indicators": list(self.indicators),
            "ranges": [list(self.ranges[name]) for name in self.medians if self.ranges],
            "texts": [[name, list(known)] for name, known in self.categories.items()],
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Encoding:
        """Return the encoding that `as_json` describes, or raise if it is malformed.

        Version 0.1 had no indicators, and the numeric columns came first.
        """
        given = {"columns": None, "indicators": []} | dict(given)
        if set(given) != {"columns", "numbers", "indicators", "ranges", "texts"}:
            raise ModelError("its preprocessing lacks something, or has something unknown")
        numbers, ranges, texts = (given[k] for k in ("numbers", "ranges", "texts"))
        if not (
            all(_are_pairs(part) for part in (numbers, ranges, texts))
            and all(is_name(name) for name, _ in (*numbers, *texts))
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
        columns = names if given["columns"] is None else given["columns"]
        if not _are_texts(columns) or sorted(columns) != sorted(names):
            raise ModelError("its preprocessing has an order of columns that makes no sense")
        order = {name: k for k, name in enumerate(name for name, _ in numbers)}
        indicators = given["indicators"]
        places = [order.get(name, -1) for name in indicators] if _are_texts(indicators) else [-1]
        if -1 in places or places != sorted(set(places)) or (places and None in medians):
            raise ModelError("its preprocessing has indicators that make no sense")
        return cls(
            tuple(columns),
            dict(numbers),
            {name: tuple(known) for name, known in texts},
            tuple(indicators),
            {name: (low, high) for (name, _), (low, high) in zip(numbers, ranges, strict=False)},
        )


def read_encoding(model: Model) -> Encoding:
    """Return the encoding of a model's columns."""
    n_inputs = model.network.architecture.n_inputs
    if model.preprocessing is None:  # a file of version 0.1, or a bare network
        names = model.feature_names or tuple(f"x{k}" for k in range(n_inputs))
        return Encoding(names, dict.fromkeys(names))
    if model.preprocessing.get("dates") or model.preprocessing.get("notations"):
        raise ModelError(
            "it reads dates, or numbers with units or separators, from a table, which `coevo "
            "predict` and `coevo export` can do"
        )
    further = {"target", "dates", "notations", "missing"}  # read by `coevo.tabular` only
    encoding = Encoding.from_json(
        {name: part for name, part in model.preprocessing.items() if name not in further}
    )
    if len(encoding.input_names) != n_inputs:
        raise ModelError("its preprocessing does not fit its network")
    return encoding


def _are_pairs(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(p, list) and len(p) == 2 for p in given)


def _are_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(text, str) for text in given)


def _is_number(given: Any) -> bool:
    return type(given) is float and math.isfinite(given)


def _are_categories(given: Any) -> bool:
    return _are_texts(given) and len(given) > 0 and given == sorted(set(given))
