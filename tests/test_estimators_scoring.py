"""Names of scikit-learn's that stand for measures of ours give what scikit-learn gives."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from coevo.estimators.scaling import TargetScaling
from coevo.estimators.scoring import (
    _SAME,
    _SAME_ERRORS,
    _SAME_FUNCTIONS,
    ClassAnswers,
    NumberAnswers,
    ScorerFitness,
    resolve_fitness,
)
from coevo.evaluation.measuring import COMPILED
from coevo.fitness import FITNESSES, RocAuc

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


def agree(measure, expected, outputs, targets, weights):
    np.testing.assert_allclose(
        measure(outputs, targets, weights), expected(outputs, targets, weights), atol=1e-9
    )


def test_all_shared_names_are_tested():
    assert set(FITNESSES) & set(metrics.get_scorer_names()) == OURS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", sorted({*_SAME, *OURS}))
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_a_name_for_classes_means_what_it_means_there(name, is_weighted, seed, n_classes):
    if FITNESSES[_SAME.get(name, name)] is FITNESSES["f1"]:
        n_classes = 2
    scorer = find_scorer(name)
    if name in {"roc_auc", "roc_auc_score"} and n_classes > 2:
        scorer = metrics.get_scorer("roc_auc_ovr")  # without a word about it there is an error
    rng = np.random.default_rng(seed)
    outputs = rng.integers(-20, 20, size=(3, 30, n_classes)) / 8  # ties, even of differences
    targets = rng.integers(n_classes, size=30)
    targets[:n_classes] = np.arange(n_classes)
    weights = rng.uniform(0.1, 3, 30) if is_weighted else None
    answers = ClassAnswers(np.arange(n_classes))
    measure = resolve_fitness(name, answers, is_weighted)
    assert type(measure) in COMPILED or isinstance(measure, RocAuc)
    agree(measure, ScorerFitness(scorer, answers, True), outputs, targets, weights)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", sorted(_SAME_ERRORS))
def test_a_name_for_numbers_means_what_it_means_there(name, n_outputs, is_weighted, rng):
    deviation = np.array([3.0, 0.01, 700.0])[:n_outputs]
    answers = NumberAnswers(TargetScaling(np.array([5.0, -1.0, 1e3])[:n_outputs], deviation))
    measure = resolve_fitness(name, answers, is_weighted)
    assert type(measure) in COMPILED
    outputs, targets = rng.normal(size=(4, 25, n_outputs)), rng.normal(size=(25, n_outputs))
    weights = rng.uniform(0.1, 3, 25) if is_weighted else None
    agree(measure, ScorerFitness(find_scorer(name), answers, True), outputs, targets, weights)


@pytest.mark.parametrize("name", _SAME_FUNCTIONS)
def test_a_metric_itself_is_as_quick_as_its_name(name, rng):
    metric = getattr(metrics, name)
    if name in _SAME:
        answers, outputs = ClassAnswers(np.array(["a", "b", "c"])), rng.normal(size=(5, 40, 3))
        targets, sign = rng.integers(3, size=40), 1
    else:
        scaling = TargetScaling(np.array([5.0]), np.array([30.0]))
        answers, outputs = NumberAnswers(scaling), rng.normal(size=(5, 40, 1))
        targets, sign = rng.normal(size=(40, 1)), -1
    measure = resolve_fitness(metric, answers, False)
    assert type(measure) in COMPILED
    agree(measure, ScorerFitness(metric, answers, False, sign), outputs, targets, None)


@pytest.mark.parametrize("name", ["recall_macro", "f1_weighted", "neg_brier_score", "recall"])
def test_all_else_is_asked_as_it_is(name):
    measure = resolve_fitness(name, ClassAnswers(np.arange(2)), False)
    assert isinstance(measure, ScorerFitness)
    assert measure.function is not None


def test_a_function_of_the_users_is_not_taken_for_a_metric():
    def accuracy_score(y_true, y_pred):
        return 7.0

    measure = resolve_fitness(accuracy_score, ClassAnswers(np.arange(2)), False)
    assert measure(np.zeros((3, 2)), np.zeros(3, dtype=int)) == 7


def test_answers_that_are_remembered_are_not_pickled(rng):
    measure = resolve_fitness("f1_weighted", ClassAnswers(np.arange(2)), False)
    outputs, targets = rng.normal(size=(2, 9, 2)), np.arange(9) % 2
    values = measure(outputs, targets)
    copy = pickle.loads(pickle.dumps(measure))
    assert measure._known
    assert not copy._known
    np.testing.assert_array_equal(copy(outputs, targets), values)


def test_f1_by_scikit_learns_name_is_for_two_classes_too():
    with pytest.raises(ValueError, match="f1_macro"):
        resolve_fitness("f1_score", ClassAnswers(np.arange(3)), False)
