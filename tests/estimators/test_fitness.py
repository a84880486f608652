"""What an estimator maximises, and what its validation set chooses by."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, make_scorer, mean_pinball_loss

from coevo import CoevoClassifier, CoevoRegressor, make_metric
from coevo.core.metrics import FBeta, Profit

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1,
         "validation_fraction": 0.0}  # fmt: skip
COUNTED = {"fitness": "accuracy"}


def profit(y_true, y_pred):
    return 10 * np.sum((y_true == 1) & (y_pred == 1)) - np.sum(y_pred == 1)


@pytest.mark.parametrize(
    ("fitness", "metric"),
    [
        ("f1", f1_score),
        ("f1_weighted", lambda t, p: f1_score(t, p, average="weighted")),
        ("cohen_kappa_score", cohen_kappa_score),
        ("zero_one_loss", lambda t, p: -np.mean(t != p)),
        (cohen_kappa_score, cohen_kappa_score),
        (profit, profit),
        (make_scorer(f1_score, average="macro"), lambda t, p: f1_score(t, p, average="macro")),
        (FBeta(beta=2), None),
        (Profit([[0, -1], [0, 9]]), lambda t, p: profit(t, p) / len(t)),
        ("neg_log_loss", None),
        ("neg_brier_score", None),
        (make_metric(lambda y, outputs: -np.abs(outputs).mean(), response_method="outputs"), None),
    ],
)  # fmt: skip
def test_whatever_the_fitness_is_it_is_maximised(binary, fitness, metric):
    X, y = binary
    quick = QUICK | {"max_evaluations": 600}
    classifier = CoevoClassifier(**quick, fitness=fitness).fit(X, y)
    best = classifier.history_["best_validation"]
    assert best[-1] > best[0]
    assert best[-1] == classifier.validation_fitness_ == pytest.approx(classifier.train_fitness_)
    if metric is not None:
        assert classifier.train_fitness_ == pytest.approx(metric(y, classifier.predict(X)))


@pytest.mark.parametrize(
    "fitness", ["absolute_error", "r2", "mean_pinball_loss", "neg_mean_squared_error"]
)
def test_a_regressors_fitness_is_maximised(numbers, fitness):
    X, y = numbers
    regressor = CoevoRegressor(**QUICK | {"max_evaluations": 600}, fitness=fitness).fit(X, y)
    if fitness == "r2":
        assert regressor.validation_fitness_ == pytest.approx(regressor.score(X, y), abs=1e-4)
    if fitness == "mean_pinball_loss":
        loss = mean_pinball_loss(y, regressor.predict(X))
        assert regressor.validation_fitness_ == pytest.approx(-loss, rel=1e-4)
    assert regressor.history_["best_validation"][-1] > regressor.history_["best_validation"][0]


def test_weights_reach_a_metric_that_takes_them(binary):
    X, y = binary
    weights = 1.0 + y
    quick = QUICK | {"max_evaluations": 400}
    classifier = CoevoClassifier(**quick, fitness="f1_weighted").fit(X, y, sample_weight=weights)
    expected = f1_score(y, classifier.predict(X), average="weighted", sample_weight=weights)
    assert classifier.train_fitness_ == pytest.approx(expected)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        CoevoClassifier(**quick, fitness=profit).fit(X, y, sample_weight=weights)


def test_validation_may_be_told_otherwise(binary):
    X, y = binary
    classifier = CoevoClassifier(
        **QUICK, fitness="cross_entropy", validation_fitness="accuracy"
    ).fit(X, y)
    assert classifier.validation_fitness_ == pytest.approx(classifier.score(X, y))
    assert classifier.train_fitness_ < 0


def test_validation_by_the_same_metric_named_twice_changes_nothing(binary):
    X, y = binary
    alone = CoevoClassifier(**QUICK | COUNTED).fit(X, y)
    twice = CoevoClassifier(**QUICK | COUNTED, validation_fitness="accuracy").fit(X, y)
    np.testing.assert_array_equal(alone.network_.genotype, twice.network_.genotype)
    np.testing.assert_array_equal(
        alone.history_["validation_fitness"], twice.history_["validation_fitness"]
    )


def test_validation_weighs_classes_even_if_training_has_one_weight(binary):
    X, y = binary
    half = {0: 1.0, 1: 3.0}
    classifier = CoevoClassifier(**QUICK | COUNTED, class_weight=half)
    # All weights in training come out at 3.
    weights = np.where(y == 1, 1.0, 3.0)
    classifier.fit(X, y, sample_weight=weights, X_val=X, y_val=y)
    right = classifier.predict(X) == y
    expected = np.average(right, weights=np.where(y == 1, 3.0, 1.0))
    assert classifier.validation_fitness_ == pytest.approx(expected)
    assert classifier.train_fitness_ == pytest.approx(right.mean())


@pytest.mark.parametrize(
    ("estimator", "fitness", "match"),
    [
        (CoevoClassifier, "acuracy", "did you mean accuracy.*balanced_accuracy.*get_scorer_names"),
        (CoevoRegressor, "r3", "squared_error, absolute_error, .*get_scorer_names"),
        (CoevoClassifier, "squared_error", "metric for regression"),
        (CoevoRegressor, "accuracy", "metric for classification"),
        (CoevoClassifier, "f1", "f1_macro"),
        (CoevoClassifier, 3, "must be a name"),
        (CoevoClassifier, lambda t, p: np.nan, "NaN"),
    ],
)
def test_a_fitness_that_makes_no_sense_is_refused(iris, estimator, fitness, match):
    with pytest.raises((ValueError, TypeError), match=match):
        estimator(**QUICK, fitness=fitness).fit(*iris)
