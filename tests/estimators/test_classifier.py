"""The classifier: labels, class weights, responses."""

import numpy as np
import pytest

from coevo import CoevoClassifier

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]), np.array([-5, 3, 70]),
        np.array([0.0, 1.0, 2.0]), np.array(["x", "yy", "z"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)  # fmt: skip
def test_labels_of_any_type(iris, labels):
    X, y = iris
    classifier = CoevoClassifier(**QUICK).fit(X, labels[y])
    assert classifier.classes_.tolist() == sorted(labels)
    answers = classifier.predict(X)
    assert answers.dtype == labels.dtype
    assert np.mean(answers == labels[y]) > 0.8
    same = CoevoClassifier(**QUICK).fit(X, y).predict(X)
    np.testing.assert_array_equal(answers, np.sort(labels)[same])


def test_booleans_are_labels(binary):
    X, y = binary
    assert CoevoClassifier(**QUICK).fit(X, y == 1).predict(X).dtype == bool


def test_a_classifiers_answers_agree(iris, binary):
    for X, y in (iris, binary):
        classifier = CoevoClassifier(**QUICK).fit(X, y)
        probabilities, decisions = classifier.predict_proba(X), classifier.decision_function(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_array_equal(probabilities.argmax(axis=1), classifier.predict(X))
        if probabilities.shape[1] == 2:
            assert decisions.shape == (len(X),)
            np.testing.assert_array_equal(decisions > 0, classifier.predict(X))
        else:
            assert decisions.shape == probabilities.shape


def test_class_weights_multiply_sample_weights(binary):
    X, y = binary
    counts = np.bincount(y)
    balanced = CoevoClassifier(**QUICK, class_weight="balanced").fit(X, y)
    by_hand = CoevoClassifier(**QUICK).fit(X, y, sample_weight=len(y) / (2 * counts[y]))
    np.testing.assert_array_equal(balanced.network_.genotype, by_hand.network_.genotype)
    plain = CoevoClassifier(**QUICK).fit(X, y)
    assert balanced.predict(X).sum() > plain.predict(X).sum()


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "heavy"])
def test_weights_of_classes_that_make_no_sense_are_refused_by_name(binary, weight):
    with pytest.raises((TypeError, ValueError), match=r"class_weight\[1\] must be"):
        CoevoClassifier(**QUICK, class_weight={1: weight}).fit(*binary)
