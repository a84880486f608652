"""A run of a study and its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer, check_real
from coevo.core.history import Generation
from coevo.datasets import INPUT_RANGES
from coevo.study.migration import modernise

BACKPROP = "backprop"
"""The name of the gradient baseline in plans and tables."""

NEUTRAL: dict[str, Any] = {"extensions": [], "validate_every": "replacement"}
"""Settings newer than the first results, with the value those results were made with.

At that value a setting is left out of a run's key, so that old results stay valid. Defaults may
change; these values must not.
"""
_NEUTRAL_FOR_SMOOTHING = NEUTRAL | {"validate_every": "auto"}


@dataclass(frozen=True)
class Run:
    """All that decides the result of a run.

    Parameters
    ----------
    dataset, selection, by_group, official_test
        The data, as for `coevo.datasets.load` and `split`.
    variant
        DE, LEDE, CCDE, LECCDE or backprop.
    settings
        All settings but the seed.
    seed
        Decides the split and all that is random in the run.
    traces
        Whether the accuracy on all three parts is recorded along the run.
    """

    dataset: str
    variant: str
    settings: Mapping[str, Any]
    seed: int
    selection: str = "paper"
    by_group: bool = False
    official_test: bool = False
    traces: bool = False

    @property
    def key(self) -> str:
        """A digest of all fields: runs of the same key have the same result.

        Settings at their `NEUTRAL` value do not count. The range of inputs counts only for data
        sets in `INPUT_RANGES`, as there was one range for all once.
        """
        values = json.loads(self.to_json())
        if self.dataset in INPUT_RANGES:
            values["input_range"] = INPUT_RANGES[self.dataset]
        if self.variant != BACKPROP:
            smooths = str(values["settings"].get("strategy")).startswith("smoothing")
            neutral = _NEUTRAL_FOR_SMOOTHING if smooths else NEUTRAL
            values["settings"] = {
                name: value
                for name, value in values["settings"].items()
                if name not in neutral or value != neutral[name]
            }
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def to_json(self) -> str:
        """Return the run as text for `from_json`."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Return the run that `to_json` wrote, in this version or an earlier one."""
        values = json.loads(text)
        return cls(**values | {"settings": modernise(values["settings"])})


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Parameters
    ----------
    train, validation, test
        Accuracy of the network with the best validation fitness, between 0 and 1.
    evaluations
        Networks evaluated for fitness, None for backprop.
    generations
        Generations, or epochs for backprop.
    seconds
        Time of the search, without loading and tracing.
    stop_reason
        Why it ended.
    history : array of shape (n, 6)
        Columns as in `coevo.core.history.Generation`.
    trace : array of shape (n, 4), or None
        Columns as in `coevo.study.trace.COLUMNS`.
    versions, machine
        The libraries and the hardware.
    """

    train: float
    validation: float
    test: float
    evaluations: int | None
    generations: int
    seconds: float
    stop_reason: str
    history: Array
    trace: Array | None
    versions: dict[str, str]
    machine: dict[str, Any]

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            check_real(name, getattr(self, name), 0, 1)
        check_real("seconds", self.seconds, 0)
        check_integer("generations", self.generations, 0)
        if self.evaluations is not None:
            check_integer("evaluations", self.evaluations, 0)
        for name, array, width in (("history", self.history, _WIDTH), ("trace", self.trace, 4)):
            if array is not None and (array.ndim != 2 or array.shape[1] != width):
                raise ValueError(f"{name} must have {width} columns, got shape {array.shape}")


_WIDTH = len(Generation._fields)


@dataclass(frozen=True)
class Failure:
    """The error of a run in one line, and its traceback."""

    error: str
    traceback: str = ""


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, with one form for each number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
