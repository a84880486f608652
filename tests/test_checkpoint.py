"""Checkpoints: runs that are really killed go on bit for bit; bad files are refused whole."""

import dataclasses
import json
import os
import pickle
import random
import select
import signal
import struct
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from conftest import make_classification_data

from coevo import Settings, checkpoint, checkpointer, evolve, model
from coevo.checkpoint import (
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    load,
    previous_path,
)
from coevo.files import pack, write_atomically
from coevo.history import History
from coevo.state import SearchState
from coevo.stopping import StopReason

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 12, "population_size": 6, "max_generations": 12,
    "n_threads": 1, "seed": 5,
}  # fmt: skip
LARGE = {
    "hidden_layer_sizes": (16,), "batch_size": 40, "population_size": 12, "max_generations": 60,
    "n_threads": 1, "seed": 7,
}  # fmt: skip


def make_data(n_instances=80, n_inputs=4):
    inputs, targets = make_classification_data(
        np.random.default_rng(2), n_instances=n_instances, n_inputs=n_inputs
    )
    half = n_instances // 2
    return inputs[:half], targets[:half], inputs[half:], targets[half:]


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


def assert_same_run(result, other):
    """The same network, history and counts, bit for bit."""
    assert result.network.genotype.tobytes() == other.network.genotype.tobytes()
    for name in ("generations", "evaluations", "train_fitness", "validation_fitness"):
        assert getattr(result, name) == getattr(other, name)
    columns, others = result.history.columns(), other.history.columns()
    for name in columns.keys() - {"seconds"}:
        assert columns[name].tobytes() == others[name].tobytes(), name
    assert result.stop_reason == other.stop_reason


def assert_same_checkpoint(path, other):
    """All of the state, and what the engine remembers, bit for bit."""
    states = [checkpoint._freeze(load(p).state) for p in (path, other)]
    for values, arrays in states:
        del values["seconds"]
        arrays["history.rows"][:, 2] = arrays["history.latest"][2] = 0
    assert states[0][0] == states[1][0]
    for (name, array), (other_name, other_array) in zip(
        sorted((states[0][1] | load(path).memory).items()),
        sorted((states[1][1] | load(other).memory).items()),
        strict=True,
    ):
        assert name == other_name
        assert array.tobytes() == other_array.tobytes(), name
        assert (array.dtype, array.shape) == (other_array.dtype, other_array.shape)


# ----------------------------------------------------------------------------- stopped and resumed


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": 6, "hidden_layer_sizes": (13,), "max_generations": 40},
        {"hidden_layer_sizes": (5, 4)},
        {"hidden_layer_sizes": ()},
        {"activation": "identity", "dtype": "float64"},
        {"synchronous": False},
        {"reshuffle_batches": True, "strategy": "best/1", "crossover": "exponential"},
        {"representative": "mean"},
        {"variant": "DE"},
        {"variant": "LEDE"},
        {"variant": "CCDE"},
        {"engine": "reference"},
        {"decomposition": [range(0, 35, 2), list(range(1, 35, 2))]},
        {"control": "dither", "weight_decay": 0.1},
        {"control": "jde"},
        {"control": "jde", "synchronous": False},
        {"control": "shade", "strategy": "current-to-pbest/1"},
        {"control": "shade", "strategy": "current-to-pbest/1", "synchronous": False},
        {"control": "shade", "variant": "DE"},
        {"decomposition": "synapse"},
        {"decomposition": "neuron_outgoing", "hidden_layer_sizes": (5, 4)},
        {"decomposition": "random", "group_size": 4, "redraw_groups_every": 2, "control": "jde"},
        {
            "decomposition": "random",
            "group_size": 8,
            "redraw_groups_every": 4,
            "variant": None,
            "limited_evaluation": False,
            "control": "shade",
            "strategy": "current-to-pbest/1",
            "weight_decay": 0.1,
        },
    ],
    ids=str,
)
def test_a_resumed_run_ends_as_if_it_had_never_stopped(path, data, changes):
    changes = SMALL | changes
    whole = evolve(*data, **changes, checkpoint=path.with_name("whole"))
    for n_generations in (1, 5):
        evolve(*data, **changes | {"max_generations": n_generations}, checkpoint=path, resume=True)
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
    assert_same_checkpoint(path, path.with_name("whole"))
    assert_same_run(evolve(*data, **changes), whole)  # writing checkpoints changes nothing


