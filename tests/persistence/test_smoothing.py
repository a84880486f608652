"""Runs by smoothed fitness that are stopped or killed go on bit for bit."""

import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

from coevo import Checkpoint, evolve
from coevo.persistence.checkpoint import CheckpointError, CheckpointMismatchError, load

SMOOTH = {
    "hidden_layer_sizes": (6, 5), "strategy": "smoothing", "batch_size": 12, "max_generations": 40,
    "n_threads": 1, "seed": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "sign", "fitness": "accuracy"},
        {"dtype": "float64", "hidden_layer_sizes": (7,), "strategy__schedule": "root"},
        {"max_generations": None, "max_evaluations": 900},
        {"limited_evaluation": False, "fitness": "matthews"},
    ],
    ids=str,
)
@pytest.mark.parametrize("stops", [(1,), (17,), (5, 6, 30)])
def test_a_stopped_run_goes_on_bit_for_bit(
    path, data, changes, stops, assert_same_run, assert_same_checkpoint
):
    settings = {**SMOOTH, **changes}
    whole_path = path.with_name("whole")
    whole = evolve(*data, **settings, checkpoint=whole_path)
    for stop in stops:
        stopped = evolve(
            *data, **settings, checkpoint=path, resume=True,
            callbacks=[lambda search, stop=stop: search.state.generation >= stop],
        )  # fmt: skip
        assert stopped.generations >= stop
    resumed = evolve(*data, **settings, checkpoint=path, resume=True)
    assert_same_run(resumed, whole)
    assert_same_checkpoint(path, whole_path)


RUN = """
import sys
import numpy as np
from coevo import Checkpoint, evolve
data = [np.load(f"{sys.argv[1]}/{part}.npy") for part in range(4)]
settings = eval(sys.argv[2])
print("ready", flush=True)
evolve(*data, **settings, resume=True,
       checkpoint=Checkpoint(f"{sys.argv[1]}/run.checkpoint", every_generations=1))
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are killed here")
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, data, no_jit, assert_same_run):
    if no_jit:
        pytest.skip("many runs, too slow without compiling")
    for part, array in enumerate(data):
        np.save(tmp_path / f"{part}.npy", array)
    settings = SMOOTH | {"max_generations": 400}
    whole = evolve(*data, **settings)
    generator, n_kills, path = random.Random(1), 0, tmp_path / "run.checkpoint"
    for _ in range(4):
        command = [sys.executable, "-c", RUN, str(tmp_path), repr(settings)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            try:
                process.wait(generator.uniform(0.3, 1.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                n_kills += 1
    assert n_kills or load(path).state.generation == 400
    assert_same_run(evolve(*data, **settings, checkpoint=path, resume=True), whole)


def test_a_checkpoint_of_other_settings_is_refused(path, data):
    evolve(*data, **SMOOTH | {"max_generations": 3}, checkpoint=path)
    with pytest.raises(CheckpointMismatchError, match="strategy"):
        evolve(*data, **SMOOTH, strategy__rate=0.1, checkpoint=path, resume=True)


def test_a_checkpoint_whose_moments_do_not_fit_is_refused(path, data):
    kept = []
    settings = SMOOTH | {"max_generations": 3}

    def spoil(search):
        memory = search.state.memories["smoothing"]
        kept.append(memory)
        memory["first"] = memory["first"][:-1]

    evolve(*data, **settings, callbacks=[spoil], checkpoint=Checkpoint(path, every_seconds=None))
    with pytest.raises(CheckpointError, match="contradicts"):
        evolve(*data, **settings, checkpoint=path, resume=True)
    assert kept
