"""Which metrics have compiled loops, and how these are shared out among the cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.core.label_metrics import LabelCrossEntropy
from coevo.core.metrics import (
    AbsoluteError,
    Accuracy,
    BalancedAccuracy,
    ClippedMargin,
    CrossEntropy,
    ErrorMetric,
    FBeta,
    Matthews,
    Metric,
    Profit,
    SquaredError,
)
from coevo.engines.kernels import metrics as kernels
from coevo.engines.kernels.candidates import Candidates
from coevo.engines.kernels.classes import fill_confusion_matrices
from coevo.runtime import threads

_GRAIN = 2**15  # outputs worth another thread

COUNTED: tuple[type[Metric], ...] = (Accuracy, BalancedAccuracy, FBeta, Matthews, Profit)
"""The metrics that need the confusion matrix only."""

COMPILED: tuple[type[Metric], ...] = (
    *COUNTED, CrossEntropy, ClippedMargin, SquaredError, AbsoluteError, LabelCrossEntropy,
)  # fmt: skip
"""The metrics that need no outputs stored; the others are given them."""


def compile_metric(metric: Metric, data: Data) -> kernels.MetricOn | None:
    """Return the metric on these instances for compiled loops; None if there are none for it."""
    # Exactly these types: a user's subclass of one is another metric.
    if type(metric) is Accuracy and data.weights is None:
        return kernels.AccuracyOn(data.targets)
    if type(metric) is CrossEntropy:
        return kernels.CrossEntropyOn(data.targets, _find_shares(data))
    if type(metric) is ClippedMargin:
        return kernels.MarginOn(data.targets, _find_shares(data), float(metric.limit))
    if type(metric) is LabelCrossEntropy:
        signs = (2 * data.targets.T - 1).astype(data.inputs.dtype)
        return kernels.LabelEntropyOn(signs, _find_shares(data))
    if isinstance(metric, ErrorMetric) and type(metric) in (SquaredError, AbsoluteError):
        targets = np.ascontiguousarray(np.atleast_2d(data.targets.T))
        worths, is_squared = metric.worths(len(targets)), type(metric) is SquaredError
        return kernels.ErrorOn(
            targets, _find_shares(data), worths**2 if is_squared else worths, is_squared
        )
    return None


def measure_candidates(metric: Metric, candidates: Candidates, data: Data) -> Array:
    """Measure the m candidates of a last hidden or an output neuron: (m,).

    The metric's type is one of `COMPILED`.
    """
    compiled_metric = compile_metric(metric, data)
    if compiled_metric is None:
        weights = _find_weights(data)
        matrices = find_confusion_matrices(candidates, data.targets, weights)
        return measure_confusion_matrices(metric, matrices, weights.sum())
    measured = np.empty(len(candidates.biases))

    def work(first: int, last: int) -> None:
        kernels.measure_candidates(
            compiled_metric, _pick(candidates, first, last), measured[first:last]
        )

    _share_out(work, candidates)
    return measured


def measure_outputs(metric: Metric, outputs: Array, data: Data) -> Array:
    """Return the fitness, (m,), of outputs of shape (m, C, B)."""
    compiled_metric = compile_metric(metric, data)
    if compiled_metric is None:
        return metric(np.swapaxes(outputs, -1, -2), data.targets, data.weights)
    measured = np.empty(len(outputs))
    _, n_outputs, n_instances = outputs.shape
    slopes, none = (np.empty((0, n), dtype=outputs.dtype) for n in (n_outputs, n_instances))
    kernels.measure_outputs(compiled_metric, outputs, slopes, none, none, measured)
    return measured


def find_confusion_matrices(candidates: Candidates, targets: Array, weights: Array) -> Array:
    """Add up weights by true and predicted class, for each candidate: (m, C, C)."""
    n_classes = len(candidates.outputs)
    matrices = np.empty((len(candidates.biases), n_classes, n_classes))

    def work(first: int, last: int) -> None:
        some = _pick(candidates, first, last)
        fill_confusion_matrices(targets, weights, some, matrices[first:last])

    _share_out(work, candidates)
    return matrices


def measure_confusion_matrices(metric: Any, matrices: Array, total: float) -> Array:
    """Return the fitness, by a metric of a type in `COUNTED`, of each confusion matrix."""
    if isinstance(metric, Accuracy):
        return np.asarray(np.trace(matrices, axis1=1, axis2=2) / total)
    measured: Array = metric.from_counts(matrices)
    return measured


def _pick(candidates: Candidates, first: int, last: int) -> Candidates:
    return candidates._replace(
        pre_activations=candidates.pre_activations[first:last], biases=candidates.biases[first:last]
    )


def _share_out(work: Any, candidates: Candidates) -> None:
    grain = 1 + _GRAIN // max(1, candidates.outputs.size)
    threads.share_out(work, len(candidates.biases), grain)


def _find_weights(data: Data) -> Array:
    return np.ones(len(data)) if data.weights is None else np.asarray(data.weights, np.float64)


def _find_shares(data: Data) -> Array:
    """Return how much each instance counts, (B,); the shares sum to 1."""
    weights = _find_weights(data)
    return np.asarray(weights / weights.sum())
