"""Estimators with a checkpoint: fits that are really killed go on bit for bit."""

import copy
import dataclasses
import functools
import inspect
import json
import os
import random
import select
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import cross_validate

from coevo import (
    JDE,
    SHADE,
    BatchGrowth,
    Checkpoint,
    CoevoClassifier,
    CoevoRegressor,
    CurrentToPBest,
    Dither,
    PopulationReduction,
    RandomGroups,
    Strategy,
    WeightDecay,
)
from coevo.estimators.fingerprint import FREE, describe_arguments
from coevo.persistence.checkpoint import (
    BUDGETS,
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    load,
    previous_path,
)

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 100, "population_size": 6, "max_evaluations": None,
    "max_generations": 12, "n_threads": 1,
}  # fmt: skip
ESTIMATORS = (CoevoClassifier, CoevoRegressor)


# ----------------------------------------------------------------------------- stopped and resumed


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("random_state", [None, 3])
@pytest.mark.parametrize("validation", ["split", "given", "none"])
def test_a_resumed_fit_ends_as_if_it_had_never_stopped(
    path, estimator, random_state, validation, make_data, assert_same_fit
):
    X, y = make_data(estimator)
    further = {}
    if validation == "given":
        X, y, further = X[::2], y[::2], {"X_val": X[1::2], "y_val": y[1::2]}
    elif validation == "none":
        X, y = X[:300], y[:300]  # too few to split any off
    arguments = SMALL | {"checkpoint": path, "resume": True, "random_state": random_state}
    for n_generations in (1, 5, 12):
        fitted = estimator(**arguments | {"max_generations": n_generations}).fit(X, y, **further)
        assert fitted.n_iter_ == n_generations
    seed = load(path).fingerprint.seed
    assert seed == random_state or random_state is None
    assert_same_fit(fitted, estimator(**SMALL, random_state=seed).fit(X, y, **further))
    again = estimator(**arguments).fit(X, y, **further)  # nothing left to do
    assert_same_fit(again, fitted)
    assert sorted(os.listdir(path.parent)) == [path.name, previous_path(path).name]


def test_a_fit_that_fails_before_its_first_checkpoint_begins_anew(path, make_data, assert_same_fit):
    X, y = make_data(CoevoClassifier)
    arguments = SMALL | {"checkpoint": path, "resume": True, "random_state": 1}
    with pytest.raises(ZeroDivisionError):  # before the first generation is over
        CoevoClassifier(**arguments, callbacks=[lambda search: 1 / 0]).fit(X, y)
    assert os.listdir(path.parent) == []
    assert_same_fit(
        CoevoClassifier(**arguments).fit(X, y), CoevoClassifier(**SMALL, random_state=1).fit(X, y)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"limited_evaluation": False},
        {"decomposition": "layer", "validation_fitness": "f1_macro"},
        {"validation_fitness": "f1_weighted", "class_weight": "balanced"},
        {"fitness": make_scorer(fbeta_score, beta=2, average="macro")},
        {"decomposition": [range(0, 39, 2), range(1, 39, 2)], "reshuffle_batches": True},
        {"decomposition": "synapse"},
        {"decomposition": RandomGroups(size=7, redraw_every=3), "control": "jde"},
    ],
    ids=["full", "layers", "two metrics", "scorer", "own groups", "synapses", "random groups"],
)
def test_other_kinds_of_fits_are_resumed(path, changes, make_data, assert_same_fit):
    X, y = make_data(CoevoClassifier)
    weights = np.random.default_rng(1).uniform(size=len(y))
    arguments = SMALL | {"random_state": 2} | changes
    whole = CoevoClassifier(**arguments).fit(X, y, weights)
    for n_generations in (4, 12):
        parts = {"max_generations": n_generations, "checkpoint": path, "resume": True}
        fitted = CoevoClassifier(**arguments | parts).fit(X, y, weights)
    assert_same_fit(fitted, whole)


