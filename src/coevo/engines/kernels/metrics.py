"""Compiled metrics: the outputs of one candidate at a time are formed, measured and forgotten.

Nothing of size candidates × instances × outputs is stored; accuracy does not even form outputs
(`intervals`). The formulas are those of `coevo.core.metrics`. Inner loops run over instances and
are free of branches, for SIMD. Shapes: B instances, C outputs, m candidates or networks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.engines.kernels.activations import BOUNDED
from coevo.engines.kernels.candidates import HIDDEN, find_shift
from coevo.engines.kernels.classes import count_right
from coevo.engines.kernels.functions import exp, log
from coevo.engines.kernels.intervals import (
    find_hidden_intervals,
    find_output_intervals,
    measure_inside,
)
from coevo.engines.kernels.layers import move_outputs
from coevo.runtime.jit import Choice, compiled, compiled_with, fill

_FAR = 40.0  # logits may move so far before exp of them needs another level
_LINE = 16  # float32 in a line of the cache


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


@compiled
def _make_row(n, dtype):
    """Return room for n numbers that begins where a line of the processor's cache does.

    SIMD instructions that reach over two lines take longer.
    """
    room = np.empty(n + _LINE, dtype=dtype)
    first = (-room.ctypes.data % 64) // room.itemsize
    return room[first : first + n]


@compiled
def _make_scratch(outputs):
    """Return scratch memory: the shift, three rows of a metric's own, true logits, their slopes."""
    n, dtype = outputs.shape[-1], outputs.dtype
    return (
        _make_row(n, dtype), _make_row(n, dtype), _make_row(n, dtype), _make_row(n, dtype),
        _make_row(n, dtype), _make_row(n, dtype),
    )  # fmt: skip


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


@compiled
def _find_accuracy(metric, logits, stay, shift, scratch):
    return count_right(logits, metric.targets, scratch[1]) / len(metric.targets)


# --------------------------------------------------------------------------------- cross-entropy


@compiled
def _find_level(logits, slopes, shift, level):
    """Find the largest logit of each instance once they are shifted; level: (B,), written."""
    fill(level, level.dtype.type(-np.inf))
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
def _find_rest(logits, c, stay, level, total):
    """Write log Σ exp of all logits but c into `total`, (B,); stay: (B,) zeros."""
    zero = logits.dtype.type(0)
    fill(level, logits.dtype.type(-np.inf))
    fill(total, zero)
    for other in range(len(logits)):
        if other != c:
            logit = logits[other]
            for k in range(len(level)):
                level[k] = np.maximum(level[k], logit[k])
    for other in range(len(logits)):
        if other != c:
            _add_exp(logits[other], zero, stay, level, total)
    for k in range(len(level)):
        total[k] = level[k] + log(total[k])


@compiled
def _find_largest_size(numbers):
    largest = numbers.dtype.type(0)
    for c in range(len(numbers)):
        largest = max(largest, abs(numbers[c]))
    return largest


@compiled
def _sum_log_probabilities(metric, logits, slopes, shift, scratch):
    """Return the fitness once logits have moved; level and true-class logits are known."""
    level, total, values = scratch[1], scratch[2], scratch[3]
    fill(total, total.dtype.type(0))
    for c in range(len(slopes)):
        _add_exp(logits[c], slopes[c], shift, level, total)
    _find_log_probabilities(scratch[4], scratch[5], shift, level, total, values)
    return _weigh(values, metric.weights)


@compiled
def measure_cross_entropy(metric, candidates, measured):
    """Add up the log-probabilities of the true classes, for each candidate.

    Exponentials are taken relative to a level near the largest logit. While a neuron cannot move
    logits far, the largest logit of the global solution will do, for all candidates. Where only one
    logit moves, as it does for an output neuron, the others' exponentials are added up once.

    measured: (m,) float64, written.
    """
    logits, slopes = candidates.outputs, candidates.slopes
    n_classes = len(logits)
    scratch = _make_scratch(logits)
    shift, level, total, values = scratch[0], scratch[1], scratch[2], scratch[3]
    true, true_slopes = scratch[4], scratch[5]
    _find_true_logits(metric.targets, logits, slopes, true, true_slopes)
    fill(shift, logits.dtype.type(0))
    n_moving, moving = 0, n_classes
    for c in range(n_classes):
        if slopes[c] != 0:
            n_moving, moving = n_moving + 1, c
    if n_classes > 1 and n_moving == 1:
        _find_rest(logits, moving, shift, level, total)
        for j in range(len(measured)):
            find_shift(candidates, j, shift)
            _find_log_probabilities_of_one(
                true, true_slopes, shift, total, logits[moving], slopes[moving], values
            )
            measured[j] = _weigh(values, metric.weights)
        return
    is_bounded = candidates.activation in BOUNDED
    stays_near = is_bounded and 2 * _find_largest_size(slopes) < _FAR
    _find_level(logits, slopes, shift, level)
    for j in range(len(measured)):
        find_shift(candidates, j, shift)
        if not stays_near:
            _find_level(logits, slopes, shift, level)
        measured[j] = _sum_log_probabilities(metric, logits, slopes, shift, scratch)


