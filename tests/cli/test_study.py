"""`coevo study` does what it says, and says what is wrong in one line."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from coevo.cli.app import app
from coevo.study import Store, read_plan
from coevo.study.run import Failure

COMMAND = [sys.executable, "-c", "from coevo.cli.app import app; app()"]


def test_a_study_from_plan_to_report(coevo, tmp_path, write_plan):
    plan = write_plan(tmp_path)
    done = coevo("study", "run", plan, "--workers", 1, "--seeds", 1)
    assert (done.exit_code, done.stdout) == (0, "3 of 3 runs done, 0 failed\n")
    assert (tmp_path / "small.sqlite").is_file()
    status = coevo("study", "status", plan)
    assert "LECCDE" in status.stdout
    assert "waiting" in status.stdout
    exported = coevo("study", "export", plan, "results.json")
    assert exported.stdout == "wrote 3 runs to results.json\n"
    imported = coevo("study", "import", "results.json", "--store", "copy.sqlite")
    assert imported.stdout == "3 runs were new to copy.sqlite\n"
    for source in ("small.sqlite", "copy.sqlite", "results.json"):
        report = coevo("study", "report", plan, "--store", source, "--output", f"from-{source}")
        assert report.exit_code == 0, report.stderr
    pages = [
        (tmp_path / f"from-{source}" / "tables.md").read_text(encoding="utf-8")
        for source in ("small.sqlite", "copy.sqlite", "results.json")
    ]
    assert pages[0] == pages[1] == pages[2]


def test_report_of_the_committed_results_of_the_paper(coevo, tmp_path):
    """What the page says follows from the lines of the export, without the code of studies."""
    export = Path(__file__).parents[2] / "benchmarks" / "results" / "paper.json"
    done = coevo("study", "report", "paper", "--store", export, "--output", "paper")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "paper" / "report.html").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()[1:]]
    ended = [line for line in lines if "test" in line]
    assert re.search(rf"<b>{len(ended)} of \d+</b><span>runs done</span>", page)
    rows = [
        ("WBC", "LECCDE", "WBC", {}),
        ("WBC", "backprop", "WBC", {}),
        ("ESR", "DE", "ESR", {"population_size": 20}),
        ("ESR-NP100", "DE", "ESR", {"population_size": 100}),
        ("HAR", "LECCDE", "HAR", {"max_evaluations": 500_000, "batch_size": 500}),
        ("HAR-900k", "LECCDE", "HAR", {"max_evaluations": 900_000}),
        ("MNIST", "LECCDE", "MNIST", {"hidden_layer_sizes": [60]}),
    ]
    for experiment, variant, dataset, settings in rows:
        runs = [
            line
            for line in ended
            if (line["run"]["dataset"], line["run"]["variant"]) == (dataset, variant)
            and settings.items() <= line["run"]["settings"].items()
        ]
        values = 100 * np.array([[run[p] for p in ("train", "validation", "test")] for run in runs])
        section = page.partition(f'<section id="{experiment}">')[2].partition("</section>")[0]
        row = section.partition(f'<th scope="row">{variant}</th>')[2].partition("</tr>")[0]
        assert re.match(rf"<td>{len(runs)}( of \d+)?</td>", row)
        medians = [float(x) for x in re.findall(r">([\d.]+) ± [\d.]+<small>", row)]
        np.testing.assert_allclose(medians, np.median(values, axis=0), atol=0.0051)
        deviations = [float(x) for x in re.findall(r">[\d.]+ ± ([\d.]+)<small>", row)]
        np.testing.assert_allclose(deviations, values.std(axis=0, ddof=1), atol=0.051)
        means = [float(x) for x in re.findall(r"\] mean ([\d.]+)</small>", row)]
        assert bool(means) == (experiment in ("HAR-900k", "MNIST"))  # the paper's averages
        if means:
            np.testing.assert_allclose(means, values.mean(axis=0), atol=0.0051)


def test_list_names_the_plans(coevo):
    done = coevo("study", "list")
    assert done.exit_code == 0
    assert "quick" in done.stdout
    assert "HAR-900k" in done.stdout


def test_failed_runs_show_in_exit_code_and_status(coevo, tmp_path, monkeypatch, write_plan):
    plan = write_plan(tmp_path)

    def fail(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("coevo.study.worker._split", fail)
    done = coevo("study", "run", plan, "--workers", 1, "--seeds", 1)
    assert done.exit_code == 1
    assert "0 of 3 runs done, 3 failed" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("coevo: some runs failed")
    assert "seed 1: RuntimeError: out of luck" in coevo("study", "status", plan).stdout
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    again = coevo("study", "run", plan, "--workers", 1, "--seeds", 1, "--retry-failed")
    assert again.stdout == "3 of 3 runs done, 0 failed\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study", "run", "nope"], "there is no plan 'nope'"),
        (["study", "run", "quick", "--seeds", "0"], "seeds must be at least 1"),
        (["study", "run", "quick", "--workers", "0"], "workers must be at least 1"),
        (["study", "run", "quick", "--only", "HAR"], "experiment='HAR' is unknown"),
        (["study", "run", "quick", "--backend", "slurm"], "backend='slurm' is unknown"),
        (["study", "run", "quick", "--backend", "dask"], "needs the address of a scheduler"),
        (["study", "run", "quick", "--bogus"], "No such option: --bogus"),
        (["study", "run", "quick", "--store", "no/such/folder/a.sqlite"], "cannot be opened"),
        (["study", "dance"], "No such command 'dance'"),
        (["study", "status", "quick"], "there are no results at quick.sqlite"),
        (["study", "report", "quick", "--store", "none.json"], "there are no results"),
        (["study", "import", "none.json", "--store", "a.sqlite"], "there is no file none.json"),
    ],
)
def test_bad_input_gets_one_line_and_code_2(coevo, words, message):
    done = coevo(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("coevo: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_missing_data_is_told_before_any_run(coevo, tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nothing"))
    done = coevo("study", "run", "paper", "--only", "ESR")
    assert done.exit_code == 2
    assert "ESR" in done.stderr
    assert "--only" in done.stderr


def test_debug_shows_where(coevo):
    with pytest.raises(ValueError, match="there is no plan"):
        CliRunner().invoke(app, ["--debug", "study", "run", "nope"], catch_exceptions=False)


def test_every_command_has_an_example(coevo):
    for name in ("run", "status", "report", "list", "export", "import"):
        shown = coevo("study", name, "--help")
        assert shown.exit_code == 0
        assert f"Example: coevo study {name}" in shown.stdout


def test_command_line_in_a_process_of_its_own(tmp_path):
    done = subprocess.run(
        [*COMMAND, "study", "run", "nope"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("coevo: there is no plan")


@pytest.fixture(params=["foreign", "text", "damaged", "later", "empty"])
def bad_store(request, tmp_path):
    """A file that is no store, or was one."""
    path = tmp_path / "bad.sqlite"
    if request.param == "text":
        path.write_text("my notes\n" * 200)
    elif request.param == "empty":
        path.touch()
    else:
        connection = sqlite3.connect(path)
        if request.param == "later":
            connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.executemany("INSERT INTO songs VALUES (?)", [("la" * 500,)] * 50)
        connection.commit()
        connection.close()
        if request.param == "damaged":
            content = bytearray(path.read_bytes())
            content[100:4096] = b"\xff" * 3996
            path.write_bytes(content)
    return path


@pytest.mark.parametrize("command", ["run", "status", "report"])
def test_bad_store_gets_one_line_and_stays_as_it_is(coevo, tmp_path, bad_store, command):
    if command == "run" and not bad_store.stat().st_size:
        pytest.skip("a new store may begin in an empty file")
    before = bad_store.read_bytes()
    done = coevo("study", command, "quick", "--store", bad_store)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"coevo: {bad_store} is ")
    assert len(done.stderr.splitlines()) == 1
    assert bad_store.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["bad.sqlite"]


def test_full_disk_gets_one_line(coevo, tmp_path, write_plan, monkeypatch):
    plan = write_plan(tmp_path)

    def fill_up(store):
        store._read("PRAGMA max_page_count = 1")  # SQLite takes the present size instead

    real = Store.__enter__
    monkeypatch.setattr(Store, "__enter__", lambda store: (real(store), fill_up(store))[0])
    done = coevo("study", "run", plan, "--workers", 1)
    assert done.exit_code == 2
    assert "small.sqlite cannot be written to: database or disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert coevo("study", "run", plan, "--workers", 1, "--seeds", 1).exit_code == 0


def test_plan_cannot_write_outside_its_folder(coevo, tmp_path, write_plan):
    (tmp_path / "inside").mkdir()
    plan = write_plan(tmp_path / "inside", 'name = "../evil"\n[[experiment]]\npaper = "WBC"\n')
    for command in ("run", "report"):
        done = coevo("study", command, plan)
        assert done.exit_code == 2
        assert "the plan's name='../evil' names files" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_status_prints_labels_as_they_are(coevo, tmp_path, write_plan):
    text = """
