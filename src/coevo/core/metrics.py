"""The metrics: those of the outputs themselves, and the names of all.

A metric takes the outputs of one network or many, the targets and optionally a weight for each
instance, and returns one number for each network. More is better, so losses are negated. An engine
may compute a metric in a faster way; the plain formulas here define what it must agree with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name, check_real
from coevo.core.count_metrics import (
    Accuracy,
    BalancedAccuracy,
    CountMetric,
    FBeta,
    Matthews,
    Profit,
    count_classes,
)
from coevo.core.function_metric import FunctionMetric, make_metric
from coevo.core.label_metrics import (
    LABEL_METRICS,
    LabelAccuracy,
    LabelCrossEntropy,
    LabelFBeta,
    LabelMetric,
    LabelRocAuc,
    SubsetAccuracy,
)
from coevo.core.metric import Metric, find_mean_area, mean
from coevo.core.responses import softmax

__all__ = [
    "LABEL_METRICS",
    "METRICS",
    "AbsoluteError",
    "Accuracy",
    "BalancedAccuracy",
    "ClippedMargin",
    "CountMetric",
    "CrossEntropy",
    "ErrorMetric",
    "FBeta",
    "FunctionMetric",
    "LabelAccuracy",
    "LabelCrossEntropy",
    "LabelFBeta",
    "LabelMetric",
    "LabelRocAuc",
    "Matthews",
    "Metric",
    "Profit",
    "RocAuc",
    "SquaredError",
    "SubsetAccuracy",
    "count_classes",
    "find_metric",
    "make_metric",
]


@dataclass(frozen=True)
class CrossEntropy(Metric):
    """The mean log-probability of the true class, with softmax; minus the log loss."""

    name: ClassVar[str] = "cross_entropy"
    is_mean: ClassVar[bool] = True
    is_graded: ClassVar[bool] = True

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return minus the log loss."""
        exact = outputs.astype(np.float64)
        largest = exact.max(axis=-1, keepdims=True)
        total = np.log(np.exp(exact - largest).sum(axis=-1)) + largest[..., 0]
        return mean(_pick(exact, targets) - total, weights)


@dataclass(frozen=True)
class ClippedMargin(Metric):
    """The mean margin between the true-class logit and the largest competing one, clipped.

    Parameters
    ----------
    limit
        The margin beyond which an instance gains nothing.
    """

    limit: float = 1.0
    name: ClassVar[str] = "margin"
    is_mean: ClassVar[bool] = True
    is_graded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_real("limit", self.limit, 0, above=True)

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return the mean of min(limit, true-class logit − largest competing logit)."""
        exact = outputs.astype(np.float64)
        is_true = np.arange(exact.shape[-1]) == targets[:, np.newaxis]
        competing = np.where(is_true, -np.inf, exact).max(axis=-1)
        return mean(np.minimum(_pick(exact, targets) - competing, self.limit), weights)


@dataclass(frozen=True)
class RocAuc(Metric):
    """The probability that an instance of a class scores above one of another class.

    With two classes the score is the second output minus the first; with more, each class against
    the rest by its softmax probability, averaged over the classes.
    """

    name: ClassVar[str] = "roc_auc"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return the area under the receiver operating characteristic; ties count one half."""
        if outputs.shape[-1] == 2:
            exact = outputs.astype(np.float64)
            scores, is_second = exact[..., 1:] - exact[..., :1], targets[:, np.newaxis] == 1
            return find_mean_area(scores, is_second, weights)
        is_class = targets[:, np.newaxis] == np.arange(outputs.shape[-1])
        return find_mean_area(softmax(outputs), is_class, weights)


@dataclass(frozen=True)
class ErrorMetric(Metric):
    """A metric of the differences between outputs and targets.

    Parameters
    ----------
    units : numbers above 0, one for each output, optional
        The size, in the user's units, of a difference of 1 in a scaled output; 1 if not given.
    """

    units: tuple[float, ...] | None = None
    task: ClassVar[str] = "regression"
    is_graded: ClassVar[bool] = True
    is_mean: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for unit in self.units or ():
            check_real("units", unit, 0, above=True)

    def worths(self, n_outputs: int) -> Array:
        """Return the units as an array of shape (n_outputs,)."""
        units = np.ones(n_outputs) if self.units is None else np.array(self.units, dtype=float)
        if units.shape != (n_outputs,):
            raise ValueError(f"there are {units.size} units, but {n_outputs} outputs")
        return units

    def _differences(self, outputs: Array, targets: Array) -> Array:
        columns = targets if targets.ndim == 2 else targets[:, np.newaxis]
        differences = np.asarray(outputs.astype(np.float64) - columns)
        return differences * self.worths(differences.shape[-1])


@dataclass(frozen=True)
class SquaredError(ErrorMetric):
    """Minus the mean squared difference between outputs and targets; see `ErrorMetric`."""

    name: ClassVar[str] = "squared_error"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return minus the mean over instances and outputs."""
        return -mean((self._differences(outputs, targets) ** 2).mean(axis=-1), weights)


@dataclass(frozen=True)
class AbsoluteError(ErrorMetric):
    """Minus the mean absolute difference between outputs and targets; see `ErrorMetric`."""

    name: ClassVar[str] = "absolute_error"

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Return minus the mean over instances and outputs."""
        return -mean(np.abs(self._differences(outputs, targets)).mean(axis=-1), weights)


def _pick(outputs: Array, targets: Array) -> Array:
    """Return the true-class logits: (..., n_instances)."""
    return np.asarray(outputs[..., np.arange(len(targets)), targets])


METRICS: dict[str, Metric] = {
    "accuracy": Accuracy(),
    "balanced_accuracy": BalancedAccuracy(),
    "f1": FBeta(),
    "f1_macro": FBeta(average="macro"),
    "matthews": Matthews(),
    "cross_entropy": CrossEntropy(),
    "margin": ClippedMargin(),
    "roc_auc": RocAuc(),
    "squared_error": SquaredError(),
    "absolute_error": AbsoluteError(),
}
"""The metrics known by name."""


def find_metric(fitness: str | Metric | Callable[..., Any]) -> Metric:
    """Return the metric that a name, a metric or a function stands for."""
    if isinstance(fitness, Metric):
        return fitness
    if callable(fitness):
        return FunctionMetric(fitness)
    check_name("fitness", fitness, METRICS)
    return METRICS[fitness]
