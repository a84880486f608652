"""Compiled sweeps: measure, select and move neurons of a layer, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo.compiling import chosen_by_type, compiled, copy
from coevo.evaluation._kernels import (
    activate,
    hidden_intervals,
    measure_inside,
    output_intervals,
)
from coevo.evaluation._measures import (
    GRADED,
    AccuracyOn,
    Candidates,
    Measure,
    measure_candidates,
)
from coevo.network import Array
from coevo.selection import IS_MEAN, NOT_STAGED, STAYS, select


class Sweep(NamedTuple):
    """What a sweep over neighbouring neurons of one layer works on.

    Attributes
    ----------
    sums : array of shape (parts, neurons, m, B)
        Sums without bias of all candidates; those of the k neurons begin at first_held.
    biases : array of shape (parts, k, m)
    outputs : array of shape (C, B), moved along
        The global solution's outputs.
    measure
        What is measured, on these instances.
    activation
        Code of the neurons' activation function; identity for outputs.
    first_held
        Place of the first of the k neurons in the sums.
    first_neuron
        Its place in its layer.
    first
        Its place in the contest.
    """

    sums: Array
    biases: Array
    outputs: Array
    measure: Measure
    activation: int
    first_held: int
    first_neuron: int
    first: int


@compiled
def _measure_inside(sweep, k, low, high, measured):
    n_parts, _, n_candidates = sweep.biases.shape
    for part in range(n_parts):
        measure_inside(
            sweep.sums[part, sweep.first_held + k], sweep.biases[part, k], low, high,
            measured[part * n_candidates : (part + 1) * n_candidates],
        )  # fmt: skip


@compiled
def _measure_hidden_by_intervals(measure, sweep, k, slopes, now, measured):
    low, high = np.empty_like(now), np.empty_like(now)
    hidden_intervals(sweep.outputs, measure.targets, slopes, now, sweep.activation, low, high)
    _measure_inside(sweep, k, low, high, measured)


@compiled
def _measure_output_by_intervals(measure, sweep, k, neuron, measured):
    low, high = np.empty_like(sweep.outputs[0]), np.empty_like(sweep.outputs[0])
    output_intervals(sweep.outputs, measure.targets, neuron, low, high)
    _measure_inside(sweep, k, low, high, measured)


@compiled
def _measure_by_outputs(measure, sweep, k, slopes, now, measured):
    n_parts, _, n_candidates = sweep.biases.shape
    for part in range(n_parts):
        sums, biases = sweep.sums[part, sweep.first_held + k], sweep.biases[part, k]
        candidates = Candidates(sums, biases, sweep.outputs, slopes, now, sweep.activation)
        into = measured[part * n_candidates : (part + 1) * n_candidates]
        measure_candidates(measure, candidates, into)


@compiled
def _measure_output_by_outputs(measure, sweep, k, neuron, measured):
    slopes = np.zeros(len(sweep.outputs), dtype=sweep.outputs.dtype)
    slopes[neuron] = 1
    _measure_by_outputs(measure, sweep, k, slopes, sweep.outputs[neuron], measured)


_measure_hidden = chosen_by_type(
    {AccuracyOn: _measure_hidden_by_intervals} | dict.fromkeys(GRADED, _measure_by_outputs)
)
_measure_output = chosen_by_type(
    {AccuracyOn: _measure_output_by_intervals} | dict.fromkeys(GRADED, _measure_output_by_outputs)
)


@compiled
def _find_sums(sweep, contest, k, candidate, sums):
    """Find the sums, without bias, of what represents the k-th neuron now."""
    n_candidates, held = sweep.biases.shape[2], sweep.first_held + k
    if candidate != IS_MEAN:
        part, j = divmod(candidate, n_candidates)
        copy(sweep.sums[part, held, j], sums)
        return
    # Sums are linear in the weights: those of the mean are the mean of the survivors'.
    sums[:] = 0
    for j in range(n_candidates):
        part = 0 if contest.wins[sweep.first + k, j] else 1
        row = sweep.sums[part, held, j]
        for b in range(len(sums)):
            sums[b] += row[b]
    for b in range(len(sums)):
        sums[b] /= n_candidates


@compiled
def sweep_hidden(sweep, contest, activations, next_matrix):
    """Sweep over neurons of the last hidden layer.

    activations: (H, B) of the layer, next_matrix: (C, H + 1) of the outputs. Stops early at a
    neuron whose new representative is not among the candidates and has still to be moved; returns
    how many neurons are done.
    """
    n_parts, n_neurons, n_candidates = sweep.biases.shape
    sums, after = np.empty_like(activations[0]), np.empty_like(activations[0])
    measured = np.empty(n_parts * n_candidates)
    for k in range(n_neurons):
        neuron = sweep.first_neuron + k
        slopes, now = np.ascontiguousarray(next_matrix[:, neuron]), activations[neuron]
        _measure_hidden(sweep.measure, sweep, k, slopes, now, measured)
        candidate = select(contest, sweep.first + k, measured)
        if candidate == NOT_STAGED:
            return k
        if candidate != STAYS:
            _find_sums(sweep, contest, k, candidate, sums)
            activate(sums, contest.representatives[sweep.first + k, -1], sweep.activation, after)
            for c in range(len(slopes)):
                output, slope = sweep.outputs[c], slopes[c]
                for b in range(len(output)):
                    output[b] += slope * (after[b] - now[b])
            copy(after, now)
    return n_neurons


@compiled
def sweep_outputs(sweep, contest):
    """Sweep over output neurons; see `sweep_hidden`."""
    n_parts, n_neurons, n_candidates = sweep.biases.shape
    sums = np.empty_like(sweep.outputs[0])
    measured = np.empty(n_parts * n_candidates)
    for k in range(n_neurons):
        neuron = sweep.first_neuron + k
        _measure_output(sweep.measure, sweep, k, neuron, measured)
        candidate = select(contest, sweep.first + k, measured)
        if candidate == NOT_STAGED:
            return k
        if candidate != STAYS:
            _find_sums(sweep, contest, k, candidate, sums)
            output, bias = sweep.outputs[neuron], contest.representatives[sweep.first + k, -1]
            for b in range(len(output)):
                output[b] = sums[b] + bias
    return n_neurons
