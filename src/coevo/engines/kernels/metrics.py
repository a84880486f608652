"""Compiled metrics: the outputs of one candidate at a time are formed, measured and forgotten.

Nothing of size candidates × instances × outputs is stored; accuracy does not even form outputs
(`intervals`). The formulas are those of `coevo.core.metrics`. Inner loops run over instances and
are free of branches, for SIMD. Shapes: B instances, C outputs, m candidates or networks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.engines.kernels.activations import BOUNDED, TANH
from coevo.engines.kernels.candidates import HIDDEN, Candidates, find_shift
from coevo.engines.kernels.classes import count_right
from coevo.engines.kernels.functions import exp, log
from coevo.engines.kernels.intervals import (
    find_hidden_intervals,
    find_output_intervals,
    measure_inside,
)
from coevo.engines.kernels.layers import move_outputs
from coevo.runtime.jit import chosen_by_type, compiled, compiled_with

_FAR = 40.0  # logits may move so far before exp of them needs another level


class AccuracyOn(NamedTuple):
    """The share of some instances that are classified right; targets: (B,) int32."""

    targets: Array


class CrossEntropyOn(NamedTuple):
    """Minus cross-entropy; targets: (B,) int32, weights: (B,) that sum to 1."""

    targets: Array
    weights: Array


class MarginOn(NamedTuple):
    """Margins up to a limit; targets: (B,) int32, weights: (B,) that sum to 1."""

    targets: Array
    weights: Array
    limit: float


class ErrorOn(NamedTuple):
    """Minus squared or absolute errors.

    targets: (C, B), weights: (B,) that sum to 1, worths: (C,) what an error of 1 in each counts.
    """

    targets: Array
    weights: Array
    worths: Array
    is_squared: bool


class LabelEntropyOn(NamedTuple):
    """Minus the cross-entropy of labels.

    targets: (C, B), 1 where an instance has the label, else −1; weights: (B,) that sum to 1.
    """

    targets: Array
    weights: Array


MetricOn = AccuracyOn | CrossEntropyOn | MarginOn | ErrorOn | LabelEntropyOn
"""A metric on some instances. Its type says which loop, before it is compiled."""


@compiled_with("contract", "reassoc")
def _weigh(values, weights):
    """Return the weighted sum of values, in double precision."""
    total = 0.0
    for k in range(len(values)):
        total += weights[k] * values[k]
    return total


@compiled
def _find_true_logits(targets, logits, slopes, true, true_slopes):
    """Write each instance's true-class logit and how it follows the neuron; both (B,)."""
    for k in range(len(targets)):
        true[k], true_slopes[k] = logits[targets[k], k], slopes[targets[k]]


# -------------------------------------------------------------------------------------- accuracy


@compiled
def _measure_accuracy(metric, candidates, measured):
    low, high = np.empty_like(candidates.now), np.empty_like(candidates.now)
    if candidates.output == HIDDEN:
        find_hidden_intervals(
            candidates.outputs, metric.targets, candidates.slopes, candidates.now,
            candidates.activation, low, high,
        )  # fmt: skip
    else:
        find_output_intervals(candidates.outputs, metric.targets, candidates.output, low, high)
    measure_inside(candidates.pre_activations, candidates.biases, low, high, measured)


# --------------------------------------------------------------------------------- cross-entropy


@compiled
def _find_level(logits, slopes, shift, level):
    """Find the largest logit of each instance once they are shifted; level: (B,), written."""
    level[:] = -np.inf
    for c in range(len(logits)):
        logit, slope = logits[c], slopes[c]
        for k in range(len(level)):
            level[k] = np.maximum(level[k], logit[k] + slope * shift[k])


@compiled
def _add_exp(logit, slope, shift, level, total):
    for k in range(len(logit)):
        total[k] += exp(logit[k] - level[k] + slope * shift[k])


@compiled
def _find_log_probabilities(true, true_slopes, shift, level, total, values):
    for k in range(len(true)):
        values[k] = true[k] + true_slopes[k] * shift[k] - level[k] - log(total[k])


@compiled
def _find_log_probabilities_of_one(true, true_slopes, shift, rest, moving, slope, values):
    """Do the same when one logit alone moves: `rest` is log Σ exp of the others."""
    one = rest.dtype.type(1)
    for k in range(len(true)):
        moved = moving[k] + slope * shift[k]
        total = np.maximum(moved, rest[k]) + log(one + exp(-abs(moved - rest[k])))
        values[k] = true[k] + true_slopes[k] * shift[k] - total


