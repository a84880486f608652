"""A regressor in scikit-learn's manner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from coevo._typing import Array
from coevo.core.responses import NumberResponses
from coevo.estimators.base import CoevoEstimator
from coevo.estimators.documentation import documented
from coevo.estimators.warm_start import Training
from coevo.persistence import model
from coevo.training.data import check_array, check_size


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class CoevoRegressor(RegressorMixin, CoevoEstimator):  # type: ignore[misc]
    """A feed-forward network that is evolved to predict one number or several, by any metric.

    Parameters
    ----------
    [parameters]

    Attributes
    ----------
    network_
        The network: unscaled inputs in, numbers in the units of y out. Its inputs are what `encode`
        returns: X itself if that is plain numbers.
    encoding_
        How the columns of X become the network's inputs.
    is_categorical_
        Which columns are categorical; None for none.
    n_features_in_, feature_names_in_
        How many features there are, and their names if X was a data frame.
    history_
        A row for each generation as a dictionary of columns, ready for `pandas.DataFrame`. Metric
        in it is `fitness` on the batch, and `validation_fitness` on the validation set.
        squared_error and absolute_error are those of targets standardised by the training
        instances: −0.1 by squared_error is a tenth of the variance, and several outputs count
        alike. All other measures are in the units of y.
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
    Some defaults differ from the classifier's: outputs that begin far from the targets have to be
    unlearned first.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coevo import CoevoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = CoevoRegressor((5,), max_evaluations=20_000, random_state=1).fit(X, y)
    >>> bool(regressor.score(X, y) > 0.3)
    True
    """

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Take `generations_per_batch` generations on this batch, as limited evaluation does.

        The individuals inherit fitness from the batches before, and nothing of those is kept, so
        that the data need never be in memory at once. The limits `max_evaluations` and so on, and
        `limited_evaluation`, do not apply. The first batch decides how targets are standardised.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a few hundred instances do well.
        X_val, y_val : as X and y, optional
            A validation set, kept until another one is given. With one, `network_` is the network
            that has done best on it. Without, it is the global solution as the last batch left it.
        """
        return self._partial_fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> Array:
        """Return the numbers predicted for each instance.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_instances, n_features)

        Returns
        -------
        array of shape (n_instances,), or (n_instances, n_outputs) if y had two dimensions
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self._is_flat else outputs

    # -------------------------------------------------------------------------------------- targets

    def _check_targets(self, y: Array, *, reset: bool) -> Array:
        check_array("y", y)
        try:
            numbers = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers: {error}") from None
        if not np.isfinite(numbers).all():
            raise ValueError("y must not hold NaN or infinity")
        check_size("y", numbers.min(), numbers.max())
        columns = numbers[:, np.newaxis] if numbers.ndim == 1 else numbers
        if reset:
            self._is_flat, self._n_targets = numbers.ndim == 1, columns.shape[1]
        elif columns.shape[1] != self._n_targets:
            raise ValueError(f"y has {columns.shape[1]} columns, there were {self._n_targets}")
        return columns

    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        return weights

    def _responses(self, training: Training) -> NumberResponses:
        scaling = training.targets
        assert scaling is not None
        return NumberResponses(scaling.deviation, scaling.mean)

    def _describe_outputs(self) -> dict[str, Any]:
        return {}

    def _take(self, content: model.Model) -> None:
        if content.classes is not None or content.labels is not None:
            raise ValueError("this is the model of a classifier")
        self._n_targets = content.network.architecture.n_outputs
        self._is_flat = self._n_targets == 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
