"""Responses: a network's outputs as labels, probabilities or numbers in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array

RESPONSE_METHODS = ("predict", "predict_proba", "decision_function", "outputs")
"""What a metric may take, by scikit-learn's names; "outputs" are the network's own."""


def softmax(logits: Array) -> Array:
    """Return logits (..., n_classes) as probabilities."""
    exact = logits.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


class _Responses:
    def outputs(self, outputs: Array) -> Array:
        """Return the outputs as they are."""
        return outputs


@dataclass(frozen=True, eq=False)
class ClassResponses(_Responses):
    """The responses of a classifier: its largest logit, or softmax.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The label of each output.
    """

    classes: Array
    task: ClassVar[str] = "classification"

    def truth(self, targets: Array) -> Array:
        """Return the labels of class indices."""
        return np.asarray(self.classes[targets])

    def predict(self, outputs: Array) -> Array:
        """Return the label of the largest output."""
        return np.asarray(self.classes[outputs.argmax(axis=1)])

    def predict_proba(self, outputs: Array) -> Array:
        """Return the softmax."""
        return softmax(outputs)

    def decision_function(self, outputs: Array) -> Array:
        """Return the outputs, or with two classes their difference."""
        return np.asarray(outputs[:, 1] - outputs[:, 0]) if outputs.shape[1] == 2 else outputs


@dataclass(frozen=True, eq=False)
class LabelResponses(_Responses):
    """The responses of a multilabel classifier, which has a logit for each label."""

    n_labels: int
    task: ClassVar[str] = "multilabel"

    @property
    def classes(self) -> list[Array]:
        """The values of each label, in scikit-learn's form."""
        return [np.array([0, 1])] * self.n_labels

    def truth(self, targets: Array) -> Array:
        """Return the labels as they are."""
        return targets

    def predict(self, outputs: Array) -> Array:
        """Return 1 where a logit is above 0, else 0."""
        return (outputs > 0).astype(np.int64)

    def predict_proba(self, outputs: Array) -> Array:
        """Return the sigmoid."""
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * outputs.astype(np.float64)))

    def decision_function(self, outputs: Array) -> Array:
        """Return the outputs."""
        return outputs


@dataclass(frozen=True, eq=False)
class NumberResponses(_Responses):
    """The responses of a regressor.

    Parameters
    ----------
    scale, shift : arrays of shape (n_outputs,), or numbers
        outputs × scale + shift is in the user's units.
    """

    scale: Array | float = 1.0
    shift: Array | float = 0.0
    task: ClassVar[str] = "regression"

    def truth(self, targets: Array) -> Array:
        """Return targets in the user's units."""
        return self.predict(targets)

    def predict(self, outputs: Array) -> Array:
        """Return outputs in the user's units, flat if there is one for each instance."""
        numbers = np.asarray(outputs * self.scale + self.shift)
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers


Responses = ClassResponses | LabelResponses | NumberResponses
