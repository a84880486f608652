"""Which measures have compiled loops, and how these are shared out among the cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coevo import threads
from coevo.evaluation import Data, _measures
from coevo.fitness import (
    AbsoluteError,
    Accuracy,
    BalancedAccuracy,
    ClippedMargin,
    CrossEntropy,
    ErrorFitness,
    FBeta,
    Fitness,
    Matthews,
    Profit,
    SquaredError,
)
from coevo.network import Array

_GRAIN = 2**15  # outputs worth waking another thread for


def measure(fitness: Fitness, candidates: _measures.Candidates, data: Data) -> Array:
    """Measure the candidates of a last hidden or an output neuron.

    Parameters
    ----------
    fitness
        A measure whose type is in `COMPILED`.
    candidates
        The m candidates in their surroundings.
    data
        Targets and weights of the instances.

    Returns
    -------
    float64 array of shape (m,)
    """
    if type(fitness) in COUNTED:
        weights = _weights(data)
        counts = count_classes(candidates, data.targets, weights)
        return measure_counts(fitness, counts, weights.sum())
    measured = np.empty(len(candidates.sums))
    _share_out(_measures.measure_candidates, find_measure(fitness, data), candidates, measured)
    return measured


def count_classes(candidates: _measures.Candidates, targets: Array, weights: Array) -> Array:
    """Count true classes by predicted classes, weights added up: (m, C, C)."""
    n_outputs = len(candidates.outputs)
    counts = np.empty((len(candidates.sums), n_outputs, n_outputs))
    _share_out(_measures.count_classes, _measures.CountsOn(targets, weights), candidates, counts)
    return counts


def measure_counts(fitness: Any, counts: Array, total: float) -> Array:
    """Return the fitness, of a type in `COUNTED`, of m candidates from their counts."""
    if isinstance(fitness, Accuracy):
        return np.asarray(np.trace(counts, axis1=1, axis2=2) / total)
    measured: Array = fitness.measure(counts)
    return measured


def _share_out(
    kernel: Callable[..., Any], sought: Any, candidates: _measures.Candidates, into: Array
) -> None:
    # Kernels are compiled anew for every memory layout.
    biases, slopes = map(np.ascontiguousarray, (candidates.biases, candidates.slopes))

    def work(first: int, last: int) -> None:
        some = slice(first, last)
        few = candidates._replace(sums=candidates.sums[some], biases=biases[some], slopes=slopes)
        kernel(sought, few, into[some])

    grain = 1 + _GRAIN // max(1, candidates.outputs.size)
    threads.share_out(work, len(candidates.sums), grain)


def find_measure(fitness: Fitness, data: Data) -> _measures.Measure | None:
    """Return what compiled loops measure on these instances; None if they do not know it."""
    # Exactly these types: a user's own kind of accuracy is another measure.
    if type(fitness) is Accuracy and data.weights is None:
        return _measures.AccuracyOn(data.targets)
    if type(fitness) is CrossEntropy:
        return _measures.CrossEntropyOn(data.targets, _shares(data))
    if type(fitness) is ClippedMargin:
        return _measures.MarginOn(data.targets, _shares(data), float(fitness.limit))
    if isinstance(fitness, ErrorFitness) and type(fitness) in (SquaredError, AbsoluteError):
        targets = np.ascontiguousarray(np.atleast_2d(data.targets.T))
        worths, is_squared = fitness.worths(len(targets)), type(fitness) is SquaredError
        return _measures.ErrorOn(
            targets, _shares(data), worths**2 if is_squared else worths, is_squared
        )
    return None


def _weights(data: Data) -> Array:
    return np.ones(len(data)) if data.weights is None else np.asarray(data.weights, np.float64)


def _shares(data: Data) -> Array:
    """Return how much each instance counts, (B,), in parts of 1."""
    weights = _weights(data)
    return np.asarray(weights / weights.sum())


COUNTED: tuple[type[Fitness], ...] = (Accuracy, BalancedAccuracy, FBeta, Matthews, Profit)
"""The measures that ask only how many instances of each class are taken for which."""

COMPILED: tuple[type[Fitness], ...] = (
    *COUNTED, CrossEntropy, ClippedMargin, SquaredError, AbsoluteError,
)  # fmt: skip
"""The measures that need no outputs stored; the others are given them."""
