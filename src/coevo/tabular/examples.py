"""From a job's table to examples: task, inputs, target, and which rows are for the test."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.estimators.data import MIN_VALIDATION
from coevo.tabular.columns import frame_of
from coevo.tabular.contents import as_labels, choose_inputs, infer_task, read_contents
from coevo.tabular.dates import DateColumn
from coevo.tabular.job import Job
from coevo.tabular.notation import Notation
from coevo.tabular.reading import open_table
from coevo.tabular.remarks import note_columns, note_similar
from coevo.tabular.splitting import hold_out
from coevo.tabular.table import TableError

logger = logging.getLogger("coevo")


@dataclass(frozen=True)
class Examples:
    """A table that is ready to be learned from.

    Parameters
    ----------
    inputs
        A data frame of the columns to learn from; the parts of a date are numeric columns.
    target : array of shape (n_rows,)
        Labels or numbers.
    training, test : integer arrays
        Which rows are for what.
    task, reason
        classification or regression, and why.
    notes
        What the user should know about the table.
    notations
        How numbers are written, by column, where they are not plain.
    dates
        How the columns of dates become numbers.
    """

    inputs: Any
    target: Array
    training: Array
    test: Array
    task: str
    reason: str
    notes: tuple[str, ...]
    notations: dict[str, Notation] = field(default_factory=dict)
    dates: dict[str, DateColumn] = field(default_factory=dict)

    @property
    def categorical(self) -> list[str]:
        """The categorical columns."""
        return [name for name in self.inputs if self.inputs[name].dtype == object]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are learned from."""
        return [*self.numeric, *self.dates, *self.categorical]

    @property
    def numeric(self) -> list[str]:
        """The numeric columns of the table."""
        parts = {part for name, date in self.dates.items() for part in date.names(name)}
        return [name for name in self.inputs if name not in {*self.categorical, *parts}]


def prepare(job: Job) -> tuple[Job, Examples]:
    """Read a job's table; return the job with task, seed and path filled in, and the examples."""
    if job.data is None:
        raise ValueError("DATA is missing: say which file to train on")
    if job.target is None:
        raise ValueError("--target is missing: say which column to predict")
    table = open_table(
        job.data, encoding=job.encoding, delimiter=job.delimiter, missing=job.missing
    )
    contents = read_contents(
        table, job.target, categorical=job.categorical, drop=job.drop, dates=job.dates,
        task=job.task,
    )  # fmt: skip
    task, reason = infer_task(contents.target, job.target)
    if job.task is not None:
        task, reason = job.task, "the settings say so"
    target = _read_target(contents.target, task, job.target)
    seed = job.settings.get("seed")
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    training, test = hold_out(target, job.test_fraction, seed, stratify=task == "classification")
    if len(training) < 2 or (job.test_fraction > 0 and len(test) == 0):
        raise TableError(
            f"{table.path} has {len(target)} row{'s' * (len(target) != 1)} with a target: too few "
            "to train and test on (--test-fraction 0 keeps all for training)"
        )
    columns, left_out = choose_inputs(contents.inputs.iloc[training], job.categorical)
    notes = [
        *contents.notes,
        *(_note_classes(target, test, job.target) if task == "classification" else ()),
        *left_out,
        *note_columns(contents.inputs[columns], job.max_categories),
    ]
    # The estimator decides this itself; after the fit its `chosen_on_` says what it did.
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
    inputs, dates = _expand_dates(contents.inputs[columns], contents.formats, training)
    notations = {name: how for name, how in contents.notations.items() if name in columns}
    return complete, Examples(
        inputs, target, training, test, task, reason, tuple(notes), notations, dates
    )


def _expand_dates(
    inputs: Any, formats: Mapping[str, str], training: Array
) -> tuple[Any, dict[str, DateColumn]]:
    """Return inputs with the parts of dates as numeric columns, and how these came about."""
    columns: dict[str, Array] = {}
    dates: dict[str, DateColumn] = {}
    for name in inputs:
        values = inputs[name].to_numpy()
        if name not in formats:
            columns[name] = values
            continue
        dates[name] = DateColumn.of(formats[name], values[training])
        parts = dates[name].expand(name, values)
        taken = next((part for part in parts if part in inputs), None)
        if taken is not None:
            raise TableError(f"column {taken!r} has the name of a part of {name!r}; rename it")
        columns |= parts
    return frame_of(columns), dates


def _read_target(target: Array, task: str, name: str) -> Array:
    """Return the target as labels or numbers; raise if it does not suit the task."""
    if task == "classification":
        labels = as_labels(target)
        _check_classes(labels, name)
        return labels
    if target.dtype == object:
        raise TableError(f"the target {name!r} is taken as categorical; regression needs numbers")
    return target


def _note_classes(labels: Array, test: Array, name: str) -> Iterator[str]:
    """Yield notes on labels that are alike, and on classes without test rows."""
    if labels.dtype.kind == "U":
        yield from note_similar(name, np.unique(labels).tolist())
    untested = np.setdiff1d(labels, labels[test])
    if len(test) > 0 and len(untested) > 0:
        names = ", ".join(map(repr, untested.tolist()))
        yield f"too few rows of {names} to keep one for the test, which says nothing of it"


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
