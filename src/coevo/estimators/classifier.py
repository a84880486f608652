"""A classifier in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from coevo._typing import Array
from coevo._validation import check_real
from coevo.core.responses import ClassResponses, decide, softmax
from coevo.estimators.base import CoevoEstimator
from coevo.estimators.documentation import documented
from coevo.estimators.warm_start import Training
from coevo.persistence import model
from coevo.training.data import check_labels, find_classes


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class CoevoClassifier(ClassifierMixin, CoevoEstimator):  # type: ignore[misc]
    """A feed-forward network that is evolved to classify, by any metric.

    Parameters
    ----------
    [parameters]

    Attributes
    ----------
    network_
        The network: unscaled inputs in, one number for each class out.
    classes_
        The labels in order; the second is the positive one if there are two.
    n_features_in_, feature_names_in_
        How many features there are, and their names if X was a data frame.
    history_
        A row for each generation as a dictionary of columns, ready for `pandas.DataFrame`. Metric
        in it is `fitness` on the batch, and `validation_fitness` on the validation set.
    train_fitness_, validation_fitness_
        The network's fitness on the training and on the validation instances.
    chosen_on_
        Which instances the network was chosen on: "validation", or "training" if there were too few
        to split any off.
    n_evaluations_, n_iter_, stop_reason_
        Networks evaluated, generations, and why the search ended.
    settings_
        The settings of the search, every "auto" resolved.
    engine_
        Which engine measured fitness: "delta", or "batched" full passes for a decomposition that
        delta evaluation does not serve.

    Notes
    -----
    `predict_proba` is the softmax of the outputs. Only the fitness cross_entropy makes these
    probabilities mean anything but an order; wrap the classifier in
    `sklearn.calibration.CalibratedClassifierCV` for probabilities by another.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coevo import CoevoClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> classifier = CoevoClassifier((10,), max_evaluations=20_000, random_state=1).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.9)
    True
    """

    class_weight: Mapping[Any, float] | str | None = None

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Take `generations_per_batch` generations on this batch, as limited evaluation does.

        The individuals inherit fitness from the batches before, and nothing of those is kept, so
        that the data need never be in memory at once. The limits `max_evaluations` and so on, and
        `limited_evaluation`, do not apply.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a few hundred instances do well.
        classes : array of shape (n_classes,)
            All classes there are; needed in the first call.
        X_val, y_val : as X and y, optional
            A validation set, kept until another one is given. With one, `network_` is the network
            that has done best on it. Without, it is the global solution as the last batch left it.
        """
        if not hasattr(self, "_training"):
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError("there must be at least two classes, got one class")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} are not those of the calls before")
        return self._partial_fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> Array:
        """Return the label of each instance: its largest output's, the first one's if tied.

        Parameters
        ----------
        X : array or data frame of shape (n_instances, n_features)

        Returns
        -------
        array of shape (n_instances,)
        """
        best = self._outputs(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the outputs, (n_instances, n_classes); see the class's notes."""
        return softmax(self._outputs(X))

    def decision_function(self, X: Any) -> Array:
        """Return the outputs, (n_instances, n_classes), or the lead of the second of two classes.

        With two classes the shape is (n_instances,), and positive numbers stand for `classes_[1]`.
        """
        return decide(self._outputs(X))

    # -------------------------------------------------------------------------- targets and weights

    def _check_targets(self, y: Array, *, reset: bool) -> Array:
        labels = column_or_1d(y, warn=True)
        check_labels("y", labels)
        if labels.dtype.kind != "O":
            check_classification_targets(labels)
        if reset:
            self.classes_, targets = find_classes("y", labels)
            check_classification_targets(labels)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y holds one class only ({self.classes_[0]!r}); there must be at least two"
                )
            return np.asarray(targets)
        known = set(self.classes_.tolist())
        is_known = np.array([label in known for label in labels.tolist()], dtype=bool)
        if not is_known.all():
            raise ValueError(
                f"y holds the label {labels[~is_known][0]!r}, which is not among the classes "
                f"{self.classes_.tolist()}"
            )
        return np.asarray(np.searchsorted(self.classes_, labels))

    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        if self.class_weight is None:
            return weights
        return np.asarray(weights * self._find_class_weights(targets, reset)[targets])

    def _find_class_weights(self, targets: Array, reset: bool) -> Array:
        """Return a weight for each class, by the instances of this fit."""
        if isinstance(self.class_weight, Mapping):
            unknown = set(self.class_weight) - set(self.classes_.tolist())
            if unknown:
                raise ValueError(f"class_weight names {unknown}, which are no classes")
            for label, weight in self.class_weight.items():
                check_real(f"class_weight[{label!r}]", weight, 0)
            return np.array([self.class_weight.get(c, 1.0) for c in self.classes_.tolist()])
        if not (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            raise ValueError(
                f'class_weight must be a dictionary, "balanced" or None, got {self.class_weight!r}'
            )
        if reset:
            counts = np.bincount(targets, minlength=len(self.classes_))
            self._class_weights = len(targets) / (len(counts) * np.maximum(counts, 1))
        elif not hasattr(self, "_class_weights"):
            raise ValueError(
                'class_weight="balanced" needs to see all instances; give partial_fit a '
                "dictionary of weights"
            )
        return np.asarray(self._class_weights)

    def _responses(self, training: Training) -> ClassResponses:
        return ClassResponses(self.classes_)

    def _take(self, content: model.Model) -> None:
        if content.classes is None:
            raise ValueError("this is the model of a regressor")
        self.classes_ = content.classes
