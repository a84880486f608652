"""A study on a real Dask cluster of separate processes, one of which is killed in the middle."""

import os
import signal
import subprocess
import sys
import time

import pytest

from coevo.study import Store

distributed = pytest.importorskip("distributed", reason="needs the extra coevo[dask]")
psutil = pytest.importorskip("psutil")


def launch(*words):
    return subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def end(processes):
    """End processes and what they have started; only these, by their ids."""
    family = []
    for process in processes:
        try:
            family += psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            continue
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
    _, left = psutil.wait_procs(family, 5)
    for child in left:
        child.kill()


@pytest.fixture
def cluster(tmp_path, wait_until):
    """A scheduler, and two workers that a nanny revives when they die."""
    address = tmp_path / "scheduler.json"
    processes = [
        launch(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
            "--no-dashboard", "--scheduler-file", str(address),
        )
    ]  # fmt: skip
    try:
        wait_until(address.is_file, 30)
        processes += [
            launch(
                "distributed.cli.dask_worker", "--scheduler-file", str(address), "--nthreads", "1",
                "--no-dashboard", "--host", "127.0.0.1",
                "--local-directory", str(tmp_path / f"worker-{n}"),
            )
            for n in range(2)
        ]  # fmt: skip
        yield address, processes[1:]
    finally:
        end(processes[1:])  # workers would wait for a scheduler that went first
        end(processes[:1])


def test_killed_worker_on_a_cluster(tmp_path, cluster, longer, wait_until, read_accuracies):
    address, nannies = cluster
    scheduler = json_address(address)
    path, plan, alone = longer
    keys = [run.key for run in plan.runs]
    # From outside, as a user would: the command line in a process of its own.
    command = subprocess.Popen(
        [
            sys.executable, "-c", "from coevo.cli.app import app; app()", "study", "run", str(path),
            "--store", str(tmp_path / "runs.sqlite"), "--backend", "dask",
            "--scheduler", scheduler,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with Store(tmp_path / "runs.sqlite") as store:
            wait_until(lambda: "done" in store.states(keys).values(), 60)
            killed = worker_of(nannies[0])
            os.kill(killed, signal.SIGKILL)
            output, errors = command.communicate(timeout=90)
            assert output == f"{len(keys)} of {len(keys)} runs done, 0 failed\n", errors
            assert read_accuracies(store, plan) == alone
            assert {record.attempts for record in store.records().values()} == {1}
    finally:
        if command.poll() is None:
            command.kill()
            command.communicate()
    # The nanny has put another worker in its place.
    wait_until(lambda: worker_of(nannies[0]) not in (None, killed), 30)


def worker_of(nanny):
    """Return the process that does a nanny's runs: the one with most threads of its children."""
    children = []
    for child in psutil.Process(nanny.pid).children():
        try:
            children.append((child.num_threads(), child.pid))
        except psutil.NoSuchProcess:
            continue
    return max(children)[1] if children else None


def json_address(path):
    import json

    for _ in range(50):  # the scheduler may still be writing
        try:
            return json.loads(path.read_text())["address"]
        except (ValueError, KeyError):
            time.sleep(0.1)
    raise AssertionError(path.read_text())
