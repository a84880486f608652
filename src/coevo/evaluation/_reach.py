"""Compiled sweeps that multiply only where a neuron of the last hidden layer makes a difference.

One neuron moves the outputs by its outgoing weights times its activation, which most activation
functions bound. Most instances are classified right, or wrong, by a margin that it cannot make up:
only for the few that are left open does a candidate's sum matter. So a candidate is multiplied with
those alone, and with all instances just once it has come to represent its neuron.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo.compiling import compiled, compiled_with, copy
from coevo.evaluation._kernels import (
    activate,
    activation_range,
    choose_first,
    choose_larger,
    find_open,
)
from coevo.network import Array
from coevo.selection import STAYS, select

_BLOCK = 512  # instances, so few that what is known of them stays in the fast memory


class LastHidden(NamedTuple):
    """The last hidden layer of the global solution on some instances.

    Attributes
    ----------
    inputs : array of shape (B, n)
        What the layer sees.
    activations : array of shape (H, B), moved along
    outgoing : array of shape (H, C)
        The weights from the layer to the outputs.
    outputs : array of shape (C, B), moved along
    targets : int32 array of shape (B,)
    activation
        Code of the activation function.
    """

    inputs: Array
    activations: Array
    outgoing: Array
    outputs: Array
    targets: Array
    activation: int


@compiled_with("reassoc", "contract")
def _multiply(w0, w1, w2, w3, x0, x1, x2):
    """Return the sums of four candidates on three instances.

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
def _count_inside(inputs, instances, low, high, vectors, counts):
    """Count, for each of m candidates, the instances whose sum lies in their interval.

    inputs: (B, n), instances, low and high: (q,), vectors: (m, n + 1), counts: (m,), added to. Sums
    are always taken four by three, the last of each repeated if need be, so that an instance has
    the same sum whatever its company.
    """
    last, last_instance = len(vectors) - 1, len(instances) - 1
    for j in range(0, len(vectors), 4):
        w0, w1 = vectors[j], vectors[min(j + 1, last)]
        w2, w3 = vectors[min(j + 2, last)], vectors[min(j + 3, last)]
        for p in range(0, len(instances), 3):
            x0 = inputs[instances[p]]
            x1 = inputs[instances[min(p + 1, last_instance)]]
            x2 = inputs[instances[min(p + 2, last_instance)]]
            sums = _multiply(w0, w1, w2, w3, x0, x1, x2)
            for a in range(min(4, len(vectors) - j)):
                for b in range(min(3, len(instances) - p)):
                    total = sums[a][b] + vectors[j + a, -1]
                    is_right = (total >= low[p + b]) & (total <= high[p + b])
                    counts[j + a] += np.int64(is_right)


@compiled_with("reassoc", "contract")
def _sum_up(inputs, weights, sums):
    """Find a neuron's sums without bias; inputs: (B, n), weights: (n + 1,), sums: (B,), written."""
    for k in range(len(inputs)):
        row, total = inputs[k], inputs.dtype.type(0)
        for d in range(len(row)):
            total += weights[d] * row[d]
        sums[k] = total


@compiled
def _scratch(layer):
    """Return room for a block's open instances and their intervals.

    Three arrays and not one, or compilers cannot see that they do not overlap.
    """
    low = np.empty(_BLOCK, dtype=layer.outputs.dtype)
    return np.empty(_BLOCK, dtype=np.int64), low, np.empty_like(low)


@compiled
def _find_open(layer, neuron, start, stop, instances, low, high):
    """Find the open instances of a block, counted from its start; see `find_open`."""
    return find_open(
        layer.outputs, start, layer.targets[start:stop], layer.outgoing[neuron],
        layer.activations[neuron, start:stop], layer.activation, low, high, instances,
    )  # fmt: skip


@compiled
def count_open(layer, neuron):
    """Count the instances that are in the reach of a neuron."""
    instances, low, high = _scratch(layer)
    n_instances, count = len(layer.targets), 0
    for start in range(0, n_instances, _BLOCK):
        stop = min(start + _BLOCK, n_instances)
        n_open, _ = _find_open(layer, neuron, start, stop, instances, low, high)
        count += n_open
    return count


@compiled
def count_right(layer, neuron, contest, k, first, last, counts):
    """Count the instances from first to last that are right with each candidate for a neuron.

    contest and k: its candidates are those of the k-th subpopulation there; counts: (m,) int64,
    written. The last instance is not included.
    """
    trials, n_targets = contest.trials[k], contest.trials.shape[1]
    targets = contest.individuals[k, contest.first_target : contest.first_target + n_targets]
    instances, low, high = _scratch(layer)
    counts[:] = 0
    for start in range(first, last, _BLOCK):
        stop = min(start + _BLOCK, last)
        n_open, n_right = _find_open(layer, neuron, start, stop, instances, low, high)
        counts += n_right
        inputs, chosen = layer.inputs[start:stop], instances[:n_open]
        _count_inside(inputs, chosen, low, high, trials, counts[:n_targets])
        if contest.measures_targets:
            _count_inside(inputs, chosen, low, high, targets, counts[n_targets:])


@compiled
def predict_at_ends(layer, neuron, at_least, at_greatest):
    """Find the classes that instances would have at a neuron's least and greatest activation.

    Where they are the same, they are so at every activation in between: outputs move along straight
    lines. at_least and at_greatest: (B,) int32, written.
    """
    least, greatest = activation_range(layer.activation)
    now, slopes = layer.activations[neuron], layer.outgoing[neuron]
    real = now.dtype.type
    moved, largest = np.empty_like(now), np.empty_like(now)
    for end, chosen in ((real(least), at_least), (real(greatest), at_greatest)):
        for c in range(len(slopes)):
            output, slope = layer.outputs[c], slopes[c]
            for k in range(len(now)):
                moved[k] = output[k] + slope * (end - now[k])
            if c == 0:
                choose_first(moved, largest, chosen)
            else:
                choose_larger(moved, np.int32(c), largest, chosen)


@compiled
def move(layer, neuron, individual, start, stop):
    """Give a neuron other weights, (n + 1,), on the instances from start to stop."""
    sums = np.empty(stop - start, dtype=layer.outputs.dtype)
    after = np.empty_like(sums)
    _sum_up(layer.inputs[start:stop], individual, sums)
    activate(sums, individual[-1], layer.activation, after)
    now = layer.activations[neuron, start:stop]
    for c in range(len(layer.outputs)):
        output, slope = layer.outputs[c, start:stop], layer.outgoing[neuron, c]
        for k in range(len(now)):
            output[k] += slope * (after[k] - now[k])
    copy(after, now)


@compiled
def sweep(layer, contest, first_neuron):
    """Measure, select and move neighbouring neurons, one after the other."""
    n_neurons, n_targets, _ = contest.trials.shape
    first, last = np.int64(0), len(layer.targets)  # a literal would be compiled for itself
    counts = np.empty(n_targets * (2 if contest.measures_targets else 1), dtype=np.int64)
    for k in range(n_neurons):
        count_right(layer, first_neuron + k, contest, k, first, last, counts)
        if select(contest, k, counts / last) != STAYS:
            move(layer, first_neuron + k, contest.representatives[k], first, last)
