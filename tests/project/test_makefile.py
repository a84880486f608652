"""Targets of the Makefile, with the commands replaced by one that notes how it was called."""

import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def make(tmp_path):
    """Make a target; return the exit code and the commands.

    Commands that begin as `failing` does fail.
    """
    (tmp_path / "pyproject.toml").touch()
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in (".venv", ".dev"):
        (tmp_path / ".venv" / name).touch()

    def call(target, failing="nothing"):
        for name in ("coevo", "python"):
            (folder / name).write_text(
                f'#!/bin/sh\necho "{name} $*" >> commands\n'
                f'case "{name} $*" in "{failing}"*) exit 3;; esac\n'
            )
            (folder / name).chmod(0o755)
        done = subprocess.run(
            ["make", "-f", MAKEFILE, target],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, (tmp_path / "commands").read_text().splitlines()

    return call


RESULTS = "benchmarks/results/paper.json"
STEPS = [
    f"coevo study import {RESULTS} --store out/paper.sqlite",
    "coevo study run paper --store out/paper.sqlite",
    f"coevo study export paper {RESULTS} --store out/paper.sqlite",
    "coevo study report paper --store out/paper.sqlite --output out/paper",
    "python benchmarks/reproduction.py",
]


@pytest.mark.parametrize(
    ("failing", "n_steps"),
    [
        ("nothing", 5),
        ("coevo study run", 5),  # a failed run: what the others gave is kept
        ("coevo study import", 1),
        ("coevo study export", 3),
        ("python", 5),
    ],
)
def test_paper_keeps_what_is_done_and_says_what_failed(make, failing, n_steps):
    code, commands = make("paper", failing)
    assert commands == STEPS[:n_steps]
    assert (code == 0) == (failing == "nothing")
