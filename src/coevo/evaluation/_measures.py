"""Compiled measures of a neuron's candidates: the outputs are formed, measured and forgotten.

With everything else fixed, output c of instance k is outputs_ck + slopes_c (ψ(s) − now_k) for a
candidate whose sum there is s. Each loop forms these numbers for one candidate at a time, an output
after the other, and adds up what the measure makes of them, so nothing of size candidates ×
instances × outputs is ever stored. The formulas are those of `coevo.fitness`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coevo.compiling import compiled
from coevo.evaluation._kernels import activate
from coevo.network import Array


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
    row, bias = candidates.sums[j], candidates.biases[j]
    for k in range(len(shift)):
        shift[k] = activate(row[k] + bias, candidates.activation) - candidates.now[k]


@compiled
def count_classes(candidates, targets, weights, first, last, counts):
    """Count true classes by predicted classes, for the candidates from first to last.

    targets: (B,) int32, weights: (B,), counts: (m, C, C) float64, written.
    """
    n_outputs, n_instances = candidates.outputs.shape
    shift, largest = np.empty_like(candidates.now), np.empty_like(candidates.now)
    chosen = np.empty(n_instances, dtype=np.int32)
    for j in range(first, last):
        _find_shift(candidates, j, shift)
        largest[:] = -np.inf
        for c in range(n_outputs):
            output, slope = candidates.outputs[c], candidates.slopes[c]
            for k in range(n_instances):
                moved = output[k] + slope * shift[k]
                is_larger = moved > largest[k]
                largest[k] = moved if is_larger else largest[k]
                chosen[k] = np.int32(c) if is_larger else chosen[k]
        counts[j] = 0
        for k in range(n_instances):
            counts[j, targets[k], chosen[k]] += weights[k]


@compiled
def sum_cross_entropy(candidates, targets, weights, first, last, measured):
    """Add up the log-probabilities of the right classes, for the candidates from first to last.

    targets: (B,) int32, weights: (B,) that sum to 1, measured: (m,) float64, written.
    """
    n_outputs, n_instances = candidates.outputs.shape
    shift, largest = np.empty_like(candidates.now), np.empty_like(candidates.now)
    total = np.empty_like(candidates.now)
    for j in range(first, last):
        _find_shift(candidates, j, shift)
        largest[:] = -np.inf
        for c in range(n_outputs):
            output, slope = candidates.outputs[c], candidates.slopes[c]
            for k in range(n_instances):
                moved = output[k] + slope * shift[k]
                largest[k] = moved if moved > largest[k] else largest[k]
        total[:] = 0
        for c in range(n_outputs):
            output, slope = candidates.outputs[c], candidates.slopes[c]
            for k in range(n_instances):
                total[k] += math.exp(output[k] + slope * shift[k] - largest[k])
        fitness = 0.0
        for k in range(n_instances):
            y = targets[k]
            own = candidates.outputs[y, k] + candidates.slopes[y] * shift[k]
            fitness += weights[k] * (own - largest[k] - math.log(total[k]))
        measured[j] = fitness


@compiled
def sum_margins(candidates, targets, weights, limit, first, last, measured):
    """Add up the clipped margins, for the candidates from first to last; see above."""
    n_outputs, n_instances = candidates.outputs.shape
    shift, rival = np.empty_like(candidates.now), np.empty_like(candidates.now)
    for j in range(first, last):
        _find_shift(candidates, j, shift)
        rival[:] = -np.inf
        for c in range(n_outputs):
            output, slope, place = candidates.outputs[c], candidates.slopes[c], np.int32(c)
            for k in range(n_instances):
                moved = output[k] + slope * shift[k]
                is_stronger = (moved > rival[k]) & (targets[k] != place)
                rival[k] = moved if is_stronger else rival[k]
        fitness = 0.0
        for k in range(n_instances):
            y = targets[k]
            own = candidates.outputs[y, k] + candidates.slopes[y] * shift[k]
            fitness += weights[k] * min(limit, own - rival[k])
        measured[j] = fitness


@compiled
def sum_errors(candidates, targets, weights, is_squared, worths, first, last, measured):
    """Add up minus the squared or absolute errors, for the candidates from first to last.

    targets: (B, C), weights: (B,) that sum to 1, worths: (C,), measured: (m,) float64, written.
    """
    n_outputs, n_instances = candidates.outputs.shape
    shift = np.empty_like(candidates.now)
    for j in range(first, last):
        _find_shift(candidates, j, shift)
        fitness = 0.0
        for c in range(n_outputs):
            output, slope, worth = candidates.outputs[c], candidates.slopes[c], worths[c]
            for k in range(n_instances):
                error = abs(output[k] + slope * shift[k] - targets[k, c])
                fitness -= worth * weights[k] * (error * error if is_squared else error)
        measured[j] = fitness / n_outputs
