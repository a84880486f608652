"""Data and helpers that the tests of the estimators share."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification

from coevo import CoevoClassifier


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def binary():
    return make_classification(
        n_samples=300, n_features=6, n_informative=4, weights=[0.8], random_state=3
    )


@pytest.fixture(scope="session")
def numbers():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :8], y


@pytest.fixture(scope="session")
def make_data():
    """Return data for an estimator, enough that a validation set is split off."""

    def make(estimator, n_instances=600, n_inputs=5):
        rng = np.random.default_rng(8)
        X = rng.normal(size=(n_instances, n_inputs))
        y = X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=n_instances)
        if estimator is CoevoClassifier:
            y = np.array(["high", "low", "mid"])[np.digitize(y, [0, 1.5])]
        return X, y

    return make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture(scope="session")
def assert_same_fit():
    """Compare two fits' networks, histories and counts, bit for bit."""

    def compare(fitted, other):
        assert fitted.network_.genotype.tobytes() == other.network_.genotype.tobytes()
        for name in (
            "n_iter_", "n_evaluations_", "train_fitness_", "validation_fitness_", "stop_reason_",
        ):  # fmt: skip
            assert getattr(fitted, name) == getattr(other, name), name
        assert fitted.history_.keys() == other.history_.keys()
        for name in fitted.history_.keys() - {"seconds"}:
            assert fitted.history_[name].tobytes() == other.history_[name].tobytes(), name

    return compare
