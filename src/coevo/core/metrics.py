"""Metrics: accuracy and the others, each as its plain formula.

A metric takes the outputs of one network or many, the targets and perhaps a weight for each
instance, and returns one number a network; more is better, so losses are negated. An engine may
compute a metric in a faster way; these formulas define what it must agree with.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name, check_real
from coevo.core.label_metrics import (
    LABEL_METRICS,
    LabelAccuracy,
    LabelCrossEntropy,
    LabelFBeta,
    LabelMetric,
    LabelRocAuc,
    SubsetAccuracy,
)
from coevo.core.metric import Metric, area, divide, mean
from coevo.core.responses import (
    RESPONSE_METHODS,
    ClassResponses,
    LabelResponses,
    NumberResponses,
    Responses,
)

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

# ------------------------------------------------------------------------- from counts of classes


def count_classes(outputs: Array, targets: Array, weights: Array | None = None) -> Array:
    """Count, or weigh, the instances of each class that are given each class.

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
        """Return how much one more instance in each cell of the confusion matrix is worth.

        To first order, and up to what is the same for all predictions of a true class, as
        predictions change and true classes do not. Found by differences here; metrics of this
        module have formulas.

        Parameters
        ----------
        counts : array of shape (true classes, predicted classes)

        Returns
        -------
        float64 array of the same shape
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
        # Counted and then divided, so that equal counts are equal fitnesses on every engine.
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
        """Weigh the instances of each class inversely to their number; this is exact."""
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
        """Return the derivatives of each class's score by the counts in its column."""
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
        """Return the derivatives of the correlation.

        If all predictions are one class it is 0 / 0; it is taken as if one in a hundred were not.
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
    """The mean profit when each (true, predicted) pair of classes has its price.

    Parameters
    ----------
    matrix
        Profit of giving an instance of class i the class j, in row i and column j; costs are
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
        """Return the matrix as a share of the instances; this is exact."""
        return np.asarray(np.asarray(self.matrix, dtype=float) / counts.sum())


# ---------------------------------------------------------------------------------- from outputs


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
        exact = outputs.astype(np.float64)
        if exact.shape[-1] == 2:
            scores = exact[..., 1:] - exact[..., :1]
            positives = [targets == 1]
        else:
            exponentials = np.exp(exact - exact.max(axis=-1, keepdims=True))
            scores = exponentials / exponentials.sum(axis=-1, keepdims=True)
            positives = [targets == c for c in range(exact.shape[-1])]
        usable = [c for c, is_in in enumerate(positives) if 0 < is_in.sum() < len(targets)]
        if not usable:
            return np.full(outputs.shape[:-2], 0.5)  # nothing to tell apart
        flat = scores.reshape(-1, *scores.shape[-2:])
        areas = [
            np.mean([area(network[:, c], positives[c], weights) for c in usable])
            for network in flat
        ]
        return np.array(areas).reshape(outputs.shape[:-2])


@dataclass(frozen=True)
class ErrorMetric(Metric):
    """A metric of the differences between outputs and targets.

    Parameters
    ----------
    units : numbers above 0, one for each output, optional
        What a difference of 1 in an output is worth, if outputs and targets are scaled; 1 if not
        given.
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


_MOST_KNOWN = 2**16  # values remembered by a metric of labels: a few megabytes


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """A user's function of (y_true, response), called for one network at a time.

    Parameters
    ----------
    function
        Called as function(y_true, response), and with `sample_weight` by name if instances have
        weights. y_true has the user's labels or numbers.
    response_method
        What the function wants of a network: "predict" (labels, or numbers in the user's units),
        "predict_proba" (softmax of the outputs), "decision_function", or "outputs".
    sign
        −1 for a function that should be small.
    task
        classification, multilabel or regression.
    responses
        Turns outputs into what the function wants; a run sets it.
    """

    function: Callable[..., Any]
    response_method: str = "predict"
    sign: int = 1
    task: str = "classification"  # type: ignore[misc]
    responses: Responses | None = field(default=None, compare=False)
    name: ClassVar[str] = "function"
    _known: dict[bytes, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"the metric's function must be callable, got {self.function!r}")
        check_name("response_method", self.response_method, RESPONSE_METHODS)
        check_name("task", self.task, ("classification", "multilabel", "regression"))

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Ask the function about each network; it gets read-only arrays."""
        responses = self.responses or _default_responses(outputs, targets)
        truth = _read_only(responses.truth(targets))
        further = {} if weights is None else {"sample_weight": _read_only(weights)}
        needs_labels_only = targets.ndim == 1 and self._needs_labels_only
        start = targets.tobytes() + (b"" if weights is None else weights.tobytes())
        values = []
        for network in outputs.reshape(-1, *outputs.shape[-2:]):
            key = b""
            if needs_labels_only:
                # Many candidates change no label at all, and a metric takes a millisecond.
                key = blake2b(start + network.argmax(axis=1).tobytes(), digest_size=16).digest()
                if key in self._known:
                    values.append(self._known[key])
                    continue
            value = self.sign * float(self._measure(truth, network, further))
            if np.isnan(value):
                raise ValueError(
                    "the fitness function returned NaN; if it needs every class to occur, try a "
                    "larger batch_size or limited_evaluation=False"
                )
            values.append(value)
            if key:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = value
        return np.array(values).reshape(outputs.shape[:-2])

    @property
    def ignored_warnings(self) -> tuple[type[Warning], ...]:
        """scikit-learn's metrics warn whenever a class is missing from a batch."""
        exceptions = sys.modules.get("sklearn.exceptions")
        return (exceptions.UndefinedMetricWarning,) if exceptions else ()

    @property
    def _needs_labels_only(self) -> bool:
        return self.response_method == "predict"

    def _measure(self, truth: Array, network: Array, further: dict[str, Array]) -> Any:
        responses = self.responses or _default_responses(network, truth)
        response = getattr(responses, self.response_method)(network)
        return self.function(truth, _read_only(response), **further)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the values remembered."""
        return self.__dict__ | {"_known": {}}


def make_metric(
    function: Callable[..., Any],
    *,
    response_method: str = "predict",
    greater_is_better: bool = True,
    task: str = "classification",
) -> FunctionMetric:
    """Make a metric from a function, as `sklearn.metrics.make_scorer` makes a scorer.

    Parameters
    ----------
    function
        Called as function(y_true, response), with `sample_weight` by name if there are weights.
    response_method
        "predict", "predict_proba", "decision_function" or "outputs"; see `FunctionMetric`.
    greater_is_better
        False for a loss.
    task
        classification, multilabel or regression.

    Examples
    --------
    >>> import numpy as np
    >>> from coevo.core.metrics import make_metric
    >>> brier = make_metric(
    ...     lambda y, p: ((p[:, 1] - (y == 1)) ** 2).mean(),
    ...     response_method="predict_proba", greater_is_better=False,
    ... )
    >>> float(brier(np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([0, 1])))
    -0.25
    """
    return FunctionMetric(function, response_method, 1 if greater_is_better else -1, task)


def _default_responses(outputs: Array, targets: Array) -> Responses:
    """Without a user's labels, class indices are the labels."""
    if targets.ndim == 1:
        return ClassResponses(np.arange(outputs.shape[-1]))
    return LabelResponses(outputs.shape[-1]) if targets.dtype.kind in "biu" else NumberResponses()


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


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
