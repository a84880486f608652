"""The interface of a metric, and what several formulas share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from coevo._typing import Array


class Metric(ABC):
    """A fitness: how well outputs match targets; more is better."""

    name: ClassVar[str]
    task: ClassVar[str] = "classification"
    """What the targets are: class indices ("classification"), numbers ("regression") or flags, one
    for each label ("multilabel")."""
    is_graded: ClassVar[bool] = False
    """Whether the fitness depends on the outputs themselves, not only on predicted classes."""
    is_mean: ClassVar[bool] = False
    """Whether it is the weighted mean over instances of its value for each one alone."""

    @property
    def ignored_warnings(self) -> tuple[type[Warning], ...]:
        """Warnings that it would raise thousands of times in a run."""
        return ()

    @abstractmethod
    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Measure one network or many.

        Parameters
        ----------
        outputs : array of shape (..., n_instances, n_outputs)
        targets : integer array of shape (n_instances,), or array of shape (n_instances, n_outputs)
            Class indices, or numbers for regression, or 0 and 1 for labels.
        weights : array of shape (n_instances,), optional
            Weight of each instance; equal if not given.

        Returns
        -------
        float64 array of shape (...)
        """


def divide(numerators: Array | float, denominators: Array) -> Array:
    """Divide, and return 0 where there is nothing to divide by."""
    denominators = np.asarray(denominators, dtype=float)
    quotients = np.zeros(np.broadcast_shapes(np.shape(numerators), denominators.shape))
    np.divide(numerators, denominators, out=quotients, where=denominators != 0)
    return quotients


def mean(values: Array, weights: Array | None) -> Array:
    """Return the mean over instances, the last axis."""
    return np.asarray(np.average(values, axis=-1, weights=weights))


def find_mean_area(scores: Array, is_positive: Array, weights: Array | None) -> Array:
    """Return the mean area under the receiver operating characteristic over several classes.

    Classes that all instances belong to, or none, are left out; the area is 0.5 if none is left.

    Parameters
    ----------
    scores : array of shape (..., n_instances, n_classes)
    is_positive : boolean array of shape (n_instances, n_classes)
        Which instances belong to each class.
    weights : array of shape (n_instances,), optional

    Returns
    -------
    float64 array of shape (...)
    """
    n_positive = is_positive.sum(axis=0)
    usable = np.flatnonzero((n_positive > 0) & (n_positive < len(is_positive)))
    if not len(usable):
        return np.full(scores.shape[:-2], 0.5)
    areas = [
        np.mean([_find_area(network[:, c], is_positive[:, c], weights) for c in usable])
        for network in scores.reshape(-1, *scores.shape[-2:])
    ]
    return np.array(areas).reshape(scores.shape[:-2])


def _find_area(scores: Array, is_positive: Array, weights: Array | None) -> float:
    """Return the weighted share of (positive, negative) pairs in the right order."""
    positive, negative = scores[is_positive], scores[~is_positive]
    order = None if weights is None else negative.argsort()
    negative = np.sort(negative) if order is None else negative[order]
    # The mean of those strictly below and those not above: ties count one half.
    below = np.searchsorted(negative, positive)
    not_above = np.searchsorted(negative, positive, side="right")
    if weights is None:
        return float((below + not_above).sum() / (2 * len(positive) * len(negative)))
    up_to = np.concatenate([[0.0], weights[~is_positive][order].cumsum()])
    worth = weights[is_positive].astype(np.float64)
    return float(worth @ (up_to[below] + up_to[not_above]) / (2 * worth.sum() * up_to[-1]))
