"""Every figure on policies follows from committed runs, and these show what is promised."""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def import_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield import_module
    for name in ("policies", "control", "machine"):
        sys.modules.pop(name, None)


def test_pages_are_what_the_results_make_of_them(import_benchmark):
    policies, control = import_benchmark("policies"), import_benchmark("control")
    pages = {
        "policies": policies.report(read("policies")),
        "control": control.report(read("control"), range(5)),
    }
    for name, text in pages.items():
        found = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
        assert found == text, f"run python benchmarks/{name}.py"


def test_nothing_is_left_to_measure(import_benchmark):
    policies, control = import_benchmark("policies"), import_benchmark("control")
    keys = {key for part in policies.SEEDS for key, _, _ in policies.plan(part)}
    assert keys == set(read("policies")) - {"machine"}
    methods = (*control.VARIANTS, *control.PEERS)
    keys = {f"{m}/{env}/{seed}" for m in methods for env in control.BUDGETS for seed in range(5)}
    assert keys == set(read("control")) - {"machine"}


@pytest.mark.parametrize(("env", "enough"), [("CartPole-v1", 475), ("Acrobot-v1", -100)])
def test_environments_are_solved_at_the_defaults(env, enough):
    runs = [run for key, run in read("policies").items() if key.startswith(f"solved/{env}/")]
    assert len(runs) == 10
    assert sum(run["mean"] >= enough and run["episodes"] <= 20_000 for run in runs) >= 9


def test_the_loop_has_four_fifths_of_a_bare_loops_speed():
    runs = {key: run for key, run in read("policies").items() if key.startswith("speed/")}
    assert len(runs) == 6
    for key, run in runs.items():
        assert np.median(run["shares"]) >= 0.8, key
