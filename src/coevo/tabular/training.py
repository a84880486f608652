"""From a job to a run folder: reads, splits, preprocesses, evolves, measures and saves."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from coevo import model
from coevo.checkpoint import BUDGETS
from coevo.estimators import CoevoClassifier, CoevoRegressor
from coevo.estimators.checking import MIN_VALIDATION
from coevo.estimators.scaling import TargetScaling
from coevo.estimators.scoring import ClassAnswers, NumberAnswers, resolve_fitness
from coevo.network import Array
from coevo.search import Callback
from coevo.tabular import measuring
from coevo.tabular.columns import (
    as_labels,
    choose_inputs,
    infer_task,
    note_scattered,
    read_contents,
)
from coevo.tabular.figures import draw_learning_curve
from coevo.tabular.job import Job, read_job, write_job
from coevo.tabular.options import FIELDS, NO_LIMIT
from coevo.tabular.preprocessing import Preprocessing, make_transformer, most_frequent
from coevo.tabular.reading import open_table
from coevo.tabular.run_folder import RunFolder, default_path
from coevo.tabular.splitting import hold_out
from coevo.tabular.table import TableError

logger = logging.getLogger("coevo")


@dataclass(frozen=True)
class Examples:
    """A table that is ready to be learned from.

    Parameters
    ----------
    inputs
        A data frame of the columns worth learning from.
    target : array of shape (n_rows,)
        Labels or numbers.
    training, test : integer arrays
        Which rows are for what.
    task, reason
        classification or regression, and why.
    notes
        What the user should know about the table.
    """

    inputs: Any
    target: Array
    training: Array
    test: Array
    task: str
    reason: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What a training came to.

    Parameters
    ----------
    folder
        Where it lies.
    metrics
        All figures, as values that JSON knows.
    notes
        What the user should know about the table.
    """

    folder: RunFolder
    metrics: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.metrics["stop_reason"] == "interrupted")


def prepare(job: Job) -> tuple[Job, Examples]:
    """Read a job's table; return the job with task, seed and path filled in, and the examples."""
    if job.data is None:
        raise ValueError("DATA is missing: say which file to train on")
    if job.target is None:
        raise ValueError("--target is missing: say which column to predict")
    table = open_table(
        job.data, encoding=job.encoding, delimiter=job.delimiter, missing=job.missing
    )
    contents = read_contents(table, job.target, job.categorical, job.drop)
    notes = list(contents.notes)
    task, reason = infer_task(contents.target, job.target)
    if job.task is not None:
        task, reason = job.task, "the settings say so"
    target = contents.target
    if task == "classification":
        target = as_labels(target)
        _check_classes(target, job.target)
    elif target.dtype == object:
        raise TableError(f"the target {job.target!r} holds text, which regression cannot predict")
    seed = job.settings.get("seed")
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    is_classified = task == "classification"
    training, test = hold_out(target, job.test_fraction, seed, stratify=is_classified)
    if len(training) < 2 or (job.test_fraction > 0 and len(test) == 0):
        raise TableError(
            f"{table.path} has {len(target)} row{'s' * (len(target) != 1)} with a target: too few "
            "to train and test on (--test-fraction 0 keeps all for training)"
        )
    if is_classified and len(test) > 0:
        untested = np.setdiff1d(target, target[test])
        if len(untested) > 0:
            names = ", ".join(map(repr, untested.tolist()))
            notes.append(
                f"too few rows of {names} to keep one for the test, which says nothing of it"
            )
    columns, further = choose_inputs(contents.inputs.iloc[training], job.categorical)
    notes += further
    notes += note_scattered(contents.inputs.iloc[training], columns, job.max_categories)
    if not _is_validated(job, len(training)):
        notes.append(
            f"a validation part would have fewer than {MIN_VALIDATION} rows, so the network is "
            "chosen on the training part"
        )
    complete = replace(
        job,
        data=os.path.abspath(job.data),
        task=task,
        settings=job.settings | {"seed": seed},
    )
    logger.info("%s: %d rows, %s because %s", table.path, len(target), task, reason)
    return complete, Examples(
        contents.inputs[columns], target, training, test, task, reason, tuple(notes)
    )


