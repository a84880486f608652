"""Metrics of multilabel targets: an instance has any number of labels, and each has a logit.

A label is predicted where its logit is above 0, that is where its probability, the sigmoid of the
logit, is above one half. Names and formulas are those that scikit-learn has for such targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name, check_real
from coevo.core.metric import Metric, divide, find_mean_area, mean


class LabelMetric(Metric):
    """A metric of targets of shape (n_instances, n_labels): 1 where an instance has the label."""

    task: ClassVar[str] = "multilabel"


@dataclass(frozen=True)
class LabelCrossEntropy(LabelMetric):
    """The mean log-probability of having, or not having, each label; with sigmoid."""

    name: ClassVar[str] = "cross_entropy"
    is_graded: ClassVar[bool] = True
    is_mean: ClassVar[bool] = True

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return the mean over instances and labels."""
        margins = np.where(targets > 0, outputs, -outputs).astype(np.float64)
        return mean(-np.logaddexp(0, -margins).mean(axis=-1), weights)


@dataclass(frozen=True)
class SubsetAccuracy(LabelMetric):
    """The share of instances all of whose labels are right."""

    name: ClassVar[str] = "accuracy"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Count the instances without any wrong label."""
        return mean(((outputs > 0) == targets).all(axis=-1), weights)


@dataclass(frozen=True)
class LabelAccuracy(LabelMetric):
    """The share of labels that are right: 1 minus the Hamming loss."""

    name: ClassVar[str] = "label_accuracy"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return the mean over instances and labels."""
        return mean(((outputs > 0) == targets).mean(axis=-1), weights)


@dataclass(frozen=True)
class LabelFBeta(LabelMetric):
    """The weighted harmonic mean of precision and recall.

    Parameters
    ----------
    beta
        How many times as much recall counts as precision.
    average
        "macro" for the mean over the labels that occur or are predicted, "micro" for all labels
        counted together, "samples" for the mean over instances.
    """

    beta: float = 1.0
    average: str = "macro"
    name: ClassVar[str] = "f_beta"

    def __post_init__(self) -> None:
        check_real("beta", self.beta, 0, above=True)
        check_name("average", self.average, ("macro", "micro", "samples"))

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return (1 + β²) tp / ((1 + β²) tp + β² fn + fp), on average."""
        is_predicted, square = outputs > 0, self.beta**2
        each = np.ones(len(targets)) if weights is None else weights
        if self.average == "samples":
            right = (is_predicted & (targets > 0)).sum(axis=-1)
            total = square * targets.sum(axis=-1) + is_predicted.sum(axis=-1)
            return mean(divide((1 + square) * right, total), weights)
        right = np.einsum("n,...nl->...l", each, is_predicted & (targets > 0))
        total = square * (each @ targets) + np.einsum("n,...nl->...l", each, is_predicted)
        if self.average == "micro":
            return divide((1 + square) * right.sum(axis=-1), total.sum(axis=-1))
        scores = divide((1 + square) * right, total)
        return divide(scores.sum(axis=-1), np.count_nonzero(total, axis=-1))


@dataclass(frozen=True)
class LabelRocAuc(LabelMetric):
    """The probability that an instance with a label has a larger logit than one without.

    It is the mean over the labels that some instances have and others do not; 0.5 if there is none.
    """

    name: ClassVar[str] = "roc_auc"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return the mean area under the receiver operating characteristic."""
        return find_mean_area(outputs, targets > 0, weights)


LABEL_METRICS: dict[str, Metric] = {
    "cross_entropy": LabelCrossEntropy(),
    "accuracy": SubsetAccuracy(),
    "label_accuracy": LabelAccuracy(),
    "f1_macro": LabelFBeta(),
    "f1_micro": LabelFBeta(average="micro"),
    "f1_samples": LabelFBeta(average="samples"),
    "roc_auc": LabelRocAuc(),
}
"""The metrics of multilabel targets known by name."""
