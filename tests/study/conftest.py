"""Made-up results, a plan of longer runs, and ways to wait for other processes."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from coevo.study import Record, Store, read_plan, run_study
from coevo.study.run import Outcome

# Long enough to be killed in the middle.
LONGER = """
seeds = 3
[[experiment]]
name = "longer"
dataset = "digits"
variants = ["LECCDE", "CCDE"]
[experiment.settings]
hidden_layer_sizes = [20]
batch_size = 250
[experiment.rows.LECCDE]
max_evaluations = 100_000
[experiment.rows.CCDE]
max_evaluations = 20_000
"""

STUDY = """
import sys
from coevo.study import Store, read_plan, run_study
with Store(sys.argv[2]) as store:
    progress = run_study(
        read_plan(sys.argv[1]), store, workers=int(sys.argv[3]), threads=1, lease=2.0
    )
print(progress.done, progress.failed)
"""

LEVELS = {
    "DE": 0.7, "LEDE": 0.78, "CCDE": 0.93, "LECCDE": 0.92, "backprop": 0.95, "CCDE, complete": 0.93
}  # fmt: skip


@pytest.fixture(scope="session")
def outcome():
    return Outcome(
        train=0.95,
        validation=0.9625,
        test=0.9,
        evaluations=50_000,
        generations=25,
        seconds=0.25,
        stop_reason="max_evaluations",
        history=np.arange(24.0).reshape(4, 6),
        trace=np.linspace(0, 1, 8).reshape(2, 4),
        versions={"python": "3"},
        machine={"cores": 2, "threads": 1},
    )


@pytest.fixture(scope="session")
def make_records(outcome):
    """Make up finished runs of a plan; `accuracy(label, seed)` gives the test accuracy."""

    def make(plan, accuracy):
        return {
            run.key: Record(
                run,
                "done",
                outcome=replace(
                    outcome,
                    test=accuracy(row.label, run.seed),
                    seconds=0.5 if row.label == "LECCDE" else 2.0,
                    evaluations=None if row.label == "backprop" else 1000,
                ),
            )
            for experiment in plan.experiments
            for row in experiment.rows
            for run in row.runs
        }

    return make


@pytest.fixture(scope="session")
def make_curves(make_records):
    """Make up finished runs with curves that look like a search's; labels have usual levels."""

    def make(plan, n_rows=60):
        rng = np.random.default_rng(5)
        records = make_records(
            plan, lambda label, seed: LEVELS.get(label, 0.9) + 0.01 * rng.normal()
        )
        for key, record in records.items():
            top = record.outcome.test
            seconds = np.linspace(0.01, record.outcome.seconds, n_rows)
            curve = top - (top - 0.4) * np.exp(-np.linspace(0, 6, n_rows))
            steps = np.arange(n_rows)
            history = np.column_stack([steps, 1000 * steps, seconds, curve, curve, curve])
            trace = np.column_stack([1000 * steps, curve + 0.02, curve, curve - 0.01])
            outcome = replace(
                record.outcome, history=history, trace=trace if record.run.traces else None
            )
            records[key] = Record(
                record.run, "done", outcome=outcome, ended="2018-07-15T12:00:00+00:00"
            )
        return records

    return make


@pytest.fixture(scope="session")
def read_accuracies():
    def read(store, plan):
        records = store.records([run.key for run in plan.runs])
        assert [r.error for r in records.values() if r.outcome is None] == []
        return {
            key: (r.outcome.train, r.outcome.validation, r.outcome.test)
            for key, r in records.items()
        }

    return read


@pytest.fixture(scope="session")
def wait_until():
    def wait(condition, seconds=60.0):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def longer(tmp_path_factory, write_plan, read_accuracies):
    """A plan of longer runs and their results, done one after the other in this process."""
    folder = tmp_path_factory.mktemp("longer")
    path = write_plan(folder, LONGER, "longer.toml")
    plan = read_plan(path)
    with Store(folder / "alone.sqlite") as store:
        run_study(plan, store, workers=1, threads=1)
        return path, plan, read_accuracies(store, plan)


@pytest.fixture
def start_study():
    """Start a study in a process of its own; it is killed at the end of the test."""
    started = []

    def start(plan, store, workers):
        process = subprocess.Popen(
            [sys.executable, "-c", STUDY, str(plan), str(store), str(workers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