def _is_validated(job: Job, n_rows: int) -> bool:
    """Whether a part of the training rows is kept to choose the network by."""
    return round(job.validation_fraction * n_rows) >= MIN_VALIDATION


def _check_classes(target: Array, name: str) -> None:
    classes = np.unique(target)
    if len(classes) < 2:
        raise TableError(
            f"the target {name!r} holds one class only ({classes[0]!s}); there must be two or more"
        )
    if len(classes) > max(2, len(target) // 2):
        is_text = not np.issubdtype(target.dtype, np.number)
        advice = "choose another --target" if is_text else "for a quantity choose --task regression"
        raise TableError(
            f"the target {name!r} holds {len(classes)} classes in {len(target)} rows, too many to "
            f"learn; {advice}"
        )


def make_pipeline(job: Job, examples: Examples) -> Pipeline:
    """Return the preprocessing and the estimator of a complete job, not yet fitted."""
    inputs = examples.inputs.iloc[examples.training]
    texts = [name for name in inputs if inputs[name].dtype == object]
    categories = {name: most_frequent(inputs[name], job.max_categories) for name in texts}
    numbers = [name for name in inputs if name not in categories]
    settings = dict(job.settings)
    further: dict[str, Any] = {"random_state": settings.pop("seed")}
    if examples.task == "classification":
        weight = None if job.class_weight == NO_LIMIT else job.class_weight
        estimator: Any = CoevoClassifier(class_weight=weight)
    elif job.class_weight not in (None, NO_LIMIT):
        raise ValueError("--class-weight is for classification")
    else:
        estimator = CoevoRegressor()
    estimator.set_params(**settings, **further, validation_fraction=float(job.validation_fraction))
    _check_fitness(estimator.fitness, examples)
    return Pipeline([("columns", make_transformer(numbers, categories)), ("network", estimator)])


def _check_fitness(fitness: str, examples: Examples) -> None:
    """Raise if there is no such measure for the task, before a run begins."""
    answers: ClassAnswers | NumberAnswers = NumberAnswers(TargetScaling.none(1))
    if examples.task == "classification":
        answers = ClassAnswers(np.unique(examples.target))
    resolve_fitness(fitness, answers, has_weights=False)


def train(
    job: Job,
    output: Path | None = None,
    callbacks: tuple[Callback, ...] = (),
    on_start: Callable[[Job, Examples, RunFolder], None] | None = None,
) -> Report:
    """Train a new model and leave a run folder behind.

    Parameters
    ----------
    job
        What to do.
    output
        The folder; runs/NAME-DATE-TIME if None.
    callbacks
        Called with the search after each generation.
    on_start
        Called when all is known but the outcome.
    """
    job, examples = prepare(job)
    pipeline = make_pipeline(job, examples)
    job = replace(job, settings=_resolved(pipeline))
    assert job.data is not None
    folder = RunFolder.begin(output or default_path(job.data))
    write_job(folder.settings, job)
    try:
        return _run(job, examples, pipeline, folder, callbacks, on_start)
    except BaseException:
        if not folder.checkpoint.exists():
            folder.discard()
        raise


def resume(
    path: Path,
    changes: dict[str, Any],
    callbacks: tuple[Callback, ...] = (),
    on_start: Callable[[Job, Examples, RunFolder], None] | None = None,
) -> Report:
    """Go on with a run from its folder.

    Parameters
    ----------
    path
        The run folder.
    changes
        Options that differ from the run's: other limits, or another place of the data.
    callbacks, on_start
        As for `train`.
    """
    fixed = sorted(set(changes) - {*BUDGETS, "data"})
    if fixed:
        raise ValueError(
            f"--{fixed[0].replace('_', '-')} cannot change when a run is resumed; only DATA and "
            f"{', '.join('--' + name.replace('_', '-') for name in BUDGETS)} can"
        )
    folder = RunFolder.resume(path)
    job, examples = prepare(read_job(folder.settings).with_changes(changes))
    pipeline = make_pipeline(job, examples)
    job = replace(job, settings=_resolved(pipeline))
    report = _run(job, examples, pipeline, folder, callbacks, on_start)
    write_job(folder.settings, job)
    return report


def _resolved(pipeline: Pipeline) -> dict[str, Any]:
    """Return every setting as the estimator has it."""
    parameters = pipeline[-1].get_params(deep=False)
    parameters["seed"] = parameters["random_state"]
    settings = {name: parameters[name] for name in FIELDS}
    if all(settings[limit] is None for limit in BUDGETS if limit != "n_threads"):
        raise ValueError(
            "the training would never end: set --max-evaluations, --max-generations, "
            "--max-seconds, --target-fitness or --patience"
        )
    return settings


def _run(
    job: Job,
    examples: Examples,
    pipeline: Pipeline,
    folder: RunFolder,
    callbacks: tuple[Callback, ...],
    on_start: Callable[[Job, Examples, RunFolder], None] | None,
) -> Report:
    if on_start is not None:
        on_start(job, examples, folder)
    pipeline[-1].set_params(checkpoint=folder.checkpoint, resume=True, callbacks=callbacks)
    pipeline.fit(examples.inputs.iloc[examples.training], examples.target[examples.training])
    metrics = _measure(job, examples, pipeline)
    _save(job, examples, pipeline, folder, metrics)
    return Report(folder, metrics, examples.notes)


def _measure(job: Job, examples: Examples, pipeline: Pipeline) -> dict[str, Any]:
    """Return all figures of a fitted pipeline."""
    estimator = pipeline[-1]
    history = estimator.history_
    return {
        "task": examples.task,
        "reason": examples.reason,
        "target": job.target,
        "rows": {"training": len(examples.training), "test": len(examples.test)},
        "inputs": {
            "columns": examples.inputs.shape[1],
            "network": estimator.network_.architecture.n_inputs,
        },
        "classes": estimator.classes_.tolist() if examples.task == "classification" else None,
        "fitness": {
            "measure": job.settings["fitness"],
            "training": estimator.train_fitness_,
            "validation": estimator.validation_fitness_,
            "improved_at": int(history["evaluations"][history["best_validation"].argmax()]),
            "chosen_on": "validation" if _is_validated(job, len(examples.training)) else "training",
        },
        "parts": dict(_measure_parts(examples, pipeline)),
        "stop_reason": estimator.stop_reason_,
        "evaluations": estimator.n_evaluations_,
        "generations": estimator.n_iter_,
        "seconds": float(history["seconds"][-1]),
        "seed": job.settings["seed"],
        "notes": list(examples.notes),
    }


def _measure_parts(examples: Examples, pipeline: Pipeline) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the measures on training and test rows, and those of the simplest answer."""
    answer = measuring.simplest(examples.target[examples.training], examples.task)
    for part, rows in (("training", examples.training), ("test", examples.test)):
        if len(rows) == 0:
            continue
        truth = examples.target[rows]
        predicted = pipeline.predict(examples.inputs.iloc[rows])
        guesses = np.full(len(rows), answer)
        for name, found in ((part, predicted), ("simplest", guesses)):
            if name == "simplest" and part == "training" and len(examples.test):
                continue  # it is for comparison with the test, if there is one
            if examples.task == "classification":
                yield name, measuring.measure_classes(truth, found, pipeline.classes_)
            else:
                yield name, measuring.measure_numbers(truth, found)


def _save(
    job: Job, examples: Examples, pipeline: Pipeline, folder: RunFolder, metrics: dict[str, Any]
) -> None:
    estimator = pipeline[-1]
    assert job.target is not None
    inputs = examples.inputs.iloc[examples.training]
    preprocessing = Preprocessing.of(pipeline[0], job.target, inputs)
    settings = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in job.settings.items()
    }
    model.save(
        folder.model,
        estimator.network_,
        classes=getattr(estimator, "classes_", None),
        feature_names=preprocessing.feature_names,
        settings=settings,
        fitness={name: metrics["fitness"][name] for name in ("training", "validation")},
        preprocessing=preprocessing.as_json(),
    )
    folder.write_metrics(metrics)
    folder.write_history(estimator.history_)
    draw_learning_curve(
        folder.learning_curve,
        estimator.history_,
        str(job.settings["fitness"]),
        f"{job.target}: {metrics['evaluations']:,} evaluations, best on the "
        f"{metrics['fitness']['chosen_on']} part {metrics['fitness']['validation']:.4g}",
    )
    logger.info("wrote %s", folder.path)
