"""Studies can be killed, shared and repeated: nothing is lost, done twice or different."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coevo.core.history import Generation
from coevo.study import Record, Store, read_plan, run_study, study_progress, worker
from coevo.study.checkpoints import CheckpointFolder


def children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def is_worker(pid):
    return b"loky.backend.popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes()


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


needs_proc = pytest.mark.skipif(
    not Path("/proc").is_dir(), reason="finds worker processes through /proc"
)


def test_only_what_is_missing_is_done(tmp_path, monkeypatch, write_plan):
    plan = read_plan(write_plan(tmp_path))
    told = []
    with Store(tmp_path / "runs.sqlite") as store:
        run_study(plan.only(seeds=1), store, workers=1)
        assert study_progress(plan, store).waiting == 6
        progress = run_study(plan, store, workers=1, on_progress=told.append)
        assert (progress.done, progress.failed, progress.waiting) == (9, 0, 0)
        ended = [step for step in told if step.latest]
        assert [step.done for step in ended] == [4, 5, 6, 7, 8, 9]
        assert ended[-1].seconds_left == 0
        assert ended[-2].seconds_left > 0
        begun = [step.active for step in told if step.active]
        assert [run.key for (run,) in begun] == [run.key for run in plan.runs[3:]]
        assert {record.attempts for record in store.records().values()} == {1}

        def never(*_):
            raise AssertionError("nothing is missing")

        monkeypatch.setattr("coevo.study.runner.choose_backend", never)
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


def test_results_do_not_depend_on_workers_or_threads(tmp_path, longer, read_accuracies):
    _, plan, alone = longer
    with Store(tmp_path / "two.sqlite") as store:
        run_study(plan, store, workers=2, threads=1)
        assert read_accuracies(store, plan) == alone
    part = plan.only(seeds=1)
    with Store(tmp_path / "threads.sqlite") as store:
        run_study(part, store, workers=1, threads=2)
        found = read_accuracies(store, part)
    assert found == {key: alone[key] for key in found}


def test_failed_runs_are_recorded_and_retried(tmp_path, monkeypatch, write_plan):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nothing"))
    text = """
