"""A short part of `make attack`: every harness once, for a moment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from attack.__main__ import PARTS, run_part
    from attack.inputs import DOORS, try_every_argument
    from attack.kills import SETTINGS
    from attack.tally import Tally, rounds
finally:
    sys.path.remove(str(BENCHMARKS))

# A study is killed by tests/study, and speed is for a quiet machine.
SHORT = {
    part: {"kills at random moments": 12.0, "damaged files": 3.0}.get(part, 1.0)
    for part in PARTS
    if part not in ("killed studies", "the default number of threads")
}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed here")
@pytest.mark.parametrize("part", SHORT)
def test_nothing_breaks(part, no_jit):
    if no_jit:
        pytest.skip("many runs, too slow without compiling")
    found = run_part(part, SHORT[part], seed=20180715)
    assert found["broken"] == []
    assert sum(found["counts"].values()) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fit that hangs is ended by an alarm")
@pytest.mark.parametrize("door", DOORS)
def test_every_argument_refuses_what_makes_no_sense(door, no_jit, tmp_path):
    if no_jit:
        pytest.skip("many runs, too slow without compiling")
    tally = try_every_argument(DOORS.index(door), tmp_path)
    assert tally.broken == []
    assert tally.counts["refused"] > tally.counts["served"] > 100


def test_what_broke_is_told():
    tally = Tally()
    tally.expect(True, "fine")
    tally.expect(False, "the run ended otherwise")
    assert tally.broken == ["the run ended otherwise"]
    assert list(rounds(-1)) == [0]


def test_a_crash_of_a_harness_is_a_finding(monkeypatch):
    def crash(*_, **__):
        return subprocess.CompletedProcess([], -11, "", "Segmentation fault")

    monkeypatch.setattr(subprocess, "run", crash)
    found = run_part("damaged files", 1, 1)
    assert found["broken"] == ["ended with -11: Segmentation fault"]


def test_kills_cover_many_settings():
    assert len(SETTINGS) == len({repr(changes) for changes in SETTINGS}) >= 31
