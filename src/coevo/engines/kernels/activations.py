"""Compiled activation functions; shapes: B instances."""

from __future__ import annotations

import numpy as np

from coevo.engines.kernels.functions import tanh
from coevo.runtime.jit import compiled

TANH, SIGMOID, RELU, SIGN, IDENTITY = range(5)
ACTIVATION_CODES = {
    "tanh": TANH, "sigmoid": SIGMOID, "relu": RELU, "sign": SIGN, "identity": IDENTITY,
}  # fmt: skip
BOUNDED = (TANH, SIGMOID, SIGN)


@compiled
def activate(pre_activations, bias, activation, activations):
    """Write ψ of the pre-activations plus a bias; both arrays: (B,)."""
    real = pre_activations.dtype.type
    half, zero = real(0.5), real(0)
    if activation == TANH:
        for k in range(len(pre_activations)):
            activations[k] = tanh(pre_activations[k] + bias)
    elif activation == SIGMOID:
        for k in range(len(pre_activations)):
            activations[k] = half * tanh(half * (pre_activations[k] + bias)) + half
    elif activation == RELU:
        for k in range(len(pre_activations)):
            activations[k] = max(pre_activations[k] + bias, zero)
    elif activation == SIGN:
        for k in range(len(pre_activations)):
            activations[k] = np.sign(pre_activations[k] + bias)
    else:
        for k in range(len(pre_activations)):
            activations[k] = pre_activations[k] + bias


@compiled
def activate_in_place(values, activation):
    """Turn pre-activations, (B,), into ψ of them, for tanh and sigmoid.

    `activate` with one array as both arguments would not use SIMD: the compiler sees two arrays
    that may overlap.
    """
    half = values.dtype.type(0.5)
    if activation == TANH:
        for k in range(len(values)):
            values[k] = tanh(values[k])
    else:  # SIGMOID
        for k in range(len(values)):
            values[k] = half * tanh(half * values[k]) + half


@compiled
def activation_range(activation):
    """Return the least and the greatest activation that there is."""
    if activation in (TANH, SIGN):
        return -1.0, 1.0
    if activation == SIGMOID:
        return 0.0, 1.0
    return (0.0 if activation == RELU else -np.inf), np.inf
