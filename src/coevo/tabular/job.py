"""All options of `coevo train` in one object, to and from a TOML file.

The TOML file has the options' names with underscores, and `none` where there is no limit. A run
writes one with every default filled in, so that it can be repeated or resumed.
"""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import tomli_w

from coevo._validation import check_integer, check_name, check_real
from coevo.persistence.atomic import write_atomically
from coevo.tabular import options
from coevo.tabular.contents import TASKS
from coevo.tabular.options import NO_LIMIT
from coevo.training.variants import with_switches

CLASS_WEIGHTS = ("balanced", NO_LIMIT)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train, on what, and how.

    Parameters
    ----------
    data
        The file.
    target
        The column to predict.
    task
        classification or regression; None to infer it.
    test_fraction
        The fraction of the rows that is held out for the test.
    validation_fraction
        The fraction of the other rows that chooses the network.
    class_weight
        "balanced" to let rare classes count as much as frequent ones.
    categorical, drop
        Columns to take as categorical though they hold numbers; columns to leave out.
    date
        Columns to take as dates, as NAME or NAME=FORMAT.
    max_categories
        How many categories of a column get an input of their own.
    missing
        Texts that stand for a missing value.
    encoding, delimiter
        How a CSV file is written; None to detect it.
    settings
        The settings of the search that were asked for; others have the estimator's defaults.
    """

    data: str | None = None
    target: str | None = None
    task: str | None = None
    test_fraction: float = 0.2
    validation_fraction: float = 0.2
    class_weight: str | None = None
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    max_categories: int = 20
    missing: tuple[str, ...] = ()
    encoding: str | None = None
    delimiter: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.task is not None:
            check_name("--task", self.task, TASKS)
        if self.class_weight is not None:
            check_name("--class-weight", self.class_weight, CLASS_WEIGHTS)
        check_real("--test-fraction", self.test_fraction, 0, 0.9)
        check_real("--validation-fraction", self.validation_fraction, 0, 0.9)
        check_integer("--max-categories", self.max_categories, 1)
        for name in ("data", "target", "encoding", "delimiter"):
            if not isinstance(getattr(self, name), str | None):
                raise TypeError(f"{name} must be a text, got {getattr(self, name)!r}")
        for name in ("categorical", "drop", "date", "missing"):
            texts = getattr(self, name)
            if not (isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)):
                raise TypeError(f"{name} must be a list of texts, got {texts!r}")
        both = {*self.dates} & {*self.categorical, *self.drop}
        if both:
            raise ValueError(f"--date and --categorical or --drop both name {both.pop()!r}")

    @property
    def dates(self) -> dict[str, str | None]:
        """The columns to take as dates, with their formats, None to detect it."""
        return dict(map(_parse_date, self.date))

    def with_changes(self, changes: dict[str, Any]) -> Job:
        """Return the job with some options changed.

        Parameters
        ----------
        changes
            Fields of this class, settings of the search, and `variant`, by name.
        """
        own = {f.name for f in fields(self)} - {"settings"}
        jobs: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        variant = None
        for name, value in changes.items():
            if name in own:
                jobs[name] = tuple(value) if isinstance(value, list) else value
            elif name in options.FIELDS:
                settings[name] = options.parse(name, value)
            elif name == "variant":
                variant = value
            else:
                raise ValueError(f"the option {name!r} is unknown")
        if variant is not None:
            settings = with_switches(variant, settings)
        settings = self.settings | settings
        options.check(settings)
        return replace(self, **jobs, settings=settings)


def _parse_date(text: str) -> tuple[str, str | None]:
    """Return the column and the format of --date."""
    name, mark, form = text.rpartition("=")
    if not mark or "%" not in form:
        return text, None
    try:
        datetime.datetime.strptime(datetime.datetime(2020, 1, 31).strftime(form), form)
    except ValueError as error:
        raise ValueError(f"--date {text!r} has a format that makes no sense: {error}") from None
    return name, form


def read_job(path: Path) -> Job:
    """Return the job that a TOML file describes."""
    try:
        changes = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    try:
        return Job().with_changes(changes)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None


def write_job(path: Path, job: Job) -> None:
    """Write a TOML file from which `read_job` makes the same job."""
    options = {f.name: getattr(job, f.name) for f in fields(job) if f.name != "settings"}
    settings = {k: NO_LIMIT if v is None else v for k, v in job.settings.items()}
    text = (
        "# What this run did. `coevo train --config` with this file does it again.\n"
        + tomli_w.dumps({k: v for k, v in options.items() if v is not None})
        + "\n# the settings of the search\n"
        + tomli_w.dumps(settings)
    )
    write_atomically(path, [text.encode()])
