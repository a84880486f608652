"""Compiled: a network on one observation.

A step of a simulator may take only microseconds, and each array that Python hands to a kernel takes
a tenth of one. So everything about a network is in one table, a row for each thing.
"""

from __future__ import annotations

import numpy as np

from coevo.engines.kernels.activations import IDENTITY, RELU, SIGMOID, TANH
from coevo.engines.kernels.functions import tanh
from coevo.runtime.jit import compiled

SHAPE, GENES, CENTRE, SUMS, SQUARES, OUTPUTS, _FIRST, _SECOND = range(8)
"""Rows of a table, as long as the longest needs.

SHAPE has the code of the hidden neurons' activation, the number of layers, and the neurons of each
layer, inputs and outputs included. To SUMS and SQUARES an observation's difference from CENTRE and
its square are added. The last two are for activations.
"""

LOW, HIGH, MIDDLE, HALF, IS_SQUASHED = range(8, 13)
"""Rows for a Box of actions: an output o stands for MIDDLE + HALF × o, or × tanh(o) if squashed."""

N_ROWS = 13
WRONG_LENGTH, NOT_FINITE = -1, -2
"""What is returned for a bad observation."""


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
def _respond(table, observation):
    """Run a network (N_ROWS, longest) on an observation (n_inputs,); return 0, or what is bad."""
    shape, genes, outputs = table[SHAPE], table[GENES], table[OUTPUTS]
    activation, n_layers, n_inputs = int(shape[0]), int(shape[1]), int(shape[2])
    if len(observation) != n_inputs:
        return WRONG_LENGTH
    below, above = table[_FIRST], table[_SECOND]
    for d in range(n_inputs):
        below[d] = observation[d]
        difference = below[d] - table[CENTRE, d]
        if not np.isfinite(difference):
            return NOT_FINITE
        table[SUMS, d] += difference
        table[SQUARES, d] += difference * difference
    gene = 0
    for layer in range(n_layers):
        for neuron in range(int(shape[layer + 3])):
            value = 0.0
            for d in range(int(shape[layer + 2])):
                value += genes[gene] * below[d]
                gene += 1
            value += genes[gene]
            gene += 1
            if layer < n_layers - 1:
                above[neuron] = _activate(value, activation)
            else:
                outputs[neuron] = value
        below, above = above, below
    return 0


@compiled
def choose(table, observation):
    """Return the index of the largest output, the first one if tied, or what is bad (below 0)."""
    fault = _respond(table, observation)
    if fault < 0:
        return fault
    outputs, largest = table[OUTPUTS], 0
    for neuron in range(1, int(table[SHAPE, int(table[SHAPE, 1]) + 2])):
        if outputs[neuron] > outputs[largest]:
            largest = neuron
    return largest


@compiled
def steer(table, observation, action):
    """Write numbers within the Box to an action (n_outputs,); return 0, or what is bad."""
    fault = _respond(table, observation)
    if fault < 0:
        return fault
    for d in range(len(action)):
        output = table[OUTPUTS, d]
        if table[IS_SQUASHED, d]:
            output = tanh(output)
        value = table[MIDDLE, d] + table[HALF, d] * output
        action[d] = min(max(value, table[LOW, d]), table[HIGH, d])
    return 0
