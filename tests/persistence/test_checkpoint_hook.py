"""Checkpoints as a hook: runs that are stopped go on bit for bit, and only where they belong."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest

from coevo import (
    Architecture,
    BatchGrowth,
    Checkpoint,
    CurrentToPBest,
    PopulationReduction,
    RandomGroups,
    Settings,
    Strategy,
    WeightDecay,
    evolve,
)
from coevo.core.evaluator import Data
from coevo.core.history import History
from coevo.core.stopping import StopReason
from coevo.engines.registry import ENGINES
from coevo.persistence import checkpoint, checkpoint_hook
from coevo.persistence.checkpoint import (
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    load,
    previous_path,
)
from coevo.persistence.plain import plain_settings

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 12, "population_size": 6, "max_generations": 12,
    "n_threads": 1, "seed": 5, "extensions": (), "validate_every": "replacement",
}  # fmt: skip


# ----------------------------------------------------------------------------- stopped and resumed


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": 6, "hidden_layer_sizes": (13,), "max_generations": 40},
        {"hidden_layer_sizes": (5, 4)},
        {"hidden_layer_sizes": ()},
        {"activation": "identity", "dtype": "float64"},
        {"strategy": Strategy(synchronous=False)},
        {"reshuffle_batches": True, "strategy": "best/1/exp"},
        {"representative": "mean"},
        {"variant": "DE"},
        {"variant": "LEDE"},
        {"variant": "CCDE"},
        {"engine": "reference"},
        {"decomposition": [range(0, 35, 2), list(range(1, 35, 2))]},
        {"control": "dither", "extensions": [WeightDecay(0.1)]},
        {"control": "jde"},
        {"control": "jde", "strategy": Strategy(synchronous=False)},
        {"extensions": ["turnover(parts=4)"], "hidden_layer_sizes": (9,)},
        {"extensions": ["revival", "turnover(parts=3)"], "control": "jde", "validate_every": 4},
        {"control": "shade", "strategy": "current-to-pbest/1"},
        {"control": "shade", "strategy": CurrentToPBest(synchronous=False)},
        {"control": "shade", "variant": "DE"},
        {"decomposition": "synapse"},
        {"validate_every": 4},  # stopped in between, and ended at a validation
        {"validate_every": 5, "representative": "best", "fitness": "accuracy"},
        {"validate_every": 7, "variant": "CCDE", "engine": "batched"},
        {"decomposition": "neuron_outgoing", "hidden_layer_sizes": (5, 4)},
        {"decomposition": RandomGroups(4, redraw_every=2), "control": "jde"},
        {
            "decomposition": RandomGroups(8, redraw_every=4),
            "limited_evaluation": False,
            "control": "shade",
            "strategy": "current-to-pbest/1",
            "extensions": ["weight_decay(rate=0.1)"],
        },
    ],
    ids=str,
)
def test_a_resumed_run_ends_as_if_it_had_never_stopped(
    path, data, changes, assert_same_run, assert_same_checkpoint
):
    changes = SMALL | changes
    whole = evolve(*data, **changes, checkpoint=path.with_name("whole"))
    for n_generations in (1, 5):
        evolve(*data, **changes | {"max_generations": n_generations}, checkpoint=path, resume=True)
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
    assert_same_checkpoint(path, path.with_name("whole"))
    assert_same_run(evolve(*data, **changes), whole)  # writing checkpoints changes nothing


@pytest.mark.parametrize("strategy", ["rand/1", "current-to-pbest/1"])
@pytest.mark.parametrize("control", ["fixed", "jde", "shade"])
@pytest.mark.parametrize("decomposition", ["neuron", RandomGroups(8, redraw_every=4)], ids=str)
def test_a_run_that_follows_its_budget_is_resumed(
    path, data, control, strategy, decomposition, assert_same_run, assert_same_checkpoint
):
    # Stopped by a callback: another budget would be another schedule.
    changes = SMALL | {
        "control": control, "strategy": strategy, "population_size": 9,
        "decomposition": decomposition, "extensions": [PopulationReduction(4), BatchGrowth(40)],
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


def test_a_run_around_a_network_is_resumed(path, data, assert_same_run):
    network = evolve(*data, **SMALL).network
    changes = SMALL | {"initial_range": 0.1, "initial_network": network}
    whole = evolve(*data, **changes)
    evolve(*data, **changes | {"max_generations": 3}, checkpoint=path)
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
    other = dataclasses.replace(network, genotype=network.genotype + 1)
    with pytest.raises(CheckpointMismatchError, match="the initial network differ"):
        evolve(*data, **changes | {"initial_network": other}, checkpoint=path, resume=True)


def test_the_engines_memory_matters(make_data):
    # Otherwise the tests above would prove less than they seem to: moved activations are not those
    # of a fresh run.
    data = make_data(400, 37)
    differences = []

    X_train, y_train, X_valid, y_valid = data
    training = Data(X_train.astype(np.float32), y_train)
    validation = Data(X_valid.astype(np.float32), y_valid)

    def look(search):
        moved, decomposition = search.evaluator, search.decomposition
        parts = Architecture(37, (20,), 3), decomposition, search.settings.fitness
        fresh = ENGINES["delta"](*parts, training, validation)
        with pytest.raises(ValueError, match="other shapes"):  # it has computed its own by then
            fresh.recall({}, search.state.global_solution)
        memory = fresh.memory()
        differences.append(sum((a != memory[n]).sum() for n, a in moved.memory().items()))

    changes = {"hidden_layer_sizes": (20,), "representative": "best"}  # so that some stay
    evolve(*data, **SMALL | changes, callbacks=[look])
    assert max(differences) > 0


def test_a_thinned_history_is_resumed(path, data, monkeypatch, assert_same_run):
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


def test_ctrl_c_leaves_a_checkpoint(path, data, assert_same_run):
    def press(search):
        if search.state.generation == 4:
            signal.raise_signal(signal.SIGINT)

    stopped = evolve(*data, **SMALL, callbacks=[press], checkpoint=path)
    assert stopped.stop_reason == StopReason.INTERRUPTED
    assert load(path).state.generation == 4
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), evolve(*data, **SMALL))


def test_patience_counts_from_the_best_generation_after_resuming(path, data, assert_same_run):
    changes = SMALL | {"fitness": "accuracy", "patience": 7, "max_generations": 500}
    whole = evolve(*data, **changes)
    assert whole.stop_reason == StopReason.PATIENCE
    best = whole.generations - 7
    assert best > 0
    stopped = {"max_generations": best + 4, "patience": None}
    evolve(*data, **changes | stopped, checkpoint=path)
    assert load(path).state.best_generation == best
    assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)


def test_patience_of_a_resumed_run_waits_for_a_validation(path, data, assert_same_run):
    changes = SMALL | {"fitness": "accuracy", "patience": 6, "max_generations": 500}
    changes |= {"validate_every": 5}
    whole = evolve(*data, **changes)
    assert whole.stop_reason == StopReason.PATIENCE
    assert whole.generations % 5 == 0
    for generation in (whole.generations - 2, whole.generations):
        evolve(*data, **changes | {"max_generations": generation}, checkpoint=path, resume=True)
        assert_same_run(evolve(*data, **changes, checkpoint=path, resume=True), whole)
        for file in (path, previous_path(path)):
            file.unlink(missing_ok=True)


# ------------------------------------------------------------------------------ when it is written


@pytest.fixture
def generations(monkeypatch):
    """The generations whose checkpoints are written."""
    written = []
    save = checkpoint_hook.save

    def note(path, search, fingerprint):
        written.append(search.state.generation)
        save(path, search, fingerprint)

    monkeypatch.setattr(checkpoint_hook, "save", note)
    return written


def test_every_few_generations_and_at_the_end(path, data, generations):
    evolve(*data, **SMALL, checkpoint=Checkpoint(path, every_generations=5))
    assert generations == [5, 10, 12]
    assert load(previous_path(path)).state.generation == 10
    evolve(*data, **SMALL, checkpoint=path, resume=True)  # nothing left to do
    assert generations == [5, 10, 12]


def test_every_few_seconds(path, data, generations, monkeypatch):
    clock = iter(range(1000))  # asked once a generation, and again after writing
    monkeypatch.setattr(checkpoint_hook.time, "monotonic", lambda: next(clock))
    evolve(*data, **SMALL, checkpoint=Checkpoint(path, every_seconds=4))
    assert generations == [4, 8, 12]


def test_no_interval_leaves_only_the_last(path, data, generations):
    evolve(*data, **SMALL, checkpoint=Checkpoint(path, every_seconds=None))
    assert generations == [12]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"every_seconds": -1}, ValueError, "every_seconds must be"),
        ({"every_generations": 0}, ValueError, "every_generations must be"),
        ({"resume": 1}, TypeError, "resume must be True or False"),
        ({"path": ""}, ValueError, "checkpoint must not be empty"),
        ({"path": 3}, TypeError, "checkpoint must be a path or None, got 3"),
    ],
)
def test_arguments_of_a_checkpoint_that_make_no_sense(path, arguments, error, message):
    with pytest.raises(error, match=message):
        Checkpoint(**{"path": path} | arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"checkpoint": "nowhere/run"}, FileNotFoundError, "the folder of the checkpoint"),
        ({"checkpoint": None, "resume": True}, ValueError, "resume=True needs a checkpoint"),
        ({"checkpoint": ""}, ValueError, "checkpoint must not be empty"),
        ({"resume": "yes"}, TypeError, "resume must be True or False"),
    ],
)
def test_arguments_that_make_no_sense(path, data, arguments, error, message):
    with pytest.raises(error, match=message):
        evolve(*data, **SMALL | {"checkpoint": path} | arguments)
    assert os.listdir(path.parent) == []


def test_one_checkpoint_object_serves_several_runs(path, data, assert_same_run):
    often = Checkpoint(path, every_generations=5)
    evolve(*data, **SMALL | {"max_generations": 3}, checkpoint=often)
    with pytest.raises(FileExistsError, match="resume=True"):
        evolve(*data, **SMALL, checkpoint=often)
    resumed = evolve(*data, **SMALL, checkpoint=often, resume=True)
    assert load(path).state.generation == 12
    assert load(previous_path(path)).state.generation == 8
    assert_same_run(resumed, evolve(*data, **SMALL))


# ----------------------------------------------------------------------------- which run it is for


def test_resuming_from_nothing_begins(path, data, assert_same_run):
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


def test_two_runs_do_not_write_one_checkpoint(path, data, assert_same_run):
    def intrude(search):
        with pytest.raises(CheckpointInUseError, match="wait until it has ended, or choose"):
            evolve(*data, **SMALL, checkpoint=path, resume=True)

    result = evolve(*data, **SMALL, callbacks=[intrude], checkpoint=path)
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population_size": 7}, "population_size is 6 in the checkpoint and 7 here"),
        ({"scale_factor": 0.3}, "scale_factor is 'auto' in the checkpoint and 0.3 here"),
        ({"hidden_layer_sizes": (4, 2)}, r"hidden_layer_sizes is \[4\] in .* and \[4, 2\] here"),
        ({"seed": 6}, "seed is 5 in the checkpoint and 6 here"),
        ({"seed": None}, "seed is 5 in the checkpoint and None here"),
        ({"dtype": "float64"}, "dtype is 'float32' in the checkpoint and 'float64' here"),
        ({"engine": "batched"}, "engine is 'delta' in the checkpoint and 'batched' here"),
        ({"decomposition": [range(35)]}, "decomposition is 'neuron' in .* and {'n_groups': 1"),
        ({"decomposition__size": 9, "decomposition": "random"}, r"decomposition is 'neuron' in"),
        ({"strategy": "rand/1/exp"}, r"strategy is 'auto' in .*rand/1\(crossover='exponential"),
        ({"control": "shade"}, "control is 'fixed' in the checkpoint and 'shade' here"),
        ({"extensions": ["weight_decay"]}, r"extensions is \[\] in .* \['weight_decay'\] here"),
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


def test_budgets_may_change(path, data, assert_same_run):
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
    described = plain_settings(settings)
    assert described.keys() == {field.name for field in dataclasses.fields(Settings)}
    assert json.loads(json.dumps(described)) == described


def test_other_versions_warn(path, data, monkeypatch):
    evolve(*data, **SMALL, checkpoint=path)
    monkeypatch.setattr(np, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"was written with coevo .*, and this is .*numpy 99\.0"):
        evolve(*data, **SMALL, checkpoint=path, resume=True)


def test_the_previous_checkpoint_is_offered_and_works(path, data, assert_same_run):
    checkpoint = Checkpoint(path, every_generations=4)
    evolve(*data, **SMALL | {"max_generations": 6}, checkpoint=checkpoint)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(
        CheckpointError, match=r"previous, is good and was written after generation 4; rename it"
    ):
        evolve(*data, **SMALL, checkpoint=path, resume=True)
    os.replace(previous_path(path), path)
    resumed = evolve(*data, **SMALL, checkpoint=path, resume=True)
    assert_same_run(resumed, evolve(*data, **SMALL))


def test_a_failed_write_leaves_the_last_one(path, data, monkeypatch, assert_same_run):
    evolve(*data, **SMALL | {"max_generations": 3}, checkpoint=path)
    before, often = path.read_bytes(), Checkpoint(path, every_generations=4)

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.warns(RuntimeWarning, match="could not be written: .*No space left"):
            result = evolve(*data, **SMALL, checkpoint=often, resume=True)
    assert path.read_bytes() == before
    assert_same_run(result, evolve(*data, **SMALL))
    assert_same_run(evolve(*data, **SMALL, checkpoint=path, resume=True), result)
    assert load(path).state.generation == 12
