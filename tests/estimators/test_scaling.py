"""Scaling of inputs and targets, and its folding into the network."""

import numpy as np
import pytest

from coevo import CoevoClassifier, CoevoRegressor

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}
ESTIMATORS = (CoevoClassifier, CoevoRegressor)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scaling_makes_units_irrelevant(estimator, iris):
    X, y = iris
    other = np.ascontiguousarray(X * [1e-3, 1.0, 1e6, 25.0] + [1e4, 0, -3, 2])
    a, b = estimator(**QUICK).fit(X, y), estimator(**QUICK).fit(other, y)
    np.testing.assert_allclose(a.predict(X), b.predict(other), rtol=1e-3, atol=1e-3)


def test_a_feature_that_is_constant_is_ignored(iris):
    X, y = iris
    wider = np.column_stack([X, np.full(len(X), 3.0)])
    classifier = CoevoClassifier(**QUICK).fit(wider, y)
    other = wider.copy()
    other[:, -1] = 1e6
    np.testing.assert_array_equal(
        classifier.decision_function(wider), classifier.decision_function(other)
    )


def test_inputs_may_be_left_as_they_are(iris):
    X, y = iris
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    assert CoevoClassifier(**QUICK, scale_inputs=False).fit(centred, y).score(centred, y) > 0.8
    with pytest.raises(ValueError, match="too large for dtype='float32'"):
        CoevoClassifier(**QUICK, scale_inputs=False).fit(1e39 * X, y)
