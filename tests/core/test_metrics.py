"""Each metric against scikit-learn's own, with and without weights, for one network and many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from coevo.core import metrics as ours
from coevo.core.metrics import METRICS, FunctionMetric, find_metric, make_metric

PROFITS = np.array([[1.0, -2, 0, 0.5], [-5, 3, 0, 0], [0, 0, 2, -1], [1, 1, -1, 4]])


def softmax(outputs):
    exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def argmax(outputs):
    return outputs.argmax(axis=1)


def plain_profit(y, outputs, w):
    n = outputs.shape[1]
    return np.average(PROFITS[:n, :n][y, argmax(outputs)], weights=w)


def plain_margin(y, outputs, w):
    own = outputs[np.arange(len(y)), y]
    rivals = np.array([np.delete(row, c).max() for row, c in zip(outputs, y, strict=True)])
    return np.average(np.minimum(own - rivals, 0.7), weights=w)


def auc(y, outputs, w):
    if outputs.shape[1] == 2:
        return metrics.roc_auc_score(y, outputs[:, 1] - outputs[:, 0], sample_weight=w)
    return metrics.roc_auc_score(y, softmax(outputs), multi_class="ovr", sample_weight=w)


CLASSIFICATION = {
    "accuracy": (
        ours.Accuracy(),
        lambda y, o, w: metrics.accuracy_score(y, argmax(o), sample_weight=w),
    ),
    "balanced": (
        ours.BalancedAccuracy(),
        lambda y, o, w: metrics.balanced_accuracy_score(y, argmax(o), sample_weight=w),
    ),
    "f2 macro": (
        ours.FBeta(2.0, "macro"),
        lambda y, o, w: metrics.fbeta_score(
            y, argmax(o), beta=2, average="macro", sample_weight=w, zero_division=0
        ),
    ),
    "f½ of class 1": (
        ours.FBeta(0.5),
        lambda y, o, w: metrics.fbeta_score(
            y == 1, argmax(o) == 1, beta=0.5, sample_weight=w, zero_division=0
        ),
    ),
    "matthews": (
        ours.Matthews(),
        lambda y, o, w: metrics.matthews_corrcoef(y, argmax(o), sample_weight=w),
    ),
    "cross-entropy": (
        ours.CrossEntropy(),
        lambda y, o, w: -metrics.log_loss(y, softmax(o), labels=range(o.shape[1]), sample_weight=w),
    ),
    "roc auc": (ours.RocAuc(), auc),
    "margin": (ours.ClippedMargin(0.7), plain_margin),
}


def make_case(seed, n_classes, n_networks=3, n_instances=40):
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(n_networks, n_instances, n_classes)).round(1)  # with ties
    targets = rng.integers(n_classes, size=n_instances)
    targets[:n_classes] = np.arange(n_classes)
    return outputs, targets, rng.uniform(0.1, 3, n_instances)


@pytest.mark.parametrize("name", CLASSIFICATION)
@pytest.mark.parametrize("is_weighted", [False, True])
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_classification_metrics_agree_with_scikit_learn(name, is_weighted, seed, n_classes):
    metric, expected = CLASSIFICATION[name]
    outputs, targets, weights = make_case(seed, n_classes)
    weights = weights if is_weighted else None
    values = metric(outputs, targets, weights)
    assert values.shape == (3,)
    for network, value in zip(outputs, values, strict=True):
        assert value == pytest.approx(expected(targets, network, weights), abs=1e-9)
        assert metric(network, targets, weights) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_profit_is_the_mean_price(is_weighted, seed, n_classes):
    outputs, targets, weights = make_case(seed, n_classes)
    weights = weights if is_weighted else None
    values = ours.Profit(PROFITS[:n_classes, :n_classes])(outputs, targets, weights)
    expected = [plain_profit(targets, network, weights) for network in outputs]
    assert values == pytest.approx(expected)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (ours.SquaredError(), metrics.mean_squared_error),
        (ours.AbsoluteError(), metrics.mean_absolute_error),
    ],
)
def test_regression_metrics_agree_with_scikit_learn(metric, expected, n_outputs, is_weighted):
    rng = np.random.default_rng(n_outputs)
    outputs = rng.normal(size=(3, 20, n_outputs))
    targets = rng.normal(size=(20, n_outputs))
    weights = rng.uniform(0.1, 3, 20) if is_weighted else None
    values = metric(outputs, targets, weights)
    for network, value in zip(outputs, values, strict=True):
        assert value == pytest.approx(-expected(targets, network, sample_weight=weights))
    if n_outputs == 1:
        assert metric(outputs, targets[:, 0], weights) == pytest.approx(values)
    assert metric.task == "regression"


def test_a_batch_may_lack_classes():
    outputs = np.array([[2.0, 1, 0], [0, 1, 2]])
    targets = np.array([0, 2])
    assert ours.BalancedAccuracy()(outputs, targets) == 1.0
    assert ours.FBeta(average="macro")(outputs, targets) == 1.0
    assert ours.FBeta()(outputs, targets) == 0.0  # class 1 neither occurs nor is predicted
    assert ours.RocAuc()(outputs, targets) == 1.0
    one_class = np.array([0, 0])
    assert ours.RocAuc()(outputs, one_class) == 0.5
    assert ours.Matthews()(outputs, one_class) == 0.0


def test_cross_entropy_of_huge_outputs_is_finite():
    outputs = np.array([[1e30, -1e30], [500.0, -500.0]], dtype=np.float32)
    values = ours.CrossEntropy()(outputs[:, np.newaxis, :], np.array([1]))
    assert np.isfinite(values).all()
    assert values[1] == pytest.approx(-1000)


def test_a_function_is_asked_for_each_network():
    outputs, targets, weights = make_case(1, 3)
    accuracy = ours.Accuracy()
    right = make_metric(lambda y, o: (argmax(o) == y).mean(), response_method="outputs")
    assert right(outputs, targets) == pytest.approx(accuracy(outputs, targets))
    labels = make_metric(lambda y, predicted: (predicted == y).mean())
    assert labels(outputs, targets) == pytest.approx(accuracy(outputs, targets))

    def weigh(y, o, sample_weight):
        return np.average(argmax(o) == y, weights=sample_weight)

    weighted = make_metric(weigh, response_method="outputs")
    expected = accuracy(outputs, targets, weights)
    assert weighted(outputs, targets, weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="returned NaN"):
        FunctionMetric(lambda y, o: float("nan"))(outputs, targets)


def test_a_function_of_one_number_for_each_instance_gets_numbers():
    loss = make_metric(
        lambda y, predicted: np.abs(y - predicted).max(), greater_is_better=False, task="regression"
    )
    outputs, targets = np.array([[1.0], [2.0]]), np.array([[1.5], [2.25]])
    assert loss(outputs, targets) == pytest.approx(-0.5)


def test_metrics_are_found_by_name_or_given():
    for name, metric in METRICS.items():
        assert find_metric(name) is metric
    metric = ours.FBeta(2.0)
    assert find_metric(metric) is metric
    assert isinstance(find_metric(max), FunctionMetric)
    with pytest.raises(ValueError, match="fitness='luck' is unknown"):
        find_metric("luck")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ours.FBeta(0), "beta must be above 0"),
        (lambda: ours.FBeta(average="micro"), "average='micro' is unknown; .* binary, macro"),
        (lambda: ours.ClippedMargin(-1), "limit must be above 0"),
        (lambda: ours.SquaredError((1, 0)), "units must be above 0"),
        (
            lambda: ours.AbsoluteError((1, 2))(np.zeros((4, 1)), np.zeros(4)),
            "there are 2 units, but 1 outputs",
        ),
        (lambda: ours.Profit([[1, 2]]), r"matrix must be square .* got shape \(1, 2\)"),
        (lambda: ours.Profit([[np.nan]]), "matrix must be square and finite"),
        (lambda: ours.Profit(PROFITS)(np.zeros((4, 3)), np.zeros(4, int)), "3 classes"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
