"""A lock that ends with its process."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from coevo.persistence.lock import LockedError, hold

HOLDER = """
import os, sys, time
from coevo.persistence.lock import hold

with hold(sys.argv[1]):
    if "child" in sys.argv:
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            time.sleep(60)
            os._exit(0)
    else:
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


def test_one_at_a_time(path):
    with hold(path):
        with pytest.raises(LockedError, match=r"run\.lock is held by another process or thread"):
            hold(path).__enter__()
        assert path.exists()
    assert not path.exists()
    with hold(path):
        pass


def test_an_error_lets_it_go(path):
    with pytest.raises(ZeroDivisionError), hold(path):
        _ = 1 / 0
    assert not path.exists()


def start_holder(path, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *arguments], stdout=subprocess.PIPE
    )
    return process, int(process.stdout.readline())


def test_a_killed_process_lets_it_go(path):
    process, _ = start_holder(path)
    with pytest.raises(LockedError):
        hold(path).__enter__()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.exists()  # left behind, but nobody's
    with hold(path):
        pass
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process")
def test_a_child_does_not_hold_the_lock_of_its_killed_parent(path):
    process, child = start_holder(path, "child")
    try:
        with pytest.raises(LockedError):
            hold(path).__enter__()
        process.send_signal(signal.SIGKILL)
        process.wait()
        with hold(path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_many_threads_take_turns(path):
    inside, most, turns = 0, [], []

    def work():
        nonlocal inside
        while len(turns) < 300:
            try:
                with hold(path):
                    inside += 1
                    most.append(inside)
                    turns.append(1)
                    inside -= 1
            except LockedError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process")
def test_a_child_that_leaves_the_block_does_not_release_its_parents_lock(path):
    child = None
    with hold(path):
        child = os.fork()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert path.exists()
            with pytest.raises(LockedError):
                hold(path).__enter__()
    if child == 0:
        os._exit(0)
    assert not path.exists()


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        hold(tmp_path / "none" / "run.lock").__enter__()


def test_a_file_system_without_locks_warns(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be locked .*take care"), hold(path):
        pass
