"""Fixtures of the command line: a table, a trained model, processes and terminals."""

import fcntl
import json
import os
import pickle
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from coevo.cli.app import app
from coevo.persistence import model

COMMAND = [sys.executable, "-c", "from coevo.cli.app import app; app()"]


@pytest.fixture(scope="session")
def small():
    """Options of a small search without an end."""
    return ["--hidden-layer-sizes", "3", "--population-size", "6", "--batch-size", "50",
            "--extensions", "none", "--seed", "4"]  # fmt: skip


@pytest.fixture(scope="session")
def brief(small):
    """Options of a training that takes no time."""
    return [*small, "--max-generations", "3"]


@pytest.fixture(scope="session")
def make_shop():
    """Make a table of customers who buy by age and town, with the usual holes."""

    def make(n=400, seed=0):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "id": [f"c{i}" for i in range(n)],
                "age": rng.integers(18, 90, n).astype(float),
                "town": rng.choice(["Rome", "Oslo, N", "Köln"], n),
                "same": 1,
                "nothing": np.nan,
            }
        )
        frame["spent"] = (frame["age"] * 2.5 + rng.normal(size=n)).round(2)
        frame["bought"] = np.where(frame["age"] > 50, "yes", "no")
        frame.loc[rng.random(n) < 0.1, "age"] = np.nan
        frame.loc[rng.random(n) < 0.1, "town"] = None
        return frame

    return make


@pytest.fixture(scope="session")
def command():
    """The words that start the command line in a process of its own."""
    return COMMAND


@pytest.fixture(scope="session")
def run_process():
    """Run the command line in a process of its own."""

    def run(*words, cwd, **further):
        return subprocess.run(
            [*COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120,
            check=False, **further,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def house(tmp_path_factory, make_shop, run_process, brief):
    """A folder with a table and a model trained on it."""
    folder = tmp_path_factory.mktemp("house")
    make_shop().to_csv(folder / "shop.csv", index=False)
    done = run_process("train", "shop.csv", "--target", "bought", "--drop", "spent", *brief,
                       "--output", "run", "--json", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), done


@pytest.fixture
def read_model():
    """Return all that a run's model file holds; the order of its texts is not always the same."""
    return lambda run: pickle.dumps(model.load(run / "model.safetensors"))


@pytest.fixture
def coevo(tmp_path, monkeypatch):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


@pytest.fixture
def assert_one_line():
    """Check that a command was refused with one line."""

    def check(done, message):
        assert done.exit_code == 2, (done.stdout, done.stderr)
        assert message in done.stderr
        assert done.stderr.startswith("coevo: ")
        assert len(done.stderr.splitlines()) == 1
        assert done.stdout == ""

    return check


class Terminal:
    """A process on a pseudo-terminal of its own, as a person would see it."""

    def __init__(self, *words, cwd, columns=120, **environment):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, words)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
            env=os.environ | {"TERM": "xterm-256color"} | environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    def read_until(self, pattern, seconds=90):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, self.seen
            assert self._read(), self.seen

    def press(self, key):
        os.write(self._master, key)

    def wait(self, seconds=90):
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, self.seen
        return self.process.wait(10)

    def _read(self):
        ready, _, _ = select.select([self._master], [], [], 1)
        if not ready:
            return self.process.poll() is None
        try:
            content = os.read(self._master, 2**16)
        except OSError:  # Linux's way to say that the other side has been closed
            return False
        self.seen += content.decode(errors="replace")
        return bool(content)


@pytest.fixture
def terminal():
    """Start a process on a terminal."""
    return Terminal
