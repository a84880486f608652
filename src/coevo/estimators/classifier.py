"""The scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from coevo._typing import Array
from coevo._validation import check_real
from coevo.core.responses import ClassResponses, LabelResponses
from coevo.estimators.base import CoevoEstimator
from coevo.estimators.documentation import documented
from coevo.estimators.scaling import TargetScaling
from coevo.persistence import model
from coevo.training.data import check_labels, find_classes


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class CoevoClassifier(ClassifierMixin, CoevoEstimator):  # type: ignore[misc]
    """A feed-forward network for classification, evolved to maximise any metric.

    Parameters
    ----------
    [parameters]

    Attributes
    ----------
    network_
        The network. Its inputs are what `encode` returns: X itself, unscaled, if that is numeric.
        It has one output for each class or label.
    classes_
        The labels in sorted order; of two, the second is the positive one. For multilabel targets,
        a list with [0, 1] for each label.
    [attributes]

    Notes
    -----
    `predict_proba` is the softmax of the outputs. These are probabilities only if the fitness is
    cross_entropy, and with other metrics no more than a ranking; for calibrated ones, wrap the
    classifier in `sklearn.calibration.CalibratedClassifierCV` (docs/howto/probabilities.md).

    If y has several columns of 0 and 1, targets are multilabel, and each output is the logit of a
    label (docs/howto/multilabel.md).

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
        """Run `generations_per_batch` generations on this batch, under limited evaluation.

        Individuals inherit fitness from earlier batches, of which nothing else is kept: the data
        never have to be in memory as a whole. `limited_evaluation` and the stopping criteria
        (`max_evaluations`, `patience` and so on) do not apply.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a few hundred instances are a good size.
        classes : array of shape (n_classes,)
            All classes; required in the first call.
        X_val, y_val : as X and y, optional
            A validation set, kept until another one is given. `network_` is the best network on it
            or, without one, the global solution after the last batch.
        """
        if not hasattr(self, "_fit_state"):
            if _is_multilabel(y):
                self._set_labels(np.shape(y)[1])
            elif classes is None:
                raise ValueError("classes must be given in the first call of partial_fit")
            else:
                self.classes_ = np.unique(classes)
                if len(self.classes_) < 2:
                    raise ValueError("there must be at least two classes, got one class")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} are not those of the calls before")
        return self._partial_fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> Array:
        """Return the label of each instance: that of its largest output, of the first if tied.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_instances, n_features)

        Returns
        -------
        array of shape (n_instances,), or for multilabel targets of shape (n_instances, n_labels): 1
        where an output is above 0, so that the label is more likely than not
        """
        outputs = self._outputs(X)
        return self._make_responses().predict(outputs)

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the outputs, (n_instances, n_classes); see the class's notes.

        For multilabel targets it is the sigmoid of each output, (n_instances, n_labels).
        """
        outputs = self._outputs(X)
        return self._make_responses().predict_proba(outputs)

    def decision_function(self, X: Any) -> Array:
        """Return the outputs, (n_instances, n_classes).

        With two classes, return the second output minus the first, (n_instances,): it is positive
        where the prediction is `classes_[1]`.
        """
        outputs = self._outputs(X)
        return self._make_responses().decision_function(outputs)

    # -------------------------------------------------------------------------- targets and weights

    def _check_targets(self, y: Any, *, reset: bool) -> Array:
        if _is_multilabel(y) if reset else isinstance(self.classes_, list):
            return self._check_labels(y, reset)
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

    def _check_labels(self, y: Any, reset: bool) -> Array:
        """Return multilabel targets as an array of 0 and 1."""
        labels = y.toarray() if sparse.issparse(y) else np.asarray(y)
        if labels.ndim != 2 or not np.isin(labels, (0, 1)).all():
            raise ValueError(
                "multilabel y must have a column of 0 and 1 for each label, got shape "
                f"{labels.shape} with {np.unique(labels)[:5].tolist()}"
            )
        if reset:
            self._set_labels(labels.shape[1])
        elif labels.shape[1] != len(self.classes_):
            raise ValueError(f"y has {labels.shape[1]} labels, there were {len(self.classes_)}")
        return labels.astype(np.int64)

    def _set_labels(self, n_labels: int) -> None:
        classes: Any = LabelResponses(n_labels).classes
        self.classes_ = classes

    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        if self.class_weight is None:
            return weights
        if isinstance(self.classes_, list):
            raise ValueError(
                "class_weight is for instances of one class each, and y is multilabel; "
                "sample_weight weighs instances"
            )
        return np.asarray(weights * self._find_class_weights(targets, reset)[targets])

    def _find_class_weights(self, targets: Array, reset: bool) -> Array:
        """Return the weight of each class; "balanced" ones are computed if `reset`."""
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

    def _make_responses(
        self, scaling: TargetScaling | None = None
    ) -> ClassResponses | LabelResponses:
        if isinstance(self.classes_, list):
            return LabelResponses(len(self.classes_))
        return ClassResponses(self.classes_)

    def _describe_outputs(self) -> dict[str, Any]:
        if isinstance(self.classes_, list):
            return {"labels": self._target_names or range(len(self.classes_))}
        return {"classes": self.classes_}

    def _restore_outputs(self, content: model.Model) -> None:
        if content.labels is not None:
            self._set_labels(len(content.labels))
            self._target_names = list(content.labels)
        elif content.classes is None:
            raise ValueError("this is the model of a regressor")
        else:
            self.classes_ = content.classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _is_multilabel(y: Any) -> bool:
    """Whether y has a column of flags for each label."""
    shape = np.shape(y) if not sparse.issparse(y) else y.shape
    return len(shape) == 2 and shape[1] > 1 and type_of_target(y) == "multilabel-indicator"
