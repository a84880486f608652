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
from coevo.runtime.jit import compiled, copy, fill


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
    fill(row, row.dtype.type(0))
    for j in range(n_targets):
        survivor = pre_activations[j if wins[j] else n_targets + j]
        for k in range(len(row)):
            row[k] += survivor[k]
    for k in range(len(row)):
        row[k] /= n_targets


@compiled
def sweep(
    metric, pre_activations, biases, layer, first_neuron, are_outputs, offspring, rule, outcome
):
    """Sweep over k neighbouring neurons of the last hidden layer or, if they are, output neurons.

    pre_activations: (k, m, B) without bias, biases: (k, m). Stops early at a neuron whose new
    representative is not among the candidates and has still to be moved; returns how many neurons
    are done.
    """
    n_neurons, n_candidates, _ = pre_activations.shape
    outputs = layer.outputs
    row, after = np.empty_like(outputs[0]), np.empty_like(outputs[0])
    measured, start = np.empty(n_candidates), np.int64(0)
    own, zero = np.empty(len(outputs), dtype=outputs.dtype), outputs.dtype.type(0)
    for k in range(n_neurons):
        neuron = first_neuron + k
        if are_outputs:
            fill(own, zero)
            own[neuron] = 1
            slopes, now, activation, output = own, outputs[neuron], IDENTITY, neuron
        else:
            slopes, now = layer.outgoing[neuron], layer.activations[neuron]
            activation, output = layer.activation, HIDDEN
        candidates = Candidates(
            pre_activations[k], biases[k], outputs, slopes, now, activation, output
        )
        measure_candidates(metric, candidates, measured)
        chosen = select(offspring, rule, outcome, k, measured)
        if chosen == NOT_STAGED:
            return k
        if chosen != STAYS:
            _find_chosen(pre_activations[k], outcome.wins[k], chosen, row)
            activate(row, outcome.representatives[k, -1], activation, after)
            if not are_outputs:
                move_outputs(outputs, start, slopes, now, after)
            copy(after, now)
    return n_neurons
