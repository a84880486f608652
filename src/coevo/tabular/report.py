"""A training as one page: the data as understood, how good the model is, and how to use it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coevo._rendering import data_uri, make_environment
from coevo._typing import Array
from coevo._version import __version__
from coevo.runtime.terminal import printable
from coevo.tabular.dates import ISO
from coevo.tabular.examples import Examples
from coevo.tabular.figures import draw_residuals
from coevo.tabular.job import Job
from coevo.tabular.preprocessing import Preprocessing
from coevo.tabular.run_folder import RunFolder
from coevo.tabular.scores import find_confusions, list_metrics, shorten_number

_MOST_CLASSES = 20  # a larger confusion matrix does not fit on a page
_MOST_CATEGORIES = 8
_MOST_COLUMNS = 30


@dataclass(frozen=True)
class Column:
    """A row of the table of columns; `missing` is the share of rows without a value."""

    name: str
    kind: str
    values: str
    missing: float


def render_report(
    folder: RunFolder,
    job: Job,
    examples: Examples,
    preprocessing: Preprocessing,
    metrics: Mapping[str, Any],
    learning_curve: bytes,
    predicted: Array,
    defaults: Mapping[str, Any],
) -> str:
    """Return the page; `predicted` has the test rows, `defaults` the estimator's defaults."""
    residuals = None
    if examples.task == "regression" and len(predicted):
        truth = examples.target[examples.test]
        residuals = data_uri(draw_residuals(truth, predicted, str(job.target)), "png")
    page: str = (
        _environment()
        .get_template("report.html")
        .render(
            job=job,
            file=Path(job.data or "").name,
            examples=examples,
            metrics=metrics,
            facts=list(_list_facts(metrics)),
            scores=list_metrics(metrics["parts"]),
            columns=list(_describe_columns(examples, preprocessing))[:_MOST_COLUMNS],
            n_left_out=max(0, len(examples.columns) - _MOST_COLUMNS),
            learning_curve=data_uri(learning_curve, "png"),
            residuals=residuals,
            confusion=_shade(metrics) if len(predicted) else None,
            confusions=_list_confusions(metrics) if len(predicted) else None,
            importance=_measure_bars(metrics["importance"]),
            changed={k: v for k, v in job.settings.items() if k in defaults and v != defaults[k]},
            run=shlex.quote(str(folder.path)),
            run_path=str(folder.path),
            version=__version__,
        )
    )
    return page


@cache
def _environment() -> Any:
    environment = make_environment(
        "coevo.tabular",
        autoescape=True,
        # A name may hold control characters; what is marked as safe is the template's own.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "short": shorten_number,
        "count": "{:,}".format,
        "per_cent": "{:.0%}".format,
        "setting": lambda value: (
            "none"
            if value is None
            else ", ".join(map(str, value)) or "none"
            if isinstance(value, tuple | list)
            else str(value)
        ),
    }
    return environment


def _list_facts(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the few numbers at the top of the page."""
    part = "test" if "test" in metrics["parts"] else "training"
    name = "accuracy" if metrics["task"] == "classification" else "r2"
    shown = {"accuracy": "{:.1%}".format, "r2": "{:z.3f}".format}[name]
    label = {"accuracy": "accuracy", "r2": "R²"}[name]
    for which, text in ((part, f"{label} on the {part} rows"), ("simplest", "simplest model")):
        value = metrics["parts"][which][name]
        if value is not None:
            yield shown(value), text
    rows = metrics["rows"]
    yield f"{rows['training']:,} + {rows['test']:,}", "rows to train and to test on"
    yield f"{metrics['evaluations']:,}", f"evaluations in {metrics['seconds']:.1f} s"


def _describe_columns(examples: Examples, preprocessing: Preprocessing) -> Iterator[Column]:
    inputs = examples.inputs
    for name in examples.columns:
        if name in preprocessing.dates:
            date = preprocessing.dates[name]
            how = "ISO" if date.format == ISO else date.format
            missing = inputs[date.names(name)[0]].isna().mean()
            yield Column(name, "dates", f"{how}; {', '.join(date.parts)}", missing)
        elif name in preprocessing.encoding.categories:
            known = preprocessing.encoding.categories[name]
            shown = ", ".join(text or "(missing)" for text in known[:_MOST_CATEGORIES])
            n_texts = inputs[name].nunique()
            more = ", …" if n_texts > _MOST_CATEGORIES else ""
            missing = inputs[name].isna().mean()
            yield Column(name, "categorical", f"{n_texts:,} texts: {shown}{more}", missing)
        else:
            low, high = preprocessing.encoding.ranges[name]
            unit = preprocessing.notations[name].unit if name in preprocessing.notations else ""
            values = f"{low:g} to {high:g}{' ' * bool(unit)}{unit}"
            yield Column(name, "numeric", values, inputs[name].isna().mean())


def _shade(metrics: Mapping[str, Any]) -> list[tuple[str, list[tuple[int, float]]]] | None:
    """Return the rows of the confusion matrix: label, counts and their shares of the true class."""
    classes = metrics["classes"]
    if classes is None or len(classes) > _MOST_CLASSES:
        return None
    counts = np.array(metrics["parts"]["test"]["confusion_matrix"])
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return [
        (str(label), list(zip(row.tolist(), part.tolist(), strict=True)))
        for label, row, part in zip(classes, counts, shares, strict=True)
    ]


def _list_confusions(metrics: Mapping[str, Any]) -> list[tuple[str, str, int]] | None:
    """Return the most frequent confusions of many classes."""
    classes = metrics["classes"]
    if classes is None or len(classes) <= _MOST_CLASSES:
        return None
    return list(find_confusions(metrics["parts"]["test"]["confusion_matrix"], classes, 12))


def _measure_bars(importance: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the importance of columns with a width between 0 and 1 for each."""
    if importance is None:
        return None
    columns = dict(list(importance["columns"].items())[:_MOST_COLUMNS])
    largest = max((loss["mean"] for loss in columns.values()), default=0.0)
    bars = [
        (name, loss, max(0.0, loss["mean"]) / largest if largest > 0 else 0.0)
        for name, loss in columns.items()
    ]
    return {**importance, "bars": bars}
