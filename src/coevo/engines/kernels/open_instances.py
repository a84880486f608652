"""Compiled sweeps that multiply only where a neuron of the last hidden layer makes a difference.

One neuron moves the logits by its outgoing weights times its activation, which most activation
functions bound. Most instances are classified right, or wrong, by a margin that it cannot make up:
a candidate's pre-activation matters only for the few that are left open. So a candidate is
multiplied with those alone, and with all instances just once it represents its neuron: O(q n) for
a candidate with n inputs and q open instances of B, where a product with all needs O(B n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.selection import STAYS, select
from coevo.engines.kernels.activations import activate, activation_range
from coevo.engines.kernels.classes import predict_shifted
from coevo.engines.kernels.intervals import find_open
from coevo.engines.kernels.layers import move_outputs
from coevo.engines.kernels.sweeps import LastHidden
from coevo.runtime.jit import compiled, compiled_with, copy

_BLOCK = 512  # instances, so few that what is known of them stays in the cache


class OpenLayer(NamedTuple):
    """A last hidden layer and what is needed to find its neurons' open instances.

    Attributes
    ----------
    hidden
        The layer.
    inputs : array of shape (B, n)
        What it sees.
    targets : int32 array of shape (B,)
    """

    hidden: LastHidden
    inputs: Array
    targets: Array


@compiled_with("reassoc", "contract")
def _multiply(w0, w1, w2, w3, x0, x1, x2):
    """Return the pre-activations without bias of four candidates on three instances.

    So many that what is loaded is used several times, so few that all sums stay in registers. They
    are spelt out because compilers keep names, not the elements of an array, in registers.
    """
    zero = x0.dtype.type(0)
    s00, s01, s02, s10, s11, s12 = zero, zero, zero, zero, zero, zero
    s20, s21, s22, s30, s31, s32 = zero, zero, zero, zero, zero, zero
    for d in range(len(x0)):
        a0, a1, a2 = x0[d], x1[d], x2[d]
        s00 += w0[d] * a0
        s01 += w0[d] * a1
        s02 += w0[d] * a2
        s10 += w1[d] * a0
        s11 += w1[d] * a1
        s12 += w1[d] * a2
        s20 += w2[d] * a0
        s21 += w2[d] * a1
        s22 += w2[d] * a2
        s30 += w3[d] * a0
        s31 += w3[d] * a1
        s32 += w3[d] * a2
    return (s00, s01, s02), (s10, s11, s12), (s20, s21, s22), (s30, s31, s32)


@compiled
def count_inside(inputs, instances, low, high, vectors, counts):
    """Count, for each of m candidates, the instances whose pre-activation is in their interval.

    inputs: (B, n), instances, low and high: (q,), vectors: (m, n + 1), counts: (m,), added to.
    Always four candidates by three instances, the last of each repeated if need be, so that an
    instance has the same pre-activation whichever others it is multiplied with.
    """
    last, last_instance = len(vectors) - 1, len(instances) - 1
    for j in range(0, len(vectors), 4):
        w0, w1 = vectors[j], vectors[min(j + 1, last)]
        w2, w3 = vectors[min(j + 2, last)], vectors[min(j + 3, last)]
        for p in range(0, len(instances), 3):
            x0 = inputs[instances[p]]
            x1 = inputs[instances[min(p + 1, last_instance)]]
            x2 = inputs[instances[min(p + 2, last_instance)]]
            products = _multiply(w0, w1, w2, w3, x0, x1, x2)
            for a in range(min(4, len(vectors) - j)):
                for b in range(min(3, len(instances) - p)):
                    value = products[a][b] + vectors[j + a, -1]
                    is_inside = (value >= low[p + b]) & (value <= high[p + b])
                    counts[j + a] += np.int64(is_inside)


@compiled_with("reassoc", "contract")
def _multiply_all(inputs, weights, pre_activations):
    """Find a neuron's pre-activations without bias.

    inputs: (B, n), weights: (n + 1,), pre_activations: (B,), written.
    """
    for k in range(len(inputs)):
        row, total = inputs[k], inputs.dtype.type(0)
        for d in range(len(row)):
            total += weights[d] * row[d]
        pre_activations[k] = total


@compiled
def _make_scratch(layer):
    """Return room for a block's open instances and their intervals.

    Three arrays and not one, or compilers cannot see that they do not overlap.
    """
    low = np.empty(_BLOCK, dtype=layer.inputs.dtype)
    return np.empty(_BLOCK, dtype=np.int64), low, np.empty_like(low)


@compiled
def _find_open_in_block(layer, neuron, start, stop, instances, low, high):
    """Find the open instances of a block, counted from its start; see `find_open`."""
    hidden = layer.hidden
    return find_open(
        hidden.outputs, start, layer.targets[start:stop], hidden.outgoing[neuron],
        hidden.activations[neuron, start:stop], hidden.activation, low, high, instances,
    )  # fmt: skip


@compiled
def count_open(layer, neuron):
    """Count the open instances of a neuron."""
    instances, low, high = _make_scratch(layer)
    n_instances, count = len(layer.targets), 0
    for start in range(0, n_instances, _BLOCK):
        stop = min(start + _BLOCK, n_instances)
        n_open, _ = _find_open_in_block(layer, neuron, start, stop, instances, low, high)
        count += n_open
    return count


@compiled
def count_right_with(layer, neuron, offspring, rule, outcome, k, first, last, counts):
    """Count the instances from first to last that are right with each candidate for a neuron.

    The candidates are those of the k-th subpopulation; counts: (m,) int64, written. The last
    instance is not included.
    """
    trials, n_targets = offspring.trials[k], offspring.trials.shape[1]
    targets = outcome.individuals[k, offspring.first_target : offspring.first_target + n_targets]
    instances, low, high = _make_scratch(layer)
    counts[:] = 0
    for start in range(first, last, _BLOCK):
        stop = min(start + _BLOCK, last)
        n_open, n_right = _find_open_in_block(layer, neuron, start, stop, instances, low, high)
        counts += n_right
        inputs, chosen = layer.inputs[start:stop], instances[:n_open]
        count_inside(inputs, chosen, low, high, trials, counts[:n_targets])
        if rule.measures_targets:
            count_inside(inputs, chosen, low, high, targets, counts[n_targets:])


@compiled
def predict_at_ends(layer, neuron, at_least, at_greatest):
    """Find the classes that instances would have at a neuron's least and greatest activation.

    Where they are the same, they are so at every activation in between: logits move along straight
    lines. at_least and at_greatest: (B,) int32, written.
    """
    hidden = layer.hidden
    least, greatest = activation_range(hidden.activation)
    now = hidden.activations[neuron]
    real = now.dtype.type
    shift, moved, largest = np.empty_like(now), np.empty_like(now), np.empty_like(now)
    for end, chosen in ((real(least), at_least), (real(greatest), at_greatest)):
        for k in range(len(now)):
            shift[k] = end - now[k]
        predict_shifted(hidden.outputs, hidden.outgoing[neuron], shift, moved, largest, chosen)


@compiled
def replace_neuron(layer, neuron, individual, start, stop):
    """Give a neuron other weights, (n + 1,), on the instances from start to stop."""
    hidden = layer.hidden
    pre_activations = np.empty(stop - start, dtype=layer.inputs.dtype)
    after = np.empty_like(pre_activations)
    _multiply_all(layer.inputs[start:stop], individual, pre_activations)
    activate(pre_activations, individual[-1], hidden.activation, after)
    now = hidden.activations[neuron, start:stop]
    move_outputs(hidden.outputs, start, hidden.outgoing[neuron], now, after)
    copy(after, now)


@compiled
def sweep_open(layer, offspring, rule, outcome, first_neuron):
    """Measure accuracy, select and move neighbouring neurons, one after the other."""
    n_neurons, n_targets, _ = offspring.trials.shape
    first, last = np.int64(0), len(layer.targets)  # a literal would be compiled for itself
    counts = np.empty(n_targets * (2 if rule.measures_targets else 1), dtype=np.int64)
    for k in range(n_neurons):
        neuron = first_neuron + k
        count_right_with(layer, neuron, offspring, rule, outcome, k, first, last, counts)
        if select(offspring, rule, outcome, k, counts / last) != STAYS:
            replace_neuron(layer, neuron, outcome.representatives[k], first, last)