@compiled
def _find_cross_entropy(metric, logits, stay, shift, scratch):
    _find_true_logits(metric.targets, logits, stay, scratch[4], scratch[5])
    _find_level(logits, stay, shift, scratch[1])
    return _sum_log_probabilities(metric, logits, stay, shift, scratch)


# ---------------------------------------------------------------------------------------- margins


@compiled
def _raise_competing(logit, slope, shift, targets, c, competing):
    lowest = logit.dtype.type(-np.inf)
    for k in range(len(logit)):
        moved = logit[k] + slope * shift[k]
        competing[k] = np.maximum(competing[k], moved if targets[k] != c else lowest)


@compiled
def _sum_margins(metric, logits, slopes, shift, scratch):
    """Return the fitness once logits have moved; true-class logits are known."""
    competing, true, true_slopes = scratch[1], scratch[4], scratch[5]
    ceiling = logits.dtype.type(metric.limit)
    fill(competing, logits.dtype.type(-np.inf))
    for c in range(len(slopes)):
        _raise_competing(logits[c], slopes[c], shift, metric.targets, np.int32(c), competing)
    for k in range(len(competing)):
        competing[k] = min(true[k] + true_slopes[k] * shift[k] - competing[k], ceiling)
    return _weigh(competing, metric.weights)


@compiled
def measure_margins(metric, candidates, measured):
    """Add up the clipped margins, for each candidate; measured: (m,) float64, written."""
    logits, slopes = candidates.outputs, candidates.slopes
    scratch = _make_scratch(logits)
    _find_true_logits(metric.targets, logits, slopes, scratch[4], scratch[5])
    for j in range(len(measured)):
        find_shift(candidates, j, scratch[0])
        measured[j] = _sum_margins(metric, logits, slopes, scratch[0], scratch)


@compiled
def _find_margins(metric, logits, stay, shift, scratch):
    _find_true_logits(metric.targets, logits, stay, scratch[4], scratch[5])
    return _sum_margins(metric, logits, stay, shift, scratch)


# ----------------------------------------------------------------------------------------- errors


@compiled
def _sum_errors(metric, outputs, slopes, shift, scratch):
    """Return the fitness once outputs have moved."""
    errors, fitness = scratch[1], 0.0
    for c in range(len(slopes)):
        output, slope, targets = outputs[c], slopes[c], metric.targets[c]
        for k in range(len(errors)):
            error = abs(output[k] + slope * shift[k] - targets[k])
            errors[k] = error * error if metric.is_squared else error
        fitness -= metric.worths[c] * _weigh(errors, metric.weights)
    return fitness / len(slopes)


@compiled
def measure_errors(metric, candidates, measured):
    """Add up minus the squared or absolute errors, for each candidate; measured: (m,) float64."""
    outputs, slopes = candidates.outputs, candidates.slopes
    scratch = _make_scratch(outputs)
    for j in range(len(measured)):
        find_shift(candidates, j, scratch[0])
        measured[j] = _sum_errors(metric, outputs, slopes, scratch[0], scratch)


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


@compiled
def _find_label_entropy(metric, logits, stay, shift, scratch):
    fitness = 0.0
    for c in range(len(logits)):
        _find_log_sigmoid(logits[c], stay[c], shift, metric.targets[c], scratch[1])
        fitness += _weigh(scratch[1], metric.weights)
    return fitness / len(logits)


# ---------------------------------------------------------------------------- candidates, outputs

measure_candidates = Choice(
    {
        AccuracyOn: _measure_accuracy,
        CrossEntropyOn: measure_cross_entropy,
        MarginOn: measure_margins,
        ErrorOn: measure_errors,
        LabelEntropyOn: measure_label_entropy,
    }
)
"""Measure the candidates of one neuron: (metric, candidates, measured (m,), written)."""

_find_fitness = Choice(
    {
        AccuracyOn: _find_accuracy,
        CrossEntropyOn: _find_cross_entropy,
        MarginOn: _find_margins,
        ErrorOn: _sum_errors,
        LabelEntropyOn: _find_label_entropy,
    }
)
"""Return the fitness of outputs: (metric, outputs (C, B), zeros (C,), zeros (B,), scratch)."""


@compiled
def measure_outputs(metric, outputs, slopes, before, after, measured):
    """Measure the outputs of networks, or of one network after each of n moves.

    outputs: (m, C, B); slopes: (n, C) from each moved neuron of the last hidden layer to the
    outputs; before and after: (n, B) its activations; measured: (m,) or (n,) float64, written. If
    there are moves, outputs[0] is moved along.
    """
    n_outputs = outputs.shape[1]
    scratch = _make_scratch(outputs)
    stay, start = np.empty(n_outputs, dtype=outputs.dtype), np.int64(0)
    fill(stay, outputs.dtype.type(0))
    fill(scratch[0], outputs.dtype.type(0))
    for j in range(len(measured)):
        shown = outputs[0 if len(slopes) > 0 else j]
        if len(slopes) > 0:
            move_outputs(shown, start, slopes[j], before[j], after[j])
        measured[j] = _find_fitness(metric, shown, stay, scratch[0], scratch)
