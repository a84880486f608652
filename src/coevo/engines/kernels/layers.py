"""Compiled passes through a layer, and how outputs follow one neuron.

Shapes: B instances, C outputs, H neurons of a layer, N of the next one, m candidates.
"""

from __future__ import annotations

import numpy as np

from coevo.engines.kernels.activations import activate
from coevo.runtime.jit import compiled, compiled_with, copy

_BLOCK = 512  # instances, so few that the activations of a layer stay in the cache


@compiled
def move_outputs(outputs, start, slopes, before, after):
    """Move outputs along as one neuron's activations go from before to after, both (b,).

    outputs: (C, B), changed from instance start on; slopes: (C,) the neuron's outgoing weights.
    """
    for c in range(len(slopes)):
        output, slope = outputs[c, start : start + len(before)], slopes[c]
        for k in range(len(before)):
            output[k] += slope * (after[k] - before[k])


@compiled
def multiply_in_order(matrix, activations, above):
    """Find the next layer's pre-activations, adding up in one order for every instance.

    A BLAS product adds up in another order at the edges of its blocks, so that instances with the
    same activations may get different outputs. Scores that tie have to stay tied.

    matrix: (N, H + 1), activations: (m, H, B), above: (m, N, B), written.
    """
    for j in range(len(activations)):
        for i in range(len(matrix)):
            total = above[j, i]
            total[:] = matrix[i, -1]
            for h in range(activations.shape[1]):
                weight, row = matrix[i, h], activations[j, h]
                for k in range(len(total)):
                    total[k] += weight * row[k]


@compiled
def _shift_layer(pre_activations, slopes, shift, start, moved):
    """Write shifted pre-activations from instance start on, of (H, B), into (H, size)."""
    here = slice(start, min(start + moved.shape[1], pre_activations.shape[1]))
    shift = shift[here]
    for h in range(len(pre_activations)):
        row, into, slope = pre_activations[h, here], moved[h], slopes[h]
        for k in range(len(shift)):
            into[k] = row[k] + slope * shift[k]


@compiled_with("contract")
def _multiply_by_two(v, w, activations, bias_v, bias_w, total_v, total_w):
    """Find two neurons' pre-activations.

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
            total_v[k] = (((total_v[k] + v0 * x0[k]) + v1 * x1[k]) + v2 * x2[k]) + v3 * x3[k]
            total_w[k] = (((total_w[k] + w0 * x0[k]) + w1 * x1[k]) + w2 * x2[k]) + w3 * x3[k]


@compiled
def run_shifted_layer(pre_activations, slopes, shifts, activation, matrix, above):
    """Find the next layer's pre-activations for candidates that shift a layer's.

    Candidate j has the pre-activations s + slopes ⊗ shifts_j, which are formed some instances at a
    time, activated, multiplied and forgotten while they are in the cache.

    pre_activations: (H, B), slopes: (H,), shifts: (m, B), matrix: (N, H + 1), above: (m, N, B),
    written.
    """
    n_neurons, n_instances = pre_activations.shape
    n_rows = -(-n_neurons // 4) * 4  # those beyond the last neuron have weight 0
    weights = np.zeros((len(matrix), n_rows), dtype=pre_activations.dtype)
    for i in range(len(matrix)):
        copy(matrix[i, :-1], weights[i])
    size = -(-n_instances // -(-n_instances // _BLOCK))  # blocks of one size, or nearly so
    moved = np.zeros((n_rows, size), dtype=pre_activations.dtype)
    activations = np.empty_like(moved)
    total, other = np.empty_like(moved[0]), np.empty_like(moved[0])
    no_bias, last = pre_activations.dtype.type(0), len(matrix) - 1
    for j in range(len(shifts)):
        for start in range(0, n_instances, size):
            here = slice(start, min(start + size, n_instances))
            _shift_layer(pre_activations, slopes, shifts[j], start, moved)
            activate(moved.reshape(-1), no_bias, activation, activations.reshape(-1))
            for i in range(0, len(matrix), 2):
                i2 = min(i + 1, last)
                _multiply_by_two(
                    weights[i], weights[i2], activations, matrix[i, -1], matrix[i2, -1],
                    total, other,
                )  # fmt: skip
                copy(total[: here.stop - start], above[j, i, here])
                copy(other[: here.stop - start], above[j, i2, here])
