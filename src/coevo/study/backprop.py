"""The gradient baseline: scikit-learn's MLPClassifier, the same network on the same split."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer, check_name, check_real
from coevo.core.settings import DTYPES
from coevo.datasets import Part, Split
from coevo.diagnostics.environment import machine, versions
from coevo.runtime import threads
from coevo.study.run import Outcome, Run

_ACTIVATIONS = {"tanh": "tanh", "sigmoid": "logistic", "relu": "relu", "identity": "identity"}


@dataclass(frozen=True, kw_only=True)
class BackpropSettings:
    """Settings of the baseline: Adam, with the network chosen on the validation part.

    Parameters
    ----------
    hidden_layer_sizes, activation, dtype
        The network, as in `coevo.Settings`; sign has no gradient and is refused.
    batch_size
        Instances for each step.
    learning_rate
        Adam's first step size.
    max_epochs
        End after this many passes over the training part.
    patience
        End after this many passes without a better validation accuracy.
    """

    hidden_layer_sizes: tuple[int, ...] = (50,)
    activation: str = "tanh"
    dtype: str = "float32"
    batch_size: int = 100
    learning_rate: float = 0.001
    max_epochs: int = 300
    patience: int = 30

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden_layer_sizes", tuple(self.hidden_layer_sizes))
        for position, size in enumerate(self.hidden_layer_sizes):
            check_integer(f"hidden_layer_sizes[{position}]", size, 1)
        check_name("activation (for backprop)", self.activation, _ACTIVATIONS)
        check_name("dtype", self.dtype, DTYPES)
        for name in ("batch_size", "max_epochs", "patience"):
            check_integer(name, getattr(self, name), 1)
        check_real("learning_rate", self.learning_rate, 0, above=True)


class _Epochs:
    """Trains epoch by epoch, keeps the weights with the best validation and the history."""

    def __init__(self, settings: BackpropSettings, parts: Split, seed: int) -> None:
        from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - keeps the import light

        self.model = MLPClassifier(
            settings.hidden_layer_sizes,
            activation=_ACTIVATIONS[settings.activation],
            solver="adam",
            batch_size=min(settings.batch_size, len(parts.train)),
            learning_rate_init=settings.learning_rate,
            random_state=seed,
        )
        self._parts = parts
        self._dtype = np.dtype(settings.dtype)
        self._classes = np.unique(parts.train.labels)
        self._best: tuple[list[Array], list[Array]] = ([], [])
        self.best_validation = -np.inf
        self.best_epoch = 0
        self.seconds = 0.0
        self.history: list[tuple[float, ...]] = []

    def advance(self) -> None:
        """Train for one epoch."""
        began = time.perf_counter()
        train = self._parts.train
        self.model.partial_fit(
            train.inputs.astype(self._dtype), train.labels, classes=self._classes
        )
        validation = self.accuracy(self._parts.validation)
        self.seconds += time.perf_counter() - began
        epoch = len(self.history) + 1
        if validation > self.best_validation:
            self.best_validation, self.best_epoch = validation, epoch
            weights = [weights.copy() for weights in self.model.coefs_]
            self._best = weights, [biases.copy() for biases in self.model.intercepts_]
        # Backpropagation has no evaluations in the sense of a search.
        row = (epoch, np.nan, self.seconds, np.nan, validation, self.best_validation)
        self.history.append(tuple(map(float, row)))

    def restore_best(self) -> None:
        """Restore the weights with the best validation accuracy."""
        self.model.coefs_, self.model.intercepts_ = self._best

    def accuracy(self, part: Part) -> float:
        """Return the accuracy on a part of the data."""
        predicted = self.model.predict(part.inputs.astype(self._dtype))
        return float((predicted == part.labels).mean())


def train_by_backprop(run: Run, parts: Split, n_threads: int) -> Outcome:
    """Do a run of the baseline; its settings are those of `BackpropSettings`."""
    settings = BackpropSettings(**run.settings)
    with threads.limit_products(n_threads):
        epochs = _Epochs(settings, parts, run.seed)
        reason = "max_epochs"
        for epoch in range(1, settings.max_epochs + 1):
            epochs.advance()
            if epoch - epochs.best_epoch >= settings.patience:
                reason = "patience"
                break
        epochs.restore_best()
        everything = (parts.train, parts.validation, parts.test)
        train, validation, test = map(epochs.accuracy, everything)
    return Outcome(
        train=train,
        validation=validation,
        test=test,
        evaluations=None,
        generations=len(epochs.history),
        seconds=epochs.seconds,
        stop_reason=reason,
        history=np.array(epochs.history),
        trace=None,
        versions=versions(),
        machine=machine(n_threads),
    )
