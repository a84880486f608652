"""The group of commands: errors, help, completion, start-up."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from coevo.cli.app import COMMANDS, app, load_command

ROWS = "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.csv", "--target", "y"], "there is no file none.csv"),
        (["train", ".", "--target", "y"], "is a folder"),
        (["train"], "DATA is missing"),
        (["predict", "none", "t.csv"], "there is no model at none"),
        (["predict", ".", "t.csv"], "there is no model.safetensors in the folder"),
        (["predict", "t.csv", "t.csv"], "is not a good model file"),
        (["predict", "none"], "Missing argument 'DATA'"),
        (["predict", "t.csv", "m.safetensors"], "MODEL stands before DATA: coevo predict m.saf"),
        (["train", "t.json", "--target", "y"], "t.json is a JSON file; save the table as CSV"),
        (["policy", "watch", "none"], "there is no model at none"),
        (["inspect", "t.csv"], "is not a good model file"),
        (["export", "t.csv"], "say which format: --onnx"),
        (["bench", "--shape", "3"], "--shape must be sizes as in 30-50-2"),
        (["bench", "--variant", "X"], "variant='X' is unknown"),
        (["bench", "--seconds", "0"], "--seconds must be above 0"),
    ],
    ids=str,
)
def test_other_commands_give_one_line_too(coevo, tmp_path, words, message, assert_one_line):
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "t.json").write_text('{"x": [1, 2], "y": [3, 4]}')
    (tmp_path / "m.safetensors").touch()
    assert_one_line(coevo(*words), message)


def test_wrong_input_in_a_process_of_its_own(tmp_path, run_process):
    done = run_process("train", "none.csv", "--target", "y", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "coevo: there is no file none.csv\n"
    debugged = run_process("--debug", "train", "none.csv", "--target", "y", cwd=tmp_path)
    assert "Traceback" in debugged.stderr


def test_help_fits_a_screen_and_has_examples(coevo, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = coevo("--help").stdout
    assert len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 80
    for command in ("train", "predict", "export", "inspect", "bench", "doctor"):
        assert command in shown
        assert f"Example: coevo {command}" in coevo(command, "--help").stdout
    usual = coevo("train", "--help").stdout
    assert "--population-size" not in usual
    assert len(re.findall(r"^│ --", usual, re.MULTILINE)) <= 15
    for words in (["train"], ["predict"], ["study", "run"], []):
        assert "bool" not in coevo(*words, "--help").stdout, words  # a flag takes no value
    text = coevo("train", "--help-all").stdout
    assert "--population-size" in text
    assert "Default: auto." in " ".join(re.sub("[│\n]", " ", text).split())


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("coevo tr", ["train"]),
        ("coevo train --max-s", ["--max-seconds"]),
        ("coevo train --population", ["--population-size"]),
        ("coevo train --variant LE", ["LEDE", "LECCDE"]),
        ("coevo train --fitness ba", ["balanced_accuracy"]),
    ],
)
def test_the_shell_completes(coevo, typed, offered):
    environment = {
        "_COEVO_COMPLETE": "complete_bash", "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }  # fmt: skip
    done = CliRunner().invoke(app, [], env=environment, prog_name="coevo")
    assert done.stdout.split() == offered


def test_bench_and_doctor(coevo, no_jit):
    if no_jit:
        pytest.skip("there is nothing to measure without the compiler")
    found = json.loads(coevo("bench", "--seconds", "0.3", "--shape", "5-4-2", "--json").stdout)
    assert found["evaluations_per_second"] > 0
    assert found["ratio"] == pytest.approx(
        found["evaluations_per_second"] / found["numpy_evaluations_per_second"]
    )
    shown = coevo("doctor").stdout
    for part in ("python", "numba", "BLAS", "GFLOP/s", "kernels"):
        assert part in shown
    findings = json.loads(coevo("doctor", "--json").stdout)
    assert findings["kernels"]["compiled_now"] == []  # the first examination has seen to it
    assert findings["cores"] >= 1


def test_ctrl_c_while_the_parts_are_imported():
    code = """
import sys

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "coevo.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
from coevo.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "coevo: interrupted\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_loaded(name):
    assert load_command(name).name == name


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["--bogus"], ["bogus"]], ids=str)
def test_nothing_slow_is_imported_to_answer_at_once(words):
    code = f"""
import sys
from coevo.cli.app import app
try:
    app({words!r})
finally:
    slow = ("numba", "numpy", "sklearn", "pandas", "matplotlib", "scipy")
    print("SLOW", *(name for name in slow if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "SLOW"
    assert "Traceback" not in done.stderr


def test_importing_coevo_imports_nothing_slow():
    code = "import sys, coevo; print('numpy' in sys.modules, coevo.evolve.__name__, *dir(coevo))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False evolve ")
    assert "CoevoClassifier" in done.stdout


def test_an_end_of_file_is_not_an_interrupt(coevo, monkeypatch):
    from coevo.tabular import run_folder

    def fail(path):
        raise EOFError("Ran out of input")

    monkeypatch.setattr(run_folder, "find_model", fail)
    done = coevo("inspect", "x")
    assert done.exit_code == 1
    assert "unexpected EOFError: Ran out of input" in done.stderr
