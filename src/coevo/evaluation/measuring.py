"""Which measures have compiled loops, and how these are shared out among the cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    weights = np.ones(len(data)) if data.weights is None else data.weights
    return COMPILED[type(fitness)](fitness, candidates, data.targets, weights)


def count_classes(candidates: _measures.Candidates, targets: Array, weights: Array) -> Array:
    """Count true classes by predicted classes, weights added up: (m, C, C)."""
    n_outputs = len(candidates.outputs)
    counts = np.empty((len(candidates.sums), n_outputs, n_outputs))
    _share_out(_measures.count_classes, candidates, targets, weights, into=counts)
    return counts


def measure_counts(fitness: Any, counts: Array, total: float) -> Array:
    """Return the fitness, of a type in `COUNTED`, of m candidates from their counts."""
    if isinstance(fitness, Accuracy):
        return np.asarray(np.trace(counts, axis1=1, axis2=2) / total)
    measured: Array = fitness.measure(counts)
    return measured


def _count(fitness: Any, candidates: _measures.Candidates, targets: Array, weights: Array) -> Array:
    return measure_counts(fitness, count_classes(candidates, targets, weights), weights.sum())


def _add_up(
    kernel: Callable[..., Any],
    parameters: Callable[[Any, int], tuple[Any, ...]],
    fitness: Fitness,
    candidates: _measures.Candidates,
    targets: Array,
    weights: Array,
) -> Array:
    measured = np.empty(len(candidates.sums))
    parts = weights / weights.sum()
    further = parameters(fitness, len(candidates.outputs))
    _share_out(kernel, candidates, targets, parts, *further, into=measured)
    return measured


def _share_out(kernel: Callable[..., Any], candidates: Any, *arguments: Any, into: Array) -> None:
    def work(first: int, last: int) -> None:
        kernel(candidates, *arguments, first, last, into)

    grain = 1 + _GRAIN // max(1, candidates.outputs.size)
    threads.share_out(work, len(candidates.sums), grain)


def find_measure(fitness: Fitness, is_weighted: bool) -> _measures.Measure | None:
    """Return what sweeps and validation measure in compiled loops; None if they do not know it."""
    if isinstance(fitness, Accuracy) and not is_weighted:
        return _measures.Measure(_measures.ACCURACY, 0.0)
    if isinstance(fitness, CrossEntropy):
        return _measures.Measure(_measures.CROSS_ENTROPY, 0.0)
    if isinstance(fitness, ClippedMargin):
        return _measures.Measure(_measures.MARGIN, fitness.limit)
    return None


def shares(data: Data) -> Array:
    """Return how much each instance counts, (B,), in parts of 1."""
    weights = np.ones(len(data)) if data.weights is None else data.weights
    parts: Array = weights / weights.sum()
    return parts


COUNTED: tuple[type[Fitness], ...] = (Accuracy, BalancedAccuracy, FBeta, Matthews, Profit)
"""The measures that ask only how many instances of each class are taken for which."""

COMPILED: dict[type[Fitness], Callable[..., Array]] = {
    **dict.fromkeys(COUNTED, _count),
    CrossEntropy: partial(_add_up, _measures.sum_cross_entropy, lambda fitness, n: ()),
    ClippedMargin: partial(_add_up, _measures.sum_margins, lambda fitness, n: (fitness.limit,)),
    SquaredError: partial(
        _add_up, _measures.sum_errors, lambda fitness, n: (True, fitness.worths(n) ** 2)
    ),
    AbsoluteError: partial(
        _add_up, _measures.sum_errors, lambda fitness, n: (False, fitness.worths(n))
    ),
}
"""The measures that need no outputs stored; the others are given them."""
