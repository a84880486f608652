"""Compiled sweeps: measure, select and move neurons of a layer, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo.compiling import compiled
from coevo.evaluation._kernels import (
    IDENTITY,
    activate,
    hidden_intervals,
    measure_inside,
    output_intervals,
)
from coevo.evaluation._measures import (
    ACCURACY,
    CROSS_ENTROPY,
    Candidates,
    Measure,
    sum_cross_entropy,
    sum_margins,
)
from coevo.network import Array
from coevo.selection import IS_MEAN, NOT_STAGED, STAYS, select


class Sweep(NamedTuple):
    """What a sweep over neighbouring neurons of one layer works on.

    Attributes
    ----------
    sums : array of shape (parts, k, m, B)
        Sums without bias of all candidates of k neurons.
    biases : array of shape (parts, k, m)
    outputs : array of shape (C, B), moved along
        The global solution's outputs.
    targets : int32 array of shape (B,)
    weights : array of shape (B,)
        How much each instance counts; they sum to 1.
    measure
        What is measured.
    first_neuron
        Place of the first of the k neurons in its layer.
    first
        Place of the first of the k neurons in the contest.
    """

    sums: Array
    biases: Array
    outputs: Array
    targets: Array
    weights: Array
    measure: Measure
    first_neuron: int
    first: int


@compiled
def _measure_by_intervals(sweep, k, low, high, measured):
    n_parts, _, n_candidates, _ = sweep.sums.shape
    for part in range(n_parts):
        measure_inside(
            sweep.sums[part, k], sweep.biases[part, k], low, high,
            measured[part * n_candidates : (part + 1) * n_candidates],
        )  # fmt: skip


@compiled
def _measure_by_outputs(sweep, k, slopes, now, activation, measured):
    n_parts, _, n_candidates, _ = sweep.sums.shape
    for part in range(n_parts):
        candidates = Candidates(
            sweep.sums[part, k], sweep.biases[part, k], sweep.outputs, slopes, now, activation
        )
        into = measured[part * n_candidates : (part + 1) * n_candidates]
        if sweep.measure.kind == CROSS_ENTROPY:
            sum_cross_entropy(candidates, sweep.targets, sweep.weights, 0, n_candidates, into)
        else:
            sum_margins(
                candidates, sweep.targets, sweep.weights, sweep.measure.limit, 0, n_candidates, into
            )


@compiled
def _find_sums(sweep, contest, k, candidate, sums):
    """Find the sums, without bias, of what represents the k-th neuron now."""
    n_candidates = sweep.sums.shape[2]
    if candidate != IS_MEAN:
        part, j = divmod(candidate, n_candidates)
        sums[:] = sweep.sums[part, k, j]
        return
    # Sums are linear in the weights: those of the mean are the mean of the survivors'.
    sums[:] = 0
    for j in range(n_candidates):
        part = 0 if contest.wins[sweep.first + k, j] else 1
        row = sweep.sums[part, k, j]
        for b in range(len(sums)):
            sums[b] += row[b]
    for b in range(len(sums)):
        sums[b] /= n_candidates


@compiled
def sweep_hidden(sweep, contest, activations, next_matrix, activation):
    """Sweep over neurons of the last hidden layer.

    activations: (H, B) of the layer, next_matrix: (C, H + 1) of the outputs. Stops early at a
    neuron whose new representative is not among the candidates and has still to be moved; returns
    how many neurons are done.
    """
    n_parts, n_neurons, n_candidates, n_instances = sweep.sums.shape
    low, high = np.empty_like(sweep.outputs[0]), np.empty_like(sweep.outputs[0])
    sums, after = np.empty_like(low), np.empty_like(low)
    measured = np.empty(n_parts * n_candidates)
    for k in range(n_neurons):
        neuron = sweep.first_neuron + k
        slopes, now = np.ascontiguousarray(next_matrix[:, neuron]), activations[neuron]
        if sweep.measure.kind == ACCURACY:
            hidden_intervals(sweep.outputs, sweep.targets, slopes, now, activation, low, high)
            _measure_by_intervals(sweep, k, low, high, measured)
        else:
            _measure_by_outputs(sweep, k, slopes, now, activation, measured)
        candidate = select(contest, sweep.first + k, measured)
        if candidate == NOT_STAGED:
            return k
        if candidate != STAYS:
            _find_sums(sweep, contest, k, candidate, sums)
            activate(sums, contest.representatives[sweep.first + k, -1], activation, after)
            for c in range(len(slopes)):
                output, slope = sweep.outputs[c], slopes[c]
                for b in range(n_instances):
                    output[b] += slope * (after[b] - now[b])
            now[:] = after
    return n_neurons


@compiled
def sweep_outputs(sweep, contest):
    """Sweep over output neurons; see `sweep_hidden`."""
    n_parts, n_neurons, n_candidates, _ = sweep.sums.shape
    low, high = np.empty_like(sweep.outputs[0]), np.empty_like(sweep.outputs[0])
    sums = np.empty_like(sweep.outputs[0])
    slopes = np.zeros(len(sweep.outputs), dtype=sweep.outputs.dtype)
    measured = np.empty(n_parts * n_candidates)
    for k in range(n_neurons):
        neuron = sweep.first_neuron + k
        if sweep.measure.kind == ACCURACY:
            output_intervals(sweep.outputs, sweep.targets, neuron, low, high)
            _measure_by_intervals(sweep, k, low, high, measured)
        else:
            slopes[:] = 0
            slopes[neuron] = 1
            _measure_by_outputs(sweep, k, slopes, sweep.outputs[neuron], IDENTITY, measured)
        candidate = select(contest, sweep.first + k, measured)
        if candidate == NOT_STAGED:
            return k
        if candidate != STAYS:
            _find_sums(sweep, contest, k, candidate, sums)
            sweep.outputs[neuron] = sums + contest.representatives[sweep.first + k, -1]
    return n_neurons