[[experiment]]
dataset = "WBC"
settings = { max_evaluations = 500 }
[experiment.rows."[red]\\u001b[31m"]
variant = "LECCDE"
"""
    plan = write_plan(tmp_path, text)
    with Store(tmp_path / "small.sqlite") as store:
        run = read_plan(plan).runs[0]
        store.enrol([run])
        failure = Failure("\x1b]0;title\x07")
        store.finish(store.claim([run.key], "me", 60), failure, "me")
    shown = coevo("study", "status", plan).stdout
    assert "\x1b" not in shown
    assert "[red]\\x1b[31m" in shown
    assert "seed 1: \\x1b]0;title\\x07" in shown


def test_pipe_gets_a_line_now_and_then(tmp_path, write_plan):
    """One at the start that says what runs, while the first run is compiled and done."""
    text = """
seeds = 2
[[experiment]]
dataset = "digits"
variants = ["LECCDE"]
settings = { max_evaluations = 1000000000, max_seconds = 2.5 }
"""
    plan = write_plan(tmp_path, text)
    done = subprocess.run(
        [*COMMAND, "study", "run", str(plan), "--workers", "1"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True,
    )  # fmt: skip
    first, *others = done.stderr.splitlines()
    assert first == "small 0%: 0 of 2 runs done; running LECCDE on digits, seed 1"
    assert len(others) < 10
    assert done.stdout == "2 of 2 runs done, 0 failed\n"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Ctrl-C reaches a group of processes")
@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1])
def test_ctrl_c_after_the_last_run_prints_no_traceback(tmp_path, write_plan, delay):
    plan = read_plan(write_plan(tmp_path)).only(rows=["CCDE"], seeds=2)
    keys = [run.key for run in plan.runs]
    process = subprocess.Popen(
        [*COMMAND, "study", "run", "small.toml", "--row", "CCDE", "--seeds", "2", "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        start_new_session=True,
    )  # fmt: skip
    with Store(tmp_path / "small.sqlite") as store:
        until = time.monotonic() + 60
        while list(store.states(keys).values()).count("done") < 2:
            assert time.monotonic() < until
            time.sleep(0.002)
    time.sleep(delay)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert output == "2 of 2 runs done, 0 failed\n" or "coevo: interrupted" in errors
