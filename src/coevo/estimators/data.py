"""Checks what users hand to an estimator and turns it into instances for a search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight, validate_data

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.training.data import check_array, check_labels

MIN_VALIDATION = 20
"""A smaller validation set is not split off: it would say next to nothing."""


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
        inputs, y = self._validate(("X", X), ("y", y), reset=reset)
        if np.ma.isMaskedArray(sample_weight):
            raise ValueError("sample_weight is a masked array; give a weight of 0 instead")
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

    def _validate(
        self, inputs: tuple[str, Any], targets: tuple[str, Any], *, reset: bool
    ) -> tuple[Array, Array]:
        """Have scikit-learn check instances; refuse by name what it would not."""
        for argument, given in (inputs, targets):
            if np.ma.isMaskedArray(given):
                check_array(argument, given)
        check_array(*inputs)
        _check_missing(*targets)
        try:
            X, y = validate_data(
                self, inputs[1], targets[1], reset=reset, dtype="numeric", multi_output=True
            )
        except TypeError as error:
            if not str(error).startswith("float()"):
                raise
            # An object among the numbers, such as pandas' NA.
            raise TypeError(f"{inputs[0]} must be an array of numbers: {error}") from None
        check_array(inputs[0], X)
        return X, y

    def _check_validation(self, X_val: Any, y_val: Any) -> Data | None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        if X_val is None:
            return None
        inputs, y = self._validate(("X_val", X_val), ("y_val", y_val), reset=False)
        targets = self._check_targets(y, reset=False)
        weights = self._weigh(targets, np.ones(len(targets)), reset=False)
        return _without_equal_weights(Data(inputs, targets, weights))

    def _split(self, data: Data, seed: int) -> tuple[Array, Array] | None:
        """Choose the instances to train and to validate on; None if there are too few to split.

        A class of one instance, such as a mistyped label, is trained on.
        """
        n_validation = round(self.validation_fraction * len(data))
        if data.targets.ndim == 1:
            counts = np.bincount(data.targets)
            is_rare = counts[data.targets] < 2
            n_classes = int((counts > 1).sum())
        else:
            is_rare, n_classes = np.zeros(len(data), dtype=bool), 1
        if n_validation < max(MIN_VALIDATION, n_classes):
            return None
        several = np.flatnonzero(~is_rare)
        if len(several) - n_validation < n_classes:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves {len(data) - n_validation} "
                f"of {len(data)} instances to train on, too few for {n_classes} classes"
            )
        kept, split_off = train_test_split(
            several,
            test_size=n_validation,
            random_state=seed % 2**32,
            stratify=data.targets[several] if data.targets.ndim == 1 else None,
        )
        return np.sort(np.concatenate([kept, np.flatnonzero(is_rare)])), np.sort(split_off)


def _check_missing(argument: str, given: Any) -> None:
    """Refuse missing labels, which scikit-learn has no words for."""
    labels = given if isinstance(given, list) else getattr(given, "dtype", None)
    if isinstance(labels, list) or str(labels) in ("object", "string", "str"):
        array = np.asarray(given, dtype=object)
        if array.ndim == 1:
            check_labels(argument, array)


def _without_equal_weights(data: Data) -> Data:
    """Return the same instances, which are quicker to measure if none counts more than others."""
    assert data.weights is not None
    return replace(data, weights=None) if (data.weights == data.weights[0]).all() else data