@compiled
def _find_rest(logits, c, level, total):
    """Write log Σ exp of all logits but c into `total`, (B,)."""
    stay = np.zeros_like(level)
    level[:] = -np.inf
    for other in range(len(logits)):
        if other != c:
            logit = logits[other]
            for k in range(len(level)):
                level[k] = np.maximum(level[k], logit[k])
    total[:] = 0
    zero = logits.dtype.type(0)
    for other in range(len(logits)):
        if other != c:
            _add_exp(logits[other], zero, stay, level, total)
    for k in range(len(level)):
        total[k] = level[k] + log(total[k])


@compiled
def measure_cross_entropy(metric, candidates, measured):
    """Add up the log-probabilities of the true classes, for each candidate.

    Exponentials are taken relative to a level near the largest logit. While a neuron cannot move
    logits far, the largest logit of the global solution will do, for all candidates. Where only one
    logit moves, as it does for an output neuron, the others' exponentials are added up once.

    measured: (m,) float64, written.
    """
    targets, weights = metric.targets, metric.weights
    logits, slopes = candidates.outputs, candidates.slopes
    n_classes, n_instances = logits.shape
    scratch = np.zeros((6, n_instances), dtype=logits.dtype)
    shift, level, total, values = scratch[0], scratch[1], scratch[2], scratch[3]
    true, true_slopes = scratch[4], scratch[5]
    _find_true_logits(targets, logits, slopes, true, true_slopes)
    n_moving, moving = 0, n_classes
    for c in range(n_classes):
        if slopes[c] != 0:
            n_moving, moving = n_moving + 1, c
    if n_classes > 1 and n_moving == 1:
        _find_rest(logits, moving, level, total)
        for j in range(len(measured)):
            find_shift(candidates, j, shift)
            _find_log_probabilities_of_one(
                true, true_slopes, shift, total, logits[moving], slopes[moving], values
            )
            measured[j] = _weigh(values, weights)
        return
    is_bounded = candidates.activation in BOUNDED
    stays_near = is_bounded and 2 * np.abs(slopes).max() < _FAR
    _find_level(logits, slopes, shift, level)
    for j in range(len(measured)):
        find_shift(candidates, j, shift)
        if not stays_near:
            _find_level(logits, slopes, shift, level)
        total[:] = 0
        for c in range(n_classes):
            _add_exp(logits[c], slopes[c], shift, level, total)
        _find_log_probabilities(true, true_slopes, shift, level, total, values)
        measured[j] = _weigh(values, weights)


# ---------------------------------------------------------------------------------------- margins


@compiled
def _raise_competing(logit, slope, shift, targets, c, competing):
    lowest = logit.dtype.type(-np.inf)
    for k in range(len(logit)):
        moved = logit[k] + slope * shift[k]
        competing[k] = np.maximum(competing[k], moved if targets[k] != c else lowest)


@compiled
def measure_margins(metric, candidates, measured):
    """Add up the clipped margins, for each candidate; measured: (m,) float64, written."""
    targets, weights = metric.targets, metric.weights
    logits, slopes = candidates.outputs, candidates.slopes
    n_classes, n_instances = logits.shape
    scratch = np.zeros((4, n_instances), dtype=logits.dtype)
    shift, competing, true, true_slopes = scratch[0], scratch[1], scratch[2], scratch[3]
    ceiling = logits.dtype.type(metric.limit)
    _find_true_logits(targets, logits, slopes, true, true_slopes)
    for j in range(len(measured)):
        find_shift(candidates, j, shift)
        competing[:] = -np.inf
        for c in range(n_classes):
            _raise_competing(logits[c], slopes[c], shift, targets, np.int32(c), competing)
        for k in range(n_instances):
            competing[k] = min(true[k] + true_slopes[k] * shift[k] - competing[k], ceiling)
        measured[j] = _weigh(competing, weights)


# ----------------------------------------------------------------------------------------- errors


