"""Permutation importance."""

import numpy as np
import pytest
from sklearn.inspection import permutation_importance

from coevo import CoevoRegressor
from coevo.core.network import Architecture, Network
from coevo.tabular.importance import choose_metric, limit_rows, measure_importance


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
def test_shuffled_columns_are_those_of_a_shuffled_table(rng, hidden):
    architecture = Architecture(5, hidden, 3)
    network = Network(architecture, rng.normal(size=architecture.n_genes))
    inputs = rng.normal(size=(80, 5))
    targets = network.predict(inputs)
    columns = {"a": [0], "b": [1, 3], "c": [2, 4]}
    found = measure_importance(network, inputs, targets, columns, "accuracy", seed=3)
    rng = np.random.default_rng([3, 0x1897])
    expected = {name: [] for name in columns}
    for _ in range(5):
        order = rng.permutation(80)
        for name, places in columns.items():
            shuffled = inputs.copy()
            shuffled[:, places] = inputs[order][:, places]
            expected[name].append(1 - np.mean(network.predict(shuffled) == targets))
    for name, losses in expected.items():
        assert found[name]["mean"] == pytest.approx(np.mean(losses))
        assert found[name]["sd"] == pytest.approx(np.std(losses))
    means = [loss["mean"] for loss in found.values()]
    assert means == sorted(means, reverse=True)


def test_it_agrees_with_scikit_learn(rng):
    X = rng.uniform(-1, 1, (300, 3))
    y = 3 * X[:, 0] + X[:, 1]
    model = CoevoRegressor((5,), max_evaluations=5_000, random_state=1).fit(X, y)
    theirs = permutation_importance(model, X, y, n_repeats=30, random_state=0).importances_mean
    columns = {str(k): [k] for k in range(3)}
    found = measure_importance(model.network_, X, y, columns, "r2", seed=0)
    assert [found[str(k)]["mean"] for k in range(3)] == pytest.approx(theirs, rel=0.1, abs=0.01)


def test_of_many_rows_some_are_taken(rng, monkeypatch):
    monkeypatch.setattr("coevo.tabular.importance._MOST_ACTIVATIONS", 5 * 2 * 3 * 150)
    architecture = Architecture(2, (3,), 2)
    network = Network(architecture, rng.normal(size=architecture.n_genes))
    seen = []
    metrics = {"accuracy": lambda outputs, targets: seen.append(len(outputs)) or 0.0}
    monkeypatch.setattr("coevo.tabular.importance.METRICS", metrics)
    columns = {"a": [0], "b": [1]}
    measure_importance(network, rng.normal(size=(500, 2)), np.zeros(500), columns, "accuracy", 0)
    assert set(seen) == {150}
    assert [limit_rows(n, network, 2) for n in (500, 60)] == [150, 60]


def test_losses_are_told_in_a_metric_that_people_read():
    for fitness, task, metric in (
        ("cross_entropy", "classification", "accuracy"), ("f1", "classification", "f1"),
        ("average_precision", "classification", "accuracy"), ("squared_error", "regression", "r2"),
        ("roc_auc", "classification", "roc_auc"),
    ):  # fmt: skip
        assert choose_metric(fitness, task) == metric