def test_a_generators_seed_is_compared(path, make_data, assert_same_fit):
    X, y = make_data(CoevoRegressor)
    arguments = SMALL | {"checkpoint": path, "resume": True}

    def fit(random_state, n_generations):
        changes = {"random_state": random_state, "max_generations": n_generations}
        return CoevoRegressor(**arguments | changes).fit(X, y)

    fit(np.random.default_rng(6), 4)
    resumed = fit(np.random.default_rng(6), 12)
    alone = SMALL | {"random_state": np.random.default_rng(6)}
    assert_same_fit(resumed, CoevoRegressor(**alone).fit(X, y))
    with pytest.raises(CheckpointMismatchError, match=r"random_state is \d+ in .* and \d+ here"):
        fit(np.random.default_rng(7), 12)


def test_ctrl_c_leaves_a_checkpoint_and_the_best_network_so_far(path, make_data, assert_same_fit):
    X, y = make_data(CoevoClassifier)

    def press(search):
        if search.state.generation == 4:
            signal.raise_signal(signal.SIGINT)

    arguments = SMALL | {"random_state": 5}
    # One generation in 1000 would write none: the last one is Ctrl-C's.
    often = {"checkpoint": Checkpoint(path, every_generations=1000)}
    stopped = CoevoClassifier(**arguments, **often, callbacks=[press])
    with pytest.warns(UserWarning, match=r"interrupted in generation 4; what is kept is the best"):
        stopped.fit(X, y)
    assert (stopped.stop_reason_, stopped.n_iter_) == ("interrupted", 4)
    assert load(path).state.generation == 4
    four = CoevoClassifier(**arguments | {"max_generations": 4}).fit(X, y)
    np.testing.assert_array_equal(stopped.network_.genotype, four.network_.genotype)
    assert stopped.score(X, y) == four.score(X, y) > 0.3
    resumed = CoevoClassifier(**arguments, **often, resume=True).fit(X, y)
    assert_same_fit(resumed, CoevoClassifier(**arguments).fit(X, y))


def test_budgets_may_change(path, make_data, assert_same_fit):
    X, y = make_data(CoevoClassifier)
    first = CoevoClassifier(**SMALL, checkpoint=path).fit(X, y)
    seed = load(path).fingerprint.seed
    raised = {"max_evaluations": first.n_evaluations_ + 500, "max_generations": None}
    raised |= {"max_seconds": 1e6, "target_fitness": 2.0, "patience": 1000, "n_threads": None}
    assert set(raised) == set(BUDGETS)
    resumed = CoevoClassifier(**SMALL | raised, checkpoint=path, resume=True).fit(X, y)
    assert resumed.n_evaluations_ > first.n_evaluations_
    assert_same_fit(resumed, CoevoClassifier(**SMALL | raised, random_state=seed).fit(X, y))


