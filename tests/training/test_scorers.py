"""Names of scikit-learn's that stand for metrics of ours give what scikit-learn gives."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from coevo.core.metrics import METRICS, FunctionMetric, RocAuc
from coevo.core.responses import ClassResponses, NumberResponses
from coevo.engines.compiled_metrics import COMPILED
from coevo.training.scorers import (
    _SAME,
    _SAME_ERRORS,
    _SAME_FUNCTIONS,
    ScorerMetric,
    resolve_metric,
)

OURS = {"accuracy", "balanced_accuracy", "f1", "f1_macro", "roc_auc"}
"""Names that are scikit-learn's as they are ours."""


def find_scorer(name):
    """Return the scorer of that name, or the first one made from the metric of that name."""
    if name in metrics.get_scorer_names():
        return metrics.get_scorer(name)
    for known in metrics.get_scorer_names():
        scorer = metrics.get_scorer(known)
        if scorer._score_func is getattr(metrics, name):
            return scorer
    raise AssertionError(name)


def agree(metric, expected, outputs, targets, weights):
    np.testing.assert_allclose(
        metric(outputs, targets, weights), expected(outputs, targets, weights), atol=1e-9
    )


def test_all_shared_names_are_tested():
    assert set(METRICS) & set(metrics.get_scorer_names()) == OURS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", sorted({*_SAME, *OURS}))
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_a_name_for_classes_means_what_it_means_there(name, is_weighted, seed, n_classes):
    if METRICS[_SAME.get(name, name)] is METRICS["f1"]:
        n_classes = 2
    scorer = find_scorer(name)
    if name in {"roc_auc", "roc_auc_score"} and n_classes > 2:
        scorer = metrics.get_scorer("roc_auc_ovr")  # without a word about it there is an error
    rng = np.random.default_rng(seed)
    outputs = rng.integers(-20, 20, size=(3, 30, n_classes)) / 8  # ties, even of differences
    targets = rng.integers(n_classes, size=30)
    targets[:n_classes] = np.arange(n_classes)
    weights = rng.uniform(0.1, 3, 30) if is_weighted else None
    responses = ClassResponses(np.arange(n_classes))
    metric = resolve_metric(name, responses, is_weighted)
    assert type(metric) in COMPILED or isinstance(metric, RocAuc)
    agree(metric, ScorerMetric(scorer, responses=responses), outputs, targets, weights)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", sorted(_SAME_ERRORS))
def test_a_name_for_numbers_means_what_it_means_there(name, n_outputs, is_weighted, rng):
    deviation = np.array([3.0, 0.01, 700.0])[:n_outputs]
    responses = NumberResponses(deviation, np.array([5.0, -1.0, 1e3])[:n_outputs])
    metric = resolve_metric(name, responses, is_weighted)
    assert type(metric) in COMPILED
    outputs, targets = rng.normal(size=(4, 25, n_outputs)), rng.normal(size=(25, n_outputs))
    weights = rng.uniform(0.1, 3, 25) if is_weighted else None
    agree(
        metric,
        ScorerMetric(find_scorer(name), task="regression", responses=responses),
        outputs,
        targets,
        weights,
    )


@pytest.mark.parametrize("name", _SAME_FUNCTIONS)
def test_a_metric_itself_is_as_quick_as_its_name(name, rng):
    function = getattr(metrics, name)
    if name in _SAME:
        responses, outputs = ClassResponses(np.array(["a", "b", "c"])), rng.normal(size=(5, 40, 3))
        targets, sign = rng.integers(3, size=40), 1
    else:
        responses = NumberResponses(np.array([30.0]), np.array([5.0]))
        outputs = rng.normal(size=(5, 40, 1))
        targets, sign = rng.normal(size=(40, 1)), -1
    metric = resolve_metric(function, responses, False)
    assert type(metric) in COMPILED
    agree(metric, FunctionMetric(function, sign=sign, responses=responses), outputs, targets, None)


@pytest.mark.parametrize("name", ["recall_macro", "f1_weighted", "neg_brier_score", "recall"])
def test_all_else_is_asked_as_it_is(name):
    metric = resolve_metric(name, ClassResponses(np.arange(2)), False)
    assert isinstance(metric, ScorerMetric)
    assert metric.function is not None


def test_a_function_of_the_users_is_not_taken_for_a_metric():
    def accuracy_score(y_true, y_pred):
        return 7.0

    metric = resolve_metric(accuracy_score, ClassResponses(np.arange(2)), False)
    assert metric(np.zeros((3, 2)), np.zeros(3, dtype=int)) == 7


def test_responses_that_are_remembered_are_not_pickled(rng):
    metric = resolve_metric("f1_weighted", ClassResponses(np.arange(2)), False)
    outputs, targets = rng.normal(size=(2, 9, 2)), np.arange(9) % 2
    values = metric(outputs, targets)
    copy = pickle.loads(pickle.dumps(metric))
    assert metric._known
    assert not copy._known
    np.testing.assert_array_equal(copy(outputs, targets), values)


def test_f1_by_scikit_learns_name_is_for_two_classes_too():
    with pytest.raises(ValueError, match="f1_macro"):
        resolve_metric("f1_score", ClassResponses(np.arange(3)), False)
