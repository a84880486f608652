"""Compiled sweeps: measure, select and move neurons of a layer, one after the other.

They make the decisions of the loop in `core.search`. Shapes: B instances, C outputs, H hidden
neurons, m candidates of each of k neurons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.selection import IS_MEAN, NOT_STAGED, STAYS, select
from coevo.engines.kernels.activations import IDENTITY, activate
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.layers import move_outputs
from coevo.engines.kernels.metrics import measure_candidates
from coevo.runtime.jit import compiled, copy


class LastHidden(NamedTuple):
    """The last hidden layer of the global solution on some instances.

    Attributes
    ----------
    activations : array of shape (H, B), moved along
    outgoing : array of shape (H, C)
        The weights from the layer to the outputs.
    outputs : array of shape (C, B), moved along
    activation
        Code of the activation function.
    """

    activations: Array
    outgoing: Array
    outputs: Array
    activation: int


@compiled
def _find_chosen(pre_activations, wins, chosen, row):
    """Write the pre-activations without bias of a neuron's new representative into row, (B,).

    pre_activations: (m, B) of the trials, then of the targets; wins: (NP,), where a trial won.
    """
    if chosen != IS_MEAN:
        copy(pre_activations[chosen], row)
        return
    # Linear in the weights: those of the mean are the mean of the survivors'.
    n_targets = len(pre_activations) // 2
    row[:] = 0
    for j in range(n_targets):
        survivor = pre_activations[j if wins[j] else n_targets + j]
        for k in range(len(row)):
            row[k] += survivor[k]
    for k in range(len(row)):
        row[k] /= n_targets


@compiled
def sweep_hidden(metric, pre_activations, biases, layer, first_neuron, offspring, rule, outcome):
    """Sweep over k neighbouring neurons of the last hidden layer.

    pre_activations: (k, m, B) without bias, biases: (k, m). Stops early at a neuron whose new
    representative is not among the candidates and has still to be moved; returns how many neurons
    are done.
    """
    n_neurons, n_candidates, _ = pre_activations.shape
    row, after = np.empty_like(layer.outputs[0]), np.empty_like(layer.outputs[0])
    measured, start = np.empty(n_candidates), np.int64(0)
    for k in range(n_neurons):
        slopes = layer.outgoing[first_neuron + k]
        now = layer.activations[first_neuron + k]
        candidates = Candidates(
            pre_activations[k], biases[k], layer.outputs, slopes, now, layer.activation, HIDDEN
        )
        measure_candidates(metric, candidates, measured)
        chosen = select(offspring, rule, outcome, k, measured)
        if chosen == NOT_STAGED:
            return k
        if chosen != STAYS:
            _find_chosen(pre_activations[k], outcome.wins[k], chosen, row)
            activate(row, outcome.representatives[k, -1], layer.activation, after)
            move_outputs(layer.outputs, start, slopes, now, after)
            copy(after, now)
    return n_neurons


@compiled
def sweep_outputs(metric, pre_activations, biases, outputs, first_neuron, offspring, rule, outcome):
    """Sweep over output neurons; outputs: (C, B), moved along. See `sweep_hidden`."""
    n_neurons, n_candidates, _ = pre_activations.shape
    row, slopes = np.empty_like(outputs[0]), np.zeros(len(outputs), dtype=outputs.dtype)
    measured = np.empty(n_candidates)
    for k in range(n_neurons):
        neuron = first_neuron + k
        output = outputs[neuron]
        slopes[:] = 0
        slopes[neuron] = 1
        candidates = Candidates(
            pre_activations[k], biases[k], outputs, slopes, output, IDENTITY, neuron
        )
        measure_candidates(metric, candidates, measured)
        chosen = select(offspring, rule, outcome, k, measured)
        if chosen == NOT_STAGED:
            return k
        if chosen != STAYS:
            _find_chosen(pre_activations[k], outcome.wins[k], chosen, row)
            bias = outcome.representatives[k, -1]
            for b in range(len(row)):
                output[b] = row[b] + bias
    return n_neurons
