"""Probabilities can be calibrated with scikit-learn's means."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss

from coevo import CoevoClassifier

QUICK = {"hidden_layer_sizes": (8,), "max_evaluations": 10_000, "random_state": 1, "n_threads": 1}


@pytest.fixture(scope="module")
def data():
    """Return noisy classes, of which no network can be certain, with a category and gaps."""
    X, y = make_classification(
        n_samples=3000, n_features=6, n_informative=4, flip_y=0.3, random_state=2
    )
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["sign"] = pd.Categorical(np.where(frame["a"] > 0, "plus", "minus"))
    frame.loc[::9, "b"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def fitted(data):
    frame, y = data
    # Accuracy does not care how large logits are: large weights make it far too certain.
    classifier = CoevoClassifier(**QUICK, fitness="accuracy", initial_range=20.0)
    return classifier.fit(frame[:1000], y[:1000])


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_fitted_classifier_is_calibrated_on_other_instances(data, fitted, method):
    frame, y = data
    calibrated = CalibratedClassifierCV(FrozenEstimator(fitted), method=method)
    calibrated.fit(frame[1000:2000], y[1000:2000])
    test, truth = frame[2000:], y[2000:]
    before, after = fitted.predict_proba(test), calibrated.predict_proba(test)
    assert log_loss(truth, before) > 1.05 * log_loss(truth, after)
    assert brier_score_loss(truth, before[:, 1]) > 1.05 * brier_score_loss(truth, after[:, 1])
    # What is said to be so likely is so in so many cases.
    claims = np.digitize(after[:, 1], [0.3, 0.7])
    for group in np.unique(claims):
        is_in = claims == group
        assert truth[is_in].mean() == pytest.approx(after[is_in, 1].mean(), abs=0.12)


def test_folds_are_calibrated_too(data):
    frame, y = data
    calibrated = CalibratedClassifierCV(CoevoClassifier(**QUICK, fitness="accuracy"), cv=2)
    calibrated.fit(frame[:2000], y[:2000])
    probabilities = calibrated.predict_proba(frame[2000:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert log_loss(y[2000:], probabilities) < 0.65
