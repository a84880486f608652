"""Compiled intervals of pre-activations in which an instance is classified right.

With everything else fixed, logit c moves along logits_c + weights_c (a − now) as one hidden
neuron's activation a varies. So the true class y beats class c where
(weights_y − weights_c) (a − now) > logits_c − logits_y, or ≥ if c comes after y. Each competing
class bounds a from one side. Activation functions never decrease, so an interval of activations is
an interval of pre-activations, and a candidate costs two comparisons an instance.

Shapes: B instances, C classes, m candidates. Inner loops run over instances, without branches where
SIMD makes them faster.
"""

from __future__ import annotations

import math

import numpy as np

from coevo.engines.kernels.activations import RELU, SIGMOID, SIGN, TANH, activation_range
from coevo.engines.kernels.functions import artanh
from coevo.runtime.jit import compiled


@compiled
def measure_inside(pre_activations, biases, low, high, measured):
    """Find the share of instances whose pre-activation is in their interval, for m candidates.

    pre_activations: (m, B) without bias, biases: (m,), low and high: (B,), measured: (m,) float64,
    written.
    """
    n_candidates, n_instances = pre_activations.shape
    for j in range(n_candidates):
        row, bias = pre_activations[j], biases[j]
        count = np.int32(0)
        for k in range(n_instances):
            value = row[k] + bias
            count = np.int32(count + np.int32((value >= low[k]) & (value <= high[k])))
        measured[j] = count / n_instances


@compiled
def find_hidden_intervals(logits, targets, weights, now, activation, low, high):
    """Find the pre-activations of a hidden neuron with which each instance is classified right.

    logits: (C, B), targets: (B,) int32, weights: (C,) from the neuron to the logits, now: (B,) its
    present activations, low and high: (B,), written.
    """
    start = np.int64(0)  # a literal would have the loop compiled once more, for itself
    _bound_activations(logits, start, targets, weights, now, low, high)
    _invert_activation(low, high, activation)


@compiled
def find_output_intervals(logits, targets, c, low, high):
    """Find the values of logit c with which each instance is classified right.

    An instance of class c needs it above (≥ if the competing class comes later) all others; any
    other instance needs its true-class logit to beat the rest already, and c to stay below.

    logits: (C, B), targets: (B,) int32, low and high: (B,), written.
    """
    n_classes, n_instances = logits.shape
    infinite = logits.dtype.type(np.inf)
    for k in range(n_instances):
        y = targets[k]
        earlier, later = -infinite, -infinite  # the largest logits before and after the true class
        for competing in range(n_classes):
            if competing != c:
                if competing < y:
                    earlier = max(earlier, logits[competing, k])
                elif competing > y:
                    later = max(later, logits[competing, k])
        if y == c:
            low[k] = max(np.nextafter(earlier, infinite) if c > 0 else earlier, later)
            high[k] = infinite
        else:
            true = logits[y, k]
            beats_the_rest = (true > earlier) & (true >= later)
            low[k] = -infinite if beats_the_rest else infinite
            high[k] = np.nextafter(true, -infinite) if c < y else true


@compiled
def find_open(logits, start, targets, weights, now, activation, low, high, instances):
    """Find the open instances, which a hidden neuron can make right or wrong, and their intervals.

    No activation that the neuron could have changes how the others are classified. Arguments as for
    `find_hidden_intervals`, but targets and now are those of the instances from start on, and low
    and high hold the open instances' intervals only, side by side.

    instances: (B,) int64, written: which ones are open. Returns how many these are, and how many of
    the others are classified right. low, high and instances may be longer than that.
    """
    _bound_activations(logits, start, targets, weights, now, low, high)
    least, greatest = activation_range(activation)
    n_open, n_right = 0, 0
    for k in range(len(now)):
        if low[k] <= least and high[k] >= greatest:
            n_right += 1
        elif low[k] <= greatest and high[k] >= least:
            low[n_open], high[n_open], instances[n_open] = low[k], high[k], k
            n_open += 1
    _invert_activation(low[:n_open], high[:n_open], activation)
    return n_open, n_right