@pytest.mark.parametrize("strategy", ["rand/1", "current-to-pbest/1"])
@pytest.mark.parametrize("control", ["fixed", "jde", "shade"])
@pytest.mark.parametrize("decomposition", ["neuron", "random"])
def test_a_run_that_follows_its_budget_is_resumed(path, data, control, strategy, decomposition):
    # Stopped by a callback: another budget would be another schedule.
    changes = SMALL | {
        "control": control, "strategy": strategy, "population_size": 9, "final_population_size": 4,
        "reshuffle_batches": True, "final_batch_size": 40, "decomposition": decomposition,
        "group_size": 8, "redraw_groups_every": 4,
    }  # fmt: skip
    whole = evolve(*data, **changes, checkpoint=path.with_name("whole"))
    sizes = []
    for stop in (2, 5, 8):
        evolve(
            *data, **changes, checkpoint=path, resume=True,
            callbacks=[lambda search, stop=stop: search.state.generation >= stop],
        )  # fmt: skip
        sizes.append(load(path).state.fitness.shape[1])
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
    assert_same_checkpoint(path, path.with_name("whole"))


def test_a_run_around_a_network_is_resumed(path, data):
    network = evolve(*data, **SMALL).network
    changes = SMALL | {"initial_range": 0.1, "initial_network": network}
    whole = evolve(*data, **changes)
    evolve(*data, **changes | {"max_generations": 3}, checkpoint=path)
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
    other = dataclasses.replace(network, genotype=network.genotype + 1)
    with pytest.raises(CheckpointMismatchError, match="the initial network differ"):
        evolve(*data, **changes | {"initial_network": other}, checkpoint=path, resume=True)


def test_the_engines_memory_matters():
    # Otherwise the tests above would prove less than they seem to: moved activations are not those
    # of a fresh run.
    data = make_data(400, 37)
    differences = []

    def look(search):
        moved = search.evaluator._valid_surroundings
        fresh = type(moved)(search.evaluator._architecture, search.evaluator._validation.inputs)
        fresh.run(search.evaluator._valid_matrices)
        differences.append((fresh.sums[0] != moved.sums[0]).sum())

    changes = {"hidden_layer_sizes": (20,), "representative": "best"}  # so that some stay
    evolve(*data, **SMALL | changes, callbacks=[look])
    assert max(differences) > 0


def test_a_thinned_history_is_resumed(path, data, monkeypatch):
    monkeypatch.setattr(History, "capacity", 8)
    whole = evolve(*data, **SMALL | {"max_generations": 45})
    for n_generations in (7, 19, 38, 45):
        resumed = evolve(
            *data, **SMALL | {"max_generations": n_generations}, checkpoint=path, resume=True
        )
    assert resumed.history.stride == 8
    assert_same_run(resumed, whole)


def test_a_run_without_a_seed_is_resumed(path, data):
    changes = SMALL | {"seed": None}
    first = evolve(*data, **changes | {"max_generations": 3}, checkpoint=path)
    second = evolve(*data, **changes, checkpoint=path, resume=True)
    n_rows = len(first.history)
    np.testing.assert_array_equal(second.history.rows[:n_rows], first.history.rows)
    assert second.generations == 12


def test_every_field_of_the_state_is_kept():
    known = {*checkpoint._COUNTERS, *checkpoint._MEASURES, *checkpoint._ARRAYS}
    known |= {"rng", "batches", "subpopulations", "archives", "control", "history", "gene_order"}
    assert {field.name for field in dataclasses.fields(SearchState)} == known


def test_ctrl_c_leaves_a_checkpoint(path, data):
    def press(search):
        if search.state.generation == 4:
            signal.raise_signal(signal.SIGINT)

    stopped = evolve(*data, **SMALL, callbacks=[press], checkpoint=path)
    assert stopped.stop_reason == StopReason.INTERRUPTED
    assert load(path).state.generation == 4
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), evolve(*data, **SMALL))


# ------------------------------------------------------------------------------ when it is written


