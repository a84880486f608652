"""Studies can be killed, shared and repeated: nothing is lost, done twice or different."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_study_plan import write_plan

from coevo.study import Store, read_plan, run_study, study_progress
from coevo.study import performing as performing_module
from coevo.study.backends import Processes, WorkersLostError
from coevo.study.performing import perform
from coevo.study.progress import Forecast

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

SCRIPT = """
import sys
from coevo.study import Store, read_plan, run_study
with Store(sys.argv[2]) as store:
    progress = run_study(
        read_plan(sys.argv[1]), store, workers=int(sys.argv[3]), threads=1, lease=2.0
    )
print(progress.done, progress.failed)
"""


def start(plan, store, workers):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(plan), str(store), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def accuracies(store, plan):
    records = store.records([run.key for run in plan.runs])
    return {
        key: (r.outcome.train, r.outcome.validation, r.outcome.test) for key, r in records.items()
    }


def wait_until(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A plan of longer runs and their results, done one after the other in this process."""
    folder = tmp_path_factory.mktemp("longer")
    path = write_plan(folder, LONGER, "longer.toml")
    plan = read_plan(path)
    with Store(folder / "alone.sqlite") as store:
        run_study(plan, store, workers=1, threads=1)
        return path, plan, accuracies(store, plan)


def test_only_what_is_missing_is_done(tmp_path, monkeypatch):
    plan = read_plan(write_plan(tmp_path))
    told = []
    with Store(tmp_path / "runs.sqlite") as store:
        run_study(plan.only(seeds=1), store, workers=1)
        assert study_progress(plan, store).waiting == 6
        progress = run_study(plan, store, workers=1, on_progress=told.append)
        assert (progress.done, progress.failed, progress.waiting) == (9, 0, 0)
        assert [step.done for step in told] == [3, 4, 5, 6, 7, 8, 9]
        assert told[-1].seconds_left == 0
        assert told[-2].seconds_left > 0
        assert {record.attempts for record in store.records().values()} == {1}

        def never(*_):
            raise AssertionError("nothing is missing")

        monkeypatch.setattr("coevo.study.running.choose_backend", never)
        run_study(plan, store, workers=1)
        record = store.records()[plan.runs[0].key]
    # What the issue asks to be kept of each run.
    outcome = record.outcome
    assert outcome.evaluations >= 3000
    assert outcome.seconds > 0
    assert outcome.stop_reason == "max_evaluations"
    assert outcome.machine["threads"] >= 1
    assert {"python", "coevo", "numpy"} <= set(outcome.versions)
    assert len(outcome.history) == outcome.generations + 1
    assert len(outcome.trace) == outcome.generations


def test_trace_changes_nothing_and_ends_where_the_run_does(tmp_path):
    run = read_plan(write_plan(tmp_path)).runs[0]
    run = replace(run, settings=run.settings | {"fitness": "accuracy"})  # as a trace tells
    traced = perform(run)
    plain = perform(type(run)(run.dataset, run.variant, run.settings, run.seed))
    assert plain.trace is None
    assert (traced.train, traced.validation, traced.test) == (
        plain.train,
        plain.validation,
        plain.test,
    )
    # Both tell of the global solution: columns evaluations and validation.
    np.testing.assert_allclose(traced.trace[:, [0, 2]], traced.history[1:, [1, 4]], rtol=1e-6)


def test_backprop_is_a_function_of_its_seed(tmp_path):
    run = next(r for r in read_plan(write_plan(tmp_path)).runs if r.variant == "backprop")
    first, second = perform(run), perform(run)
    assert (first.train, first.test) == (second.train, second.test)
    assert first.evaluations is None
    assert first.generations == 5
    assert first.stop_reason == "max_epochs"
    assert first.validation == first.history[:, 5].max()
    assert first.test > 0.5


def test_results_do_not_depend_on_workers_or_threads(tmp_path, longer):
    _, plan, alone = longer
    with Store(tmp_path / "two.sqlite") as store:
        run_study(plan, store, workers=2, threads=1)
        assert accuracies(store, plan) == alone
    part = plan.only(seeds=1)
    with Store(tmp_path / "threads.sqlite") as store:
        run_study(part, store, workers=1, threads=2)
        found = accuracies(store, part)
    assert found == {key: alone[key] for key in found}


