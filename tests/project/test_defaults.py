"""The benchmark of defaults: what is run, what is kept, and what is called chance."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def defaults(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import defaults

    yield defaults
    for module in ("defaults", "apart", "machine"):
        sys.modules.pop(module, None)


@pytest.fixture
def options():
    return SimpleNamespace(
        half="choosing", sets=["iris"], splits=2, budgets=[60.0, 180.0, 600.0], again=False, jobs=1
    )


@pytest.fixture
def fitted(defaults, monkeypatch):
    """Stand in for the fits; those of the first split use up 180 s."""
    calls = []

    def fit(script, told, timeout, environment):
        _, _, split, *columns = told
        calls.append((split, *columns))
        ended = "stagnation" if split else "max_seconds"
        return {c: {"score": 90.0 + split, "seconds": 1.0, "ended by": ended} for c in columns}

    monkeypatch.setattr(defaults, "run_apart", fit)
    return calls


def test_nothing_is_fitted_twice_and_ten_minutes_once(defaults, options, fitted, tmp_path):
    path = tmp_path / "sets.json"
    defaults.run(options, defaults.Store(path))
    own = [(split, *columns) for split, *columns in fitted if len(columns) == 1]
    assert own == [
        (0, "coevo, 60 s"), (0, "coevo, 180 s"), (0, "coevo, 600 s"),
        (1, "coevo, 60 s"), (1, "coevo, 180 s"),
    ]  # fmt: skip
    n_calls = len(fitted)
    store = defaults.Store(path)
    defaults.run(options, store)
    assert len(fitted) == n_calls
    page = defaults.report(store.content)
    assert "| iris | 2 | 90.5 ± 0.7 (1 s) |" in page


def test_more_time_is_not_granted_to_a_fit_that_ended_by_itself(
    defaults, options, fitted, tmp_path
):
    store = defaults.Store(tmp_path / "sets.json")
    ended = {"score": 90.0, "seconds": 1.0, "ended by": "stagnation"}
    store.add("choosing", "iris", 0, {"coevo, 60 s": ended})
    defaults.run(options, store)
    assert (0, "coevo, 600 s") not in fitted


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([-1.0, -1.1, -0.9, -1.0, -1.05], "worse"),
        ([1.0, 1.1, 0.9, 1.0, 1.05], "better"),
        ([-3.0, 2.0, -1.0, 0.5, 0.4], "within chance"),
        ([0.0, 0.0, 0.0], "the same"),
        ([-5.0, -5.0], "too few splits"),
    ],
)
def test_chance(defaults, differences, verdict):
    assert defaults.judge(np.array(differences)) == verdict


def test_splits_that_share_rows_say_less_than_independent_ones(defaults):
    found = np.array([-1.0, -0.4, -0.7, -0.1, -0.9])
    naive = 2.776 * found.std(ddof=1) / np.sqrt(5)
    assert found.mean() + naive < 0
    assert defaults.judge(found) == "within chance"