def count_writes(monkeypatch):
    generations = []
    save = checkpointer.save

    def note(path, search, purpose):
        generations.append(search.state.generation)
        save(path, search, purpose)

    monkeypatch.setattr(checkpointer, "save", note)
    return generations


def test_every_few_generations_and_at_the_end(path, data, monkeypatch):
    generations = count_writes(monkeypatch)
    evolve(*data, **SMALL, checkpoint=path, checkpoint_every_generations=5)
    assert generations == [5, 10, 12]
    assert load(previous_path(path)).state.generation == 10
    evolve(*data, **SMALL, checkpoint=path, resume=True)  # nothing left to do
    assert generations == [5, 10, 12]


def test_every_few_seconds(path, data, monkeypatch):
    generations = count_writes(monkeypatch)
    clock = iter(range(1000))  # asked once a generation, and again after writing
    monkeypatch.setattr(checkpointer.time, "monotonic", lambda: next(clock))
    evolve(*data, **SMALL, checkpoint=path, checkpoint_every_seconds=4)
    assert generations == [4, 8, 12]


def test_no_interval_leaves_only_the_last(path, data, monkeypatch):
    generations = count_writes(monkeypatch)
    evolve(*data, **SMALL, checkpoint=path, checkpoint_every_seconds=None)
    assert generations == [12]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"checkpoint_every_seconds": -1}, ValueError, "checkpoint_every_seconds must be"),
        ({"checkpoint_every_generations": 0}, ValueError, "checkpoint_every_generations must be"),
        ({"checkpoint": "nowhere/run"}, FileNotFoundError, "the folder of the checkpoint"),
        ({"checkpoint": None, "resume": True}, ValueError, "resume=True needs a checkpoint"),
    ],
)
def test_arguments_that_make_no_sense(path, data, arguments, error, message):
    with pytest.raises(error, match=message):
        evolve(*data, **SMALL | {"checkpoint": path} | arguments)


# ----------------------------------------------------------------------------- which run it is for


def test_resuming_from_nothing_begins(path, data):
    whole = evolve(*data, **SMALL)
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), whole)


def test_a_checkpoint_is_not_overwritten_by_mistake(path, data):
    evolve(*data, **SMALL, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="resume=True, or remove it"):
        evolve(*data, **SMALL, checkpoint=path)
    os.replace(path, previous_path(path))
    with pytest.raises(CheckpointError, match=r"is missing, but .*previous is there"):
        evolve(*data, **SMALL, checkpoint=path, resume=True)
    assert previous_path(path).read_bytes() == before


def test_two_runs_do_not_write_one_checkpoint(path, data):
    def intrude(search):
        with pytest.raises(CheckpointInUseError, match="wait until it has ended, or choose"):
            evolve(*data, **SMALL, checkpoint=path, resume=True)

    result = evolve(*data, **SMALL, callbacks=[intrude], checkpoint=path)
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population_size": 7}, "population_size is 6 in the checkpoint and 7 here"),
        ({"scale_factor": 0.3}, "scale_factor is 0.2 in the checkpoint and 0.3 here"),
        ({"hidden_layer_sizes": (4, 2)}, r"hidden_layer_sizes is \[4\] in .* and \[4, 2\] here"),
        ({"seed": 6}, "seed is 5 in the checkpoint and 6 here"),
        ({"seed": None}, "seed is 5 in the checkpoint and None here"),
        ({"dtype": "float64"}, "dtype is 'float32' in the checkpoint and 'float64' here"),
        ({"engine": "batched"}, "engine is 'delta' in the checkpoint and 'batched' here"),
        ({"decomposition": [range(35)]}, "decomposition is 'neuron' in .* and {'n_groups': 1"),
        ({"group_size": 9}, "group_size is 100 in the checkpoint and 9 here"),
        ({"redraw_groups_every": 2}, "redraw_groups_every is 10 in the checkpoint and 2 here"),
        ({"decay": 0.5, "batch_size": 10}, "batch_size is 12 .* 10 here; decay is 0.2 .* 0.5"),
    ],
)
def test_other_settings_are_refused_by_name(path, data, change, message):
    evolve(*data, **SMALL, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(CheckpointMismatchError, match=message):
        evolve(*data, **SMALL | change, checkpoint=path, resume=True)
    assert path.read_bytes() == before


def test_other_groups_of_genes_are_refused(path, data):
    halves = [np.arange(0, 35, 2), np.arange(1, 35, 2)]
    evolve(*data, **SMALL, decomposition=halves, checkpoint=path)
    same = [group.tolist() for group in halves]
    evolve(*data, **SMALL, decomposition=same, checkpoint=path, resume=True)
    with pytest.raises(CheckpointMismatchError, match="decomposition is"):
        evolve(*data, **SMALL, decomposition=halves[::-1], checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (0, "training inputs"),
        (1, "training targets"),
        (2, "validation inputs"),
        (3, "validation targets"),
    ],
)
def test_other_data_are_refused_by_name(path, data, part, name):
    evolve(*data, **SMALL, checkpoint=path)
    changed = [array.copy() for array in data]
    changed[part][-1] = changed[part][-2] if part in {0, 2} else (changed[part][-1] + 1) % 3
    with pytest.raises(CheckpointMismatchError, match=f"another run: the {name} differ. Only"):
        evolve(*changed, **SMALL, checkpoint=path, resume=True)


