"""A user's fitness function gets what it asks for, the same in `evolve` and in the estimators."""

import numpy as np
import pytest

from coevo import CoevoClassifier, CoevoRegressor, evolve, make_metric
from coevo.core.responses import RESPONSE_METHODS

NAMES = np.array(["ash", "birch", "cedar"])
SHORT = {"hidden_layer_sizes": (3,), "batch_size": 25, "population_size": 6, "max_generations": 2}


@pytest.fixture
def labelled(make_classification_data):
    def make(n_classes=3):
        inputs, targets = make_classification_data(
            np.random.default_rng(2), n_instances=50, n_classes=n_classes
        )
        return inputs, NAMES[targets]

    return make


def run_evolve(X, y, metric):
    return evolve(X, y, X, y, **SHORT, fitness=metric, seed=1)


def run_classifier(X, y, metric):
    return CoevoClassifier(**SHORT, fitness=metric, random_state=1).fit(X, y, X_val=X, y_val=y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("response_method", RESPONSE_METHODS)
def test_a_response_means_the_same_everywhere(labelled, response_method, n_classes):
    X, y = labelled(n_classes)
    shapes = {
        "predict": (25,), "predict_proba": (25, n_classes), "outputs": (25, n_classes),
        "decision_function": (25,) if n_classes == 2 else (25, n_classes),
    }  # fmt: skip
    calls = []

    def look(y_true, response):
        calls.append((y_true, response))
        return float(len(calls) % 7)

    metric = make_metric(look, response_method=response_method)
    for run in (run_evolve, run_classifier):
        model = run(X, y, metric)
        assert len(calls) > 12
        for y_true, response in calls:
            # The labels of the user, not class indices.
            assert set(y_true) <= set(NAMES[:n_classes])
            assert response.shape in (shapes[response_method], (50, *shapes[response_method][1:]))
            if response_method == "predict":
                assert set(response) <= set(NAMES[:n_classes])
            if response_method == "predict_proba":
                np.testing.assert_allclose(response.sum(axis=1), 1)
        if response_method in ("predict_proba", "decision_function"):
            # The last call is about the network that is returned, on all training instances.
            y_true, response = calls[-1]
            np.testing.assert_array_equal(y_true, y)
            if isinstance(model, CoevoClassifier):
                expected = getattr(model, response_method)(X)
                np.testing.assert_allclose(response, expected, rtol=1e-3, atol=1e-4)
        calls.clear()


@pytest.mark.parametrize("response_method", RESPONSE_METHODS)
def test_evolve_and_the_classifier_report_the_same_fitness(labelled, response_method):
    X, y = labelled(2)

    def agreement(y_true, response):
        is_birch = y_true == "birch"
        if response.dtype.kind == "U":
            return float(np.mean((response == "birch") == is_birch))
        score = response if response.ndim == 1 else response[:, 1] - response[:, 0]
        return float(np.tanh(score[is_birch]).sum() - np.tanh(score[~is_birch]).sum())

    metric = make_metric(agreement, response_method=response_method)
    result, classifier = run_evolve(X, y, metric), run_classifier(X, y, metric)
    outputs = result.network.outputs(X)
    exact = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    responses = {
        "predict": result.predict(X),
        "predict_proba": exact / exact.sum(axis=1, keepdims=True),
        "decision_function": outputs[:, 1] - outputs[:, 0],
        "outputs": outputs,
    }
    expected = agreement(y, responses[response_method])
    assert result.train_fitness == pytest.approx(expected, rel=1e-4, abs=1e-5)
    if response_method != "outputs":
        expected = agreement(y, getattr(classifier, response_method)(X))
        assert classifier.train_fitness_ == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_a_plain_function_gets_labels(labelled):
    X, y = labelled()
    seen = []

    def right(y_true, y_pred):
        seen.append(set(y_true) | set(y_pred))
        return float(np.mean(y_true == y_pred))

    result, classifier = run_evolve(X, y, right), run_classifier(X, y, right)
    assert set.union(*seen) <= set(NAMES)
    assert result.train_fitness == pytest.approx(np.mean(result.predict(X) == y))
    assert classifier.train_fitness_ == pytest.approx(classifier.score(X, y))


def test_a_regressors_function_gets_numbers_in_the_units_of_y(rng):
    X = rng.uniform(-1, 1, (50, 3))
    y = 1000 + 50 * X[:, 0]
    seen = []

    def loss(y_true, y_pred):
        seen.append(y_true)
        assert y_true.shape == y_pred.shape
        return float(np.abs(y_true - y_pred).mean())

    metric = make_metric(loss, greater_is_better=False, task="regression")
    regressor = CoevoRegressor(**SHORT, fitness=metric, random_state=1).fit(X, y, X_val=X, y_val=y)
    np.testing.assert_allclose(seen[-1], y, rtol=1e-5)
    assert regressor.train_fitness_ == pytest.approx(
        -np.abs(regressor.predict(X) - y).mean(), rel=1e-4
    )
    seen.clear()
    result = evolve(X, y / 1000, X, y / 1000, **SHORT, fitness=metric, seed=1)
    np.testing.assert_allclose(seen[-1], y / 1000, rtol=1e-5)
    expected = -np.abs(result.predict(X)[:, 0] - y / 1000).mean()
    assert result.train_fitness == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
def test_numbers_have_no_probabilities(rng, response_method):
    X = rng.uniform(-1, 1, (50, 3))
    metric = make_metric(lambda y, p: 0.0, response_method=response_method, task="regression")
    for run in (
        lambda: evolve(X, X[:, 0], X, X[:, 0], **SHORT, fitness=metric),
        lambda: CoevoRegressor(**SHORT, fitness=metric).fit(X, X[:, 0]),
    ):
        with pytest.raises(
            ValueError, match=f"response_method='{response_method}' is for classification"
        ):
            run()


# --------------------------------------------------------------------------------- read-only arrays


@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize("response_method", RESPONSE_METHODS)
def test_a_function_that_writes_into_its_arguments_fails(labelled, response_method, argument):
    X, y = labelled()
    X_before, y_before = X.copy(), y.copy()

    def write(*arguments):
        arguments[argument][0] = arguments[argument][1]
        return 0.0

    metric = make_metric(write, response_method=response_method)
    for run in (
        lambda: evolve(X, y, X, y, **SHORT, fitness=metric, seed=1),
        lambda: CoevoClassifier(**SHORT, fitness=metric, random_state=1).fit(X, y),
    ):
        with pytest.raises(ValueError, match="read-only"):
            run()
    np.testing.assert_array_equal(y, y_before)
    np.testing.assert_array_equal(X, X_before)


def test_a_copy_may_be_written_into(labelled):
    X, y = labelled()

    def count(y_true, y_pred):
        wrong = y_pred.copy()
        wrong[:] = "ash"
        return float(np.mean(wrong == y_true))

    assert evolve(X, y, X, y, **SHORT, fitness=count, seed=1).train_fitness == np.mean(y == "ash")


# ------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("response_method", RESPONSE_METHODS)
def test_weights_come_by_name(labelled, response_method):
    X, y = labelled()
    weights = np.arange(1.0, 51.0)
    seen = []

    def weigh(y_true, response, *, sample_weight=None):
        if sample_weight is None:  # on the validation set, which has none
            return 0.0
        seen.append(sample_weight)
        return float(sample_weight.sum())

    metric = make_metric(weigh, response_method=response_method)
    classifier = CoevoClassifier(**SHORT, fitness=metric, random_state=1)
    classifier.fit(X, y, sample_weight=weights, X_val=X, y_val=y)
    np.testing.assert_allclose(seen[-1], weights)
    assert not any(given.flags.writeable for given in seen)


def test_a_function_without_weights_says_so(labelled):
    X, y = labelled()
    classifier = CoevoClassifier(**SHORT, fitness=lambda t, p: 0.0)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        classifier.fit(X, y, sample_weight=np.arange(1.0, 51.0))
    classifier.fit(X, y, sample_weight=np.full(50, 3.0))  # equal weights are none


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"function": 3}, TypeError, "the metric's function must be callable, got 3"),
        (
            {"response_method": "score"},
            ValueError,
            "response_method='score' is unknown; .* predict",
        ),
        (
            {"task": "ranking"},
            ValueError,
            "task='ranking' is unknown; .* classification, multilabel, regress",
        ),
    ],
)
def test_what_makes_no_metric_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        make_metric(**{"function": max} | arguments)
