"""Scales inputs and targets for the search, and folds the scaling into the evolved network.

The search needs inputs in about [−1, 1] and targets of about unit variance, because initial weights
are drawn from a fixed range. Both scalings are affine and adjacent to an affine layer, so by the
identities

    w · ((x − c) f) + b  =  (w f) · x + (b − w · (c f))
    (w · a + b) s + m    =  (w s) · a + (b s + m)

there is a network with unscaled inputs and outputs that is equivalent to the evolved one. Only this
network predicts, is saved and is exported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.network import Network
from coevo.estimators.columns import ROWS
from coevo.estimators.inputs import Inputs
from coevo.training.data import check_size

_MOST_CELLS = 2**24  # inputs that a network is run on at a time


@dataclass(frozen=True)
class InputScaling:
    """Each input x becomes (x − centre) × factor.

    Parameters
    ----------
    centre, factor : arrays of shape (n_inputs,)
    """

    centre: Array
    factor: Array

    @classmethod
    def to_unit_range(cls, low: Array, high: Array) -> InputScaling:
        """Map each input's range to [−1, 1], a constant input to 0."""
        half = high / 2 - low / 2  # high − low could overflow
        factor = np.zeros_like(half)
        # The reciprocal of a subnormal width would overflow; such inputs count as constant.
        np.divide(1, half, out=factor, where=half > np.finfo(half.dtype).tiny)
        return cls(low / 2 + high / 2, factor)

    @classmethod
    def none(cls, n_inputs: int) -> InputScaling:
        """Return the identity."""
        return cls(np.zeros(n_inputs), np.ones(n_inputs))

    def apply(self, inputs: Inputs, dtype: Any, rows: Array | None = None) -> Array:
        """Return inputs (n_instances, n_inputs), or `rows` of them, scaled and of the dtype."""
        n_rows, start = len(inputs) if rows is None else len(rows), 0
        scaled = np.empty((n_rows, inputs.shape[1]), dtype=dtype)
        for some in inputs.columns.split_up(rows):
            part = inputs[some]
            here = scaled[start : start + len(part)]
            start += len(part)
            with np.errstate(over="ignore"):
                exact = part - self.centre
                exact *= self.factor
                here[:] = exact
            if not np.isfinite(here).all():
                raise ValueError(f"X holds numbers too large for dtype={np.dtype(dtype).name!r}")
        if len(scaled):
            check_size("X", float(scaled.min()), float(scaled.max()))
        return scaled


@dataclass(frozen=True)
class TargetScaling:
    """Each target y becomes (y − mean) / deviation.

    Parameters
    ----------
    mean, deviation : arrays of shape (n_outputs,)
    """

    mean: Array
    deviation: Array

    @classmethod
    def to_unit_variance(cls, targets: Array, weights: Array | None) -> TargetScaling:
        """Standardise by the mean and deviation of these targets; constant ones keep their unit."""
        mean = np.average(targets, axis=0, weights=weights)
        variance = np.average((targets - mean) ** 2, axis=0, weights=weights)
        deviation = np.sqrt(variance)
        return cls(mean, np.where(deviation > 0, deviation, 1.0))

    def apply(self, targets: Array, dtype: Any) -> Array:
        """Return targets (n_instances, n_outputs) standardised and of the dtype."""
        return ((targets - self.mean) / self.deviation).astype(dtype)

    def undo(self, standardised: Array) -> Array:
        """Return targets or outputs in the user's units."""
        return np.asarray(standardised * self.deviation + self.mean)


def fold(network: Network, inputs: InputScaling, targets: TargetScaling | None) -> Network:
    """Return a network for unscaled instances that is equivalent to this one for scaled ones.

    It is in float64, because with inputs far from zero, pre-activations are differences of large
    numbers.
    """
    architecture = network.architecture
    folded = Network(architecture, network.genotype.astype(np.float64))
    first, last = folded.weights[0], folded.weights[-1]
    first *= inputs.factor
    folded.biases[0][:] -= first @ inputs.centre
    if targets is not None:
        last *= targets.deviation[:, np.newaxis]
        folded.biases[-1][:] = targets.undo(folded.biases[-1])
    return folded


def unfold(network: Network, inputs: InputScaling, targets: TargetScaling | None) -> Network:
    """Return the network that `fold` turns into this one.

    The contribution of a constant input becomes part of the biases, and its weight 0.
    """
    unfolded = Network(network.architecture, network.genotype.astype(np.float64))
    first, last = unfolded.weights[0], unfolded.weights[-1]
    if targets is not None:
        last /= targets.deviation[:, np.newaxis]
        unfolded.biases[-1][:] = (unfolded.biases[-1] - targets.mean) / targets.deviation
    unfolded.biases[0][:] += first @ inputs.centre
    varies = inputs.factor > 0
    first[:, varies] /= inputs.factor[varies]
    first[:, ~varies] = 0
    return unfolded


def run(network: Network, inputs: Array | Inputs) -> Array:
    """Return the outputs, (n_instances, n_outputs), some instances at a time."""
    outputs = np.empty((len(inputs), network.architecture.n_outputs), network.genotype.dtype)
    step = min(ROWS, max(1, _MOST_CELLS // inputs.shape[1]))
    for start in range(0, len(inputs), step):
        outputs[start : start + step] = network.outputs(inputs[start : start + step])
    return outputs
