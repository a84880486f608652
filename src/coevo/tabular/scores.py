"""How good a model is: metrics of its predictions, and the simplest model to compare with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.dummy import DummyClassifier, DummyRegressor

from coevo._typing import Array

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def score_classes(truth: Array, predicted: Array, classes: Array) -> dict[str, Any]:
    """Return the metrics of a classification, and the confusion matrix, a true class a row."""
    present = np.unique(truth)
    recalls = [np.mean(predicted[truth == label] == label) for label in present]
    return {
        "accuracy": float(np.mean(truth == predicted)),
        # Over the classes that occur; scikit-learn warns if others are predicted.
        "balanced_accuracy": float(np.mean(recalls)),
        "f1_macro": float(
            metrics.f1_score(truth, predicted, labels=present, average="macro", zero_division=0)
        ),
        "matthews": float(metrics.matthews_corrcoef(truth, predicted)) if len(present) > 1 else 0.0,
        "confusion_matrix": metrics.confusion_matrix(truth, predicted, labels=classes).tolist(),
    }


def score_numbers(truth: Array, predicted: Array) -> dict[str, Any]:
    """Return the metrics of a regression, and quantiles of predicted − true."""
    residuals = predicted - truth
    spread = float(np.sum((truth - truth.mean()) ** 2))
    return {
        "r2": 1 - float(np.sum(residuals**2)) / spread if spread > 0 else None,
        "rmse": math.sqrt(float(np.mean(residuals**2))),
        "mae": float(np.mean(np.abs(residuals))),
        "residual_quantiles": {
            f"{q:.0%}": float(value)
            for q, value in zip(QUANTILES, np.quantile(residuals, QUANTILES), strict=True)
        },
    }


def list_metrics(parts: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[float | None]]]:
    """Return the name of each metric that is a number, and its value on each part."""
    return [
        (name, [metrics.get(name) for metrics in parts.values()])
        for name, value in next(iter(parts.values())).items()
        if value is None or isinstance(value, int | float)
    ]


def shorten_number(value: float) -> str:
    """Return a number with about four digits, thousands and millions written out."""
    return f"{value:,.0f}" if 9_999.5 <= abs(value) < 1e9 else f"{value:.4g}"


def find_confusions(
    matrix: list[list[int]], classes: list[Any], most: int
) -> Iterator[tuple[str, str, int]]:
    """Yield true class, predicted class and count of the most frequent confusions."""
    counts = np.array(matrix)
    np.fill_diagonal(counts, 0)
    for place in np.argsort(-counts, axis=None, kind="stable")[:most]:
        row, column = divmod(int(place), len(classes))
        if counts[row, column]:
            yield str(classes[row]), str(classes[column]), int(counts[row, column])


def fit_simplest(training: Array, task: str) -> DummyClassifier | DummyRegressor:
    """Return the model that looks at no input: it predicts the most frequent label, or the mean."""
    is_classified = task == "classification"
    simplest = DummyClassifier(strategy="most_frequent") if is_classified else DummyRegressor()
    return simplest.fit(np.zeros((len(training), 1)), training)
