"""The scikit-learn interface: a classifier and a regressor."""

from coevo.estimators.classifier import CoevoClassifier
from coevo.estimators.regressor import CoevoRegressor

__all__ = ["CoevoClassifier", "CoevoRegressor"]
