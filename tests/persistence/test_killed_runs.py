"""Runs that are really killed, at random moments and at each step of writing, go on bit for bit."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from coevo import evolve
from coevo.persistence.checkpoint import load, previous_path

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 12, "population_size": 6, "max_generations": 12,
    "n_threads": 1, "seed": 5,
}  # fmt: skip
LARGE = {
    "hidden_layer_sizes": (16,), "batch_size": 40, "population_size": 12, "max_generations": 60,
    "n_threads": 1, "seed": 7,
}  # fmt: skip


# -------------------------------------------------------------------------------- processes killed

NURSERY = '''
"""Starts one process after the other, each ready to run at once, and tells how it ended."""
import builtins, json, os, signal, sys
import numpy as np
import coevo.persistence.atomic
from coevo import Checkpoint, evolve

data = [np.load(os.path.join(sys.argv[1], f"{part}.npy")) for part in range(4)]
evolve(*data, **json.loads(sys.argv[2]) | {"max_generations": 1})  # load what is compiled


def die_at(step):
    """Be killed at a certain step of writing files: before or after a call, or half-way."""
    count = 0

    def take_step():
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(function):
        def watched(*arguments):
            take_step()
            answer = function(*arguments)
            take_step()
            return answer
        return watched

    class SlowFile:
        def __init__(self, *arguments):
            self.file = builtins.open(*arguments)
        def __enter__(self):
            return self
        def __exit__(self, *_):
            self.file.close()
        def __getattr__(self, name):
            return getattr(self.file, name)
        def write(self, part):
            self.file.write(part[: len(part) // 2])
            self.file.flush()
            take_step()
            self.file.write(part[len(part) // 2 :])

    coevo.persistence.atomic.open = SlowFile
    for name in ("fsync", "link", "replace"):
        setattr(os, name, watch(getattr(os, name)))


process = None
for line in sys.stdin:
    if process is not None:
        os.waitpid(process, 0)
    arguments = json.loads(line)
    step = arguments.pop("die_at", None)
    process = os.fork()
    if process == 0:
        if step is not None:
            die_at(step)
        arguments["checkpoint"] = Checkpoint(arguments["checkpoint"], every_generations=1)
        evolve(*data, **arguments)
        os._exit(0)
    print(process, flush=True)
    # It is buried when the next is asked for: until then the number that may be killed is its own.
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
'''


class Nursery:
    """The other end of the process above."""

    def __init__(self, folder, data, settings):
        for part, array in enumerate(data):
            np.save(folder / f"{part}.npy", array)
        self.settings = settings
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(folder), json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def run(self, kill_after=None, **arguments):
        """Run `evolve` in a process of its own; return how it ended: 0, or minus the signal."""
        command = {**self.settings, "resume": True, **arguments}
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        number = int(self.process.stdout.readline())
        told = [self.process.stdout]
        if kill_after is not None and not select.select(told, [], [], kill_after)[0]:
            os.kill(number, signal.SIGKILL)
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory):
    if not hasattr(os, "fork") or not hasattr(os, "waitid"):
        pytest.skip("processes are forked and waited for here")
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("many runs, too slow without compiling")
    started = []

    def start(data, settings):
        started.append(Nursery(tmp_path_factory.mktemp("nursery"), data, settings))
        return started[-1]

    yield start
    for nursery in started:
        nursery.close()


def assert_tidy(path):
    """Nothing lies about but the checkpoints and what the last kill interrupted."""
    names = {"", ".previous", ".partial", ".previous.partial", ".lock"}
    assert set(os.listdir(path.parent)) <= {path.name + name for name in names}


def kill_until_done(nursery, path, generator, patience):
    """Kill a run at random moments and resume it until it is done; return how often."""
    n_kills = done = 0
    while nursery.run(generator.uniform(0, patience), checkpoint=str(path)) != 0:
        n_kills += 1
        assert_tidy(path)
        for file in (path, previous_path(path)):
            if file.exists():
                load(file)
        reached = load(path).state.generation if path.exists() else 0
        assert reached >= done
        if reached == done:  # the machine may be busy with something else
            patience *= 1.1
        done = reached
    return n_kills


def test_a_run_killed_at_many_random_moments(
    path, nurseries, make_data, assert_same_run, assert_same_checkpoint
):
    data = make_data(300, 60)
    nursery = nurseries(data, LARGE)
    whole_path = path.with_name("whole")
    began = time.monotonic()
    assert nursery.run(checkpoint=str(whole_path)) == 0
    seconds = time.monotonic() - began
    whole = evolve(*data, **LARGE)
    generator = random.Random(3)
    n_kills = n_runs = 0
    while n_kills < 60:
        n_runs += 1
        here = path.parent / str(n_runs) / path.name
        here.parent.mkdir()
        n_kills += kill_until_done(nursery, here, generator, patience=seconds / 15)
        assert_same_checkpoint(here, whole_path)
        assert_same_run(evolve(*data, **LARGE, checkpoint=here, resume=True), whole)
        assert n_runs < 60


def test_a_run_killed_at_each_step_of_writing(
    path, data, nurseries, assert_same_run, assert_same_checkpoint
):
    settings = SMALL | {"max_generations": 5}
    nursery = nurseries(data, settings)
    whole = evolve(*data, **settings, checkpoint=path.with_name("whole"))
    for step in range(1, 46):  # the first write takes 8 steps, the later ones 12
        here = path.parent / str(step) / path.name
        here.parent.mkdir()
        assert nursery.run(checkpoint=str(here), die_at=step) == -signal.SIGKILL
        assert_tidy(here)
        if step > 8:
            generation = load(here).state.generation
            assert generation >= 1
            if generation > 1:
                assert load(previous_path(here)).state.generation in {generation - 1, generation}
        assert nursery.run(checkpoint=str(here)) == 0
        assert sorted(os.listdir(here.parent)) == [here.name, previous_path(here).name]
        assert_same_checkpoint(here, path.with_name("whole"))
        assert_same_run(evolve(*data, **settings, checkpoint=here, resume=True), whole)
