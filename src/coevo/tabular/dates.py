"""Columns of dates: how they are written, and the numbers a network gets of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.tabular.table import import_pandas

ISO = "ISO8601"
"""The format of 2020-01-31, 2020-01-31T12:30:00Z and so on."""

PARTS = ("year", "month", "day of week", "hour", "elapsed days")
"""What a network may get of a date; Monday is day 0, and elapsed days begin at the origin."""

_DAYS = (
    "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%y", "%m/%d/%y",
    "%d/%m/%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%b %d %Y", "%Y%m%d",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
SWAPPED = str.maketrans("md", "dm")
"""Turns a format with month first into one with day first, and back."""

_LOOK = re.compile(
    r"\s*(\d{4}-\d\d\b|\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2}|"
    r"[A-Za-z]{3,9} \d{1,2},? \d{4})"
)
_SAMPLE = 100

_DAY, _HOUR = 86_400, 3_600  # seconds
_ERA = 146_097  # days of 400 years, after which the calendar repeats
_SHIFT = 719_468  # days from 0000-03-01 to 1970-01-01


def find_format(texts: Array, is_forced: bool = False) -> str | None:
    """Return the format that fits the most of some texts, None if they do not look like dates.

    Where day and month could be either, month comes first. If the user says that they are dates
    (`is_forced`), 20200131 is one too.
    """
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    looks = [bool(_LOOK.match(str(text))) for text in sample]
    if not is_forced and 2 * sum(looks) < len(looks):
        return None
    formats = [day + time for day in _DAYS for time in _TIMES]
    if any(re.match(r"\s*\d{4}-\d\d\b", str(text)) for text in sample):
        formats = [ISO]
    counts = {form: int((~np.isnat(parse_dates(sample, form))).sum()) for form in formats}
    best = max(counts, key=lambda form: counts[form])
    if counts[best] == 0:
        return None
    if is_ambiguous(best) and np.isnat(parse_dates(texts, best)).any():
        other = best.translate(SWAPPED)  # a 13th month may be outside the sample
        if np.isnat(parse_dates(texts, other)).sum() < np.isnat(parse_dates(texts, best)).sum():
            return other
    return best


def is_ambiguous(form: str) -> bool:
    """Whether day and month could be taken for each other."""
    return "%m" in form and form.translate(SWAPPED) in {d + t for d in _DAYS for t in _TIMES}


def parse_dates(texts: Any, form: str) -> Array:
    """Return texts as datetime64, in UTC if they have a zone, NaT where missing or no date."""
    pandas = import_pandas()
    column = pandas.Series(texts, dtype=object).map(str, na_action="ignore").str.strip()
    moments = pandas.to_datetime(column, format=form, errors="coerce", utc=True)
    return np.asarray(moments.dt.tz_localize(None).to_numpy(dtype="datetime64[us]"))


def as_seconds(moments: Any) -> Any:
    """Return datetime64 as seconds since 1970, NaN for NaT."""
    return (moments - np.datetime64(0, "s")) / np.timedelta64(1, "s")


def calendar(seconds: Any) -> dict[str, Any]:
    """Return year, month, day of week and hour of seconds since 1970.

    It takes anything that has + − × and //: arrays, and tensors of a graph. Years begin in March
    here, so that a leap day is the last day of its year.
    """
    days = seconds // _DAY
    era = (days + _SHIFT) // _ERA
    day = days + _SHIFT - era * _ERA
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day = day - (year * 365 + year // 4 - year // 100)
    month = (day * 5 + 2) // 153  # 153 days are five months; 0 is March
    is_next_year = month // 10  # January and February
    return {
        "year": era * 400 + year + is_next_year,
        "month": month + 3 - is_next_year * 12,
        "day of week": days + 3 - (days + 3) // 7 * 7,  # 1970 began on a Thursday
        "hour": (seconds - days * _DAY) // _HOUR,
    }


@dataclass(frozen=True)
class DateColumn:
    """How a column of dates becomes numbers.

    Parameters
    ----------
    format
        As for `strptime`, or `ISO`.
    origin
        When elapsed days begin: the earliest date in training, in ISO format.
    parts
        Those of `PARTS` that vary in training.
    """

    format: str
    origin: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, form: str, moments: Array) -> DateColumn:
        """Return how to take these dates, the training rows."""
        known = moments[~np.isnat(moments)]
        column = cls(form, str(known.min()), PARTS)
        parts = column.split(as_seconds(known))
        varies = [part for part, values in parts.items() if (values != values[0]).any()]
        return cls(form, column.origin, tuple(varies))

    def split(self, seconds: Any) -> dict[str, Any]:
        """Return the parts of dates in seconds since 1970; see `calendar`."""
        elapsed = (seconds - as_seconds(np.datetime64(self.origin))) / _DAY
        parts = calendar(seconds) | {"elapsed days": elapsed}
        return {part: parts[part] for part in self.parts}

    def expand(self, name: str, moments: Array) -> dict[str, Array]:
        """Return the parts of dates by the names of the numeric columns that they become."""
        with np.errstate(invalid="ignore"):  # dates may be missing
            parts = self.split(as_seconds(moments))
        return dict(zip(self.names(name), parts.values(), strict=True))

    def names(self, name: str) -> list[str]:
        """Return what the parts of a column are called."""
        return [f"{name} ({part})" for part in self.parts]

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {"format": self.format, "origin": self.origin, "parts": list(self.parts)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> DateColumn:
        """Return what `as_json` described, or raise ValueError if it makes no sense."""
        form, origin, parts = (given[key] for key in ("format", "origin", "parts"))
        if len(given) != 3 or not parts or [part for part in PARTS if part in parts] != parts:
            raise ValueError("the parts of a date are unknown")
        parse_dates(["2020-01-31"], form)
        if np.isnat(np.datetime64(origin, "us")):
            raise ValueError("a date has no origin")
        return cls(form, origin, tuple(parts))
