"""A run is identified by what decides its result, and a result is checked."""

from dataclasses import replace

import numpy as np
import pytest

from coevo.datasets import INPUT_RANGES
from coevo.study import read_plan
from coevo.study.run import Run


def test_key_tells_runs_apart_and_nothing_else():
    settings = read_plan("quick").runs[0].settings
    run = Run("WBC", "DE", settings, 1)
    same = Run.from_json(run.to_json())
    assert same.key == run.key
    # A setting that coevo learns later does not make results invalid, nor does 4 instead of 4.0.
    without_default = {name: v for name, v in settings.items() if name != "extensions"}
    assert Run("WBC", "DE", without_default, 1).key == run.key
    without_default.pop("validate_every")
    assert Run("WBC", "DE", without_default, 1).key == run.key
    assert Run("WBC", "DE", {**settings, "validate_every": "auto"}, 1).key != run.key
    smoothing = without_default | {"strategy": "smoothing"}
    by_default = Run("WBC", "LECCDE", smoothing | {"validate_every": "auto"}, 1)
    assert by_default.key == Run("WBC", "LECCDE", smoothing, 1).key
    assert Run("WBC", "DE", {**settings, "initial_range": 4}, 1).key == run.key
    assert Run("WBC", "DE", {**settings, "decay": 0.1}, 1).key != run.key
    assert Run("WBC", "DE", settings, 2).key != run.key
    # Nor may the library's defaults, when they change, change what a kept result stands for.
    assert run.key == "15ada4737a61da1ec012"
    assert Run("WBC", "DE", settings, 1, by_group=True).key != run.key


def test_key_tells_apart_runs_on_data_that_were_scaled_differently(monkeypatch):
    run = Run("MNIST", "DE", {}, 1)
    key = run.key
    monkeypatch.setitem(INPUT_RANGES, "MNIST", (-1.0, 1.0))
    assert run.key != key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": None}, "test must be a number"),
        ({"train": 95.0}, "train must be at least 0 and at most 1"),
        ({"seconds": -1.0}, "seconds must be at least 0"),
        ({"history": np.zeros((3, 2))}, "history must have 6 columns"),
        ({"trace": np.zeros(4)}, "trace must have 4 columns"),
        ({"evaluations": 10**30}, "evaluations must be at most"),
        ({"generations": -1}, "generations must be at least 0"),
    ],
)
def test_outcome_that_cannot_be_is_refused(outcome, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        replace(outcome, **change)
