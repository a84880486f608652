"""The estimators with the strategy smoothing: fits, weights, warm starts, streams."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from coevo import CoevoClassifier, CoevoRegressor, Smoothing

QUICK = {"hidden_layer_sizes": (8,), "strategy": "smoothing", "max_evaluations": 8_000,
         "random_state": 1, "n_threads": 1}  # fmt: skip


@pytest.mark.parametrize("estimator", [CoevoClassifier, CoevoRegressor])
def test_fits(make_data, estimator):
    X, y = make_data(estimator)
    fitted = estimator(**QUICK).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert isinstance(fitted.settings_.strategy, Smoothing)
    assert fitted.settings_.strategy.weight_decay == 1 / 8
    assert fitted.settings_.batch_size == 24
    assert fitted.n_evaluations_ >= 8_000


def test_the_units_of_the_targets_change_nothing(make_data):
    X, y = make_data(CoevoRegressor)
    scores = [
        CoevoRegressor(**QUICK).fit(X, unit * y).score(X, unit * y) for unit in (1, 1e-6, 1e6)
    ]
    np.testing.assert_allclose(scores, scores[0], rtol=1e-3)


def test_instance_weights_count(binary):
    X, y = binary
    rare = CoevoClassifier(**QUICK, class_weight={0: 1, 1: 20}).fit(X, y)
    plain = CoevoClassifier(**QUICK).fit(X, y)
    assert (rare.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_another_metric_may_validate(binary):
    X, y = binary
    fitted = CoevoClassifier(**QUICK, validation_fitness="f1_weighted").fit(X, y)
    assert 0.8 < fitted.validation_fitness_ <= 1


def test_nested_names_and_grids(iris):
    X, y = iris
    classifier = clone(CoevoClassifier(**QUICK)).set_params(strategy__rate=0.02)
    assert classifier.strategy.rate == 0.02
    grid = GridSearchCV(
        CoevoClassifier(**QUICK | {"strategy": Smoothing(), "max_evaluations": 500}),
        {"strategy__rate": [0.01, 0.05]}, cv=2,
    ).fit(X, y)  # fmt: skip
    assert grid.best_params_.keys() == {"strategy__rate"}


def test_a_warm_start_goes_on_with_its_budget_granted_anew(make_data):
    X, y = make_data(CoevoClassifier)
    classifier = CoevoClassifier(**QUICK | {"max_evaluations": 2_000}, warm_start=True).fit(X, y)
    first, n_first = classifier.validation_fitness_, classifier.n_evaluations_
    rates = []
    classifier.callbacks = [lambda search: rates.append(search._find_share_of_rate()) and None]
    classifier.fit(X, y)
    assert classifier.n_evaluations_ >= n_first + 2_000
    assert classifier.validation_fitness_ >= first
    assert rates[0] > 0.9
    assert rates[-1] == pytest.approx(0, abs=0.02)


def test_a_warm_start_with_another_strategy_is_refused(iris):
    classifier = CoevoClassifier(**QUICK | {"max_evaluations": 500}, warm_start=True).fit(*iris)
    classifier.strategy = "rand/1"
    with pytest.raises(ValueError, match="strategy if one is smoothing"):
        classifier.fit(*iris)


def test_a_stream_is_learnt_batch_by_batch(rng):
    X = rng.uniform(-1, 1, (6_000, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.3, "yes", "no")
    classifier = CoevoClassifier(
        (8,), strategy="smoothing", generations_per_batch=5, random_state=0, n_threads=1
    )
    for start in range(0, 5_000, 100):
        batch = slice(start, start + 100)
        classifier.partial_fit(X[batch], y[batch], classes=["yes", "no"])
    assert classifier.n_iter_ == 250
    assert classifier.settings_.strategy.schedule == "root"
    assert classifier.settings_.strategy.weight_decay == 0
    assert classifier.score(X[5_000:], y[5_000:]) > 0.9


def test_begins_with_a_given_network(make_data):
    X, y = make_data(CoevoClassifier)
    first = CoevoClassifier(**QUICK).fit(X, y)
    again = CoevoClassifier(**QUICK | {"max_evaluations": 30}).fit(
        X, y, initial_network=first.network_
    )
    assert again.history_["validation_fitness"][0] == pytest.approx(
        first.validation_fitness_, rel=1e-3
    )


def test_a_stream_goes_on_with_the_network_of_a_fit(make_data):
    X, y = make_data(CoevoClassifier)
    still = QUICK | {"strategy": Smoothing(rate=1e-9), "max_evaluations": 500}
    classifier = CoevoClassifier(**still).fit(X, y)
    before = classifier._fit_state.ongoing.state.global_solution.copy()
    classifier.partial_fit(0.2 * X[:20], y[:20])  # its inputs have other moments
    after = classifier._fit_state.ongoing.state.global_solution
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_a_streams_rate_follows_no_budget(make_data):
    X, y = make_data(CoevoClassifier)
    for n_generations in (1, 30):
        classifier = CoevoClassifier(**QUICK, generations_per_batch=n_generations)
        classifier.partial_fit(X, y, classes=np.unique(y))
        assert classifier.settings_.strategy.rate == (0.02, 0.04)