def test_callbacks_are_told_how_much_is_left(path, make_data):
    callback = pytest.importorskip("sklearn.callback", reason="came with scikit-learn 1.9")
    assert callback is not None
    X, y = make_data(CoevoClassifier)
    totals = []

    class Recorder:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "fit":
                totals.append(context.max_subtasks)

        def on_fit_task_end(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

    arguments = SMALL | {"checkpoint": path, "resume": True}
    for n_generations in (5, 12, 12):
        changes = {"max_generations": n_generations}
        CoevoClassifier(**arguments | changes).set_callbacks(Recorder()).fit(X, y)
    assert totals == [5, 7, 0]


# ---------------------------------------------------------------------------------- what is refused

OTHER = {
    "hidden_layer_sizes": (5,), "activation": "sign", "fitness": "f1_macro",
    "validation_fitness": "balanced_accuracy", "scale_inputs": False, "decomposition": "layer",
    "limited_evaluation": False, "batch_size": 90, "decay": 0.3, "reshuffle_batches": False,
    "population_size": 7, "scale_factor": 0.3, "crossover_rate": 0.4, "control": "jde",
    "strategy": "best/1", "representative": "best", "sampling_rounds": 4, "initial_range": 2.0,
    "scale_initial_range": False, "extensions": ["weight_decay"], "validation_fraction": 0.3,
    "class_weight": {"high": 2.0}, "random_state": 9, "dtype": "float64",
    "categorical_features": None, "max_categories": 9, "validate_every": 3,
}  # fmt: skip
COMPONENTS = [
    ("control", Dither()), ("control", JDE()), ("control", SHADE()),
    ("strategy", Strategy()), ("strategy", CurrentToPBest()), ("decomposition", RandomGroups()),
    ("extensions", WeightDecay()), ("extensions", PopulationReduction()),
    ("extensions", BatchGrowth()),
]  # fmt: skip
NESTED = {
    "mutation": "best/1", "crossover": "exponential", "synchronous": False, "accept_ties": False,
    "share": 0.3, "archive_rate": 0.5, "redraw_probability": 0.3, "memory_size": 3, "low": 0.1,
    "high": 0.3, "size": 9, "redraw_every": 3, "rate": 0.1, "final_size": 7,
}  # fmt: skip


def test_every_argument_is_free_a_budget_or_compared():
    assert {*OTHER, *BUDGETS, *FREE} == set(inspect.signature(CoevoClassifier).parameters)


@pytest.mark.parametrize(("argument", "component"), COMPONENTS, ids=str)
def test_every_setting_of_a_component_is_compared(argument, component):
    def describe(component):
        given = [component] if argument == "extensions" else component
        return describe_arguments(CoevoClassifier(**{argument: given}), 0)

    for name in component.get_params():
        other = dataclasses.replace(component, **{name: NESTED[name]})
        assert describe(component)[argument] != describe(other)[argument], name
        assert describe(other) == describe(copy.deepcopy(other))


def test_other_arguments_are_refused_by_name(path, make_data):
    X, y = make_data(CoevoClassifier)
    CoevoClassifier(**SMALL | {"max_generations": 2}, checkpoint=path).fit(X, y)
    before = path.read_bytes()
    for name, value in OTHER.items():
        with pytest.raises(CheckpointMismatchError, match=f"{name} is .* in the checkpoint and"):
            CoevoClassifier(**SMALL | {name: value}, checkpoint=path, resume=True).fit(X, y)
    with pytest.raises(CheckpointMismatchError, match="estimator is 'CoevoClassifier'"):
        CoevoRegressor(**SMALL, checkpoint=path, resume=True).fit(*make_data(CoevoRegressor))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("fitness", "other"),
    [
        (
            make_scorer(fbeta_score, beta=2, average="macro"),
            make_scorer(fbeta_score, beta=3, average="macro"),
        ),
        (
            functools.partial(fbeta_score, beta=2, average="macro"),
            functools.partial(fbeta_score, beta=3, average="macro"),
        ),
        (accuracy_score, fbeta_score),
    ],
    ids=["scorers", "partials", "metrics"],
)
def test_metrics_are_told_apart(path, fitness, other, make_data):
    X, y = make_data(CoevoClassifier)
    arguments = SMALL | {"max_generations": 1, "checkpoint": path, "resume": True}
    CoevoClassifier(**arguments, fitness=fitness).fit(X, y)
    CoevoClassifier(**arguments, fitness=clone(fitness, safe=False)).fit(X, y)
    with pytest.raises(CheckpointMismatchError, match="fitness is"):
        CoevoClassifier(**arguments, fitness=other).fit(X, y)


def change(array, row=7):
    """Change one of the instances."""
    changed = array.copy()
    changed[row] = changed[row - 1] if changed[row - 1].tolist() != changed[row].tolist() else 1e3
    return changed


