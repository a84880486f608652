"""The result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coevo._typing import Array, StrPath
from coevo.core.history import History
from coevo.core.network import Network
from coevo.core.settings import Settings
from coevo.core.stopping import StopReason
from coevo.persistence import model
from coevo.training.data import check_inputs


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Parameters
    ----------
    network
        The best global solution on the validation set.
    classes : array of shape (n_classes,), or None
        The label of each output; None for regression.
    train_fitness, validation_fitness
        The network's fitness on all training instances and on the validation set.
    history
        Fitness over the course of the run.
    stop_reason
        Why it ended.
    generations, evaluations, seconds
        What the run used.
    settings
        The settings, with every "auto" resolved.
    engine
        The engine that measured fitness: "delta", "batched" (full passes) or "reference".
    """

    network: Network
    classes: Array | None
    train_fitness: float
    validation_fitness: float
    history: History
    stop_reason: StopReason
    generations: int
    evaluations: int
    seconds: float
    settings: Settings
    engine: str

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted label or numbers of each instance.

        Parameters
        ----------
        X : array of shape (n_instances, n_inputs)

        Returns
        -------
        array of shape (n_instances,), or (n_instances, n_outputs) for regression
        """
        dtype = self.network.genotype.dtype
        inputs = check_inputs("X", X, dtype, self.network.architecture.n_inputs)
        if self.classes is None:
            return np.asarray(self.network.outputs(inputs))
        return np.asarray(self.classes[self.network.predict(inputs)])

    def save(self, path: StrPath, feature_names: Sequence[str] | None = None) -> None:
        """Write the network to a model file; see `coevo.save_model`."""
        model.save(
            path,
            self.network,
            classes=self.classes,
            feature_names=feature_names,
            settings=self.settings,
            fitness={"train": self.train_fitness, "validation": self.validation_fitness},
        )
