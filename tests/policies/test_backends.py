"""Episodes in processes and on a cluster: the same policy, whatever happens to workers."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from coevo import evolve_function, evolve_policy
from coevo.core.network import Architecture
from coevo.policies.backends import Processes, Shares, choose_backend

psutil = pytest.importorskip("psutil")
SMALL = {"hidden_layer_sizes": (3,), "population_size": 6, "max_generations": 3, "seed": 4}


def square(number):
    return number * number


def children():
    return {child.pid for child in psutil.Process().children(recursive=True)}


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def is_worker(pid):
    try:
        return "LokyProcess" in " ".join(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("simultaneous", [False, True])
def test_the_number_of_workers_does_not_matter(make_target_env, simultaneous):
    factory = make_target_env()

    def run(**backend):
        return evolve_policy(factory, simultaneous=simultaneous, **SMALL, **backend)

    serial = run()
    for n_workers in (1, 2, 4):
        other = run(backend="processes", n_workers=n_workers)
        np.testing.assert_array_equal(other.network.genotype, serial.network.genotype)
        assert other.steps == serial.steps
        without_time = np.delete(np.arange(6), 2)
        np.testing.assert_array_equal(
            other.history.rows[:, without_time], serial.history.rows[:, without_time]
        )


def test_a_killed_worker_does_not_matter(make_target_env):
    factory = make_target_env(lambda env, answer: time.sleep(0.001))
    serial = evolve_policy(factory, **SMALL)
    before, killed = children(), []

    def kill_in_the_next_generation(search):
        if search.state.generation < SMALL["max_generations"]:
            worker = next(pid for pid in children() - before if is_worker(pid))
            killed.append(worker)
            threading.Timer(0.05, os.kill, (worker, signal.SIGKILL)).start()

    other = evolve_policy(
        factory, backend="processes", n_workers=2, callbacks=[kill_in_the_next_generation], **SMALL
    )
    assert len(set(killed)) == SMALL["max_generations"] - 1
    np.testing.assert_array_equal(other.network.genotype, serial.network.genotype)
    assert other.episodes == serial.episodes


def test_workers_that_keep_dying_are_reported():
    with Processes(1) as backend, pytest.raises(RuntimeError, match="3 times in a row a worker"):
        backend.run(os._exit, [(3,)])


def test_no_process_is_left_behind():
    before = children()
    with Processes(2) as backend:
        assert backend.run(square, [(k,) for k in range(5)]) == [0, 1, 4, 9, 16]
        assert children() - before
    wait_for(lambda: not any(is_worker(pid) for pid in children() - before))


ENDLESS_RUN = """
import sys, gymnasium, coevo
print("ready", flush=True)
result = coevo.evolve_policy(
    "CartPole-v1", backend="processes", n_workers=2, max_evaluations=None, seed=1,
    callbacks=[lambda search: print("generation", flush=True)],
)
print(result.stop_reason, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@pytest.mark.parametrize("n_signals", [1, 2])
def test_ctrl_c_leaves_no_process_behind(n_signals):
    pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
    command = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_RUN], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        while "generation" not in (line := command.stdout.readline()):
            assert line, command.stderr.read()
        workers = psutil.Process(command.pid).children(recursive=True)
        for _ in range(n_signals):
            os.killpg(command.pid, signal.SIGINT)  # as a terminal does
            time.sleep(0.05)
        printed, _ = command.communicate(timeout=60)
    finally:
        command.kill()
    if n_signals == 1:
        assert "interrupted" in printed
    _, alive = psutil.wait_procs(workers, 20)
    assert not alive


