"""Compiled measures of a neuron's candidates: the outputs are formed, measured and forgotten.

With everything else fixed, output c of instance k is outputs_ck + slopes_c (ψ(s) − now_k) for a
candidate whose sum there is s. Each loop forms these numbers for one candidate at a time, an output
after the other, and adds up what the measure makes of them, so nothing of size candidates ×
instances × outputs is ever stored. The formulas are those of `coevo.fitness`.

Inner loops run over instances and are free of branches, so that they become vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo.compiling import chosen_by_type, compiled, compiled_with
from coevo.evaluation._functions import exp, log
from coevo.evaluation._kernels import (
    BOUNDED,
    TANH,
    activate,
    choose_first,
    choose_larger,
    count_right,
)
from coevo.network import Array

_FAR = 40.0  # outputs may move so far before exp of them needs another level


class AccuracyOn(NamedTuple):
    """The part of some instances that are classified right; targets: (B,) int32."""

    targets: Array


class CountsOn(NamedTuple):
    """What `count_classes` counts; targets: (B,) int32, weights: (B,)."""

    targets: Array
    weights: Array


class CrossEntropyOn(NamedTuple):
    """Minus cross-entropy; targets: (B,) int32, weights: (B,) that sum to 1."""

    targets: Array
    weights: Array


class MarginOn(NamedTuple):
    """Margins up to a limit, beyond which an instance gains nothing.

    targets: (B,) int32, weights: (B,) that sum to 1.
    """

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


Measure = AccuracyOn | CrossEntropyOn | MarginOn | ErrorOn
"""What compiled loops can measure of outputs. Its type says which loop, before it is compiled."""


class Candidates(NamedTuple):
    """The candidates of one neuron in their surroundings.

    Attributes
    ----------
    sums : array of shape (m, B)
        Their sums without bias.
    biases : array of shape (m,)
    outputs : array of shape (C, B)
        The outputs of the global solution.
    slopes : array of shape (C,)
        How the outputs follow the neuron's activation: its outgoing weights; for an output neuron
        1 at its own place and 0 elsewhere.
    now : array of shape (B,)
        The neuron's present activations; for an output neuron the present outputs.
    activation
        Code of the neuron's activation function; for an output neuron identity.
    """

    sums: Array
    biases: Array
    outputs: Array
    slopes: Array
    now: Array
    activation: int


@compiled
def _find_shift(candidates, j, shift):
    """Write how far candidate j moves the neuron's activation, for each instance, into (B,)."""
    activate(candidates.sums[j], candidates.biases[j], candidates.activation, shift)
    now = candidates.now
    for k in range(len(shift)):
        shift[k] -= now[k]


@compiled
def _move(output, slope, shift, moved):
    for k in range(len(output)):
        moved[k] = output[k] + slope * shift[k]


@compiled_with("contract", "reassoc")
def _weigh(values, weights):
    """Return the weighted sum of values, in double precision."""
    total = 0.0
    for k in range(len(values)):
        total += weights[k] * values[k]
    return total


# ----------------------------------------------------------------------------- counts of classes


@compiled
def count_classes(measure, candidates, counts):
    """Add up weights by true and predicted class, for each candidate; counts: (m, C, C)."""
    targets, weights = measure.targets, measure.weights
    n_outputs, n_instances = candidates.outputs.shape
    shift, largest = np.empty_like(candidates.now), np.empty_like(candidates.now)
    moved = np.empty_like(candidates.now)
    chosen = np.empty(n_instances, dtype=np.int32)
    for j in range(len(candidates.sums)):
        _find_shift(candidates, j, shift)
        for c in range(n_outputs):
            _move(candidates.outputs[c], candidates.slopes[c], shift, moved)
            if c == 0:
                choose_first(moved, largest, chosen)
            else:
                choose_larger(moved, np.int32(c), largest, chosen)
        counts[j] = 0
        for k in range(n_instances):
            counts[j, targets[k], chosen[k]] += weights[k]


# --------------------------------------------------------------------------------- cross-entropy


