"""Streams: partial_fit batch by batch."""

import numpy as np
import pytest

from coevo import BatchGrowth, CoevoClassifier, CoevoRegressor, PopulationReduction

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}
COUNTED = {"fitness": "accuracy"}


def test_a_stream_is_learnt_batch_by_batch(rng):
    X = rng.uniform(-1, 1, (6_000, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.3, "yes", "no")
    test = slice(5_000, None)
    classifier = CoevoClassifier((8,), random_state=0, n_threads=1)
    seen = []
    for start in range(0, 5_000, 250):
        batch = slice(start, start + 250)
        classifier.partial_fit(X[batch], y[batch], classes=["yes", "no"])
        seen.append(classifier.n_iter_)
    assert seen == list(range(1, 21))
    assert classifier.score(X[test], y[test]) > 0.85
    first = CoevoClassifier((8,), random_state=0, n_threads=1)
    first.partial_fit(X[:250], y[:250], classes=["yes", "no"])
    assert classifier.score(X[test], y[test]) > first.score(X[test], y[test])


@pytest.mark.parametrize("decay", [0.2, 1.0])
def test_fitness_is_inherited_from_batch_to_batch(iris, decay):
    X, y = iris
    classifier = CoevoClassifier(**QUICK | COUNTED, strategy="rand/1", decay=decay)
    classifier.partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    classifier.partial_fit(X[1::2], y[1::2])
    # Accuracy alone is at most 1; what is more comes from the first batch.
    assert (classifier._fit_state.ongoing.state.fitness.max() > 1) == (decay < 1)


def test_a_streams_validation_set_keeps_the_best_network(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK | COUNTED, generations_per_batch=3)
    classifier.partial_fit(X, y, classes=[0, 1, 2], X_val=X, y_val=y)
    best = [classifier.validation_fitness_]
    for _ in range(5):
        classifier.partial_fit(X, np.roll(y, 50))  # misled, but the best is kept
        best.append(classifier.validation_fitness_)
    assert classifier.n_iter_ == 18
    assert (np.diff(best) >= 0).all()
    assert classifier.score(X, y) == pytest.approx(best[-1])


def test_a_regressors_stream(numbers):
    X, y = numbers
    regressor = CoevoRegressor((4,), random_state=0, n_threads=1, generations_per_batch=4)
    for start in (0, 150, 300, 0, 150, 300):
        regressor.partial_fit(X[start : start + 150], y[start : start + 150])
    assert regressor.score(X, y) > 0.2
    with pytest.raises(ValueError, match="columns"):
        regressor.partial_fit(X, np.column_stack([y, y]))


def test_a_stream_that_does_not_hang_together_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        CoevoClassifier(**QUICK).partial_fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        CoevoClassifier(**QUICK, class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    classifier = CoevoClassifier(**QUICK).partial_fit(X[:60], y[:60], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not those of the calls before"):
        classifier.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="features"):
        classifier.partial_fit(X[:, :2], y)


def test_a_fit_can_be_followed_by_a_stream(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK).fit(X, y)
    generations = classifier.n_iter_
    assert classifier.partial_fit(X, y).n_iter_ == generations + 1


@pytest.mark.parametrize("control", ["dither", "jde", "shade"])
def test_a_stream_with_each_control(iris, control):
    X, y = iris
    classifier = CoevoClassifier((4,), control=control, random_state=1)
    for start in range(3):
        classifier.partial_fit(X[start::3], y[start::3], classes=np.unique(y))
    assert classifier.n_iter_ == 3


@pytest.mark.parametrize("extension", [PopulationReduction(10), BatchGrowth(500)], ids=str)
def test_a_stream_has_no_budget_to_follow(iris, extension):
    message = f"{extension.name} follows the budget, and a stream has none"
    with pytest.raises(ValueError, match=message):
        CoevoClassifier(extensions=[extension]).partial_fit(*iris, classes=[0, 1, 2])
