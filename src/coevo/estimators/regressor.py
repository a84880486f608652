"""The scikit-learn regressor."""

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
from coevo.estimators.scaling import TargetScaling
from coevo.persistence import model
from coevo.training.data import check_array, check_size


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class CoevoRegressor(RegressorMixin, CoevoEstimator):  # type: ignore[misc]
    """A feed-forward network for regression, evolved to maximise any metric.

    Parameters
    ----------
    [parameters]

    Attributes
    ----------
    network_
        The network. Its inputs are what `encode` returns: X itself, unscaled, if that is numeric.
        Its outputs are in the units of y.
    [attributes]

    Notes
    -----
    The fitness squared_error and absolute_error, also in `history_`, is that of targets
    standardised by the training instances: a squared_error of −0.1 is a tenth of the variance, and
    all outputs have the same weight. Other metrics are in the units of y.

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
        """Run `generations_per_batch` generations on this batch, under limited evaluation.

        Individuals inherit fitness from earlier batches, of which nothing else is kept: the data
        never have to be in memory as a whole. `limited_evaluation` and the stopping criteria
        (`max_evaluations`, `patience` and so on) do not apply. The first batch determines how
        targets are standardised.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a few hundred instances are a good size.
        X_val, y_val : as X and y, optional
            A validation set, kept until another one is given. `network_` is the best network on it
            or, without one, the global solution after the last batch.
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

    def _make_responses(self, scaling: TargetScaling | None = None) -> NumberResponses:
        assert scaling is not None
        return NumberResponses(scaling.deviation, scaling.mean)

    def _describe_outputs(self) -> dict[str, Any]:
        return {}

    def _restore_outputs(self, content: model.Model) -> None:
        if content.classes is not None or content.labels is not None:
            raise ValueError("this is the model of a classifier")
        self._n_targets = content.network.architecture.n_outputs
        self._is_flat = self._n_targets == 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
