"""Progress in a pipe, on a terminal and in a notebook."""

import itertools
import os
import pty
import subprocess
import sys

import pytest

from coevo.runtime import progress as module
from coevo.runtime.progress import Progress, format_seconds


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_pipe_gets_lines_at_growing_intervals(clock, capsys):
    times = []
    with Progress("evolving", total=480) as progress:
        for second in range(480):
            clock.now = 1000.0 + second
            progress.update(second, f"step {second}")
            if line := capsys.readouterr().err:
                assert line == f"evolving {second / 480:.0%}: step {second}\n"
                times.append(second)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert times[0] == 2
    assert gaps == sorted(gaps)
    assert gaps[0] >= 3
    assert max(gaps) <= 60
    assert 8 <= len(times) <= 20


def test_what_takes_no_time_prints_nothing(capsys):
    with Progress("reading") as progress, progress.pause():
        progress.say("evolving")
        progress.update(1, "one")
    assert capsys.readouterr() == ("", "")


def test_compiling_is_said(clock, capsys, no_jit):
    if no_jit:
        pytest.skip("nothing is compiled")
    import numba

    with Progress("evolving"):
        clock.now += 5
        numba.njit(lambda x: x + 1)(1)
    assert capsys.readouterr().err == "evolving: compiling kernels, once\n"


def test_nothing_is_shown_if_nobody_asks(clock, capsys):
    with Progress("evolving", is_shown=False) as progress:
        clock.now += 100
        assert not progress.is_due
        progress.update(1, "one")
    assert capsys.readouterr() == ("", "")


TERMINAL = """
import time
from coevo.runtime.progress import Progress
with Progress("reading", total=4) as progress:
    for k in range(4):
        progress.update(k, f"[red]step[/red] {k} \\x1b[2J")
        time.sleep(0.15)
"""


def test_a_terminal_shows_a_live_line_and_interprets_nothing():
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", TERMINAL], stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    try:
        while content := os.read(master, 2**16):
            seen += content
    except OSError:  # Linux's way to say that the other side has been closed
        pass
    assert process.wait(30) == 0
    os.close(master)
    assert b"[red]step[/red] 2" in seen
    assert b"\\x1b[2J" in seen
    assert b"\x1b[2J" not in seen


NOTEBOOK = """
import time
from coevo.runtime.progress import Progress
with Progress("evolving", total=2) as progress:
    for k in range(3):
        time.sleep(0.4)
        progress.update(k, f"best <{k}>")
"""


def test_a_notebook_gets_one_bar_that_is_updated(notebook):
    shown = notebook(NOTEBOOK)
    messages = [m for m in shown if m["msg_type"] in ("display_data", "update_display_data")]
    assert [m["msg_type"] for m in messages[:2]] == ["display_data", "update_display_data"]
    assert len({m["content"]["transient"]["display_id"] for m in messages}) == 1
    last = messages[-1]["content"]["data"]
    assert last["text/plain"] == "100% best <2>"
    assert last["text/html"] == '<progress value="1.000"></progress> 100% best &lt;2&gt;'
    assert [m for m in shown if m["msg_type"] == "stream"] == []


def test_durations():
    assert [format_seconds(s) for s in (0.4, 65, 3723)] == ["0:00", "1:05", "1:02:03"]
