"""Responses: what outputs of a network mean to a user, as labels, probabilities or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array

RESPONSE_METHODS = ("predict", "predict_proba", "decision_function", "outputs")
"""What a metric may ask for, in scikit-learn's words; "outputs" are the network's own."""


def softmax(logits: Array) -> Array:
    """Return logits (n_instances, n_classes) as probabilities."""
    exact = logits.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def sigmoid(logits: Array) -> Array:
    """Return logits (n_instances, n_labels) as the probability of each label."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits.astype(np.float64)))


def decide(logits: Array) -> Array:
    """Return what a decision function gives: the logits, or with two classes their difference."""
    return np.asarray(logits[:, 1] - logits[:, 0]) if logits.shape[1] == 2 else logits


@dataclass(frozen=True, eq=False)
class ClassResponses:
    """The responses of a classifier to its network's outputs.

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
        return decide(outputs)

    def outputs(self, outputs: Array) -> Array:
        """Return the outputs as they are."""
        return outputs


@dataclass(frozen=True, eq=False)
class LabelResponses:
    """The responses of a classifier whose instances have any number of labels, a logit each.

    Parameters
    ----------
    n_labels
        How many labels there are.
    """

    n_labels: int
    task: ClassVar[str] = "multilabel"

    @property
    def classes(self) -> list[Array]:
        """What each label may be, as scikit-learn has it."""
        return [np.array([0, 1])] * self.n_labels

    def truth(self, targets: Array) -> Array:
        """Return the labels as they are."""
        return targets

    def predict(self, outputs: Array) -> Array:
        """Return 1 where a logit is above 0, else 0."""
        return (outputs > 0).astype(np.int64)

    def predict_proba(self, outputs: Array) -> Array:
        """Return the sigmoid."""
        return sigmoid(outputs)

    def decision_function(self, outputs: Array) -> Array:
        """Return the outputs."""
        return outputs

    def outputs(self, outputs: Array) -> Array:
        """Return the outputs as they are."""
        return outputs


@dataclass(frozen=True, eq=False)
class NumberResponses:
    """The responses of a regressor to its network's outputs.

    Parameters
    ----------
    scale, shift : arrays of shape (n_outputs,), or numbers
        Outputs times scale plus shift are in the user's units.
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

    def outputs(self, outputs: Array) -> Array:
        """Return the outputs as they are."""
        return outputs


Responses = ClassResponses | LabelResponses | NumberResponses
