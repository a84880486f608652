"""Compiled loops over plain arrays; no classes.

Shapes: B instances, C outputs, m candidates. Sums are weighted sums of a neuron's inputs, rows of B
neighbouring numbers, so that the inner loops run over instances and become vector instructions.
"""

from __future__ import annotations

import math

import numpy as np

from coevo.compiling import compiled

TANH, SIGMOID, RELU, SIGN, IDENTITY = range(5)
ACTIVATION_CODES = {
    "tanh": TANH, "sigmoid": SIGMOID, "relu": RELU, "sign": SIGN, "identity": IDENTITY,
}  # fmt: skip


@compiled
def count_right(outputs, targets, counts):
    """Count the instances whose first largest output is their class, for m networks.

    outputs: (m, C, B), targets: (B,) int32, counts: (m,) int64, written.
    """
    n_networks, n_outputs, n_instances = outputs.shape
    largest = np.empty(n_instances, dtype=outputs.dtype)
    chosen = np.empty(n_instances, dtype=np.int32)
    for j in range(n_networks):
        largest[:] = outputs[j, 0]
        chosen[:] = 0
        for c in range(1, n_outputs):
            output = outputs[j, c]
            for k in range(n_instances):
                is_larger = output[k] > largest[k]
                largest[k] = output[k] if is_larger else largest[k]
                chosen[k] = np.int32(c) if is_larger else chosen[k]
        count = np.int32(0)
        for k in range(n_instances):
            count = np.int32(count + np.int32(chosen[k] == targets[k]))
        counts[j] = count


@compiled
def count_right_after_moves(outputs, targets, weights, now, rows, counts):
    """Count the right instances after each of n moves of neurons of the last hidden layer.

    outputs: (C, B), moved along; targets: (B,) int32; weights: (n, C) from each moved neuron to the
    outputs; now: (n, B) its activations before and rows: (n, B) after; counts: (n,) int64, written.
    """
    n_outputs, n_instances = outputs.shape
    for move in range(len(rows)):
        before, after = now[move], rows[move]
        for c in range(n_outputs):
            output, weight = outputs[c], weights[move, c]
            for k in range(n_instances):
                output[k] += weight * (after[k] - before[k])
        count_right(outputs.reshape((1, n_outputs, n_instances)), targets, counts[move:])


@compiled
def count_inside(sums, biases, low, high, counts):
    """Count the instances whose sum plus bias lies in their interval, for m candidates.

    sums: (m, B), biases: (m,), low and high: (B,), counts: (m,) int64, written.
    """
    n_candidates, n_instances = sums.shape
    for j in range(n_candidates):
        row, bias = sums[j], biases[j]
        count = np.int32(0)
        for k in range(n_instances):
            total = row[k] + bias
            count = np.int32(count + np.int32((total >= low[k]) & (total <= high[k])))
        counts[j] = count


@compiled
def _least_sum_of_tanh(bound):
    """Return artanh of the bound; at 1 it is the sum from which on tanh is rounded to 1."""
    real = type(bound)
    if bound <= real(-1):
        return real(-np.inf)
    if bound > real(1):
        return real(np.inf)
    if bound == real(1):
        return real(0.5 * math.log(8 / np.finfo(real).eps))
    return real(math.atanh(bound))


@compiled
def _least_sum(bound, activation):
    """Return the least s with ψ(s) ≥ bound, infinity if there is none."""
    real = type(bound)
    infinite = real(np.inf)
    least = bound  # IDENTITY
    if activation == SIGMOID:  # (1 + tanh(s / 2)) / 2
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
        # ψ(−s) = 1 − ψ(s): the mirror image of the least sum.
        return -_least_sum(real(1) - bound, activation)
    return -_least_sum(-bound, activation)  # the others are odd


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
    n_outputs, n_instances = outputs.shape
    real = outputs.dtype.type
    zero, infinite = real(0), real(np.inf)
    eps, tiny = real(np.finfo(outputs.dtype).eps), real(np.finfo(outputs.dtype).tiny)
    widest = real(np.finfo(outputs.dtype).max / 4)
    own = np.empty(n_instances, dtype=outputs.dtype)
    own_weight = np.empty(n_instances, dtype=outputs.dtype)
    for k in range(n_instances):
        own[k] = outputs[targets[k], k]
        own_weight[k] = weights[targets[k]]
        low[k] = -widest
        high[k] = widest
    for c in range(n_outputs):
        rival, rival_weight, place = outputs[c], weights[c], np.int32(c)
        # Choices instead of branches: this loop becomes vector instructions.
        for k in range(n_instances):
            gap = rival[k] - own[k]
            slope = own_weight[k] - rival_weight
            bound = now[k] + gap / slope
            must_beat = place < targets[k]
            step = abs(bound) * eps + tiny  # from a bound itself to just inside of it
            step = step if must_beat else zero
            lowest = bound + step if slope > zero else -infinite
            is_lost = (slope == zero) & ((gap > zero) | ((gap == zero) & must_beat))
            lowest = infinite if is_lost else lowest
            highest = bound - step if slope < zero else infinite
            low[k] = lowest if lowest > low[k] else low[k]
            high[k] = highest if highest < high[k] else high[k]
    for k in range(n_instances):
        if low[k] > high[k]:
            low[k] = infinite
        else:
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