def test_other_class_names_are_refused(path, data):
    names = np.array(["ash", "birch", "cedar"])
    evolve(*data, **SMALL, checkpoint=path)
    with pytest.raises(CheckpointMismatchError, match="the classes differ"):
        evolve(
            data[0], names[data[1]], data[2], names[data[3]],
            **SMALL, checkpoint=path, resume=True,
        )  # fmt: skip


def test_budgets_may_change(path, data):
    other = {
        "max_evaluations": 900, "max_generations": None, "max_seconds": 1e6, "target_fitness": 2.0,
        "patience": 1000, "n_threads": None,
    }  # fmt: skip
    assert set(other) == set(checkpoint.BUDGETS)
    first = evolve(*data, **SMALL | {"max_generations": 2}, checkpoint=path)
    resumed = evolve(*data, **SMALL | other, checkpoint=path, resume=True)
    assert resumed.stop_reason == StopReason.MAX_EVALUATIONS
    assert resumed.evaluations > first.evaluations
    whole = evolve(*data, **SMALL | other)
    assert_same_run(resumed, whole)


def test_every_setting_is_a_budget_or_compared():
    settings = Settings()
    described = checkpoint.Purpose.of(settings, "delta", {}).settings
    assert described.keys() == {field.name for field in dataclasses.fields(Settings)}
    assert json.loads(json.dumps(described)) == described


def test_other_versions_warn(path, data, monkeypatch):
    evolve(*data, **SMALL, checkpoint=path)
    monkeypatch.setattr(np, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"was written with coevo .*, and this is .*numpy 99\.0"):
        evolve(*data, **SMALL, checkpoint=path, resume=True)


# --------------------------------------------------------------------------------------- bad files


@pytest.fixture
def good(path, data):
    evolve(*data, **SMALL | {"max_generations": 2}, checkpoint=path)
    return path.read_bytes()


def refuse(path, content, message=None):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        load(path)


def test_every_truncation_is_refused(path, good):
    for length in [*range(256), *range(256, len(good), 41), len(good) - 1]:
        refuse(path, good[:length])
    refuse(path, good + b"\0", "should have")


def test_flipped_bits_are_refused(path, good):
    generator = random.Random(1)
    places = [*range(8 * 60), *(generator.randrange(8 * len(good)) for _ in range(600))]
    for place in places:
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        refuse(path, bytes(damaged))


def test_foreign_files_are_refused(path, good, data):
    network = evolve(*data, **SMALL | {"max_generations": 1}).network
    model.save(path.with_name("model"), network)
    others = [
        b"", b"hello", pickle.dumps({"state": 1}), bytes(4096), good[52:],
        path.with_name("model").read_bytes(),
    ]  # fmt: skip
    for other in others:
        refuse(path, other, "this is not a checkpoint of coevo")


def forge(payload, version=checkpoint.FORMAT_VERSION):
    sha = checkpoint._digest(version, payload)
    return checkpoint._PREFIX.pack(checkpoint._MAGIC, version, len(payload), sha) + payload


