"""The arguments and arrays that decide the result of a fit, for the fingerprint of checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coevo._typing import Array
from coevo.core.component import Component
from coevo.core.settings import COMPONENTS
from coevo.estimators.data import UserData
from coevo.persistence.plain import as_plain

FREE = (
    "checkpoint", "resume", "callbacks", "verbose", "warm_start", "generations_per_batch",
    "check_range",
)  # fmt: skip
"""Arguments that do not change the result of a fit."""


def describe_arguments(estimator: BaseEstimator, seed: int) -> dict[str, Any]:
    """Return an estimator's arguments as plain values, without those in `FREE`."""
    arguments = estimator.get_params(deep=False)
    plain = {name: _plain(value) for name, value in arguments.items() if name not in FREE}
    for name, find in COMPONENTS.items():
        found = find(arguments[name])
        plain[name] = as_plain(found)
        if name == "decomposition" and not isinstance(found, str | Component):
            plain[name] = as_plain([np.asarray(group, dtype=np.int64) for group in found])
    return plain | {
        "estimator": type(estimator).__qualname__,
        "random_state": None if estimator.random_state is None else seed,
    }


def describe_arrays(
    estimator: BaseEstimator, data: UserData, validation: UserData | None
) -> dict[str, Array | None]:
    """Return the arrays of a fit by name, before validation instances are split off."""
    arrays: dict[str, Array | None] = {
        **data.columns.arrays("inputs X"),
        "targets y": data.targets,
        "instance weights (sample_weight times class_weight)": data.weights,
        "feature names": getattr(estimator, "feature_names_in_", None),
    }
    if validation is not None:
        arrays |= {
            **validation.columns.arrays("validation inputs X_val"),
            "validation targets y_val": validation.targets,
            "validation weights (class_weight)": validation.weights,
        }
    return arrays


def _plain(value: Any) -> Any:
    """Return an argument as JSON values; a scorer as the function and options it was made from."""
    if not hasattr(value, "_score_func"):
        return as_plain(value)
    parts = ("_score_func", "_sign", "_kwargs", "_response_method")
    return {part.strip("_"): as_plain(getattr(value, part, None)) for part in parts}
