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
def respond(genotype, sizes, activation, observation, centre, sums, squares, scratch, outputs):
    """Run a network on an observation, and add the observation to sums.

    Parameters
    ----------
    genotype : float64 array of shape (n_genes,)
    sizes : integer array of shape (n_layers + 1,)
        Neurons of each layer, inputs and outputs included.
    activation
        Code of the hidden neurons' activation; outputs have none.
    observation : array of shape (n_inputs,)
    centre, sums, squares : float64 arrays of shape (n_inputs,)
        The observation's difference from `centre` and its square are added.
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
        difference = below[d] - centre[d]
        sums[d] += difference
        squares[d] += difference * difference
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
def steer(outputs, centre, half, squashed, low, high):
    """Return numbers within [low, high] for outputs; all arrays: (n_outputs,).

    An output o stands for centre + half × o, or centre + half × tanh(o) where it is squashed.
    """
    values = np.empty(len(outputs))
    for d in range(len(outputs)):
        output = tanh(outputs[d]) if squashed[d] else outputs[d]
        values[d] = min(max(centre[d] + half[d] * output, low[d]), high[d])
    return values
