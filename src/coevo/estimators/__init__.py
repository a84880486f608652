"""The scikit-learn face: a classifier and a regressor around the search."""

from coevo.estimators.classifier import CoevoClassifier
from coevo.estimators.regressor import CoevoRegressor

__all__ = ["CoevoClassifier", "CoevoRegressor"]