def test_what_cannot_be_sent_is_named(make_target_env):
    lock = threading.Lock()

    def factory():
        assert lock
        return make_target_env()()

    with pytest.raises(TypeError, match=r"env cannot be sent to workers: .*lock"):
        evolve_policy(factory, backend="processes", n_workers=2, **SMALL)

    def reward(step):
        return float(bool(lock))

    with pytest.raises(TypeError, match=r"^reward cannot be sent to workers: .*lock"):
        evolve_policy(make_target_env(), reward=reward, backend="processes", n_workers=2, **SMALL)
    given = {"env_kwargs": {"lock": lock}, "backend": "processes", "n_workers": 2}
    with pytest.raises(TypeError, match=r"^env_kwargs cannot be sent to workers: .*lock"):
        evolve_policy(lambda lock: make_target_env()(), **given, **SMALL)

    def measure(network, instances):
        return float(bool(lock))

    with pytest.raises(TypeError, match="measure cannot be sent to workers"):
        evolve_function(
            measure, Architecture(1, (), 1), instances=1, backend="processes", max_generations=1
        )


def test_workers_keep_their_environment(make_target_env, tmp_path):
    path = str(tmp_path / "made")

    def factory():
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        return make_target_env()()

    evolve_policy(factory, backend="processes", n_workers=2, **SMALL)
    with open(path, encoding="utf-8") as file:
        makers = [int(line) for line in file]
    assert makers[0] == os.getpid()  # to see its spaces
    assert 1 <= len(makers[1:]) == len(set(makers[1:])) <= 2
    assert os.getpid() not in makers[1:]


def test_workers_know_the_ids_that_a_script_registered(make_target_env):
    gymnasium = pytest.importorskip("gymnasium")
    gymnasium.register("CoevoTarget-v0", entry_point=make_target_env())
    try:
        serial = evolve_policy("CoevoTarget-v0", **SMALL)
        workers = {"backend": "processes", "n_workers": 2}
        other = evolve_policy("CoevoTarget-v0", **workers, **SMALL)
        np.testing.assert_array_equal(other.network.genotype, serial.network.genotype)
        assert other.mean_return(4, **workers) == serial.mean_return(4)
    finally:
        del gymnasium.registry["CoevoTarget-v0"]


def test_errors_of_environments_come_through(make_target_env):
    def breaks(env, answer):
        raise ZeroDivisionError("bump")

    with pytest.raises(ValueError, match=r"env=.* failed after 0 steps .*ZeroDivisionError: bump"):
        evolve_policy(make_target_env(breaks), backend="processes", n_workers=2, **SMALL)


def test_work_is_cut_by_the_time_it_takes():
    shares = Shares()
    assert shares.cut(10, 1) == [slice(0, 10)]
    assert shares.cut(10, 4) == [slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 10)]
    shares.note(10, 10.0)
    assert len(shares.cut(10, 4)) == 10  # a second each: worth sending one by one
    shares = Shares()
    shares.note(10, 0.001)
    assert len(shares.cut(10, 4)) == 4


def test_arguments_of_backends():
    for arguments, message in [
        (("threads",), "backend='threads' is unknown; choose one of serial, processes, dask"),
        (("processes", 0), "n_workers must be at least 1"),
        (("serial", 2), "n_workers is for backend='processes'"),
        (("serial", None, "tcp://a:1"), "cluster is for backend='dask'"),
    ]:
        with pytest.raises(ValueError, match=message):
            choose_backend(*arguments)


# -------------------------------------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs the extra coevo[dask]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_policy_even_if_a_worker_is_killed(make_target_env, cluster):
    distributed = pytest.importorskip("distributed")
    serial = evolve_policy(make_target_env(), **SMALL)
    address = cluster.scheduler_address
    by_address = evolve_policy(make_target_env(), backend="dask", cluster=address, **SMALL)
    np.testing.assert_array_equal(by_address.network.genotype, serial.network.genotype)

    def kill(search):
        if search.state.generation == 1:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    with distributed.Client(cluster) as client:
        by_client = evolve_policy(
            make_target_env(), backend="dask", cluster=client, callbacks=[kill], **SMALL
        )
        np.testing.assert_array_equal(by_client.network.genotype, serial.network.genotype)
        assert client.status == "running"  # the user's client stays open


def test_a_cluster_must_be_one():
    pytest.importorskip("distributed", reason="needs the extra coevo[dask]")
    with pytest.raises(TypeError, match=r"cluster must be a distributed.Client, or the address"):
        choose_backend("dask", cluster=3)
    with pytest.raises(ValueError, match="backend='dask' needs cluster"):
        choose_backend("dask")
