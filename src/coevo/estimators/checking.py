"""Checks what users hand to an estimator and turns it into instances for a search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight, validate_data

from coevo.evaluation import Data
from coevo.network import Array

MIN_VALIDATION = 100
"""A smaller validation set is not split off: an early network is soon right on all of it, and then
none that is better can take its place."""


class CheckingEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of the estimators that checks data."""

    @abstractmethod
    def _check_targets(self, y: Array, *, reset: bool) -> Array:
        """Return class indices, or numbers of shape (n_instances, n_outputs)."""

    @abstractmethod
    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        """Return the instances' weights with those of their classes."""

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, stream: bool = False
    ) -> Data:
        """Return the instances that count, with targets as the search knows them."""
        inputs, y = validate_data(
            self, X, y, reset=reset, dtype="numeric", multi_output=True, y_numeric=False
        )
        weights = _check_sample_weight(sample_weight, inputs, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`")
        counts = weights > 0
        if not counts.all():  # an instance of no weight is no instance
            inputs, y, weights = inputs[counts], y[counts], weights[counts]
        if len(inputs) == 0:
            raise ValueError("all sample weights are zero: there is nothing to learn from")
        # The first call of a stream has been told the classes already.
        targets = self._check_targets(y, reset=reset and not (stream and hasattr(self, "classes_")))
        weights = self._weigh(targets, weights, reset=not stream)
        data = Data(inputs, targets, weights)
        counts = weights > 0
        if not counts.any():
            raise ValueError("class_weight leaves no instance with any weight")
        return _without_equal_weights(data if counts.all() else data[counts])

    def _check_validation(self, X_val: Any, y_val: Any) -> Data | None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        if X_val is None:
            return None
        inputs, y = validate_data(
            self, X_val, y_val, reset=False, dtype="numeric", multi_output=True
        )
        targets = self._check_targets(y, reset=False)
        weights = self._weigh(targets, np.ones(len(targets)), reset=False)
        return _without_equal_weights(Data(inputs, targets, weights))

    def _split(self, data: Data, seed: int) -> tuple[Data, Data]:
        """Split a validation set off, or validate on the training instances if there are few."""
        n_validation = round(self.validation_fraction * len(data))
        is_classified = data.targets.ndim == 1
        counts = np.bincount(data.targets) if is_classified else np.array([len(data)])
        counts = counts[counts > 0]
        if n_validation < max(MIN_VALIDATION, len(counts)) or counts.min() < 2:
            return data, data
        kept, split_off = train_test_split(
            np.arange(len(data)),
            test_size=n_validation,
            random_state=seed % 2**32,
            stratify=data.targets if is_classified else None,
        )
        return data[np.sort(kept)], data[np.sort(split_off)]


def _without_equal_weights(data: Data) -> Data:
    """Return the same instances, which are quicker to measure if none counts more than others."""
    assert data.weights is not None
    return replace(data, weights=None) if (data.weights == data.weights[0]).all() else data
