"""Checks the arguments X, y and sample_weight of an estimator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length

from coevo._typing import Array
from coevo.estimators.columns import Columns, Rows, find_categorical, read_columns
from coevo.training.data import check_array, check_labels

MIN_VALIDATION = 20
"""A smaller validation set is not split off: it could not tell good networks apart."""


@dataclass(frozen=True)
class UserData:
    """Checked instances: X in columns, targets and weights as in `coevo.core.evaluator.Data`."""

    columns: Columns
    targets: Array
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, rows: Rows) -> UserData:
        weights = None if self.weights is None else self.weights[rows]
        return UserData(self.columns[rows], self.targets[rows], weights)


class CheckingEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class with the checks of data."""

    categorical_features: Any
    is_categorical_: Array | None
    _target_names: list[str] | None

    @abstractmethod
    def _check_targets(self, y: Array, *, reset: bool) -> Array:
        """Return class indices, or numbers of shape (n_instances, n_outputs)."""

    @abstractmethod
    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        """Return the weights of the instances, multiplied by those of their classes."""

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, stream: bool = False
    ) -> UserData:
        """Return the instances whose weight is above 0."""
        columns, y = self._validate(("X", X), ("y", y), reset=reset)
        if np.ma.isMaskedArray(sample_weight):
            raise ValueError("sample_weight is a masked array; give a weight of 0 instead")
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`")
        has_weight = weights > 0
        if not has_weight.all():
            columns, y, weights = columns[has_weight], y[has_weight], weights[has_weight]
        if len(columns) == 0:
            raise ValueError("all sample weights are zero: there is nothing to learn from")
        # The first call of partial_fit has set the classes already.
        targets = self._check_targets(y, reset=reset and not (stream and hasattr(self, "classes_")))
        weights = self._weigh(targets, weights, reset=not stream)
        data = UserData(columns, targets, weights)
        has_weight = weights > 0
        if not has_weight.any():
            raise ValueError("class_weight leaves no instance with any weight")
        return _without_equal_weights(data if has_weight.all() else data[has_weight])

    def _validate(
        self, inputs: tuple[str, Any], targets: tuple[str, Any], *, reset: bool
    ) -> tuple[Columns, Array]:
        """Return X and y, checked by scikit-learn and for what it does not check."""
        for argument, given in (inputs, targets):
            if np.ma.isMaskedArray(given):
                check_array(argument, given)
        _check_missing(*targets)
        columns = self._read_columns(*inputs, reset=reset)
        if targets[1] is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        if reset:
            names = getattr(targets[1], "columns", None)
            self._target_names = None if names is None else [str(name) for name in names]
        y = _check_y(targets[1], multi_output=True, estimator=self)
        check_consistent_length(columns.numbers, y)
        return columns, y

    def _read_columns(self, argument: str, X: Any, *, reset: bool) -> Columns:
        """Return the columns of X, checked by scikit-learn and for what it does not check."""
        check_array(argument, X)
        if reset:
            self.is_categorical_ = find_categorical(self.categorical_features, X)
        try:
            columns = read_columns(self, X, self.is_categorical_, reset=reset)
        except TypeError as error:
            if not str(error).startswith("float()"):
                raise
            # An object among the numbers, such as pandas' NA.
            raise TypeError(f"{argument} must be an array of numbers: {error}") from None
        except ValueError as error:
            if not str(error).startswith("could not convert string"):
                raise
            raise ValueError(
                f"{argument} holds text in a column that is not categorical ({error}); "
                'X.astype({"column": "category"}) or categorical_features makes it categorical'
            ) from None
        check_array(argument, columns.numbers)
        return columns

    def _check_validation(self, X_val: Any, y_val: Any) -> UserData | None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        if X_val is None:
            return None
        columns, y = self._validate(("X_val", X_val), ("y_val", y_val), reset=False)
        targets = self._check_targets(y, reset=False)
        weights = self._weigh(targets, np.ones(len(targets)), reset=False)
        return _without_equal_weights(UserData(columns, targets, weights))

    def _split(self, data: UserData, seed: int) -> tuple[Array | None, Array | None]:
        """Return which instances to train and to validate on; (None, None) if they are too few.

        The only instance of a class, perhaps a mistyped label, is trained on.
        """
        n_validation = round(self.validation_fraction * len(data))
        if data.targets.ndim == 1:
            counts = np.bincount(data.targets)
            is_rare = counts[data.targets] < 2
            n_classes = int((counts > 1).sum())
        else:
            is_rare, n_classes = np.zeros(len(data), dtype=bool), 1
        if n_validation < max(MIN_VALIDATION, n_classes):
            return None, None
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
    """Raise if a label is missing; scikit-learn's own message would not say so."""
    labels = given if isinstance(given, list) else getattr(given, "dtype", None)
    if isinstance(labels, list) or str(labels) in ("object", "string", "str"):
        array = np.asarray(given, dtype=object)
        if array.ndim == 1:
            check_labels(argument, array)


def _without_equal_weights(data: UserData) -> UserData:
    """Drop weights that are all equal: fitness without weights is faster to compute."""
    assert data.weights is not None
    return replace(data, weights=None) if (data.weights == data.weights[0]).all() else data
