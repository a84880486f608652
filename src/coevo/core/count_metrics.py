"""Metrics of predicted classes: accuracy, and functions of the confusion matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name, check_real
from coevo.core.metric import Metric, divide


def count_classes(outputs: Array, targets: Array, weights: Array | None = None) -> Array:
    """Return the confusion matrix: how many instances, or what weight, each cell has.

    Returns
    -------
    float64 array of shape (..., n_classes, n_classes): true classes by predicted classes
    """
    n_classes = outputs.shape[-1]
    cells = targets * n_classes + outputs.argmax(axis=-1)  # (..., n_instances)
    flat = cells.reshape(-1, cells.shape[-1])
    counts = [np.bincount(row, weights, n_classes * n_classes) for row in flat]
    return np.array(counts, dtype=float).reshape(*cells.shape[:-1], n_classes, n_classes)


class CountMetric(Metric):
    """A metric of the confusion matrix."""

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Compute it from the confusion matrix."""
        return self.from_counts(count_classes(outputs, targets, weights))

    @abstractmethod
    def from_counts(self, counts: Array) -> Array:
        """Return the metric, (...), of counts of shape (..., true classes, predicted classes)."""

    def find_prices(self, counts: Array) -> Array:
        """Return the derivative of the metric by the number of instances in each cell: (C, C).

        A constant may be added to each row: predictions change, true classes do not, so only
        differences within a row matter. Here it is found by finite differences; the metrics of
        this module have formulas.
        """
        step = counts.sum() * 1e-6
        prices = np.empty(counts.shape)
        for true in range(len(counts)):
            moved = np.repeat(counts[np.newaxis], len(counts), axis=0)
            moved[:, true] += step * np.eye(len(counts))
            prices[true] = (self.from_counts(moved) - self.from_counts(counts)) / step
        return prices


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of instances whose largest logit, the first one if tied, is their class."""

    name: ClassVar[str] = "accuracy"
    is_mean: ClassVar[bool] = True

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Measure the outputs against class indices."""
        is_right = outputs.argmax(axis=-1) == targets
        # Counted, then divided: engines that count in another order get exactly equal fitness.
        if weights is None:
            return np.asarray(np.count_nonzero(is_right, axis=-1) / float(len(targets)))
        return np.asarray(is_right @ weights / weights.sum())


@dataclass(frozen=True)
class BalancedAccuracy(CountMetric):
    """The mean recall over the classes that occur."""

    name: ClassVar[str] = "balanced_accuracy"

    def from_counts(self, counts: Array) -> Array:
        """Average the recalls."""
        totals = counts.sum(axis=-1)
        recalls = divide(np.diagonal(counts, axis1=-2, axis2=-1), totals)
        return divide(recalls.sum(axis=-1), np.count_nonzero(totals, axis=-1))

    def find_prices(self, counts: Array) -> Array:
        """Exact: each class's instances count inversely to their number."""
        totals = counts.sum(axis=-1)
        n_classes = max(1, int(np.count_nonzero(totals)))
        return np.diag(divide(1 / n_classes, totals))


@dataclass(frozen=True)
class FBeta(CountMetric):
    """The weighted harmonic mean of precision and recall.

    Parameters
    ----------
    beta
        How many times as much recall counts as precision.
    average
        "binary" for the class `positive` alone, "macro" for the mean over the classes that occur
        or are predicted.
    positive
        Index of the class that is to be found, if the average is binary.
    """

    beta: float = 1.0
    average: str = "binary"
    positive: int = 1
    name: ClassVar[str] = "f_beta"

    def __post_init__(self) -> None:
        check_real("beta", self.beta, 0, above=True)
        check_name("average", self.average, ("binary", "macro"))

    def from_counts(self, counts: Array) -> Array:
        """Return (1 + β²) tp / ((1 + β²) tp + β² fn + fp), for one class or on average."""
        right = np.diagonal(counts, axis1=-2, axis2=-1)
        true, predicted = counts.sum(axis=-1), counts.sum(axis=-2)
        square = self.beta**2
        scores = divide((1 + square) * right, square * true + predicted)
        if self.average == "binary":
            return np.asarray(scores[..., self.positive])
        return divide(scores.sum(axis=-1), np.count_nonzero(true + predicted, axis=-1))

    def find_prices(self, counts: Array) -> Array:
        """Differentiate each class's score by the counts in its column."""
        right, true, predicted = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)
        gain = 1 + self.beta**2
        denominators = self.beta**2 * true + predicted
        prices = np.diag(divide(gain, denominators)) - divide(gain * right, denominators**2)
        if self.average == "macro":
            return np.asarray(prices / max(1, int(np.count_nonzero(true + predicted))))
        prices[:, np.arange(len(counts)) != self.positive] = 0
        return prices


@dataclass(frozen=True)
class Matthews(CountMetric):
    """The correlation between true and predicted classes, from −1 to 1, 0 for guessing."""

    name: ClassVar[str] = "matthews"

    def from_counts(self, counts: Array) -> Array:
        """Return the correlation coefficient of the two class memberships."""
        true, predicted = counts.sum(axis=-1), counts.sum(axis=-2)
        total = true.sum(axis=-1)
        right = np.trace(counts, axis1=-2, axis2=-1)
        covariance = right * total - (true * predicted).sum(axis=-1)
        spread = (total**2 - (true**2).sum(axis=-1)) * (total**2 - (predicted**2).sum(axis=-1))
        return divide(covariance, np.sqrt(spread))

    def find_prices(self, counts: Array) -> Array:
        """Differentiate the correlation.

        It is 0 / 0 if one class is predicted for all instances; the spread of the predictions is
        therefore taken as at least that of one in a hundred predicted otherwise.
        """
        true, predicted = counts.sum(axis=1), counts.sum(axis=0)
        total, right = true.sum(), np.trace(counts)
        spread_true = total**2 - (true**2).sum()
        if spread_true == 0:
            return np.zeros(counts.shape)
        spread = max(total**2 - (predicted**2).sum(), 0.02 * total**2)
        covariance = right * total - (true * predicted).sum()
        root = np.sqrt(spread_true * spread)
        prices = (total * np.eye(len(counts)) - true) / root
        return np.asarray(prices + covariance / root * predicted / spread)


@dataclass(frozen=True)
class Profit(CountMetric):
    """The mean profit of an instance, given the profit of each (true, predicted) pair of classes.

    Parameters
    ----------
    matrix
        Row i, column j: the profit of predicting class j for an instance of class i. Costs are
        negative profits.
    """

    matrix: Sequence[Sequence[float]]
    name: ClassVar[str] = "profit"

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
            raise ValueError(
                "matrix must be square and finite, a row for each true class and a column for "
                f"each predicted class, got shape {matrix.shape}"
            )

    def from_counts(self, counts: Array) -> Array:
        """Return the mean profit of an instance."""
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.shape != counts.shape[-2:]:
            raise ValueError(
                f"the profit matrix has shape {matrix.shape}, but there are {counts.shape[-1]} "
                "classes"
            )
        return divide((counts * matrix).sum(axis=(-2, -1)), counts.sum(axis=(-2, -1)))

    def find_prices(self, counts: Array) -> Array:
        """Exact: the profit matrix divided by the number of instances."""
        return np.asarray(np.asarray(self.matrix, dtype=float) / counts.sum())
