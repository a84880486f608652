"""`make tables`: every learner on the same split, and what lags is explained."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import tables

    yield tables
    for module in ("tables", "machine"):
        sys.modules.pop(module, None)


def run(tables, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tables.py", *map(str, words)])
    tables.main()


def test_one_table_is_measured_and_the_others_stay(tables, monkeypatch, tmp_path):
    known = {"runs": {name: [{"score": 50.0, "seconds": 1.0}] for name in ("coevo", *tables.PEERS)}}
    known |= {"task": "regression", "rows": 7, "columns": 2, "dates": 1, "cores_of_others": 0.5}
    (tmp_path / "tables.json").write_text(json.dumps({"diamonds": known}))
    run(tables, monkeypatch, "--only", "wine", "--seeds", "1", "--results", tmp_path, "--",
        "--max-evaluations", "2000", "--hidden-layer-sizes", "3")  # fmt: skip
    results = json.loads((tmp_path / "tables.json").read_text())
    assert list(results) == ["wine", "diamonds"]
    assert results["diamonds"] == known
    wine = results["wine"]
    assert (wine["rows"], wine["columns"], wine["task"]) == (178, 13, "classification")
    assert {"coevo", *tables.PEERS} <= set(wine["runs"])
    assert all(0 < run["score"] <= 100 for runs in wine["runs"].values() for run in runs)
    page = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "| wine | 178 | 13 | classification |" in page
    assert "| diamonds | 7 | 2, dates | regression | 50.0 |" in page


def test_what_lags_is_trained_again_and_explained(tables, monkeypatch, tmp_path):
    peers = {name: {"score": 90.0, "seconds": 1.0} for name in tables.PEERS}
    about = {"task": "classification", "rows": 9, "columns": 1, "dates": 0}
    monkeypatch.setattr(tables, "train_peers", lambda *_: (about, peers))
    asked = []

    def train(path, table, seed, options):
        asked.append(options)
        score = 89.0 if options else 80.0
        return {"score": score, "seconds": 2.0, "evaluations": 1000, "is_improving": not options}

    monkeypatch.setattr(tables, "train_coevo", train)
    result = tables.measure(tables.TABLES[0], tmp_path, 2, [])
    assert asked == [[], [], ["--max-evaluations", "5000"], ["--max-evaluations", "5000"]]
    assert tables.explain("wine", result) == (
        "wine: 80.0, with 5 times the budget 89.0 in 2 s, the MLP 90.0; 2 of 2 runs were still "
        "improving: the budget decides."
    )


def test_the_committed_page_is_that_of_the_committed_figures(tables, tmp_path):
    committed = (BENCHMARKS / "results" / "tables.md").read_text(encoding="utf-8")
    results = json.loads((BENCHMARKS / "results" / "tables.json").read_text(encoding="utf-8"))
    assert list(results) == [table.name for table in tables.TABLES]
    tables.write_results(results, tmp_path)
    written = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert written.split("Measured with")[0] == committed.split("Measured with")[0]
