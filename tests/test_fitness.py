"""Each measure against scikit-learn's own, with and without weights, for one network and many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from coevo import fitness as measures
from coevo.fitness import FITNESSES, CustomFitness, find_fitness

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
        measures.Accuracy(),
        lambda y, o, w: metrics.accuracy_score(y, argmax(o), sample_weight=w),
    ),
    "balanced": (
        measures.BalancedAccuracy(),
        lambda y, o, w: metrics.balanced_accuracy_score(y, argmax(o), sample_weight=w),
    ),
    "f2 macro": (
        measures.FBeta(2.0, "macro"),
        lambda y, o, w: metrics.fbeta_score(
            y, argmax(o), beta=2, average="macro", sample_weight=w, zero_division=0
        ),
    ),
    "f½ of class 1": (
        measures.FBeta(0.5),
        lambda y, o, w: metrics.fbeta_score(
            y == 1, argmax(o) == 1, beta=0.5, sample_weight=w, zero_division=0
        ),
    ),
    "matthews": (
        measures.Matthews(),
        lambda y, o, w: metrics.matthews_corrcoef(y, argmax(o), sample_weight=w),
    ),
    "cross-entropy": (
        measures.CrossEntropy(),
        lambda y, o, w: -metrics.log_loss(y, softmax(o), labels=range(o.shape[1]), sample_weight=w),
    ),
    "roc auc": (measures.RocAuc(), auc),
    "margin": (measures.ClippedMargin(0.7), plain_margin),
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
def test_classification_measures_agree_with_scikit_learn(name, is_weighted, seed, n_classes):
    measure, expected = CLASSIFICATION[name]
    outputs, targets, weights = make_case(seed, n_classes)
    weights = weights if is_weighted else None
    values = measure(outputs, targets, weights)
    assert values.shape == (3,)
    for network, value in zip(outputs, values, strict=True):
        assert value == pytest.approx(expected(targets, network, weights), abs=1e-9)
        assert measure(network, targets, weights) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_profit_is_the_mean_price(is_weighted, seed, n_classes):
    outputs, targets, weights = make_case(seed, n_classes)
    weights = weights if is_weighted else None
    values = measures.Profit(PROFITS[:n_classes, :n_classes])(outputs, targets, weights)
    expected = [plain_profit(targets, network, weights) for network in outputs]
    assert values == pytest.approx(expected)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (measures.SquaredError(), metrics.mean_squared_error),
        (measures.AbsoluteError(), metrics.mean_absolute_error),
    ],
)
def test_regression_measures_agree_with_scikit_learn(measure, expected, n_outputs, is_weighted):
    rng = np.random.default_rng(n_outputs)
    outputs = rng.normal(size=(3, 20, n_outputs))
    targets = rng.normal(size=(20, n_outputs))
    weights = rng.uniform(0.1, 3, 20) if is_weighted else None
    values = measure(outputs, targets, weights)
    for network, value in zip(outputs, values, strict=True):
        assert value == pytest.approx(-expected(targets, network, sample_weight=weights))
    if n_outputs == 1:
        assert measure(outputs, targets[:, 0], weights) == pytest.approx(values)
    assert measure.task == "regression"


def test_a_batch_may_lack_classes():
    outputs = np.array([[2.0, 1, 0], [0, 1, 2]])
    targets = np.array([0, 2])
    assert measures.BalancedAccuracy()(outputs, targets) == 1.0
    assert measures.FBeta(average="macro")(outputs, targets) == 1.0
    assert measures.FBeta()(outputs, targets) == 0.0  # class 1 neither occurs nor is predicted
    assert measures.RocAuc()(outputs, targets) == 1.0
    one_class = np.array([0, 0])
    assert measures.RocAuc()(outputs, one_class) == 0.5
    assert measures.Matthews()(outputs, one_class) == 0.0


def test_cross_entropy_of_huge_outputs_is_finite():
    outputs = np.array([[1e30, -1e30], [500.0, -500.0]], dtype=np.float32)
    values = measures.CrossEntropy()(outputs[:, np.newaxis, :], np.array([1]))
    assert np.isfinite(values).all()
    assert values[1] == pytest.approx(-1000)


def test_a_function_is_asked_for_each_network():
    outputs, targets, weights = make_case(1, 3)
    right = CustomFitness(lambda y, o: (argmax(o) == y).mean())
    assert right(outputs, targets) == pytest.approx(measures.Accuracy()(outputs, targets))
    weighted = CustomFitness(lambda y, o, w: np.average(argmax(o) == y, weights=w))
    assert weighted(outputs, targets, weights) == pytest.approx(
        measures.Accuracy()(outputs, targets, weights)
    )
    with pytest.raises(ValueError, match="returned NaN"):
        CustomFitness(lambda y, o: float("nan"))(outputs, targets)


def test_measures_are_found_by_name_or_given():
    for name, measure in FITNESSES.items():
        assert find_fitness(name) is measure
    measure = measures.FBeta(2.0)
    assert find_fitness(measure) is measure
    assert isinstance(find_fitness(max), CustomFitness)
    with pytest.raises(ValueError, match="fitness='luck' is unknown"):
        find_fitness("luck")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: measures.FBeta(0), "beta must be above 0"),
        (lambda: measures.FBeta(average="micro"), "average='micro' is unknown; .* binary, macro"),
        (lambda: measures.ClippedMargin(-1), "limit must be above 0"),
        (lambda: measures.SquaredError((1, 0)), "units must be above 0"),
        (
            lambda: measures.AbsoluteError((1, 2))(np.zeros((4, 1)), np.zeros(4)),
            "there are 2 units, but 1 outputs",
        ),
        (lambda: measures.Profit([[1, 2]]), r"matrix must be square .* got shape \(1, 2\)"),
        (lambda: measures.Profit([[np.nan]]), "matrix must be square and finite"),
        (lambda: measures.Profit(PROFITS)(np.zeros((4, 3)), np.zeros(4, int)), "3 classes"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
