"""Metrics of multilabel targets against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from coevo.core import label_metrics as ours


def predicted(outputs):
    return (outputs > 0).astype(int)


def f_beta(average, beta=1.0):
    return lambda y, o, w: metrics.fbeta_score(
        y, predicted(o), beta=beta, average=average, sample_weight=w, zero_division=0
    )


def log_probability(y, outputs, weights):
    probabilities = 1 / (1 + np.exp(-outputs))
    losses = [
        metrics.log_loss(truth, given, labels=[0, 1], sample_weight=weights)
        for truth, given in zip(y.T, probabilities.T, strict=True)
    ]
    return -np.mean(losses)


METRICS = {
    "cross-entropy": (ours.LabelCrossEntropy(), log_probability),
    "accuracy": (
        ours.SubsetAccuracy(),
        lambda y, o, w: metrics.accuracy_score(y, predicted(o), sample_weight=w),
    ),
    "label accuracy": (
        ours.LabelAccuracy(),
        lambda y, o, w: 1 - metrics.hamming_loss(y, predicted(o), sample_weight=w),
    ),
    "macro": (ours.LabelFBeta(), f_beta("macro")),
    "macro 2": (ours.LabelFBeta(2.0), f_beta("macro", 2.0)),
    "micro": (ours.LabelFBeta(average="micro"), f_beta("micro")),
    "samples": (ours.LabelFBeta(0.5, "samples"), f_beta("samples", 0.5)),
    "roc auc": (
        ours.LabelRocAuc(),
        lambda y, o, w: metrics.roc_auc_score(y, o, average="macro", sample_weight=w),
    ),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("is_weighted", [False, True])
@given(seed=st.integers(0, 10**6), n_labels=st.integers(2, 4))
def test_they_agree_with_scikit_learn(name, is_weighted, seed, n_labels):
    metric, expected = METRICS[name]
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(3, 40, n_labels)).round(1)  # with ties, and logits of 0
    targets = rng.integers(2, size=(40, n_labels))
    targets[0], targets[1] = 0, 1  # each label occurs and lacks
    weights = rng.uniform(0.1, 3, 40) if is_weighted else None
    values = metric(outputs, targets, weights)
    assert values.shape == (3,)
    for network, value in zip(outputs, values, strict=True):
        assert value == pytest.approx(expected(targets, network, weights), abs=1e-9)
        assert metric(network, targets, weights) == pytest.approx(value, abs=1e-12)


def test_a_batch_may_lack_labels():
    targets = np.array([[1, 0], [0, 0]])
    outputs = np.array([[1.0, -1.0], [-1.0, -1.0]])
    assert ours.LabelFBeta()(outputs, targets) == 1  # of the label that occurs
    outputs[0, 1] = 1.0
    assert ours.LabelFBeta()(outputs, targets) == 0.5  # of both, one is predicted in vain
    assert ours.LabelRocAuc()(outputs, np.ones((2, 2), dtype=int)) == 0.5


def test_huge_logits_are_finite():
    outputs = np.array([[1e300, -1e300]])
    assert ours.LabelCrossEntropy()(outputs, np.array([[1, 0]])) == 0
    assert ours.LabelCrossEntropy()(outputs, np.array([[0, 0]])) == -5e299


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="average='binary' is unknown; choose one of macro, micro"):
        ours.LabelFBeta(average="binary")
    with pytest.raises(ValueError, match="beta must be above 0"):
        ours.LabelFBeta(0)
