"""What an attack has tried, and what it broke."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of what was tried, by name, and a line for each thing that broke."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def expect(self, is_good: bool, message: str) -> None:
        """Note what broke, unless all is well."""
        if not is_good:
            self.broken.append(message)


def rounds(seconds: float) -> Iterator[int]:
    """Yield 0, 1, 2 and so on until the time is over, once at least."""
    end = time.monotonic() + seconds
    number = 0
    while number == 0 or time.monotonic() < end:
        yield number
        number += 1