def test_a_newer_version_is_refused(path, good):
    refuse(path, forge(good[52:], 2), "has format version 2; this version of coevo reads versions")


def test_content_that_makes_no_sense_is_refused(path, good, data):
    path.write_bytes(good)
    state = load(path).state
    purpose = checkpoint.Purpose.of(Settings(), "delta", {})
    texts = {"state": {}, "purpose": dataclasses.asdict(purpose)}
    values, arrays = checkpoint._freeze(state)

    def pack_with(values, arrays, **changes):
        contents = {"state": values, "purpose": texts["purpose"]} | changes
        return forge(pack(arrays, {name: json.dumps(text) for name, text in contents.items()}))

    path.write_bytes(pack_with(values, arrays))
    load(path)
    for name in arrays:
        refuse(path, pack_with(values, {k: v for k, v in arrays.items() if k != name}), "malformed")
    for name in values:
        refuse(path, pack_with({k: v for k, v in values.items() if k != name}, arrays), "malformed")
    refuse(path, pack_with(values, arrays | {"fitness": arrays["fitness"][1:]}), "contradict")
    refuse(path, pack_with(values, arrays | {"n_archived": arrays["n_archived"] + 1}), "contradict")
    refuse(path, pack_with(values | {"control": ["places"]}, arrays), "malformed")
    learnt = {"control.places": np.zeros(1)}
    refuse(path, pack_with(values | {"control": ["places"]}, arrays | learnt), "contradict")
    refuse(path, pack_with(values | {"bit_generator": "PCG64"}, arrays), "malformed")
    refuse(path, pack_with([1], arrays), "malformed")
    refuse(path, pack_with(values, arrays, purpose={"settings": 1}), "malformed")
    refuse(path, forge(b""), "damaged")
    refuse(path, forge(struct.pack("<Q", 2) + b"[]"), "not a JSON dict")


def test_an_absurd_size_takes_no_memory(path):
    size = 2**40
    with open(path, "wb") as file:  # a sparse file that claims to be whole
        prefix = checkpoint._PREFIX
        file.write(prefix.pack(checkpoint._MAGIC, 1, size - prefix.size, bytes(32)))
        file.truncate(size)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="damaged"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_the_previous_checkpoint_is_offered_and_works(path, data):
    evolve(*data, **SMALL | {"max_generations": 6}, checkpoint=path, checkpoint_every_generations=4)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(
        CheckpointError, match=r"previous, is good and was written after generation 4; rename it"
    ):
        evolve(*data, **SMALL, checkpoint=path, resume=True)
    os.replace(previous_path(path), path)
    resumed = evolve(*data, **SMALL, checkpoint=path, resume=True)
    assert_same_run(resumed, evolve(*data, **SMALL))


def test_a_failed_write_leaves_the_last_one(path, data, monkeypatch):
    evolve(*data, **SMALL | {"max_generations": 3}, checkpoint=path)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.warns(RuntimeWarning, match="could not be written: .*No space left"):
            result = evolve(
                *data, **SMALL, checkpoint=path, checkpoint_every_generations=4, resume=True
            )
    assert path.read_bytes() == before
    assert_same_run(result, evolve(*data, **SMALL))
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), result)
    assert load(path).state.generation == 12


def test_file_systems_without_hard_links(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    for content in (b"1", b"2", b"3"):
        write_atomically(tmp_path / "file", [content], tmp_path / "file.previous")
    assert (tmp_path / "file").read_bytes() == b"3"
    assert (tmp_path / "file.previous").read_bytes() == b"2"
    assert len(os.listdir(tmp_path)) == 2


# -------------------------------------------------------------------------------- processes killed

NURSERY = '''
"""Starts one process after the other, each ready to run at once, and tells how it ended."""
import builtins, json, os, signal, sys
import numpy as np
import coevo.files
from coevo import evolve

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

    coevo.files.open = SlowFile
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
        command = {**self.settings, "resume": True, "checkpoint_every_generations": 1, **arguments}
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


def test_a_run_killed_at_many_random_moments(path, nurseries):
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


def test_a_run_killed_at_each_step_of_writing(path, data, nurseries):
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
