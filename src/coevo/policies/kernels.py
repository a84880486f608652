"""Compiled: a network on one observation. A step of a simulator may take only microseconds."""

from __future__ import annotations

import numpy as np

from coevo.engines.kernels.activations import IDENTITY, RELU, SIGMOID, TANH
from coevo.engines.kernels.functions import tanh
from coevo.runtime.jit import compiled


@compiled
def _activate(value, activation):
    if activation == TANH:
        return tanh(value)
    if activation == SIGMOID:
        return 0.5 * tanh(0.5 * value) + 0.5
    if activation == RELU:
        return max(value, 0.0)
    if activation == IDENTITY:
        return value
    return np.sign(value)


@compiled
def respond(genotype, sizes, activation, observation, statistics, scratch, outputs):
    """Run a network on an observation, and add the observation to sums.

    Parameters
    ----------
    genotype : float64 array of shape (n_genes,)
    sizes : integer array of shape (n_layers + 1,)
        Neurons of each layer, inputs and outputs included.
    activation
        Code of the hidden neurons' activation; outputs have none.
    observation : array of shape (n_inputs,)
    statistics : float64 array of shape (3, n_inputs)
        A centre, and sums to which the observation's difference from it and its square are added.
    scratch : float64 array of shape (2, widest layer)
    outputs : float64 array of shape (n_outputs,)
        Written to.

    Returns
    -------
    index of the largest output, the first one if tied; −1 if the observation has another length
    """
    n_inputs = sizes[0]
    if len(observation) != n_inputs:
        return -1
    below, above = scratch[0], scratch[1]
    for d in range(n_inputs):
        below[d] = observation[d]
        difference = below[d] - statistics[0, d]
        statistics[1, d] += difference
        statistics[2, d] += difference * difference
    gene, n_layers = 0, len(sizes) - 1
    for layer in range(n_layers):
        for neuron in range(sizes[layer + 1]):
            value = 0.0
            for d in range(sizes[layer]):
                value += genotype[gene] * below[d]
                gene += 1
            value += genotype[gene]
            gene += 1
            if layer < n_layers - 1:
                above[neuron] = _activate(value, activation)
            else:
                outputs[neuron] = value
        below, above = above, below
    largest = 0
    for neuron in range(1, len(outputs)):
        if outputs[neuron] > outputs[largest]:
            largest = neuron
    return largest


@compiled
def steer(outputs, box):
    """Return numbers within a box for outputs (n_outputs,), of the box's dtype.

    The rows of the box, (5, n_outputs), are low, high, centre, half the width, and whether it is
    squashed. An output o stands for centre + half × o, or centre + half × tanh(o) if squashed.
    """
    values = np.empty(len(outputs), box.dtype)
    for d in range(len(outputs)):
        output = tanh(outputs[d]) if box[4, d] else outputs[d]
        values[d] = min(max(box[2, d] + box[3, d] * output, box[0, d]), box[1, d])
    return values
