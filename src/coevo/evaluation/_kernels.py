"""Compiled loops over plain arrays; no classes.

Shapes: B instances, C outputs, m candidates. Sums are weighted sums of a neuron's inputs, rows of B
neighbouring numbers, so that the inner loops run over instances and become vector instructions.
"""

from __future__ import annotations

import math

import numpy as np

from coevo.compiling import compiled
from coevo.evaluation._functions import tanh

TANH, SIGMOID, RELU, SIGN, IDENTITY = range(5)
ACTIVATION_CODES = {
    "tanh": TANH, "sigmoid": SIGMOID, "relu": RELU, "sign": SIGN, "identity": IDENTITY,
}  # fmt: skip


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
def find_leads(outputs, targets, leads):
    """Find by how much each instance's strongest rival leads its class.

    outputs: (C, B), targets: (B,) int32, leads: (B,), written.
    """
    n_outputs, n_instances = outputs.shape
    lowest = outputs.dtype.type(-np.inf)
    leads[:] = lowest
    for c in range(n_outputs):
        rival, place = outputs[c], np.int32(c)
        for k in range(n_instances):
            leads[k] = np.maximum(leads[k], rival[k] if targets[k] != place else lowest)
    for k in range(n_instances):
        leads[k] -= outputs[targets[k], k]


@compiled
def _hidden_interval(outputs, y, weights, now):
    """Return the interval of a hidden neuron's activation in which class y wins; outputs: (C,)."""
    real = type(now)
    info = np.finfo(real)
    low, high = real(-np.inf), real(np.inf)
    for c in range(len(weights)):
        gap = outputs[c] - outputs[y]
        slope = weights[y] - weights[c]
        must_beat = c < y
        if slope == real(0):
            if gap > real(0) or (gap == real(0) and must_beat):
                return real(np.inf), real(-np.inf)  # empty
            continue
        bound = now + gap / slope
        # From a bound that must be passed to a number just beyond it.
        step = abs(bound) * real(info.eps) + real(info.tiny) if must_beat else real(0)
        if slope > real(0):
            low = max(low, bound + step)
        else:
            high = min(high, bound - step)
    return low, high


@compiled
def hidden_intervals(outputs, leads, targets, weights, now, activation, low, high):
    """Find where a hidden neuron's sum must lie for each instance to be classified right.

    With everything else fixed, output c moves along outputs_c + weights_c (a − now) as the
    neuron's activation a varies, so class y beats rival c where
    (weights_y − weights_c) (a − now) > outputs_c − outputs_y, or ≥ if c comes after y. Each rival
    bounds a from one side; the activation function never decreases, so an interval of activations
    is an interval of sums. Where the strongest rival is further away than the neuron reaches, the
    instance stays as it is.

    outputs: (C, B), leads and targets: (B,), weights: (C,) from the neuron to the outputs, now:
    (B,) the neuron's present activations, low and high: (B,), written.
    """
    real = outputs.dtype.type
    infinite = real(np.inf)
    # Activations differ by at most 2, sigmoid's by 1; a little more, for rounding.
    reach = real(2.001) * (weights.max() - weights.min())
    if activation in (RELU, IDENTITY):
        reach = infinite
    for k in range(len(targets)):
        low[k] = -infinite if leads[k] < real(0) else infinite
        high[k] = infinite
        if abs(leads[k]) <= reach:
            low[k], high[k] = _hidden_interval(outputs[:, k], targets[k], weights, now[k])
            if low[k] <= high[k]:
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
