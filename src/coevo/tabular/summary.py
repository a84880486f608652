"""What `coevo train` prints: what it learns from, and how good the model is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coevo.runtime.terminal import printable
from coevo.tabular.examples import Examples
from coevo.tabular.job import Job
from coevo.tabular.run_folder import RunFolder
from coevo.tabular.scores import find_confusions, list_metrics, shorten_number
from coevo.tabular.table import list_names
from coevo.tabular.training import Report

_MOST_CLASSES = 12  # a larger confusion matrix does not fit on a terminal
_WIDTH = 12
_NOTICEABLE = 0.01  # of accuracy, R² and so on


def describe_examples(job: Job, examples: Examples) -> Iterator[str]:
    """Yield the lines that say what is learned from what."""
    kinds = {"categorical": examples.categorical, "of dates": list(examples.dates)}
    named = "".join(
        f", {len(names)} {kind} ({list_names(names)})" for kind, names in kinds.items() if names
    )
    yield (
        f"{Path(job.data or '').name}: {len(examples.training)} rows to train on, "
        f"{len(examples.test)} to test on, {len(examples.numeric)} numeric columns{named}"
    )
    yield f"{examples.task}, because {examples.reason}"
    yield from (f"note: {note}" for note in examples.notes)


def describe_report(report: Report) -> Iterator[str]:
    """Yield the lines that say how a training went."""
    metrics, folder = report.metrics, report.folder
    fitness = metrics["fitness"]
    end = "Ctrl-C" if report.was_interrupted else metrics["stop_reason"]
    yield (
        f"{metrics['evaluations']:,} evaluations in {metrics['generations']:,} generations and "
        f"{metrics['seconds']:.1f} s, ended by {end}; best {fitness['metric']} "
        f"on the {fitness['chosen_on']} part {fitness['best']:.4g}"
    )
    is_improving = fitness["improved_at"] > 0.9 * metrics["evaluations"]
    if is_improving and fitness["chosen_on"] == "validation" and not report.was_interrupted:
        more = f"coevo train --resume {shlex.quote(str(folder.path))}"
        yield f"it was still improving: `{more}` with a larger budget goes on"
    yield ""
    yield from tabulate(metrics["parts"])
    if is_hardly_better(metrics["parts"]):
        why = "; the notes above may say why" if metrics["notes"] else ""
        yield f"the model is hardly better on the test part than the simplest one{why}"
    if "test" in metrics["parts"]:
        yield ""
        test = metrics["parts"]["test"]
        if metrics["task"] == "classification":
            yield from show_confusion(test["confusion_matrix"], metrics["classes"])
        else:
            yield from _show_quantiles(test["residual_quantiles"])
    yield ""
    yield f"wrote {folder.path}: {', '.join(file.name for file in sorted(folder.path.iterdir()))}"
    yield f"next: coevo predict {shlex.quote(str(folder.path))} NEW.csv"


def how_to_resume(folder: RunFolder) -> str:
    """Return the half of a sentence that says how to go on with a run."""
    return f"`coevo train --resume {shlex.quote(str(folder.path))}` goes on from here"


def is_hardly_better(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether no score of the test part is noticeably above the simplest model's."""
    if "test" not in parts:
        return False
    gains = [
        None if value is None else value - parts["simplest"][name]
        for name, (value,) in list_metrics({"test": parts["test"]})
        if name not in ("rmse", "mae")  # of which r2 says all
    ]
    return all(gain is not None and gain < _NOTICEABLE for gain in gains)


def tabulate(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table: a metric a row, a part of the data a column."""
    metrics = list_metrics(parts)
    width = max(len(name) for name, _ in metrics)
    yield " " * width + "".join(f"{part:>{_WIDTH}}" for part in parts)
    for name, values in metrics:
        yield f"{name:<{width}}" + "".join(
            f"{'–' if value is None else shorten_number(value):>{_WIDTH}}" for value in values
        )


def show_confusion(matrix: list[list[int]], classes: list[Any]) -> Iterator[str]:
    """Yield the lines of a confusion matrix, or the most frequent confusions if it is large."""
    names = [_shorten(printable(str(label))) for label in classes]
    if len(classes) > _MOST_CLASSES:
        yield f"most frequent confusions of {len(classes)} classes (true → predicted):"
        for true, predicted, count in find_confusions(matrix, names, 8):
            yield f"  {true} → {predicted}: {count}"
        return
    yield "confusion matrix of the test part (true class a row, predicted a column):"
    width = max(5, *map(len, names)) + 2
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, numbers in zip(names, matrix, strict=True):
        yield f"{name:>{width}}" + "".join(f"{count:>{width}}" for count in numbers)


def _show_quantiles(quantiles: Mapping[str, float]) -> Iterator[str]:
    yield "residuals of the test part (predicted − true), quantiles:"
    yield "".join(f"{name:>{_WIDTH}}" for name in quantiles)
    yield "".join(f"{shorten_number(value):>{_WIDTH}}" for value in quantiles.values())


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
