"""The command line does what it says, and says what is wrong in one line."""

import subprocess
import sys

import pytest
from test_study_plan import write_plan
from typer.testing import CliRunner

from coevo.cli import app


@pytest.fixture
def coevo(tmp_path, monkeypatch):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


def test_a_study_from_plan_to_report(coevo, tmp_path):
    plan = write_plan(tmp_path)
    done = coevo("study", "run", plan, "--workers", 1, "--seeds", 1)
    assert (done.exit_code, done.stdout) == (0, "3 of 3 runs done, 0 failed\n")
    assert done.stderr == ""  # no bar without a terminal
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


def test_list_names_the_plans(coevo):
    done = coevo("study", "list")
    assert done.exit_code == 0
    assert "quick" in done.stdout
    assert "HAR-900k" in done.stdout


def test_failed_runs_show_in_exit_code_and_status(coevo, tmp_path, monkeypatch):
    plan = write_plan(tmp_path)

    def fail(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("coevo.study.performing._split", fail)
    done = coevo("study", "run", plan, "--workers", 1, "--seeds", 1)
    assert done.exit_code == 1
    assert "0 of 3 runs done, 3 failed" in done.stdout
    assert len(done.stderr.splitlines()) == 1
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
        (["data", "fetch", "IRIS"], "data set='IRIS' is unknown"),
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
    commands = [
        ["study", name] for name in ("run", "status", "report", "list", "export", "import")
    ] + [["data", name] for name in ("list", "fetch", "verify")]
    for words in [[], *commands]:
        shown = coevo(*words, "--help")
        assert shown.exit_code == 0
        assert f"Example: coevo {' '.join(words)}".rstrip() in shown.stdout, words


def test_data_commands(coevo, tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nothing"))
    listed = coevo("data", "list")
    assert "comes with scikit-learn" in listed.stdout
    assert "missing" in listed.stdout
    assert coevo("data", "fetch", "WBC").stdout == "WBC comes with scikit-learn\n"
    assert coevo("data", "verify").exit_code == 0
    wrong = coevo("data", "verify", "ESR")
    assert wrong.exit_code == 1
    assert "ESR: missing or not as published" in wrong.stdout


def test_command_line_in_a_process_of_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from coevo.cli import app; app()", "study", "run", "nope"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("coevo: there is no plan")
