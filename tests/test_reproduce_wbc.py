"""The committed WBC study: its table follows from its runs and agrees with the paper."""

import csv
import statistics
import sys
from pathlib import Path

import pytest

from coevo import PAPER, VARIANTS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def rows():
    with (BENCHMARKS / "results" / "wbc.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def reproduce_wbc(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import reproduce_wbc

    yield reproduce_wbc
    del sys.modules["reproduce_wbc"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_median_test_accuracy_is_near_the_papers(rows, variant):
    accuracies = [float(row["test"]) for row in rows if row["variant"] == variant]
    assert len(accuracies) == 20
    assert statistics.median(accuracies) == pytest.approx(
        PAPER["WBC"].results[variant].test, abs=2.5
    )


def test_spread_is_the_standard_deviation(rows, reproduce_wbc):
    values = [float(row["test"]) for row in rows if row["variant"] == "LECCDE"]
    median, spread = reproduce_wbc.summarise(rows, "LECCDE", "test")
    assert median == statistics.median(values)
    assert spread == pytest.approx(statistics.stdev(values))


def test_table_follows_from_the_runs(rows, reproduce_wbc):
    table = (BENCHMARKS / "results" / "wbc.md").read_text(encoding="utf-8")
    assert reproduce_wbc.make_table(rows) in table
