"""Compiled loops that find how much each instance's fitness follows a neuron's pre-activation.

With everything else fixed, moving a neuron's pre-activation by the width changes its activation by
some shift_k and the outputs by slopes_c × shift_k. The loops here form the outputs of one such
candidate at a time, find the fitness of each instance, and forget them. Inner loops run over
instances and are free of branches, so that they become SIMD instructions.

Shapes: B instances, C outputs, H neurons, m candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.engines.kernels.activations import activate
from coevo.engines.kernels.classes import choose_first, choose_larger
from coevo.engines.kernels.functions import exp, log
from coevo.engines.kernels.metrics import CrossEntropyOn, ErrorOn, LabelEntropyOn, MarginOn
from coevo.runtime.jit import Choice, compiled, compiled_with

_FAR = 40.0  # outputs may move so far before exp of them needs another level
_WIDE = 4.0


class PricesOn(NamedTuple):
    """What each prediction is worth; targets: (B,) int32, weights: (B,), prices: (C, C)."""

    targets: Array
    weights: Array
    prices: Array


class Scratch(NamedTuple):
    """Memory of one call for B instances.

    level : (B,) the largest output; true : (B,) the true-class logit; total, moved, true_slopes :
    (B,) anything; chosen : (B,) int32.
    """

    level: Array
    true: Array
    total: Array
    moved: Array
    true_slopes: Array
    chosen: Array


@compiled
def _make_scratch(outputs):
    rows = np.zeros((5, outputs.shape[2]), dtype=outputs.dtype)
    chosen = np.zeros(outputs.shape[2], dtype=np.int32)
    return Scratch(rows[0], rows[1], rows[2], rows[3], rows[4], chosen)


# ------------------------------------------------------------------- the fitness of each instance


@compiled
def _find_true(targets, outputs, j, true):
    for k in range(len(true)):
        true[k] = outputs[targets[k], j, k]


@compiled
def _find_true_slopes(targets, slopes, true_slopes):
    for k in range(len(true_slopes)):
        true_slopes[k] = slopes[targets[k]]


@compiled
def _raise_level(output, slope, shift, level):
    for k in range(len(level)):
        level[k] = max(level[k], output[k] + slope * shift[k])


@compiled
def _find_level(outputs, j, slopes, shift, level):
    """Write the largest output of each instance once they have moved."""
    for k in range(len(level)):
        level[k] = outputs[0, j, k] + slopes[0] * shift[k]
    for c in range(1, len(outputs)):
        _raise_level(outputs[c, j], slopes[c], shift, level)


@compiled
def _prepare_classes(fitness, outputs, j, slopes, shift, scratch):
    """Find what all candidates next to the same outputs share."""
    _find_true(fitness.targets, outputs, j, scratch.true)
    _find_level(outputs, j, slopes, shift, scratch.level)


@compiled
def _prepare_nothing(fitness, outputs, j, slopes, shift, scratch):
    pass


prepare = Choice(
    {
        CrossEntropyOn: _prepare_classes,
        MarginOn: _prepare_classes,
        PricesOn: _prepare_nothing,
        ErrorOn: _prepare_nothing,
        LabelEntropyOn: _prepare_nothing,
    }
)
"""Make scratch memory ready for outputs[:, j]; slopes and shift must be 0."""


@compiled_with("contract")
def _add_exp(output, slope, shift, level, total):
    for k in range(len(total)):
        total[k] += exp(output[k] - level[k] + slope * shift[k])


@compiled_with("contract")
def _find_log_probabilities(true, true_slopes, shift, level, total, values):
    for k in range(len(values)):
        values[k] = true[k] + true_slopes[k] * shift[k] - level[k] - log(total[k])


@compiled
def _value_cross_entropy(fitness, outputs, j, slopes, shift, scratch, values):
    level, total, true_slopes = scratch.level, scratch.total, scratch.true_slopes
    farthest, steepest = shift.dtype.type(0), shift.dtype.type(0)
    for k in range(len(shift)):
        farthest = max(farthest, abs(shift[k]))
        total[k] = 0
    for c in range(len(slopes)):
        steepest = max(steepest, abs(slopes[c]))
    if farthest * steepest > _FAR:
        level = scratch.moved
        _find_level(outputs, j, slopes, shift, level)
    for c in range(len(outputs)):
        _add_exp(outputs[c, j], slopes[c], shift, level, total)
    _find_true_slopes(fitness.targets, slopes, true_slopes)
    _find_log_probabilities(scratch.true, true_slopes, shift, level, total, values)


@compiled
def _raise_competing(output, slope, shift, targets, c, competing):
    lowest = output.dtype.type(-np.inf)
    for k in range(len(competing)):
        moved = output[k] + slope * shift[k]
        competing[k] = max(competing[k], lowest if targets[k] == c else moved)


@compiled
def _value_margins(fitness, outputs, j, slopes, shift, scratch, values):
    competing, true_slopes = scratch.total, scratch.true_slopes
    limit = values.dtype.type(fitness.limit)
    for k in range(len(competing)):
        competing[k] = -np.inf
    for c in range(len(outputs)):
        _raise_competing(outputs[c, j], slopes[c], shift, fitness.targets, np.int32(c), competing)
    _find_true_slopes(fitness.targets, slopes, true_slopes)
    true = scratch.true
    for k in range(len(values)):
        values[k] = min(true[k] + true_slopes[k] * shift[k] - competing[k], limit)


@compiled
def _move(output, slope, shift, moved):
    for k in range(len(moved)):
        moved[k] = output[k] + slope * shift[k]


@compiled
def _value_predictions(fitness, outputs, j, slopes, shift, scratch, values):
    moved, largest, chosen = scratch.moved, scratch.total, scratch.chosen
    _move(outputs[0, j], slopes[0], shift, moved)
    choose_first(moved, largest, chosen)
    for c in range(1, len(outputs)):
        _move(outputs[c, j], slopes[c], shift, moved)
        choose_larger(moved, np.int32(c), largest, chosen)
    for k in range(len(values)):
        values[k] = fitness.prices[fitness.targets[k], chosen[k]]


@compiled
def _subtract_errors(output, slope, shift, targets, worth, is_squared, values):
    if is_squared:
        for k in range(len(values)):
            error = output[k] + slope * shift[k] - targets[k]
            values[k] -= worth * error * error
    else:
        for k in range(len(values)):
            values[k] -= worth * abs(output[k] + slope * shift[k] - targets[k])


@compiled
def _value_errors(fitness, outputs, j, slopes, shift, scratch, values):
    for k in range(len(values)):
        values[k] = 0
    for c in range(len(outputs)):
        worth = values.dtype.type(fitness.worths[c] / len(outputs))
        _subtract_errors(
            outputs[c, j], slopes[c], shift, fitness.targets[c], worth, fitness.is_squared, values
        )


@compiled
def _add_log_sigmoid(output, slope, shift, targets, share, values):
    """Add log σ(z) = min(z, 0) − log(1 + exp(−|z|)), z being the signed logit."""
    one, zero = output.dtype.type(1), output.dtype.type(0)
    for k in range(len(values)):
        signed = targets[k] * (output[k] + slope * shift[k])
        values[k] += share * (min(signed, zero) - log(one + exp(-abs(signed))))


@compiled
def _value_labels(fitness, outputs, j, slopes, shift, scratch, values):
    share = values.dtype.type(1 / len(outputs))
    for k in range(len(values)):
        values[k] = 0
    for c in range(len(outputs)):
        _add_log_sigmoid(outputs[c, j], slopes[c], shift, fitness.targets[c], share, values)


find_values = Choice(
    {
        CrossEntropyOn: _value_cross_entropy,
        MarginOn: _value_margins,
        PricesOn: _value_predictions,
        ErrorOn: _value_errors,
        LabelEntropyOn: _value_labels,
    }
)
"""Find the fitness of each instance once outputs[:, j] have moved by slopes × shift.

