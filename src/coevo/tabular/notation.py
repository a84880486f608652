"""Numbers as people write them: 1,234.5 and 1.234,5, 12%, $5, −3, (7)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array

PER_CENT = "%"
_UNIT = r"%|[$€£¥₹₽₩]|US\$|(?:USD|EUR|GBP|CHF|JPY|INR|CAD|AUD|CNY|SEK|NOK|DKK|PLN|BRL)\b"
_GROUPS = {".": r"[,'’ ]", ",": r"[.'’ ]"}  # what may stand between thousands, by decimal mark
_NUMBER = {
    mark: re.compile(
        rf"(?P<open>\()?(?P<sign>[+-]?) ?(?P<before>{_UNIT})? ?(?P<later_sign>[+-]?)"
        rf"(?P<whole>\d{{1,3}}(?:{groups}\d{{3}})+|\d*)(?:{re.escape(mark)}(?P<fraction>\d*))?"
        rf"(?P<exponent>[eE][+-]?\d+)? ?(?P<after>{_UNIT})?(?P<close>\))?"
    )
    for mark, groups in _GROUPS.items()
}
_SAMPLE = 10_000
_PLAIN = str.maketrans({"−": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal
        The decimal mark, "." or ",". The other one may stand between thousands, as may spaces and
        apostrophes.
    unit
        "%" or a currency, empty if none. Every number must have the %; a currency may be left out.
    """

    decimal: str = "."
    unit: str = ""

    @classmethod
    def find(cls, texts: Sequence[str], decimal: str) -> Notation | None:
        """Return the notation that reads the most of these texts, None if none reads any.

        If in doubt it is the one with this decimal mark.
        """
        texts = texts[:: max(1, len(texts) // _SAMPLE)]
        parsed = {mark: [_parse(text, mark) for text in texts] for mark in sorted(_NUMBER)}
        counts = {mark: sum(found is not None for found in parsed[mark]) for mark in parsed}
        if not any(counts.values()):
            return None
        best = max(parsed, key=lambda mark: (counts[mark], mark == decimal))
        units = Counter(found[1] for found in parsed[best] if found is not None and found[1])
        return cls(best, units.most_common(1)[0][0] if units else "")

    def read(self, column: Any) -> tuple[Array, Array]:
        """Return the numbers of a column of texts, NaN where missing, and which are not numbers."""
        read: dict[str, float] = {}
        for text in column.dropna().astype(str).unique():
            number, unit = _parse(text, self.decimal) or (np.nan, "")
            is_ours = unit == self.unit or (unit == "" and self.unit != PER_CENT)
            read[text] = number if is_ours else np.nan
        numbers = column.astype(object).map(read, na_action="ignore").to_numpy(np.float64)
        return numbers, np.isnan(numbers) & column.notna().to_numpy()


def _parse(text: str, decimal: str) -> tuple[float, str] | None:
    """Return the number in a text and its unit, None if it is no number."""
    found = _NUMBER[decimal].fullmatch(text.translate(_PLAIN).strip())
    if found is None:
        return None
    part = found.groupdict("")
    signs, units = part["sign"] + part["later_sign"], part["before"] + part["after"]
    is_in_parentheses = bool(part["open"])
    if (
        not (part["whole"] or part["fraction"])
        or len(signs) + is_in_parentheses > 1
        or is_in_parentheses != bool(part["close"])
        or (part["before"] and part["after"])
        or part["before"] == PER_CENT
    ):
        return None
    whole = re.sub(r"\D", "", part["whole"])
    number = float(f"{whole or '0'}.{part['fraction'] or '0'}{part['exponent']}")
    return (-number if is_in_parentheses or signs == "-" else number), units