def test_failed_runs_are_recorded_and_retried(tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nothing"))
    text = """
[[experiment]]
dataset = "ESR"
variants = ["LECCDE"]
seeds = 2
settings = { hidden_layer_sizes = [3], batch_size = 100, max_evaluations = 500 }
"""
    plan = read_plan(write_plan(tmp_path, text))
    wbc = performing_module.load("WBC")
    with Store(tmp_path / "runs.sqlite") as store:
        assert run_study(plan, store, workers=1).failed == 2
        record = store.records()[plan.runs[0].key]
        assert record.error.startswith("MissingDataError: ESR")
        assert "Traceback" in record.traceback
        assert run_study(plan, store, workers=1).failed == 2  # not without being asked
        monkeypatch.setattr(performing_module, "_load", lambda name, selection: wbc)
        assert run_study(plan, store, workers=1, retry_failed=True).done == 2


def test_killed_study_goes_on_where_it_was(tmp_path, longer):
    path, plan, alone = longer
    keys = [run.key for run in plan.runs]
    process = start(path, tmp_path / "runs.sqlite", 2)
    with Store(tmp_path / "runs.sqlite") as store:
        wait_until(lambda: list(store.states(keys).values()).count("done") >= 2)
        workers = children_of(process.pid)
        process.kill()
        process.communicate(timeout=30)  # ends when its workers have let go of the pipe, too
        before = {key: r for key, r in store.records().items() if r.state == "done"}
        assert len(before) < len(keys)
        assert [r.state for r in store.records().values()].count("running") <= 3
        progress = run_study(plan, store, workers=1, threads=1, lease=2.0)
        assert (progress.done, progress.failed) == (len(keys), 0)
        after = store.records()
        assert all(after[key].ended == record.ended for key, record in before.items())
        assert accuracies(store, plan) == alone
    # Nor do the killed process's workers stay behind.
    wait_until(lambda: not any(map(is_alive, workers)), 30)


def test_two_processes_share_a_store_without_doing_anything_twice(tmp_path, longer):
    path, plan, alone = longer
    processes = [start(path, tmp_path / "runs.sqlite", 1) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all(output == f"{len(plan.runs)} 0\n" for output, _ in outputs)
    with Store(tmp_path / "runs.sqlite") as store:
        assert {record.attempts for record in store.records().values()} == {1}
        assert accuracies(store, plan) == alone


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds worker processes through /proc")
def test_killed_worker_is_replaced(tmp_path, longer):
    path, plan, alone = longer
    keys = [run.key for run in plan.runs]
    process = start(path, tmp_path / "runs.sqlite", 2)
    with Store(tmp_path / "runs.sqlite") as store:
        wait_until(lambda: "done" in store.states(keys).values())
        busy = [pid for pid in children_of(process.pid) if _is_worker(pid)]
        os.kill(busy[0], signal.SIGKILL)
        output, errors = process.communicate(timeout=120)
        assert output == f"{len(keys)} 0\n", errors
        assert accuracies(store, plan) == alone


def _is_worker(pid):
    return b"loky.backend.popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_lost_workers_are_told_as_such(monkeypatch):
    def die(run, n_threads):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("coevo.study.backends._attempt_and_name", die)
    with pytest.raises(WorkersLostError):
        list(Processes(2).perform(iter(read_plan("quick").runs[:1])))


def test_interrupted_run_is_no_result(tmp_path, monkeypatch):
    """Ctrl-C ends a search early; what it has then must not be entered as the run's result."""
    plan = read_plan(write_plan(tmp_path)).only(seeds=1)
    real = performing_module.evolve

    def interrupted(*arguments, **options):
        def press_ctrl_c(search):
            signal.raise_signal(signal.SIGINT)

        return real(*arguments, **{**options, "callbacks": [press_ctrl_c]})

    monkeypatch.setattr(performing_module, "evolve", interrupted)
    with Store(tmp_path / "runs.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            run_study(plan, store, workers=1)
        assert set(store.states([run.key for run in plan.runs]).values()) == {"waiting"}


@pytest.mark.skipif(
    "COEVO_DATA_HOME" not in os.environ, reason="COEVO_DATA_HOME names no folder with ESR"
)
def test_plan_decides_how_real_data_are_split(tmp_path):
    text = """
seeds = 1
[[experiment]]
name = "rows"
dataset = "ESR"
variants = ["LECCDE"]
settings = { hidden_layer_sizes = [5], max_evaluations = 3000 }
[[experiment]]
name = "recordings"
dataset = "ESR"
by_group = true
variants = ["LECCDE"]
settings = { hidden_layer_sizes = [5], max_evaluations = 3000 }
"""
    plan = read_plan(write_plan(tmp_path, text))
    with Store(tmp_path / "runs.sqlite") as store:
        progress = run_study(plan, store, workers=1, threads=1)
        assert (progress.done, progress.failed) == (2, 0)
        by_row, by_recording = accuracies(store, plan).values()
    assert by_row != by_recording
    assert min(*by_row, *by_recording) > 0.5


def test_forecast_weighs_rows_by_what_they_take(tmp_path, monkeypatch):
    plan = read_plan(write_plan(tmp_path))
    clock = iter([0.0, 11.0])
    monkeypatch.setattr("coevo.study.progress.time.monotonic", lambda: next(clock))
    slow, fast = (row.runs for row in plan.experiments[0].rows[:2])
    forecast = Forecast(plan)
    assert forecast.seconds_left([slow[1].key], {}) is None
    forecast.note(slow[0].key)
    forecast.note(fast[0].key)
    seconds = {slow[0].key: 10.0, fast[0].key: 1.0}
    # 11 seconds for runs that took 11 in all; one of each is left twice.
    left = [run.key for run in (*slow[1:], *fast[1:])]
    assert forecast.seconds_left(left, seconds) == pytest.approx(22)
