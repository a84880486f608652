"""From a job to a run folder: preprocesses, evolves, scores and saves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coevo.core.component import AUTO
from coevo.core.defaults import choose_fitness
from coevo.core.hooks import Hook, Run
from coevo.core.loop import Callback
from coevo.core.responses import ClassResponses, NumberResponses, Responses
from coevo.core.settings import Settings
from coevo.estimators import CoevoClassifier, CoevoRegressor
from coevo.persistence import model
from coevo.persistence.atomic import write_atomically
from coevo.persistence.checkpoint import BUDGETS
from coevo.tabular import scores
from coevo.tabular.examples import Examples, prepare
from coevo.tabular.figures import draw_learning_curve
from coevo.tabular.importance import N_SHUFFLES, choose_metric, limit_rows, measure_importance
from coevo.tabular.job import Job, read_job, write_job
from coevo.tabular.options import FIELDS, NO_LIMIT
from coevo.tabular.preprocessing import Preprocessing
from coevo.tabular.report import render_report
from coevo.tabular.run_folder import RunFolder, default_path
from coevo.training.scorers import resolve_metric

logger = logging.getLogger("coevo")

Estimator = CoevoClassifier | CoevoRegressor

OnStart = Callable[[Job, Examples, RunFolder, Settings], None]


@dataclass(frozen=True)
class Report:
    """The outcome of a training: the run folder, and all figures as JSON values."""

    folder: RunFolder
    metrics: dict[str, Any]

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.metrics["stop_reason"] == "interrupted")


def train(
    job: Job,
    output: Path | None = None,
    callbacks: Sequence[Hook | Callback] = (),
    on_start: OnStart | None = None,
) -> Report:
    """Train a new model and write its run folder.

    Parameters
    ----------
    output
        The folder; runs/NAME-DATE-TIME if None.
    on_start
        Called with the complete job, the examples, the folder and the settings as they were chosen
        before the search begins, and only if the settings are valid.
    """
    job, examples, estimator = _plan(job)
    assert job.data is not None
    folder = RunFolder.begin(output or default_path(job.data))
    write_job(folder.settings, job)
    try:
        return _run(job, examples, estimator, folder, callbacks, on_start)
    except BaseException:
        if not folder.checkpoint.exists():
            folder.discard()
        raise


def resume(
    path: Path,
    changes: dict[str, Any],
    callbacks: Sequence[Hook | Callback] = (),
    on_start: OnStart | None = None,
) -> Report:
    """Resume a run from its folder, with other limits or another place of the data if need be."""
    fixed = sorted(set(changes) - {*BUDGETS, "data"})
    if fixed:
        raise ValueError(
            f"--{fixed[0].replace('_', '-')} cannot change when a run is resumed; only DATA and "
            f"{', '.join('--' + name.replace('_', '-') for name in BUDGETS)} can"
        )
    folder = RunFolder.resume(path)
    job, examples, estimator = _plan(read_job(folder.settings).with_changes(changes))
    report = _run(job, examples, estimator, folder, callbacks, on_start)
    write_job(folder.settings, job)
    return report


def _plan(job: Job) -> tuple[Job, Examples, Estimator]:
    """Return the job with every setting filled in, its examples and the estimator to fit."""
    job, examples = prepare(job)
    estimator = make_estimator(job, examples)
    return replace(job, settings=_resolved(estimator)), examples, estimator


def make_estimator(job: Job, examples: Examples) -> Estimator:
    """Return the estimator of a complete job, not yet fitted."""
    settings = dict(job.settings)
    settings["random_state"] = settings.pop("seed")
    if examples.task == "classification":
        weight = None if job.class_weight == NO_LIMIT else job.class_weight
        estimator: Estimator = CoevoClassifier(class_weight=weight)
    elif job.class_weight not in (None, NO_LIMIT):
        raise ValueError("--class-weight is for classification")
    else:
        estimator = CoevoRegressor()
    estimator.set_params(
        **settings,
        categorical_features=examples.categorical,
        max_categories=job.max_categories,
        check_range=False,
        validation_fraction=float(job.validation_fraction),
    )
    _check_fitness(estimator.fitness, examples)
    return estimator


def _check_fitness(fitness: Any, examples: Examples) -> None:
    """Raise if the task has no such metric, before a run folder is made."""
    if fitness != AUTO:
        responses: Responses = NumberResponses()
        if examples.task == "classification":
            responses = ClassResponses(np.unique(examples.target))
        resolve_metric(fitness, responses, has_weights=False)


def _resolved(estimator: Estimator) -> dict[str, Any]:
    """Return every setting as the estimator has it."""
    parameters = estimator.get_params(deep=False)
    parameters["seed"] = parameters["random_state"]
    return {name: parameters[name] for name in FIELDS}


class _Announcement(Hook):
    """Calls a function with the resolved settings, before the first generation."""

    def __init__(self, announce: Callable[[Settings], None]) -> None:
        self._announce = announce

    def open(self, run: Run) -> None:
        """Call the function."""
        self._announce(run.settings)


def _run(
    job: Job,
    examples: Examples,
    estimator: Estimator,
    folder: RunFolder,
    callbacks: Sequence[Hook | Callback],
    on_start: OnStart | None,
) -> Report:
    followers = list(callbacks)
    if on_start is not None:
        followers.insert(0, _Announcement(partial(on_start, job, examples, folder)))
    estimator.set_params(checkpoint=folder.checkpoint, resume=True, callbacks=followers)
    estimator.fit(examples.inputs.iloc[examples.training], examples.target[examples.training])
    preprocessing = Preprocessing(
        estimator.encoding_, str(job.target), examples.notations, examples.dates, job.missing
    )
    metrics = _collect_metrics(job, examples, estimator)
    metrics["importance"] = _find_importance(job, examples, estimator, preprocessing, metrics)
    _save(job, examples, estimator, preprocessing, folder, metrics)
    return Report(folder, metrics)


def _collect_metrics(job: Job, examples: Examples, estimator: Estimator) -> dict[str, Any]:
    """Return all figures of a fitted estimator."""
    history = estimator.history_
    is_validated = estimator.chosen_on_ == "validation"
    metric = choose_fitness(job.settings["fitness"], examples.task)
    return {
        "task": examples.task,
        "reason": examples.reason,
        "target": job.target,
        "rows": {"training": len(examples.training), "test": len(examples.test)},
        "inputs": {
            "columns": len(examples.columns),
            "network": estimator.network_.architecture.n_inputs,
        },
        "classes": estimator.classes_.tolist() if examples.task == "classification" else None,
        "fitness": {
            "metric": metric,
            "chosen_on": estimator.chosen_on_,
            "best": estimator.validation_fitness_,
            "training": estimator.train_fitness_,
            "validation": estimator.validation_fitness_ if is_validated else None,
            "improved_at": int(history["evaluations"][history["best_validation"].argmax()]),
        },
        "parts": dict(_score_parts(examples, estimator)),
        "stop_reason": estimator.stop_reason_,
        "evaluations": estimator.n_evaluations_,
        "generations": estimator.n_iter_,
        "seconds": float(history["seconds"][-1]),
        "seed": job.settings["seed"],
        "notes": list(examples.notes),
    }


def _score_parts(examples: Examples, estimator: Estimator) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the metrics on training and test rows, and those of the simplest model."""

    def score(predicted: Any, rows: Any) -> dict[str, Any]:
        truth = examples.target[rows]
        if examples.task == "classification":
            return scores.score_classes(truth, predicted, estimator.classes_)
        return scores.score_numbers(truth, predicted)

    for part, rows in (("training", examples.training), ("test", examples.test)):
        if len(rows):
            yield part, score(estimator.predict(examples.inputs.iloc[rows]), rows)
    rows = examples.test if len(examples.test) else examples.training
    baseline = scores.fit_simplest(examples.target[examples.training], examples.task)
    yield "simplest", score(baseline.predict(np.zeros((len(rows), 1))), rows)


