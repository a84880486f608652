"""What one run of a study is, and what it gives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coevo.datasets import INPUT_RANGES
from coevo.network import Array
from coevo.settings import Settings
from coevo.variants import SHARED

BACKPROP = "backprop"
"""What plans and tables call the gradient baseline, beside the variants' names."""

# What a setting meant before there was a choice. The paper's values, not the defaults, which change
# while results are kept.
_ORIGINAL = {field.name: field.default for field in fields(Settings)} | SHARED


@dataclass(frozen=True)
class Run:
    """What decides the result of a run, and nothing else.

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
        Whether the accuracy on the training and test parts is followed along the run.
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
        """Names the run: runs of the same key have the same result.

        Settings at their default are left out of it, so that results stay valid when coevo learns
        a new setting; so is how inputs are scaled where it is not special.
        """
        values = json.loads(self.to_json())
        if self.dataset in INPUT_RANGES:
            values["input_range"] = INPUT_RANGES[self.dataset]
        if self.variant != BACKPROP:
            values["settings"] = {
                name: value
                for name, value in values["settings"].items()
                if value != _plain(_ORIGINAL.get(name))
            }
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def to_json(self) -> str:
        """Return the run as text that `from_json` understands."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Return the run that `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Parameters
    ----------
    train, validation, test
        Accuracy of the network that validated best, between 0 and 1.
    evaluations
        Networks evaluated for fitness, None for backprop.
    generations
        Generations, or epochs for backprop.
    seconds
        Time spent searching, without loading and tracing.
    stop_reason
        Why it ended.
    history : array of shape (n, 6)
        Columns as in `coevo.history.Generation`.
    trace : array of shape (n, 4), or None
        Columns as in `coevo.study.trace.COLUMNS`.
    versions, machine
        What it ran with and on.
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


@dataclass(frozen=True)
class Failure:
    """Why a run gave nothing: the error in one line, and where it arose."""

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
