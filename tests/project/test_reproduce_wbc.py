"""The committed WBC study: its table follows from its runs and agrees with the paper."""

import csv
import statistics
import sys
from pathlib import Path

import pytest

from coevo import PAPER, VARIANTS

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


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


@pytest.mark.parametrize("seed", [3, 11])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])  # the others take seconds
def test_a_committed_run_can_be_repeated(rows, reproduce_wbc, variant, seed):
    """Accuracies may differ by a few instances where sums are rounded in another order."""
    committed = next(r for r in rows if (r["variant"], r["seed"]) == (variant, str(seed)))
    again = reproduce_wbc.run(variant, seed)
    for count in ("evaluations", "generations"):
        assert again[count] == int(committed[count])
    for part in ("train", "validation", "test"):
        assert again[part] == pytest.approx(float(committed[part]), abs=3.0)
    assert again["test"] == pytest.approx(PAPER["WBC"].results[variant].test, abs=7.5)


def test_there_are_20_runs_of_each_variant(rows):
    seeds = [{row["seed"] for row in rows if row["variant"] == variant} for variant in VARIANTS]
    assert seeds == [{str(seed) for seed in range(20)}] * 4


def test_spread_is_the_standard_deviation(rows, reproduce_wbc):
    values = [float(row["test"]) for row in rows if row["variant"] == "LECCDE"]
    median, spread = reproduce_wbc.summarise(rows, "LECCDE", "test")
    assert median == statistics.median(values)
    assert spread == pytest.approx(statistics.stdev(values))


def test_table_follows_from_the_runs(rows, reproduce_wbc):
    table = (BENCHMARKS / "results" / "wbc.md").read_text(encoding="utf-8")
    assert reproduce_wbc.make_table(rows) in table
