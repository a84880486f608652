"""What `coevo train` is asked to do: all options in one object that a TOML file can hold.

The TOML file has the options' names with underscores, and `none` where there is no limit. A run
writes the one that says what it really did, so that it can be repeated or resumed.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from coevo.errors import check_integer, check_name, check_real
from coevo.files import write_atomically
from coevo.tabular import options
from coevo.tabular.columns import TASKS
from coevo.tabular.options import NO_LIMIT
from coevo.variants import with_switches

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
        The part of the rows that is held out for the test.
    validation_fraction
        The part of the other rows that chooses the network.
    class_weight
        "balanced" to let rare classes count as much as frequent ones.
    categorical, drop
        Columns of numbers that stand for categories; columns to leave out.
    max_categories
        How many categories of a column are told apart.
    missing
        Texts that stand for a missing value.
    encoding, delimiter
        How a CSV file is written, if that is not to be found out.
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
        for name in ("categorical", "drop", "missing"):
            texts = getattr(self, name)
            if not (isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)):
                raise TypeError(f"{name} must be a list of texts, got {texts!r}")
        options.check(self.settings)

    def with_changes(self, changes: dict[str, Any]) -> Job:
        """Return the job with some options changed; settings are added to those there are.

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
        return replace(self, **jobs, settings=self.settings | settings)


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
    """Write a TOML file that `read_job` makes the same job of."""
    values = {f.name: getattr(job, f.name) for f in fields(job) if f.name != "settings"}
    lines = [
        "# What this run did. `coevo train --config` with this file does it again.",
        *(f"{name} = {_toml(value)}" for name, value in values.items() if value is not None),
        "",
        "# the settings of the search",
        *(f"{name} = {_toml(value)}" for name, value in job.settings.items()),
    ]
    write_atomically(path, ["\n".join([*lines, ""]).encode()])


def _toml(value: Any) -> str:
    if value is None:
        return _toml(NO_LIMIT)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        # JSON's texts are TOML's, but for one character that JSON does not mind.
        return json.dumps(value).replace("\x7f", "\\u007f")
    return repr(value)
