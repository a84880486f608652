"""Threads: shared out, given back, and not lost in a forked child."""

import os
import subprocess
import sys

import pytest

FORK = """
import multiprocessing
import numpy as np
from coevo.runtime import threads

def share_some_work():
    done = np.zeros(64)
    def work(start, stop):
        done[start:stop] += 1
    with threads.limit(2):
        threads.share_out(work, len(done), 1)
    assert (done == 1).all()

share_some_work()  # the parent's threads exist now
child = multiprocessing.get_context("fork").Process(target=share_some_work)
child.start()
child.join(30)
is_stuck = child.is_alive()
if is_stuck:
    child.kill()
print(is_stuck, child.exitcode)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False 0"


OVERLAP = """
import threading
import numpy
from threadpoolctl import threadpool_info
from coevo.runtime import threads

def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

before, granted = blas_threads(), []
inside, leave = threading.Barrier(9), [threading.Event() for _ in range(8)]

def run(event):
    with threads.limit(None) as n:
        granted.append(n)
        inside.wait()
        event.wait()

runs = [threading.Thread(target=run, args=(event,), daemon=True) for event in leave]
for thread in runs:
    thread.start()
inside.wait()
assert set(blas_threads()) == {1}, blas_threads()
assert set(granted) == {max(before)}, granted  # not what the run before left over
for event, thread in zip(leave, runs):
    event.set()
    thread.join()
assert blas_threads() == before, blas_threads()
"""


def test_blas_has_its_threads_back_after_runs_that_overlap():
    # In a process of its own: OpenBLAS forgets its number of threads when a process forks.
    subprocess.run([sys.executable, "-c", OVERLAP], check=True, timeout=120)