[[experiment]]
dataset = "ESR"
variants = ["LECCDE"]
seeds = 2
settings = { hidden_layer_sizes = [3], batch_size = 100, max_evaluations = 500 }
"""
    plan = read_plan(write_plan(tmp_path, text))
    wbc = worker.load("WBC")
    with Store(tmp_path / "runs.sqlite") as store:
        assert run_study(plan, store, workers=1).failed == 2
        record = store.records()[plan.runs[0].key]
        assert record.error.startswith("MissingDataError: ESR")
        assert "Traceback" in record.traceback
        assert run_study(plan, store, workers=1).failed == 2  # not without being asked
        monkeypatch.setattr(worker, "_load", lambda name, selection: wbc)
        assert run_study(plan, store, workers=1, retry_failed=True).done == 2


def test_killed_study_goes_on_where_it_was(
    tmp_path, longer, wait_until, read_accuracies, start_study
):
    path, plan, alone = longer
    keys = [run.key for run in plan.runs]
    process = start_study(path, tmp_path / "runs.sqlite", 2)
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
        assert read_accuracies(store, plan) == alone
    # Nor do the killed process's workers stay behind.
    wait_until(lambda: not any(map(is_alive, workers)), 30)


def test_two_processes_share_a_store_without_doing_anything_twice(
    tmp_path, longer, read_accuracies, start_study
):
    path, plan, alone = longer
    processes = [start_study(path, tmp_path / "runs.sqlite", 1) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all(output == f"{len(plan.runs)} 0\n" for output, _ in outputs)
    with Store(tmp_path / "runs.sqlite") as store:
        assert {record.attempts for record in store.records().values()} == {1}
        assert read_accuracies(store, plan) == alone


@needs_proc
def test_killed_worker_is_replaced(tmp_path, longer, wait_until, read_accuracies, start_study):
    path, plan, alone = longer
    keys = [run.key for run in plan.runs]
    process = start_study(path, tmp_path / "runs.sqlite", 2)
    with Store(tmp_path / "runs.sqlite") as store:
        wait_until(lambda: "done" in store.states(keys).values())
        busy = [pid for pid in children_of(process.pid) if is_worker(pid)]
        os.kill(busy[0], signal.SIGKILL)
        output, errors = process.communicate(timeout=120)
        assert output == f"{len(keys)} 0\n", errors
        assert read_accuracies(store, plan) == alone


def test_interrupted_run_is_no_result(tmp_path, monkeypatch, write_plan):
    """Ctrl-C ends a search early; what it has then must not be entered as the run's result."""
    plan = read_plan(write_plan(tmp_path)).only(seeds=1)
    real = worker.evolve

    def interrupted(*arguments, **options):
        def press_ctrl_c(search):
            signal.raise_signal(signal.SIGINT)

        return real(*arguments, **{**options, "callbacks": [press_ctrl_c]})

    monkeypatch.setattr(worker, "evolve", interrupted)
    with Store(tmp_path / "runs.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            run_study(plan, store, workers=1)
        assert set(store.states([run.key for run in plan.runs]).values()) == {"waiting"}


@pytest.mark.skipif(
    "COEVO_DATA_HOME" not in os.environ, reason="COEVO_DATA_HOME names no folder with ESR"
)
def test_plan_decides_how_real_data_are_split(tmp_path, write_plan, read_accuracies):
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
        by_row, by_recording = read_accuracies(store, plan).values()
    assert by_row != by_recording
    assert min(*by_row, *by_recording) > 0.5


class PowerCut(BaseException):
    """Ends a run as nothing else does: no result, no error, no farewell."""


def cut_off(real, generations):
    """Return `evolve` that is cut off after so many generations, with a checkpoint after each."""

    def cut(*arguments, **options):
        def pull_the_plug(search):
            generations.append(search.state.generation)
            if len(generations) % 4 == 0:
                raise PowerCut

        options["checkpoint"].every_generations = 1
        return real(*arguments, **{**options, "callbacks": [pull_the_plug]})

    return cut


def test_cut_off_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch, longer, read_accuracies):
    _, plan, alone = longer
    plan = plan.only(rows=["CCDE"], seeds=1)
    generations = []
    monkeypatch.setattr(worker, "evolve", cut_off(worker.evolve, generations))
    monkeypatch.setattr(Store, "release", lambda *_: None)  # nor does a dead process do that
    with Store(tmp_path / "runs.sqlite") as store:
        for _ in range(4):  # more often than a run may crash by itself
            with pytest.raises(PowerCut):
                run_study(plan, store, workers=1, threads=1, lease=0.01)
        assert list((tmp_path / "runs.sqlite.checkpoints").iterdir())
        # After the cut the generation is done once more: its checkpoint was not written yet.
        assert generations == [1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13]
        monkeypatch.undo()
        assert run_study(plan, store, workers=1, threads=1, lease=0.01).done == 1
        (found,) = read_accuracies(store, plan).items()
        record = store.records()[plan.runs[0].key]
    assert found in alone.items()
    assert len(record.outcome.history) == record.outcome.generations + 1
    assert not (tmp_path / "runs.sqlite.checkpoints").exists()


def test_run_that_is_imported_while_it_is_done_here_leaves_nothing(
    tmp_path, monkeypatch, write_plan, outcome
):
    plan = read_plan(write_plan(tmp_path)).only(rows=["CCDE"], seeds=1)
    (run,) = plan.runs
    real, told = worker.evolve, []
    with Store(tmp_path / "runs.sqlite") as store:

        def import_meanwhile(*arguments, **options):
            store.insert(Record(run, "done", outcome=outcome))
            return real(*arguments, **options)

        monkeypatch.setattr(worker, "evolve", import_meanwhile)
        progress = run_study(plan, store, workers=1, threads=1, on_progress=told.append)
        assert (progress.done, progress.failed) == (1, 0)
        assert store.records()[run.key].outcome.generations == outcome.generations
    assert [(step.done, len(step.active)) for step in told] == [(0, 0), (0, 1), (1, 0)]
    assert not (tmp_path / "runs.sqlite.checkpoints").exists()


