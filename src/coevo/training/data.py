"""Checks the user's arrays; errors name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coevo._typing import Array
from coevo.core.evaluator import Data

MOST = 1e150
"""The largest absolute value that is accepted, because errors are squared."""


def check_inputs(argument: str, given: ArrayLike, dtype: Any, n_inputs: int | None = None) -> Array:
    """Return inputs as a matrix of the dtype, with `n_inputs` columns if that is given."""
    check_array(argument, given)
    try:
        with np.errstate(over="ignore"):
            inputs = np.ascontiguousarray(given, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must be an array of numbers: {error}") from None
    if inputs.ndim != 2:
        raise ValueError(
            f"{argument} must have shape (n_instances, n_inputs), got shape {np.shape(given)}"
        )
    if 0 in inputs.shape:
        raise ValueError(f"{argument} is empty: its shape is {inputs.shape}")
    if n_inputs is not None and inputs.shape[1] != n_inputs:
        raise ValueError(
            f"{argument} has {inputs.shape[1]} columns; the network has {n_inputs} inputs"
        )
    is_finite = np.isfinite(inputs)
    if not is_finite.all():
        row, column = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"{argument} must be finite in {inputs.dtype}; {(~is_finite).sum()} values are not, "
            f"the first is {inputs[row, column]} in row {row}, column {column}"
        )
    check_size(argument, float(inputs.min()), float(inputs.max()))
    return inputs


def check_array(argument: str, given: Any) -> None:
    """Raise for what NumPy would silently convert to numbers: masks, dates, complex numbers."""
    if np.ma.isMaskedArray(given):
        raise ValueError(
            f"{argument} is a masked array, and masks are not known here; fill the masked values "
            "or leave their rows out, and give a plain array"
        )
    for dtype in (getattr(given, "dtype", None), *getattr(given, "dtypes", ())):
        kind = dtype.kind if isinstance(dtype, np.dtype) else ""
        if kind in ("m", "M"):
            raise ValueError(f"{argument} must be numbers, not dates or times ({dtype})")
        if kind == "c":
            raise ValueError(f"Complex data not supported: {argument} must be real, not {dtype}")


def check_size(argument: str, low: float, high: float) -> None:
    """Raise if squares of the numbers could overflow."""
    largest = max(-low, high)
    if largest > MOST:
        raise ValueError(
            f"{argument} must be within ±{MOST:g}, and its largest number is {largest:g}; "
            "use other units"
        )


def find_classes(argument: str, labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes and the class index of each label."""
    check_labels(argument, labels)
    try:
        classes, targets = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{argument} mixes labels of types that have no common order: {', '.join(kinds)}; give "
            "all labels one type"
        ) from None
    return classes, targets


def check_labels(argument: str, labels: Array) -> None:
    """Raise if a label is missing."""
    if np.ma.isMaskedArray(labels):
        raise ValueError(f"{argument} is a masked array; leave the masked instances out")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{argument} must not hold NaN or infinity")
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        raise ValueError(f"{argument} must not hold missing labels")
    if labels.dtype.kind == "O" and any(_is_missing(label) for label in labels):
        raise ValueError(f"{argument} must not hold missing labels")


def check_classes(
    X_train: ArrayLike, y_train: ArrayLike, X_valid: ArrayLike, y_valid: ArrayLike, dtype: Any
) -> tuple[Data, Data, Array]:
    """Return training and validation data, with class indices as targets, and the classes."""
    train_inputs = check_inputs("X_train", X_train, dtype)
    valid_inputs = check_inputs("X_valid", X_valid, dtype, train_inputs.shape[1])
    train_labels = _check_labels("y_train", y_train, "X_train", len(train_inputs))
    valid_labels = _check_labels("y_valid", y_valid, "X_valid", len(valid_inputs))
    classes, train_targets = find_classes("y_train", train_labels)
    if len(classes) < 2:
        raise ValueError(
            f"y_train holds one class only ({classes[0]!r}); there must be at least two"
        )
    is_known = np.isin(valid_labels, classes)
    if not is_known.all():
        raise ValueError(
            f"y_valid holds the label {valid_labels[~is_known][0]!r}, which is not among the "
            f"{len(classes)} classes of y_train"
        )
    valid_targets = np.searchsorted(classes, valid_labels)
    return Data(train_inputs, train_targets), Data(valid_inputs, valid_targets), classes


def _check_labels(argument: str, given: ArrayLike, inputs_argument: str, n_instances: int) -> Array:
    labels = np.asanyarray(given)
    if labels.shape != (n_instances,):
        raise ValueError(
            f"{argument} must have shape ({n_instances},), one label for each row of "
            f"{inputs_argument}, got shape {labels.shape}"
        )
    check_labels(argument, labels)
    return labels


def _is_missing(label: object) -> bool:
    is_nan = isinstance(label, float) and np.isnan(label)
    return label is None or is_nan or type(label).__name__ in ("NAType", "NaTType")  # of pandas


def check_numbers(
    X_train: ArrayLike, y_train: ArrayLike, X_valid: ArrayLike, y_valid: ArrayLike, dtype: Any
) -> tuple[Data, Data]:
    """Return training and validation data, with targets of shape (n_instances, n_outputs)."""
    train_inputs = check_inputs("X_train", X_train, dtype)
    valid_inputs = check_inputs("X_valid", X_valid, dtype, train_inputs.shape[1])
    targets = []
    for argument, given, inputs in (
        ("y_train", y_train, train_inputs),
        ("y_valid", y_valid, valid_inputs),
    ):
        check_array(argument, given)
        numbers = np.asarray(given)
        columns = numbers[:, np.newaxis] if numbers.ndim == 1 else numbers
        targets.append(check_inputs(argument, columns, dtype))
        if len(columns) != len(inputs):
            raise ValueError(f"{argument} has {len(columns)} rows, its inputs have {len(inputs)}")
    if targets[0].shape[1] != targets[1].shape[1]:
        raise ValueError(
            f"y_valid has {targets[1].shape[1]} columns, y_train has {targets[0].shape[1]}"
        )
    return Data(train_inputs, targets[0]), Data(valid_inputs, targets[1])