(fitness, outputs (C, m, B), j, slopes (C,), shift (B,), scratch, values (B,), written)
"""


@compiled
def _find_slope(higher, lower, weights, width, slope):
    half = slope.dtype.type(0.5 / width)
    for k in range(len(slope)):
        slope[k] = slope.dtype.type(weights[k]) * (higher[k] - lower[k]) * half


# ------------------------------------------------------------------------------------- neurons


@compiled
def find_slopes_of_hidden(fitness, outputs, layer, width, slopes):
    """Find the slopes of some neurons of the last hidden layer.

    outputs: (C, 1, B); layer: their pre-activations (H, B), activations (H, B), code of the
    activation and outgoing weights (H, C); slopes: (H, B), written.
    """
    pre_activations, activations, code, outgoing = layer
    n_instances = pre_activations.shape[1]
    values = np.empty((2, n_instances), dtype=outputs.dtype)
    shift, scratch = np.zeros(n_instances, dtype=outputs.dtype), _make_scratch(outputs)
    prepare(fitness, outputs, 0, outgoing[0], shift, scratch)
    for h in range(len(slopes)):
        now = activations[h]
        for side in range(2):
            step = outputs.dtype.type(width if side == 0 else -width)
            activate(pre_activations[h], step, code, shift)
            for k in range(n_instances):
                shift[k] -= now[k]
            find_values(fitness, outputs, 0, outgoing[h], shift, scratch, values[side])
        _find_slope(values[0], values[1], fitness.weights, width, slopes[h])


@compiled
def _find_slopes_of_any_outputs(fitness, outputs, width, slopes):
    n_outputs, _, n_instances = outputs.shape
    values = np.empty((2, n_instances), dtype=outputs.dtype)
    shift, scratch = np.zeros(n_instances, dtype=outputs.dtype), _make_scratch(outputs)
    own = np.zeros(n_outputs, dtype=outputs.dtype)
    prepare(fitness, outputs, 0, own, shift, scratch)
    for c in range(n_outputs):
        own[c] = 1
        for side in range(2):
            for k in range(n_instances):
                shift[k] = width if side == 0 else -width
            find_values(fitness, outputs, 0, own, shift, scratch, values[side])
        own[c] = 0
        _find_slope(values[0], values[1], fitness.weights, width, slopes[c])


@compiled
def _find_log_ratios(output, level, total, up, down, ratios):
    """Write log of (total + up e) / (total + down e), with e = exp of the output."""
    for k in range(len(ratios)):
        e = exp(output[k] - level[k])
        ratios[k] = log((total[k] + up * e) / (total[k] + down * e))


@compiled
def _find_slopes_of_logits(fitness, outputs, width, slopes):
    """With one logit moved, the sum of exponentials changes by one of them: O(C B) in all.

    Over a wide width the difference would be lost beside the sum.
    """
    if width > _WIDE:
        _find_slopes_of_any_outputs(fitness, outputs, width, slopes)
        return
    n_outputs, _, n_instances = outputs.shape
    real = outputs.dtype.type
    scratch, no_shift = _make_scratch(outputs), np.zeros(n_instances, dtype=outputs.dtype)
    none = np.zeros(n_outputs, dtype=outputs.dtype)
    prepare(fitness, outputs, 0, none, no_shift, scratch)
    for c in range(n_outputs):
        _add_exp(outputs[c, 0], none[0], no_shift, scratch.level, scratch.total)
    up, down = real(np.exp(width) - 1), real(np.exp(-width) - 1)
    both, half, targets = real(2 * width), real(0.5 / width), fitness.targets
    for c in range(n_outputs):
        slope = slopes[c]
        _find_log_ratios(outputs[c, 0], scratch.level, scratch.total, up, down, slope)
        for k in range(n_instances):
            gain = both if targets[k] == c else real(0)
            slope[k] = real(fitness.weights[k]) * (gain - slope[k]) * half


find_slopes_of_outputs = Choice(
    {
        CrossEntropyOn: _find_slopes_of_logits,
        MarginOn: _find_slopes_of_any_outputs,
        PricesOn: _find_slopes_of_any_outputs,
        ErrorOn: _find_slopes_of_any_outputs,
        LabelEntropyOn: _find_slopes_of_any_outputs,
    }
)
"""Find the slopes of the output neurons: (fitness, outputs (C, 1, B), width, slopes (C, B))."""


@compiled
def shift_layer(layer, width, above, moved):
    """Write the activations above neurons whose pre-activations are moved up and down.

    layer: as for `find_slopes_of_hidden`, with outgoing weights (H, N); above: (N, B)
    pre-activations of the next layer; moved: (N, 2 H, B), written, those of each neuron side by
    side.
    """
    pre_activations, activations, code, outgoing = layer
    n_neurons, n_instances = pre_activations.shape
    shift, row = np.empty_like(above[0]), np.empty_like(above[0])
    no_bias = above.dtype.type(0)
    for h in range(n_neurons):
        now = activations[h]
        for side in range(2):
            step = above.dtype.type(width if side == 0 else -width)
            activate(pre_activations[h], step, code, shift)
            for k in range(n_instances):
                shift[k] -= now[k]
            for i in range(len(above)):
                _move(above[i], outgoing[h, i], shift, row)
                activate(row, no_bias, code, moved[i, 2 * h + side])


@compiled
def find_slopes_from_outputs(fitness, outputs, width, slopes):
    """Find the slopes of neurons from the outputs that they move.

    outputs: (C, 2 H, B), as `shift_layer` orders them; slopes: (H, B), written.
    """
    n_instances = outputs.shape[2]
    values = np.empty((2, n_instances), dtype=outputs.dtype)
    no_shift, scratch = np.zeros(n_instances, dtype=outputs.dtype), _make_scratch(outputs)
    none = np.zeros(len(outputs), dtype=outputs.dtype)
    for h in range(len(slopes)):
        for side in range(2):
            j = 2 * h + side
            prepare(fitness, outputs, j, none, no_shift, scratch)
            find_values(fitness, outputs, j, none, no_shift, scratch, values[side])
        _find_slope(values[0], values[1], fitness.weights, width, slopes[h])


@compiled
def find_values_of_outputs(fitness, outputs, values):
    """Find the fitness of each instance from the outputs (C, 1, B) as they are; values: (B,)."""
    scratch = _make_scratch(outputs)
    no_shift, none = np.zeros_like(values), np.zeros(len(outputs), dtype=outputs.dtype)
    prepare(fitness, outputs, 0, none, no_shift, scratch)
    find_values(fitness, outputs, 0, none, no_shift, scratch, values)
