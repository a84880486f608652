"""From a job's table to examples: task, inputs, target, and which rows are for the test."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.estimators.data import MIN_VALIDATION
from coevo.tabular.columns import (
    as_labels,
    choose_inputs,
    infer_task,
    note_scattered,
    read_contents,
)
from coevo.tabular.job import Job
from coevo.tabular.reading import open_table
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

    @property
    def categorical(self) -> list[str]:
        """The categorical columns; the others are numeric."""
        return [name for name in self.inputs if self.inputs[name].dtype == object]


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
    is_classified = task == "classification"
    if is_classified:
        target = as_labels(target)
        _check_classes(target, job.target)
    elif target.dtype == object:
        raise TableError(f"the target {job.target!r} holds text, which regression cannot predict")
    seed = job.settings.get("seed")
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
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
    # The estimator decides by itself; its `chosen_on_` tells after the fit.
    if round(job.validation_fraction * len(training)) < MIN_VALIDATION:
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
    inputs = contents.inputs[columns]
    return complete, Examples(inputs, target, training, test, task, reason, tuple(notes))


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