def test_checkpoints_of_runs_that_are_done_are_removed(tmp_path, write_plan, outcome):
    """An import leaves them behind, and an owner that lost its lease writes them once more."""
    plan = read_plan(write_plan(tmp_path)).only(rows=["CCDE"])
    first, second, others = plan.runs
    folder = CheckpointFolder(str(tmp_path / "runs.sqlite"))
    paths = [folder.path_of(run) for run in plan.runs]
    paths[0].parent.mkdir()
    for path in paths:
        for suffix in ("", ".previous", ".trace", ".lock"):
            path.with_name(path.name + suffix).touch()
    with Store(tmp_path / "runs.sqlite") as store:
        store.insert(Record(first, "done", outcome=outcome))
        store.insert(Record(second, "failed", error="ValueError: no"))
        store.enrol([others])
        run_study(plan.only(seeds=2), store, workers=1, threads=1)
        left = {path.name.removesuffix(".previous") for path in paths[0].parent.glob("*.previous")}
        assert left == {path.name for path in paths[1:]}
        store.insert(Record(second, "done", outcome=outcome))
        store.insert(Record(others, "done", outcome=outcome))
        run_study(plan, store, workers=1, threads=1)
    assert not paths[0].parent.exists()


WITH_CHECKPOINTS = """
import sys
from coevo.study import Store, read_plan, run_study, worker
worker.CHECKPOINT_SECONDS = 0.0  # after each generation
with Store(sys.argv[2]) as store:
    run_study(read_plan(sys.argv[1]).only(rows=["CCDE"], seeds=1), store, workers=1, threads=1)
"""


def test_run_of_a_killed_process_goes_on_bit_for_bit(tmp_path, monkeypatch, longer, wait_until):
    path, plan, _ = longer
    plan = plan.only(rows=["CCDE"], seeds=1)
    key = plan.runs[0].key
    with Store(tmp_path / "alone.sqlite") as store:
        run_study(plan, store, workers=1, threads=1)
        alone = store.records()[key].outcome
    begun = []
    real = worker.evolve

    def note_generation(*arguments, **options):
        def note(search):
            begun.append(search.state.generation)

        return real(*arguments, **{**options, "callbacks": [note]})

    monkeypatch.setattr(worker, "evolve", note_generation)
    with Store(tmp_path / "runs.sqlite") as store:
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_CHECKPOINTS, str(path), str(tmp_path / "runs.sqlite")]
        )
        # The checkpoint before the last one is kept, so there have been two generations at least.
        folder = tmp_path / "runs.sqlite.checkpoints"
        wait_until(lambda: list(folder.glob("*.previous")) or process.poll() is not None)
        process.kill()
        process.wait(30)
        assert store.records()[key].state == "running"  # killed in the middle
        assert run_study(plan, store, workers=1, threads=1, lease=0.01).done == 1
        resumed = store.records()[key].outcome
    assert begun[0] > 2
    assert (resumed.train, resumed.validation, resumed.test) == (
        alone.train, alone.validation, alone.test,
    )  # fmt: skip
    seconds = Generation._fields.index("seconds")
    np.testing.assert_array_equal(
        np.delete(resumed.history, seconds, axis=1), np.delete(alone.history, seconds, axis=1)
    )


@needs_proc
def test_dead_process_is_charged_to_its_own_run(tmp_path, longer, start_study, wait_until):
    """The run of the killed process is begun again; the other goes on and is begun once."""
    path, plan, _ = longer
    keys = [run.key for run in plan.runs]
    process = start_study(path, tmp_path / "runs.sqlite", 2)
    with Store(tmp_path / "runs.sqlite") as store:
        wait_until(lambda: list(store.states(keys).values()).count("running") == 2)
        wait_until(lambda: sum(map(is_worker, children_of(process.pid))) == 2)
        os.kill(next(filter(is_worker, children_of(process.pid))), signal.SIGKILL)
        output, errors = process.communicate(timeout=120)
        assert output == f"{len(keys)} 0\n", errors
        assert sorted(record.attempts for record in store.records().values()) == [1] * 5 + [2]
        assert [row[0] for row in store._read("SELECT crashes FROM runs")].count(1) == 1


@needs_proc
def test_workers_end_with_a_parent_that_is_killed_before_their_first_run(
    tmp_path, longer, start_study, wait_until
):
    process = start_study(longer[0], tmp_path / "runs.sqlite", 2)
    wait_until(lambda: sum(map(is_worker, children_of(process.pid))) == 2)
    workers = list(filter(is_worker, children_of(process.pid)))
    process.kill()  # the workers are still importing
    process.wait(30)
    wait_until(lambda: not any(map(is_alive, workers)), 30)