@compiled
def measure_errors(metric, candidates, measured):
    """Add up minus the squared or absolute errors, for each candidate; measured: (m,) float64."""
    targets, weights = metric.targets, metric.weights
    n_outputs, n_instances = candidates.outputs.shape
    shift, errors = np.empty_like(candidates.now), np.empty_like(candidates.now)
    for j in range(len(measured)):
        find_shift(candidates, j, shift)
        fitness = 0.0
        for c in range(n_outputs):
            output, slope, worth = candidates.outputs[c], candidates.slopes[c], metric.worths[c]
            for k in range(n_instances):
                error = abs(output[k] + slope * shift[k] - targets[c, k])
                errors[k] = error * error if metric.is_squared else error
            fitness -= worth * _weigh(errors, weights)
        measured[j] = fitness / n_outputs


# ----------------------------------------------------------------------------------------- labels


@compiled
def _find_log_sigmoid(logit, slope, shift, targets, values):
    """Write log σ(z) = min(z, 0) − log(1 + exp(−|z|)), z being the signed logit; values: (B,)."""
    one, zero = logit.dtype.type(1), logit.dtype.type(0)
    for k in range(len(logit)):
        signed = targets[k] * (logit[k] + slope * shift[k])
        values[k] = np.minimum(signed, zero) - log(one + exp(-abs(signed)))


@compiled
def measure_label_entropy(metric, candidates, measured):
    """Add up the log-probabilities of the labels, for each candidate; measured: (m,) float64.

    Labels whose logit does not move, as all but one for an output neuron, are added up once.
    """
    targets, weights = metric.targets, metric.weights
    logits, slopes = candidates.outputs, candidates.slopes
    n_labels = len(logits)
    shift, values = np.zeros_like(candidates.now), np.empty_like(candidates.now)
    resting = 0.0
    for c in range(n_labels):
        if slopes[c] == 0:
            _find_log_sigmoid(logits[c], slopes[c], shift, targets[c], values)
            resting += _weigh(values, weights)
    for j in range(len(measured)):
        find_shift(candidates, j, shift)
        fitness = resting
        for c in range(n_labels):
            if slopes[c] != 0:
                _find_log_sigmoid(logits[c], slopes[c], shift, targets[c], values)
                fitness += _weigh(values, weights)
        measured[j] = fitness / n_labels


# ---------------------------------------------------------------------------- candidates, outputs

_GRADED = {
    CrossEntropyOn: measure_cross_entropy, MarginOn: measure_margins, ErrorOn: measure_errors,
    LabelEntropyOn: measure_label_entropy,
}  # fmt: skip
_measure_graded = chosen_by_type(_GRADED)

measure_candidates = chosen_by_type({AccuracyOn: _measure_accuracy} | _GRADED)
"""Measure the candidates of one neuron: (metric, candidates, measured (m,), written)."""


@compiled
def _measure_accuracy_of_outputs(metric, outputs, measured):
    counts = np.empty(len(outputs), dtype=np.int64)
    count_right(outputs, metric.targets, counts)
    for j in range(len(counts)):
        measured[j] = counts[j] / len(metric.targets)


@compiled
def _measure_graded_outputs(metric, outputs, measured):
    n_networks, n_outputs, n_instances = outputs.shape
    # One candidate for a neuron that moves nothing.
    nothing, stays = np.zeros((1, n_instances), outputs.dtype), np.zeros(n_outputs, outputs.dtype)
    no_bias = np.zeros(1, outputs.dtype)
    for j in range(n_networks):
        candidates = Candidates(nothing, no_bias, outputs[j], stays, nothing[0], TANH, HIDDEN)
        _measure_graded(metric, candidates, measured[j : j + 1])


measure_outputs = chosen_by_type(
    {AccuracyOn: _measure_accuracy_of_outputs} | dict.fromkeys(_GRADED, _measure_graded_outputs)
)
"""Measure the outputs of m networks: (metric, outputs (m, C, B), measured (m,), written)."""


@compiled
def measure_after_moves(metric, outputs, slopes, before, after, measured):
    """Measure the outputs after each of n moves of neurons of the last hidden layer.

    outputs: (C, B), moved along; slopes: (n, C) from each moved neuron to the outputs; before and
    after: (n, B) its activations; measured: (n,) float64, written.
    """
    n_outputs, n_instances = outputs.shape
    start = np.int64(0)  # a literal would have the loop compiled once more, for itself
    for move in range(len(after)):
        move_outputs(outputs, start, slopes[move], before[move], after[move])
        shown = outputs.reshape((1, n_outputs, n_instances))
        measure_outputs(metric, shown, measured[move : move + 1])
