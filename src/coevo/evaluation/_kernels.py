"""Compiled loops over plain arrays; no classes.

Shapes: B instances, C outputs, m candidates. Sums are weighted sums of a neuron's inputs, rows of B
neighbouring numbers, so that the inner loops run over instances and become vector instructions.
"""

from __future__ import annotations

import math

import numpy as np

from coevo.compiling import compiled, compiled_with, copy
from coevo.evaluation._functions import artanh, tanh

TANH, SIGMOID, RELU, SIGN, IDENTITY = range(5)
ACTIVATION_CODES = {
    "tanh": TANH, "sigmoid": SIGMOID, "relu": RELU, "sign": SIGN, "identity": IDENTITY,
}  # fmt: skip
BOUNDED = (TANH, SIGMOID, SIGN)

_BLOCK = 512  # instances, so few that the activations of a layer stay in the fast memory


@compiled
def choose_first(output, largest, chosen):
    """Begin with the first output: largest and chosen: (B,), written."""
    for k in range(len(output)):
        largest[k] = output[k]
        chosen[k] = 0


@compiled
def choose_larger(output, c, largest, chosen):
    """Choose output c, (B,), where it is larger than the largest so far.

    Written without a branch: a store under a condition would keep compilers from using vector
    instructions.
    """
    for k in range(len(output)):
        is_larger = np.int32(output[k] > largest[k])
        chosen[k] += is_larger * (c - chosen[k])
        largest[k] = np.maximum(output[k], largest[k])


@compiled
def count_right(outputs, targets, counts):
    """Count the instances whose first largest output is their class, for m networks.

    outputs: (m, C, B), targets: (B,) int32, counts: (m,) int64, written.
    """
    n_networks, n_outputs, n_instances = outputs.shape
    largest = np.empty(n_instances, dtype=outputs.dtype)
    chosen = np.empty(n_instances, dtype=np.int32)
    for j in range(n_networks):
        choose_first(outputs[j, 0], largest, chosen)
        for c in range(1, n_outputs):
            choose_larger(outputs[j, c], np.int32(c), largest, chosen)
        count = np.int32(0)
        for k in range(n_instances):
            count = np.int32(count + np.int32(chosen[k] == targets[k]))
        counts[j] = count


@compiled
def activate(sums, bias, activation, activations):
    """Give ψ of the sums plus a bias; sums and activations: (B,)."""
    real = sums.dtype.type
    half, zero = real(0.5), real(0)
    if activation == TANH:
        for k in range(len(sums)):
            activations[k] = tanh(sums[k] + bias)
    elif activation == SIGMOID:
        for k in range(len(sums)):
            activations[k] = half * tanh(half * (sums[k] + bias)) + half
    elif activation == RELU:
        for k in range(len(sums)):
            activations[k] = max(sums[k] + bias, zero)
    elif activation == SIGN:
        for k in range(len(sums)):
            activations[k] = np.sign(sums[k] + bias)
    else:
        for k in range(len(sums)):
            activations[k] = sums[k] + bias


@compiled
def activate_in_place(sums, activation):
    """Turn sums, (B,), into ψ of them, for the functions that are not NumPy's own.

    `activate` could not be told apart from one array given twice, and then takes one number after
    the other.
    """
    half = sums.dtype.type(0.5)
    if activation == TANH:
        for k in range(len(sums)):
            sums[k] = tanh(sums[k])
    else:  # SIGMOID
        for k in range(len(sums)):
            sums[k] = half * tanh(half * sums[k]) + half


@compiled
def _move_sums(sums, slopes, shift, start, moved):
    """Write the moved sums of the instances from start on, (H, B), into columns of (rows, size)."""
    here = slice(start, min(start + moved.shape[1], sums.shape[1]))
    shift = shift[here]
    for h in range(len(sums)):
        row, into, slope = sums[h, here], moved[h], slopes[h]
        for k in range(len(shift)):
            into[k] = row[k] + slope * shift[k]


@compiled_with("contract")
def _multiply_by_two(v, w, activations, bias_v, bias_w, total_v, total_w):
    """Find two neurons' sums with bias.

    v and w: (rows,) weights, activations: (rows, size), totals: (size,), written. Two neurons and
    four rows in one step, so that few steps wait for the memory.
    """
    for k in range(len(total_v)):
        total_v[k], total_w[k] = bias_v, bias_w
    for h in range(0, len(v), 4):
        v0, v1, v2, v3 = v[h], v[h + 1], v[h + 2], v[h + 3]
        w0, w1, w2, w3 = w[h], w[h + 1], w[h + 2], w[h + 3]
        x0, x1, x2, x3 = activations[h], activations[h + 1], activations[h + 2], activations[h + 3]
        for k in range(len(total_v)):
            total_v[k] += v0 * x0[k] + v1 * x1[k] + v2 * x2[k] + v3 * x3[k]
            total_w[k] += w0 * x0[k] + w1 * x1[k] + w2 * x2[k] + w3 * x3[k]