def test_other_data_are_refused_by_name(path, make_data):
    X, y = make_data(CoevoClassifier)
    y[6:8] = "low", "mid"
    weights = np.linspace(1, 2, len(y))
    frame = pd.DataFrame(X, columns=list("abcde"))
    data = {
        "X": frame, "y": y, "sample_weight": weights, "X_val": frame[:50], "y_val": y[:50],
    }  # fmt: skip
    CoevoClassifier(**SMALL, checkpoint=path).fit(**data)
    before = path.read_bytes()
    for changes, message in (
        ({"X": pd.DataFrame(change(X), columns=frame.columns)}, "the inputs X differ. Only"),
        ({"X": frame[::-1]}, "the inputs X differ. Only"),
        ({"y": change(y)}, "the targets y differ. Only"),
        ({"sample_weight": change(weights)}, "the instance weights .* differ. Only"),
        ({"sample_weight": None}, "there are instance weights .* in the checkpoint and none here"),
        (
            {"X_val": pd.DataFrame(change(X[:50]), columns=frame.columns)},
            "the validation inputs X_val differ. Only",
        ),
        ({"y_val": change(y[:50])}, "the validation targets y_val differ. Only"),
        (
            {"X_val": None, "y_val": None},
            "there are validation inputs X_val in the checkpoint and none here; there are "
            "validation targets y_val in the checkpoint and none here. Only",
        ),
        (
            {"y": np.char.upper(y), "y_val": np.char.upper(y[:50])},
            "another run: the classes differ. Only",
        ),
        (
            {name: data[name].rename(columns={"a": "z"}) for name in ("X", "X_val")},
            "another run: the feature names differ. Only",
        ),
        ({"X": X, "X_val": X[:50]}, "there are feature names in the checkpoint and none here"),
    ):
        with pytest.raises(CheckpointMismatchError, match=message):
            CoevoClassifier(**SMALL, checkpoint=path, resume=True).fit(**data | changes)
    assert path.read_bytes() == before
    assert CoevoClassifier(**SMALL, checkpoint=path, resume=True).fit(**data).n_iter_ == 12


def test_a_checkpoint_is_not_overwritten_by_mistake(path, make_data):
    X, y = make_data(CoevoRegressor)
    CoevoRegressor(**SMALL, checkpoint=path).fit(X, y)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="go on from it with resume=True, or remove it"):
        CoevoRegressor(**SMALL, checkpoint=path).fit(X, y)
    with pytest.raises(FileExistsError, match="there already"):  # the second fold's fit
        cross_validate(
            CoevoRegressor(**SMALL, checkpoint=path.with_name("folds")), X, y, error_score="raise"
        )
    assert path.read_bytes() == before
    path.write_bytes(before[:-1])
    with pytest.raises(CheckpointError, match="should have"):
        CoevoRegressor(**SMALL, checkpoint=path, resume=True).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"checkpoint": 3}, TypeError, "checkpoint must be a path or None, got 3"),
        ({"checkpoint": "nowhere/fit"}, FileNotFoundError, "the folder of the checkpoint"),
        ({"checkpoint": None, "resume": True}, ValueError, "resume=True needs a checkpoint"),
        ({"resume": 1}, TypeError, "resume must be True or False"),
        ({"warm_start": True}, ValueError, "warm_start=True and checkpoint do not go together"),
        ({"decomposition": [[0.5]]}, ValueError, "decomposition"),
        ({"decay": 7}, ValueError, "decay must be"),
    ],
)
def test_arguments_that_make_no_sense(path, arguments, error, message, make_data):
    X, y = make_data(CoevoClassifier)
    with pytest.raises(error, match=message):
        CoevoClassifier(**SMALL | {"checkpoint": path} | arguments).fit(X, y)
    assert os.listdir(path.parent) == []


def test_a_stream_has_no_checkpoint(path, make_data):
    X, y = make_data(CoevoRegressor)
    with pytest.raises(ValueError, match="checkpoint is for fit"):
        CoevoRegressor(**SMALL, checkpoint=path).partial_fit(X, y)


def test_two_fits_do_not_write_one_checkpoint(path, make_data):
    X, y = make_data(CoevoClassifier)
    arguments = SMALL | {"checkpoint": path, "resume": True, "random_state": 1}
    seen = []

    def intrude(search):
        with pytest.raises(CheckpointInUseError, match="another run is writing the checkpoint"):
            CoevoClassifier(**arguments).fit(X, y)
        seen.append(search.state.generation)

    CoevoClassifier(**arguments | {"max_generations": 2}, callbacks=[intrude]).fit(X, y)
    assert seen == [1, 2]
    assert CoevoClassifier(**arguments).fit(X, y).n_iter_ == 12


