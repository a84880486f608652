"""Estimators with a checkpoint: fits that are really killed go on bit for bit."""

import os

import numpy as np
import pytest

from coevo import CoevoClassifier, CoevoRegressor
from coevo.checkpoint import load, previous_path

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 100, "population_size": 6, "max_evaluations": None,
    "max_generations": 12, "n_threads": 1,
}  # fmt: skip
ESTIMATORS = {"classifier": CoevoClassifier, "regressor": CoevoRegressor}


def make_data(kind, n_instances=600, n_inputs=5):
    """Enough instances that a validation set is split off."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n_instances, n_inputs))
    y = X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=n_instances)
    return (X, np.array(["high", "low", "mid"])[np.digitize(y, [0, 1.5])] if "c" in kind else y)


def make_data_of(estimator):
    return make_data("classifier" if estimator is CoevoClassifier else "number")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def assert_same_fit(fitted, other):
    """The same network, history and counts, bit for bit."""
    assert fitted.network_.genotype.tobytes() == other.network_.genotype.tobytes()
    names = ("n_iter_", "n_evaluations_", "train_fitness_", "validation_fitness_", "stop_reason_")
    for name in names:
        assert getattr(fitted, name) == getattr(other, name), name
    assert fitted.history_.keys() == other.history_.keys()
    for name in fitted.history_.keys() - {"seconds"}:
        assert fitted.history_[name].tobytes() == other.history_[name].tobytes(), name


# ----------------------------------------------------------------------------- stopped and resumed


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
@pytest.mark.parametrize("random_state", [None, 3])
@pytest.mark.parametrize("validation", ["split", "given", "none"])
def test_a_resumed_fit_ends_as_if_it_had_never_stopped(path, estimator, random_state, validation):
    X, y = make_data_of(estimator)
    further = {}
    if validation == "given":
        X, y, further = X[::2], y[::2], {"X_val": X[1::2], "y_val": y[1::2]}
    elif validation == "none":
        X, y = X[:300], y[:300]  # too few to split any off
    arguments = SMALL | {"checkpoint": path, "resume": True, "random_state": random_state}
    for n_generations in (1, 5, 12):
        fitted = estimator(**arguments | {"max_generations": n_generations}).fit(X, y, **further)
        assert fitted.n_iter_ == n_generations
    seed = load(path).purpose.seed
    assert seed == random_state or random_state is None
    assert_same_fit(fitted, estimator(**SMALL, random_state=seed).fit(X, y, **further))
    again = estimator(**arguments).fit(X, y, **further)  # nothing left to do
    assert_same_fit(again, fitted)
    assert sorted(os.listdir(path.parent)) == [path.name, previous_path(path).name]
