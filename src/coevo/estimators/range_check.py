"""Warns of inputs that are far outside what a network was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from coevo.estimators.columns import Columns
from coevo.persistence.encoding import MISSING, Encoding

_MOST = 3  # columns that a warning names
_FEW = 0.02  # of the columns: among hundreds, some are nearly constant in any sample
_FAR = 3.0  # times the width of the range, beyond its ends; counts often exceed a sample's range


class OutOfRangeWarning(UserWarning):
    """Inputs are far outside what the network was trained on."""


class RangeCheck:
    """Looks for numbers far outside the range they had in training.

    A value is far outside if it is beyond the range by more than three times its width. Columns
    that were constant in training are not checked, because the network ignores them. If at most 2 %
    of the columns have such values, they are not reported.
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        ranges = encoding.ranges or dict.fromkeys(encoding.medians, (0.0, 0.0))
        self._low, self._high = np.array([*ranges.values()], dtype=float).reshape(-1, 2).T
        self._least, self._most = self._low.copy(), self._high.copy()
        self._has_missing = np.zeros(len(ranges), dtype=bool)

    def look_at(self, columns: Columns) -> None:
        """Take some instances into account."""
        low, high, has_missing = columns.find_ranges()
        self._least, self._most = np.fmin(self._least, low), np.fmax(self._most, high)
        self._has_missing |= has_missing

    def notes(self) -> Iterator[str]:
        """Yield a note for each column with values far outside, or the first missing values."""
        low, high = self._low, self._high
        with np.errstate(over="ignore"):
            width = high - low
            margin = _FAR * width
            is_far = (width > 0) & ((self._least < low - margin) | (self._most > high + margin))
        is_far &= is_far.sum() > _FEW * len(is_far)
        indicated = set(self._encoding.indicators)
        for k, name in enumerate(self._encoding.medians):
            if is_far[k]:
                below, above = low[k] - self._least[k], self._most[k] - high[k]
                value = self._least[k] if below > above else self._most[k]
                yield f"column {name!r} holds {value:g}, and {low[k]:g} to {high[k]:g} in training"
            if self._has_missing[k] and name not in indicated:
                yield f"column {name!r} misses values, and missed none in training"


def warn_if_far(encoding: Encoding, columns: Columns) -> None:
    """Give one warning for all columns with values far outside what was trained on."""
    check = RangeCheck(encoding)
    check.look_at(columns)
    notes = list(check.notes())
    for name, known in encoding.categories.items():
        unknown = set(columns.categorical[name].find_categories(slice(None))) - set(known)
        if MISSING in unknown:
            notes.append(f"column {name!r} misses values, and missed none in training")
        if others := sorted(unknown - {MISSING}):
            notes.append(f"column {name!r} holds {others[0]!r}, which was not there in training")
    if notes:
        shown = "; ".join(notes[:_MOST])
        if len(notes) > _MOST:
            shown += f"; and so on for {len(notes) - _MOST} more"
        warnings.warn(
            f"X is far outside what the network was trained on: {shown}. Do not trust these "
            "predictions; check_range=False turns this warning off",
            OutOfRangeWarning,
            stacklevel=4,
        )
