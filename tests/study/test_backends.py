"""Backends give each run's result, and say whose process died."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest

from coevo.runtime.processes import _wait_for_end
from coevo.study import read_plan
from coevo.study.backends import Processes, choose_backend


def test_dead_process_is_a_result_of_its_run(monkeypatch):
    def die(run, checkpoint, n_threads):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("coevo.study.backends._attempt", die)
    runs = read_plan("quick").runs[:3]
    tasks = iter([(run, None) for run in runs])
    results = list(Processes(2).perform(lambda: next(tasks, None)))
    assert sorted(run.key for run, _ in results) == sorted(run.key for run in runs)
    assert [result for _, result in results] == [None] * 3


class FakeWindows:
    """The calls by which Windows waits for a process; each is noted."""

    SYNCHRONIZE, INFINITE = 2**20, 2**32 - 1

    def __init__(self, has_ended):
        self.has_ended, self.calls = has_ended, []

    def OpenProcess(self, access, inherits, process):  # noqa: N802 - Windows' own name
        self.calls.append((access, inherits, process))
        if self.has_ended:
            raise OSError(22, "The parameter is incorrect", None, 87)
        return 5

    def WaitForSingleObject(self, handle, milliseconds):  # noqa: N802
        self.calls.append((handle, milliseconds))


@pytest.mark.parametrize("has_ended", [False, True])
def test_on_windows_a_worker_waits_for_its_parents_end(monkeypatch, has_ended):
    """There a process's parent keeps its number after it has ended."""
    windows = FakeWindows(has_ended)
    monkeypatch.setitem(sys.modules, "_winapi", windows)
    monkeypatch.setattr("coevo.runtime.processes.os", SimpleNamespace(name="nt"))
    _wait_for_end(77)
    opened = (windows.SYNCHRONIZE, False, 77)
    assert windows.calls == ([opened] if has_ended else [opened, (5, windows.INFINITE)])


def test_missing_scheduler_is_named():
    with pytest.raises(ValueError, match="backend dask needs the address"):
        choose_backend("dask", None, None, None)
    with pytest.raises(ValueError, match="is for the backend dask"):
        choose_backend("processes", None, None, "tcp://127.0.0.1:1")


def test_threads_are_shared_out(monkeypatch):
    monkeypatch.setattr("coevo.study.backends.available_cores", lambda: 8)
    chosen = choose_backend("processes", 3, None, None)
    assert (chosen.n_workers, chosen._n_threads) == (3, 2)
    assert choose_backend("processes", 1, None, None)._n_threads == 8