# ------------------------------------------------------------------------- bounds of activations


@compiled
def _bound_activations(logits, start, targets, weights, now, low, high):
    """Find a hidden neuron's activations that classify right; targets and now begin at start."""
    infinite = logits.dtype.type(np.inf)
    true, true_slopes = np.empty_like(now), np.empty_like(now)
    for k in range(len(now)):
        true[k], true_slopes[k] = logits[targets[k], start + k], weights[targets[k]]
        low[k], high[k] = -infinite, infinite
    for c in range(len(weights)):
        logit, slope = logits[c, start : start + len(now)], weights[c]
        _bound_by_class(logit, slope, np.int32(c), true, true_slopes, targets, now, low, high)
    for k in range(len(now)):  # what is empty stays so, however bounds are rounded
        is_empty = low[k] > high[k]
        low[k] = infinite if is_empty else low[k]
        high[k] = -infinite if is_empty else high[k]


@compiled
def _bound_by_class(logit, slope, c, true, true_slopes, targets, now, low, high):
    """Narrow each instance's interval to where its true class beats class c, whose logit is (B,).

    Where both logits move alike, class c is beaten everywhere or nowhere.
    """
    real = logit.dtype.type
    infinite, zero = real(np.inf), real(0)
    eps, tiny = real(np.finfo(real).eps), real(np.finfo(real).tiny)
    for k in range(len(logit)):
        gap = logit[k] - true[k]
        steepness = true_slopes[k] - slope
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


# ------------------------------------------------------------------- from activations to intervals


@compiled
def _invert_activation(low, high, activation):
    """Turn intervals of activations into intervals of pre-activations, in place.

    The activation is spelt out where the loops gain from SIMD.
    """
    if activation == TANH:
        for k in range(len(low)):
            low[k] = find_least(low[k], TANH)
            high[k] = find_greatest(high[k], TANH)
    else:
        for k in range(len(low)):
            low[k] = find_least(low[k], activation)
            high[k] = find_greatest(high[k], activation)


@compiled
def _find_least_of_tanh(bound):
    """Return artanh of the bound; at 1 the pre-activation from which on tanh is rounded to 1.

    Without a branch, for SIMD.
    """
    real = type(bound)
    one, eps = real(1), np.finfo(real).eps
    nearly_one = one - real(eps) / real(2)
    least = real(artanh(min(max(bound, -nearly_one), nearly_one)))
    least = real(0.5 * math.log(8 / eps)) if bound == one else least
    least = real(np.inf) if bound > one else least
    return real(-np.inf) if bound <= -one else least


@compiled
def find_least(bound, activation):
    """Return the least s with ψ(s) ≥ bound, infinity if there is none."""
    real = type(bound)
    infinite = real(np.inf)
    least = bound  # IDENTITY
    if activation == SIGMOID:  # (1 + tanh(s / 2)) / 2
        if bound > real(0) and real(2) * bound <= real(np.finfo(real).eps):
            # Too small to be told from 0 once doubled and shifted: whatever is not rounded to 0.
            least = real(-2) * _find_least_of_tanh(real(1))
        else:
            least = real(2) * _find_least_of_tanh(real(2) * bound - real(1))
    elif activation == TANH:
        least = _find_least_of_tanh(bound)
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
def find_greatest(bound, activation):
    """Return the greatest s with ψ(s) ≤ bound, minus infinity if there is none."""
    real = type(bound)
    if activation == RELU:
        return bound if bound >= real(0) else real(-np.inf)
    if activation == SIGMOID:
        if bound < real(0):
            return real(-np.inf)
        return real(-2) * _find_least_of_tanh(real(1) - real(2) * bound)
    return -find_least(-bound, activation)  # the others are odd
