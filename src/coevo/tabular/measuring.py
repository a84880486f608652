"""How good a model is on held-out rows, in numbers for machines and in a few lines for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn import metrics

from coevo.network import Array

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_MOST_SHOWN = 12  # classes that a matrix fits on a terminal with
_WIDTH = 12


def measure_classes(truth: Array, predicted: Array, classes: Array) -> dict[str, Any]:
    """Return the measures of a classification, and the confusion matrix, a true class a row."""
    present = np.unique(truth)
    measures: dict[str, Any] = {
        "accuracy": float(np.mean(truth == predicted)),
        # Of the classes that there are; scikit-learn would warn of predictions of others.
        "balanced_accuracy": float(np.mean([np.mean(predicted[truth == c] == c) for c in present])),
        "f1_macro": float(
            metrics.f1_score(truth, predicted, labels=present, average="macro", zero_division=0)
        ),
        "matthews": float(metrics.matthews_corrcoef(truth, predicted)) if len(present) > 1 else 0.0,
    }
    matrix = metrics.confusion_matrix(truth, predicted, labels=classes)
    return measures | {"confusion_matrix": matrix.tolist()}


def measure_numbers(truth: Array, predicted: Array) -> dict[str, Any]:
    """Return the measures of a regression, and quantiles of predicted − true."""
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


def simplest(training: Array, task: str) -> Any:
    """Return the best answer that looks at no input: the most frequent label, or the mean."""
    if task == "regression":
        return float(training.mean())
    labels, counts = np.unique(training, return_counts=True)
    return labels[counts.argmax()]


# --------------------------------------------------------------------------------------- for people


def table_of(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table: a measure a row, a part of the data a column."""
    names = [
        name
        for name, value in next(iter(parts.values())).items()
        if value is None or isinstance(value, int | float)
    ]
    width = max(map(len, names))
    yield " " * width + "".join(f"{part:>{_WIDTH}}" for part in parts)
    for name in names:
        values = (measures.get(name) for measures in parts.values())
        yield f"{name:<{width}}" + "".join(
            f"{'–' if value is None else f'{value:.4g}':>{_WIDTH}}" for value in values
        )


def matrix_of(matrix: list[list[int]], classes: list[Any]) -> Iterator[str]:
    """Yield the lines of a confusion matrix, or the most frequent confusions if it is large."""
    names = [_shorten(str(label)) for label in classes]
    if len(classes) > _MOST_SHOWN:
        yield f"most frequent confusions of {len(classes)} classes (true → predicted):"
        counts = np.array(matrix)
        np.fill_diagonal(counts, 0)
        for place in np.argsort(-counts, axis=None, kind="stable")[:8]:
            row, column = divmod(int(place), len(classes))
            if counts[row, column]:
                yield f"  {names[row]} → {names[column]}: {counts[row, column]}"
        return
    yield "confusion matrix of the test part (true class a row, predicted a column):"
    width = max(5, *map(len, names)) + 2
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, numbers in zip(names, matrix, strict=True):
        yield f"{name:>{width}}" + "".join(f"{count:>{width}}" for count in numbers)


def quantiles_of(quantiles: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines that show how residuals are spread."""
    yield "residuals of the test part (predicted − true), quantiles:"
    yield "".join(f"{name:>{_WIDTH}}" for name in quantiles)
    yield "".join(f"{value:>{_WIDTH}.4g}" for value in quantiles.values())


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
