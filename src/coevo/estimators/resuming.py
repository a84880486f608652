"""Which fit a checkpoint belongs to, told by the names that an estimator's user knows."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from coevo.checkpoint import Purpose
from coevo.checkpointer import Checkpointer
from coevo.evaluation import Data
from coevo.files import as_plain
from coevo.network import Network
from coevo.settings import Settings

_FREE = (
    "checkpoint", "checkpoint_every_seconds", "checkpoint_every_generations", "resume",
    "callbacks", "verbose", "warm_start", "generations_per_batch",
)  # fmt: skip
"""Arguments that do not change what a fit comes to, so that a checkpoint need not know them."""


def make_checkpointer(
    estimator: BaseEstimator,
    data: Data,
    validation: Data | None,
    engine: str,
    seed: int,
    initial_network: Network | None = None,
) -> Checkpointer | None:
    """Return what writes an estimator's checkpoints, None if it has no checkpoint.

    Parameters
    ----------
    estimator
        A classifier or regressor that has checked its data.
    data
        All instances of the fit, before any are split off.
    validation
        The validation set the user gave, if any.
    engine
        The name of the Evaluator.
    seed
        The seed drawn for the fit. If `random_state` is None, a checkpoint's seed takes its place.
    initial_network
        What the search begins around, if the user gave one.
    """
    if estimator.checkpoint is None:
        if estimator.resume:
            raise ValueError("resume=True needs a checkpoint to go on from")
        return None
    if not isinstance(estimator.checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path or None, got {estimator.checkpoint!r}")
    if estimator.warm_start:
        raise ValueError(
            "warm_start=True and checkpoint do not go together: the one goes on from the fit "
            "before, the other from a file. Set warm_start=False; with resume=True a larger budget "
            "lets a fit go on as well"
        )
    return Checkpointer(
        estimator.checkpoint,
        _describe(estimator, data, validation, engine, seed, initial_network),
        estimator.checkpoint_every_seconds,
        estimator.checkpoint_every_generations,
    )


def _describe(
    estimator: BaseEstimator,
    data: Data,
    validation: Data | None,
    engine: str,
    seed: int,
    initial_network: Network | None,
) -> Purpose:
    known = {
        "inputs X": data.inputs,
        "targets y": data.targets,
        "instance weights (sample_weight times class_weight)": data.weights,
        "initial network": None if initial_network is None else initial_network.genotype,
        "classes": getattr(estimator, "classes_", None),
        "feature names": getattr(estimator, "feature_names_in_", None),
    }
    if validation is not None:
        known |= {
            "validation inputs X_val": validation.inputs,
            "validation targets y_val": validation.targets,
            "validation weights (class_weight)": validation.weights,
        }
    purpose = Purpose.of(Settings(decomposition=estimator.decomposition), engine, known)
    arguments = estimator.get_params(deep=False)
    settings = {n: _plain_argument(value) for n, value in arguments.items() if n not in _FREE}
    settings |= {
        "estimator": type(estimator).__qualname__,
        "decomposition": purpose.settings["decomposition"],
        "random_state": None if estimator.random_state is None else seed,
    }
    versions = purpose.versions | {"scikit-learn": sklearn.__version__}
    return replace(purpose, settings=settings, versions=versions, seed=seed)


def _plain_argument(value: Any) -> Any:
    """Return an argument as JSON values; of a scorer, what it was made from."""
    if not hasattr(value, "_score_func"):
        return as_plain(value)
    parts = ("_score_func", "_sign", "_kwargs", "_response_method")
    return {part.strip("_"): as_plain(getattr(value, part, None)) for part in parts}