@compiled
def run_moved_layer(sums, slopes, shifts, activation, matrix, above):
    """Find the next layer's sums for candidates that move a layer's sums along.

    Candidate j has the sums s + slopes ⊗ shifts_j, which are formed some instances at a time,
    activated, multiplied and forgotten while they are in the fast memory.

    sums: (H, B), slopes: (H,), shifts: (m, B), matrix: (N, H + 1), above: (m, N, B), written.
    """
    n_neurons, n_instances = sums.shape
    n_rows = -(-n_neurons // 4) * 4  # those beyond the last neuron have weight 0
    weights = np.zeros((len(matrix), n_rows), dtype=sums.dtype)
    for i in range(len(matrix)):
        copy(matrix[i, :-1], weights[i])
    size = -(-n_instances // -(-n_instances // _BLOCK))  # blocks of one size, or nearly so
    moved = np.zeros((n_rows, size), dtype=sums.dtype)
    activations = np.empty_like(moved)
    total, other = np.empty_like(moved[0]), np.empty_like(moved[0])
    no_bias, last = sums.dtype.type(0), len(matrix) - 1
    for j in range(len(shifts)):
        for start in range(0, n_instances, size):
            here = slice(start, min(start + size, n_instances))
            _move_sums(sums, slopes, shifts[j], start, moved)
            activate(moved.reshape(-1), no_bias, activation, activations.reshape(-1))
            for i in range(0, len(matrix), 2):
                i2 = min(i + 1, last)
                _multiply_by_two(
                    weights[i], weights[i2], activations, matrix[i, -1], matrix[i2, -1],
                    total, other,
                )  # fmt: skip
                copy(total[: here.stop - start], above[j, i, here])
                copy(other[: here.stop - start], above[j, i2, here])


@compiled
def measure_inside(sums, biases, low, high, measured):
    """Find the part of the instances whose sum plus bias lies in their interval, for m candidates.

    sums: (m, B), biases: (m,), low and high: (B,), measured: (m,) float64, written.
    """
    n_candidates, n_instances = sums.shape
    for j in range(n_candidates):
        row, bias = sums[j], biases[j]
        count = np.int32(0)
        for k in range(n_instances):
            total = row[k] + bias
            count = np.int32(count + np.int32((total >= low[k]) & (total <= high[k])))
        measured[j] = count / n_instances


@compiled
def _least_sum_of_tanh(bound):
    """Return artanh of the bound; at 1 it is the sum from which on tanh is rounded to 1.

    Written without a branch, as `choose_larger` is.
    """
    real = type(bound)
    one, eps = real(1), np.finfo(real).eps
    nearly_one = one - real(eps) / real(2)
    least = real(artanh(min(max(bound, -nearly_one), nearly_one)))
    least = real(0.5 * math.log(8 / eps)) if bound == one else least
    least = real(np.inf) if bound > one else least
    return real(-np.inf) if bound <= -one else least


@compiled
def _least_sum(bound, activation):
    """Return the least s with ψ(s) ≥ bound, infinity if there is none."""
    real = type(bound)
    infinite = real(np.inf)
    least = bound  # IDENTITY
    if activation == SIGMOID:  # (1 + tanh(s / 2)) / 2
        if bound > real(0) and real(2) * bound <= real(np.finfo(real).eps):
            # Too small to be told from 0 once doubled and shifted: any sum not rounded to 0.
            least = real(-2) * _least_sum_of_tanh(real(1))
        else:
            least = real(2) * _least_sum_of_tanh(real(2) * bound - real(1))
    elif activation == TANH:
        least = _least_sum_of_tanh(bound)
    elif activation == RELU:
        least = bound if bound > real(0) else -infinite
    elif activation == SIGN:
        if bound <= real(-1):
            least = -infinite
        elif bound <= real(0):
            least = real(0)
        else:
            least = np.nextafter(real(0), real(1)) if bound <= real(1) else infinite
    return least


@compiled
def _greatest_sum(bound, activation):
    """Return the greatest s with ψ(s) ≤ bound, minus infinity if there is none."""
    real = type(bound)
    if activation == RELU:
        return bound if bound >= real(0) else real(-np.inf)
    if activation == SIGMOID:
        if bound < real(0):
            return real(-np.inf)
        return real(-2) * _least_sum_of_tanh(real(1) - real(2) * bound)
    return -_least_sum(-bound, activation)  # the others are odd


@compiled
def _bound_by_rival(output, slope, c, own, own_slopes, targets, now, low, high):
    """Narrow each instance's interval of activations to where its class beats output c, (B,).

    Where both outputs move alike, the rival is beaten everywhere or nowhere.
    """
    real = output.dtype.type
    infinite, zero = real(np.inf), real(0)
    eps, tiny = real(np.finfo(real).eps), real(np.finfo(real).tiny)
    for k in range(len(output)):
        gap = output[k] - own[k]
        steepness = own_slopes[k] - slope
        bound = now[k] + gap / (steepness if steepness != zero else real(1))
        # From a bound that must be passed to a number just beyond it.
        must_beat = c < targets[k]
        step = abs(bound) * eps + tiny if must_beat else zero
        is_beaten = (gap < zero) | ((gap == zero) & (not must_beat))
        everywhere = -infinite if is_beaten else infinite
        from_below = bound + step if steepness > zero else -infinite
        from_above = bound - step if steepness < zero else infinite
        low[k] = np.maximum(low[k], everywhere if steepness == zero else from_below)
        high[k] = np.minimum(high[k], from_above)


@compiled
def hidden_intervals(outputs, targets, weights, now, activation, low, high):
    """Find where a hidden neuron's sum must lie for each instance to be classified right.

    With everything else fixed, output c moves along outputs_c + weights_c (a − now) as the
    neuron's activation a varies, so class y beats rival c where
    (weights_y − weights_c) (a − now) > outputs_c − outputs_y, or ≥ if c comes after y. Each rival
    bounds a from one side; the activation function never decreases, so an interval of activations
    is an interval of sums.

    outputs: (C, B), targets: (B,) int32, weights: (C,) from the neuron to the outputs, now: (B,)
    the neuron's present activations, low and high: (B,), written.
    """
    start = np.int64(0)  # a literal would have the loop compiled once more, for itself
    _bound_activations(outputs, start, targets, weights, now, low, high)
    _turn_into_sums(low, high, activation)


@compiled
def _bound_activations(outputs, start, targets, weights, now, low, high):
    """Find where a hidden neuron's activation must lie; see `hidden_intervals`.

    outputs may have more instances than targets and now, which begin at start.
    """
    infinite = outputs.dtype.type(np.inf)
    own, own_slopes = np.empty_like(now), np.empty_like(now)
    for k in range(len(now)):
        own[k], own_slopes[k] = outputs[targets[k], start + k], weights[targets[k]]
        low[k], high[k] = -infinite, infinite
    for c in range(len(weights)):
        output, slope = outputs[c, start : start + len(now)], weights[c]
        _bound_by_rival(output, slope, np.int32(c), own, own_slopes, targets, now, low, high)
    for k in range(len(now)):  # what is empty stays so, however bounds are rounded
        is_empty = low[k] > high[k]
        low[k] = infinite if is_empty else low[k]
        high[k] = -infinite if is_empty else high[k]


@compiled
def activation_range(activation):
    """Return the least and the greatest activation that there is."""
    if activation in (TANH, SIGN):
        return -1.0, 1.0
    if activation == SIGMOID:
        return 0.0, 1.0
    return (0.0 if activation == RELU else -np.inf), np.inf


@compiled
def find_open(outputs, start, targets, weights, now, activation, low, high, instances):
    """Find the instances that are right or wrong depending on a hidden neuron's sum, and where.

    The others are out of its reach: no activation that the neuron could have changes how they are
    classified. See `hidden_intervals`, but outputs may have more instances than targets and now,
    which begin at start, and low and high hold the open instances' intervals only, side by side.

    instances: (B,) int64, written: which ones are open. Returns how many these are, and how many of
    the others are classified right. low, high and instances may be longer than that.
    """
    _bound_activations(outputs, start, targets, weights, now, low, high)
    least, greatest = activation_range(activation)
    n_open, n_right = 0, 0
    for k in range(len(now)):
        if low[k] <= least and high[k] >= greatest:
            n_right += 1
        elif low[k] <= greatest and high[k] >= least:
            low[n_open], high[n_open], instances[n_open] = low[k], high[k], k
            n_open += 1
    _turn_into_sums(low[:n_open], high[:n_open], activation)
    return n_open, n_right


@compiled
def _turn_into_sums(low, high, activation):
    """Turn intervals of activations into intervals of sums, in place.

    The activation is spelt out where the loops gain from vector instructions.
    """
    if activation == TANH:
        for k in range(len(low)):
            low[k] = _least_sum(low[k], TANH)
            high[k] = _greatest_sum(high[k], TANH)
    else:
        for k in range(len(low)):
            low[k] = _least_sum(low[k], activation)
            high[k] = _greatest_sum(high[k], activation)


@compiled
def output_intervals(outputs, targets, c, low, high):
    """Find where output c must lie for each instance to be classified right.

    An instance of class c needs it above (≥ if the rival comes later) all others; any other
    instance needs its own output to beat the rest already, and c to stay below.

    outputs: (C, B), targets: (B,) int32, low and high: (B,), written.
    """
    n_outputs, n_instances = outputs.shape
    infinite = outputs.dtype.type(np.inf)
    for k in range(n_instances):
        y = targets[k]
        earlier, later = -infinite, -infinite  # the largest outputs before and after the class
        for rival in range(n_outputs):
            if rival != c:
                if rival < y:
                    earlier = max(earlier, outputs[rival, k])
                elif rival > y:
                    later = max(later, outputs[rival, k])
        if y == c:
            low[k] = max(np.nextafter(earlier, infinite) if c > 0 else earlier, later)
            high[k] = infinite
        else:
            own = outputs[y, k]
            beats_the_rest = (own > earlier) & (own >= later)
            low[k] = -infinite if beats_the_rest else infinite
            high[k] = np.nextafter(own, -infinite) if c < y else own