def _find_importance(
    job: Job,
    examples: Examples,
    estimator: Estimator,
    preprocessing: Preprocessing,
    metrics: dict[str, Any],
) -> dict[str, Any] | None:
    """Return the importance of each column on the rows that were held out, or else on all.

    None if the target is a number that is the same in all of them.
    """
    part = "test" if len(examples.test) else "training"
    rows = getattr(examples, part)
    targets = examples.target[rows]
    if examples.task == "classification":
        targets = np.searchsorted(estimator.classes_, targets)
    elif (targets == targets[0]).all():
        return None
    metric = choose_metric(metrics["fitness"]["metric"], examples.task)
    inputs = estimator.encode(examples.inputs.iloc[rows])
    found = measure_importance(
        estimator.network_, inputs, targets, preprocessing.inputs_of_columns, metric,
        job.settings["seed"],
    )  # fmt: skip
    return {
        "metric": metric, "part": part, "shuffles": N_SHUFFLES, "columns": found,
        "rows": limit_rows(len(rows), estimator.network_, len(found)),
    }  # fmt: skip


def _save(
    job: Job,
    examples: Examples,
    estimator: Estimator,
    preprocessing: Preprocessing,
    folder: RunFolder,
    metrics: dict[str, Any],
) -> None:
    fitness = metrics["fitness"]
    settings = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in job.settings.items()
    }
    # Without validation rows there is no such fitness, and `inspect` can tell.
    reached = {k: fitness[k] for k in ("training", "validation") if fitness[k] is not None}
    model.save(
        folder.model,
        estimator.network_,
        classes=getattr(estimator, "classes_", None),
        feature_names=preprocessing.encoding.input_names,
        settings=settings,
        fitness=reached,
        preprocessing=preprocessing.as_json(),
    )
    folder.write_metrics(metrics)
    folder.write_history(estimator.history_)
    learning_curve = draw_learning_curve(
        estimator.history_,
        str(fitness["metric"]),
        fitness["chosen_on"],
        f"{job.target}: {metrics['evaluations']:,} evaluations, best on the "
        f"{fitness['chosen_on']} part {fitness['best']:.4g}",
    )
    write_atomically(folder.learning_curve, [learning_curve])
    test = examples.inputs.iloc[examples.test]
    predicted = estimator.predict(test) if len(test) else np.empty(0)
    defaults = type(estimator)().get_params(deep=False)
    page = render_report(
        folder, job, examples, preprocessing, metrics, learning_curve, predicted, defaults
    )
    write_atomically(folder.report, [page.encode()])
    logger.info("wrote %s", folder.path)
