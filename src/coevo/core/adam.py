"""Adam's step sizes (Kingma and Ba, 2015) for neurons, in coordinates of standardised inputs.

With z = (x − centre) × factor, a neuron of weights w and bias b over z is one of weights w × factor
and bias b − Σ w × factor × centre over x. By the chain rule, a direction d over the weights of x
and e over the bias is (d − centre × e) × factor over the weights of z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.runtime.jit import compiled

FORGETTING = (0.9, 0.999)
"""Adam's β₁ and β₂: the weight of the past in the running means of slope and squared slope."""
_LEAST = 1e-8  # Adam's ε: the mean square may be 0


class Neurons(NamedTuple):
    """The neurons of a layer; H neurons with n inputs.

    Attributes
    ----------
    means : array of shape (H, n + 1)
        Weights and bias over standardised inputs.
    solution : array of shape (H, n + 1)
        Weights and bias over the raw inputs.
    first, second : arrays of shape (H, n + 1)
        Running means of the slope and of its square.
    centre, factor : arrays of shape (n,)
        How inputs are standardised.
    """

    means: Array
    solution: Array
    first: Array
    second: Array
    centre: Array
    factor: Array


@compiled
def fold(neurons, start, stop):
    """Write the solution from the means, for the neurons from start to stop."""
    centre, factor = neurons.centre, neurons.factor
    n_inputs = len(centre)
    for h in range(start, stop):
        mean, solution = neurons.means[h], neurons.solution[h]
        for i in range(n_inputs):
            solution[i] = mean[i] * factor[i]
        # Four independent sums: each addition to a single one would wait for the one before.
        offset0, offset1, offset2, offset3 = 0.0, 0.0, 0.0, 0.0
        whole = n_inputs - n_inputs % 4
        for i in range(0, whole, 4):
            offset0 += solution[i] * centre[i]
            offset1 += solution[i + 1] * centre[i + 1]
            offset2 += solution[i + 2] * centre[i + 2]
            offset3 += solution[i + 3] * centre[i + 3]
        for i in range(whole, n_inputs):
            offset0 += solution[i] * centre[i]
        solution[n_inputs] = mean[n_inputs] - ((offset0 + offset1) + (offset2 + offset3))


@compiled
def _find_slopes(direction, mean, centre, factor, decay, slopes):
    """Write a neuron's slopes over standardised inputs, (n + 1,), less weight decay."""
    n_inputs = len(centre)
    bias = direction[n_inputs]
    for i in range(n_inputs):
        slopes[i] = (direction[i] - centre[i] * bias) * factor[i] - decay * mean[i]
    slopes[n_inputs] = bias


@compiled
def _step(slopes, mean, first, second, rate, root):
    """Take Adam's step with a neuron's mean; all arrays: (n + 1,)."""
    real = slopes.dtype.type
    keep_first, keep_second = real(FORGETTING[0]), real(FORGETTING[1])
    add_first, add_second = real(1) - keep_first, real(1) - keep_second
    for i in range(len(slopes)):
        first[i] = keep_first * first[i] + add_first * slopes[i]
        second[i] = keep_second * second[i] + add_second * slopes[i] * slopes[i]
        mean[i] += rate * first[i] / (np.sqrt(second[i]) * root + real(_LEAST))


def move(
    neurons: Neurons, direction: Array, rate: float, decay: float, n_moves: int, start: int,
    stop: int,
) -> None:  # fmt: skip
    """Take a step with the neurons from start to stop.

    direction: (H, n + 1) over the raw inputs; decay: multiple of the weights that is subtracted
    from their slopes; n_moves: number of steps so far, this one included.
    """
    _move_means(neurons, direction, rate, decay, n_moves, start, stop)
    fold(neurons, start, stop)


@compiled
def _move_means(neurons, direction, rate, decay, n_moves, start, stop):
    real = neurons.means.dtype.type
    size = real(rate / (1 - FORGETTING[0] ** n_moves))  # Adam's bias correction: means begin at 0
    root = real(1 / np.sqrt(1 - FORGETTING[1] ** n_moves))
    slopes = np.empty(direction.shape[1], dtype=neurons.means.dtype)
    for h in range(start, stop):
        mean = neurons.means[h]
        _find_slopes(direction[h], mean, neurons.centre, neurons.factor, real(decay), slopes)
        _step(slopes, mean, neurons.first[h], neurons.second[h], size, root)


def unfold(neurons: Neurons) -> None:
    """Write the means from the solution; the inverse of `fold`."""
    weights = neurons.solution[:, :-1].astype(np.float64)
    neurons.means[:, :-1] = weights / neurons.factor
    neurons.means[:, -1] = neurons.solution[:, -1] + weights @ neurons.centre
