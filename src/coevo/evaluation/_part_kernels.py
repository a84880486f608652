"""Compiled loops over the candidates of one neuron's part; shapes as in `_kernels`."""

from __future__ import annotations

import numpy as np

from coevo.compiling import compiled
from coevo.evaluation._kernels import (
    hidden_intervals,
    measure_inside,
    output_intervals,
)


@compiled
def measure_hidden(sums, biases, outputs, targets, weights, now, activation, measured):
    """Find the part of right instances for m candidates of a neuron of the last hidden layer.

    sums: (m, B), biases: (m,), outputs: (C, B), targets: (B,) int32, weights: (C,) from the neuron
    to the outputs, now: (B,) its present activations, measured: (m,) float64, written.
    """
    low, high = np.empty_like(now), np.empty_like(now)
    hidden_intervals(outputs, targets, weights, now, activation, low, high)
    measure_inside(sums, biases, low, high, measured)


@compiled
def measure_output(sums, biases, outputs, targets, c, measured):
    """Find the part of right instances for m candidates of output neuron c; see above."""
    low, high = np.empty_like(outputs[c]), np.empty_like(outputs[c])
    output_intervals(outputs, targets, c, low, high)
    measure_inside(sums, biases, low, high, measured)