# ------------------------------------------------------------------------------------ fits killed

NURSERY = '''
"""Starts one process after the other, each ready to fit at once, and tells how it ended."""
import json, os, sys
import numpy as np
import coevo

folder, estimator = sys.argv[1:3]
data = {name[:-4]: np.load(os.path.join(folder, name)) for name in os.listdir(folder)}


def fit(arguments):
    if "checkpoint" in arguments:
        arguments["checkpoint"] = coevo.Checkpoint(arguments["checkpoint"], every_generations=1)
    getattr(coevo, estimator)(**arguments).fit(**data)


fit(json.loads(sys.argv[3]) | {"max_generations": 1})  # load what is compiled
process = None
for line in sys.stdin:
    if process is not None:
        os.waitpid(process, 0)
    process = os.fork()
    if process == 0:
        fit(json.loads(line))
        os._exit(0)
    print(process, flush=True)
    # It is buried when the next is asked for: until then the number that may be killed is its own.
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
'''


@pytest.mark.skipif(
    not hasattr(os, "fork") or not hasattr(os, "waitid"),
    reason="processes are forked and waited for here",
)
@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="many fits, too slow without compiling"
)
@pytest.mark.parametrize(
    ("estimator", "random_state", "validation"),
    [  # each with each of the others' values
        (CoevoClassifier, None, "split"),
        (CoevoClassifier, 11, "given"),
        (CoevoRegressor, None, "given"),
        (CoevoRegressor, 11, "split"),
    ],
)
def test_a_fit_killed_at_many_random_moments(
    tmp_path, path, estimator, random_state, validation, make_data, assert_same_fit
):
    X, y = make_data(estimator)
    data = {"X": X, "y": y}
    if validation == "given":
        data = {"X": X[::2], "y": y[::2], "X_val": X[1::2], "y_val": y[1::2]}
    (tmp_path / "data").mkdir()
    for name, array in data.items():
        np.save(tmp_path / "data" / f"{name}.npy", array)
    arguments = SMALL | {
        "hidden_layer_sizes": (12,), "population_size": 10, "max_generations": 240,
        "random_state": random_state,
    }  # fmt: skip
    generator = random.Random(f"{estimator} {random_state} {validation}")
    nursery = subprocess.Popen(
        [
            sys.executable, "-c", NURSERY, str(tmp_path / "data"), estimator.__name__,
            json.dumps(arguments),
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    seeds, reached, patience = set(), [0], 0.1
    try:
        while reached[-1] < 240:
            further = {"checkpoint": str(path), "resume": True}
            nursery.stdin.write(json.dumps(arguments | further).encode() + b"\n")
            number = int(nursery.stdout.readline())
            if not select.select([nursery.stdout], [], [], generator.uniform(0, patience))[0]:
                os.kill(number, signal.SIGKILL)
            status = int(nursery.stdout.readline())
            assert status in (0, -signal.SIGKILL)
            if path.exists():
                seeds.add(load(path).fingerprint.seed)
                reached.append(load(path).state.generation)
                assert reached[-1] >= reached[-2]
            # The machine may be busy, or fast.
            progress = reached[-1] - reached[-2] if len(reached) > 1 else 0
            patience *= 1.1 if progress == 0 else 0.5 if progress > 40 else 1
    finally:
        nursery.stdin.close()
        nursery.stdout.close()
        nursery.wait(timeout=20)
    assert len(set(reached)) > 3  # it was killed on the way, more than once
    assert len(seeds) == 1
    resumed = estimator(**arguments, checkpoint=path, resume=True).fit(**data)
    whole = estimator(**arguments | {"random_state": seeds.pop()}).fit(**data)
    assert_same_fit(resumed, whole)
