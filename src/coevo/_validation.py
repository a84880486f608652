"""Checks of arguments, with errors that name the argument and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def check_name(argument: str, value: object, known: Iterable[str]) -> None:
    """Raise unless `value` is one of the `known` names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{argument}={value!r} is unknown; choose one of {', '.join(names)}")


def check_integer(
    argument: str, value: Any, minimum: int, maximum: int | None = 2**63 - 1, why: str = ""
) -> None:
    """Raise unless `value` is a whole number within [minimum, maximum]; None for no maximum."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{argument} must be a whole number, got {value!r}")
    if int(value) < minimum:
        raise ValueError(f"{argument} must be at least {minimum}{why}, got {value}")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{argument} must be at most {maximum}{why}")


def check_real(
    argument: str,
    value: Any,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: bool = False,
) -> None:
    """Raise unless `value` is a number within [minimum, maximum], or (minimum, maximum]."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{argument} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the largest float
        value = number = math.inf
    too_low = number <= minimum if above else number < minimum
    if not math.isfinite(number) or too_low or number > maximum:
        least = f"above {minimum}" if above else f"at least {minimum}"
        limits = [least] if minimum > -math.inf else []
        limits += [f"at most {maximum}"] if maximum < math.inf else []
        accepted = " and ".join(limits) or "finite"
        raise ValueError(f"{argument} must be {accepted}, got {value}")


def check_flag(argument: str, value: object) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, got {value!r}")