@compiled
def _find_level(outputs, slopes, shift, level):
    """Find the largest output of each instance once they are shifted; level: (B,), written."""
    level[:] = -np.inf
    for c in range(len(outputs)):
        output, slope = outputs[c], slopes[c]
        for k in range(len(level)):
            level[k] = np.maximum(level[k], output[k] + slope * shift[k])


@compiled
def _add_exp(output, slope, shift, level, total):
    for k in range(len(output)):
        total[k] += exp(output[k] - level[k] + slope * shift[k])


@compiled
def _log_probabilities(own, own_slopes, shift, level, total, values):
    for k in range(len(own)):
        values[k] = own[k] + own_slopes[k] * shift[k] - level[k] - log(total[k])


@compiled
def _log_probabilities_of_one(own, own_slopes, shift, rest, moving, slope, values):
    """Do the same when one output alone moves: `rest` is log Σ exp of the others."""
    one = rest.dtype.type(1)
    for k in range(len(own)):
        moved = moving[k] + slope * shift[k]
        total = np.maximum(moved, rest[k]) + log(one + exp(-abs(moved - rest[k])))
        values[k] = own[k] + own_slopes[k] * shift[k] - total


@compiled
def _find_rest(outputs, c, level, total):
    """Write log Σ exp of all outputs but c into `total`, (B,)."""
    stay = np.zeros_like(level)
    level[:] = -np.inf
    for other in range(len(outputs)):
        if other != c:
            output = outputs[other]
            for k in range(len(level)):
                level[k] = np.maximum(level[k], output[k])
    total[:] = 0
    zero = outputs.dtype.type(0)
    for other in range(len(outputs)):
        if other != c:
            _add_exp(outputs[other], zero, stay, level, total)
    for k in range(len(level)):
        total[k] = level[k] + log(total[k])


@compiled
def sum_cross_entropy(measure, candidates, measured):
    """Add up the log-probabilities of the right classes, for each candidate.

    Exponentials are taken relative to a level near the largest output. While a neuron cannot move
    outputs far, the largest output of the global solution will do, for all candidates; where only
    one output moves, as it does for an output neuron, the others' exponentials are summed up once.

    measured: (m,) float64, written.
    """
    targets, weights = measure.targets, measure.weights
    outputs, slopes = candidates.outputs, candidates.slopes
    n_outputs, n_instances = outputs.shape
    scratch = np.zeros((6, n_instances), dtype=outputs.dtype)
    shift, level, total, values = scratch[0], scratch[1], scratch[2], scratch[3]
    own, own_slopes = scratch[4], scratch[5]
    for k in range(n_instances):
        own[k], own_slopes[k] = outputs[targets[k], k], slopes[targets[k]]
    n_moving, moving = 0, n_outputs
    for c in range(n_outputs):
        if slopes[c] != 0:
            n_moving, moving = n_moving + 1, c
    if n_outputs > 1 and n_moving == 1:
        _find_rest(outputs, moving, level, total)
        for j in range(len(candidates.sums)):
            _find_shift(candidates, j, shift)
            _log_probabilities_of_one(
                own, own_slopes, shift, total, outputs[moving], slopes[moving], values
            )
            measured[j] = _weigh(values, weights)
        return
    is_bounded = candidates.activation in BOUNDED
    stays_near = is_bounded and 2 * np.abs(slopes).max() < _FAR
    _find_level(outputs, slopes, shift, level)
    for j in range(len(candidates.sums)):
        _find_shift(candidates, j, shift)
        if not stays_near:
            _find_level(outputs, slopes, shift, level)
        total[:] = 0
        for c in range(n_outputs):
            _add_exp(outputs[c], slopes[c], shift, level, total)
        _log_probabilities(own, own_slopes, shift, level, total, values)
        measured[j] = _weigh(values, weights)


# ---------------------------------------------------------------------------------------- margins


@compiled
def _raise_rival(output, slope, shift, targets, c, rival):
    lowest = output.dtype.type(-np.inf)
    for k in range(len(output)):
        moved = output[k] + slope * shift[k]
        rival[k] = np.maximum(rival[k], moved if targets[k] != c else lowest)


@compiled
def sum_margins(measure, candidates, measured):
    """Add up the clipped margins, for each candidate; measured: (m,) float64."""
    targets, weights = measure.targets, measure.weights
    outputs, slopes = candidates.outputs, candidates.slopes
    n_outputs, n_instances = outputs.shape
    scratch = np.zeros((4, n_instances), dtype=outputs.dtype)
    shift, rival, own, own_slopes = scratch[0], scratch[1], scratch[2], scratch[3]
    ceiling = outputs.dtype.type(measure.limit)
    for k in range(n_instances):
        own[k], own_slopes[k] = outputs[targets[k], k], slopes[targets[k]]
    for j in range(len(candidates.sums)):
        _find_shift(candidates, j, shift)
        rival[:] = -np.inf
        for c in range(n_outputs):
            _raise_rival(outputs[c], slopes[c], shift, targets, np.int32(c), rival)
        for k in range(n_instances):
            rival[k] = min(own[k] + own_slopes[k] * shift[k] - rival[k], ceiling)
        measured[j] = _weigh(rival, weights)


# ----------------------------------------------------------------------------------------- errors


@compiled
def sum_errors(measure, candidates, measured):
    """Add up minus the squared or absolute errors, for each candidate; measured: (m,) float64."""
    targets, weights = measure.targets, measure.weights
    n_outputs, n_instances = candidates.outputs.shape
    shift, errors = np.empty_like(candidates.now), np.empty_like(candidates.now)
    for j in range(len(candidates.sums)):
        _find_shift(candidates, j, shift)
        fitness = 0.0
        for c in range(n_outputs):
            output, slope, worth = candidates.outputs[c], candidates.slopes[c], measure.worths[c]
            for k in range(n_instances):
                error = abs(output[k] + slope * shift[k] - targets[c, k])
                errors[k] = error * error if measure.is_squared else error
            fitness -= worth * _weigh(errors, weights)
        measured[j] = fitness / n_outputs


GRADED = {CrossEntropyOn: sum_cross_entropy, MarginOn: sum_margins, ErrorOn: sum_errors}
"""The loops of the measures that ask by how much outputs are right."""

measure_candidates = chosen_by_type(GRADED)
"""Measure the candidates of one neuron: (measure, candidates, measured (m,), written)."""


# -------------------------------------------------------------------------- outputs as they stand


@compiled
def _measure_accuracy(measure, outputs, measured):
    counts = np.empty(len(outputs), dtype=np.int64)
    count_right(outputs, measure.targets, counts)
    for j in range(len(counts)):
        measured[j] = counts[j] / len(measure.targets)


@compiled
def _measure_as_they_stand(measure, outputs, measured):
    n_networks, n_outputs, n_instances = outputs.shape
    # A neuron that does not move anything, wherever it is.
    nothing, stays = np.zeros((1, n_instances), outputs.dtype), np.zeros(n_outputs, outputs.dtype)
    no_bias = np.zeros(1, outputs.dtype)
    for j in range(n_networks):
        candidates = Candidates(nothing, no_bias, outputs[j], stays, nothing[0], TANH)
        measure_candidates(measure, candidates, measured[j:])


measure_outputs = chosen_by_type(
    {AccuracyOn: _measure_accuracy} | dict.fromkeys(GRADED, _measure_as_they_stand)
)
"""Measure the outputs of m networks: (measure, outputs (m, C, B), measured (m,), written)."""


@compiled
def measure_after_moves(measure, outputs, slopes, now, rows, measured):
    """Measure the outputs after each of n moves of neurons of the last hidden layer.

    outputs: (C, B), moved along; slopes: (n, C) from each moved neuron to the outputs; now: (n, B)
    its activations before and rows: (n, B) after; measured: (n,) float64, written.
    """
    n_outputs, n_instances = outputs.shape
    for move in range(len(rows)):
        before, after = now[move], rows[move]
        for c in range(n_outputs):
            output, slope = outputs[c], slopes[move, c]
            for k in range(n_instances):
                output[k] += slope * (after[k] - before[k])
        shown = outputs.reshape((1, n_outputs, n_instances))
        measure_outputs(measure, shown, measured[move:])
