"""Reads a study's plan: data sets × variants or settings × seeds, as a small TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from coevo._validation import check_integer, check_name, check_real
from coevo.core.component import AUTO
from coevo.core.defaults import resolve
from coevo.core.settings import Settings
from coevo.core.smoothing import Smoothing
from coevo.datasets import NAMES
from coevo.persistence.plain import plain_settings
from coevo.study.backprop import BackpropSettings
from coevo.study.run import BACKPROP, Run
from coevo.training.paper import PAPER
from coevo.training.variants import VARIANTS

SHIPPED = ("quick", "paper")
"""The plans that come with the package, the shortest first."""

_PLAN_KEYS = {"name", "title", "about", "seeds", "experiment"}
_EXPERIMENT_KEYS = {
    "name", "title", "paper", "dataset", "selection", "by_group", "official_test", "variants",
    "rows", "settings", "seeds", "trace", "relative_to",
}  # fmt: skip
_ROW_KEYS = {"variant", "seeds", "share"}


class PlanError(ValueError):
    """A plan cannot be read; the message says where and why."""


def _check_file_name(argument: str, name: str) -> None:
    """Raise unless a name can be part of a file name in any folder."""
    if not name or name.startswith(".") or re.search(r'[/\\:*?"<>|\x00-\x1f\x7f]', name):
        raise PlanError(
            f"{argument}={name!r} names files, so it must not be empty, begin with a dot or "
            'contain any of / \\ : * ? " < > |'
        )


@dataclass(frozen=True)
class Row:
    """One row of a table: the runs that differ only in their seed.

    Parameters
    ----------
    label
        Its name in the table; the variant's unless the plan gives another.
    runs
        One for each seed.
    paper
        The paper's experiment whose result of this label is comparable, None if the settings
        differ from the paper's.
    share
        The fraction of the budget after which the runs stop; their runtime is extrapolated.
    """

    label: str
    runs: tuple[Run, ...]
    paper: str | None = None
    share: float = 1.0

    @property
    def variant(self) -> str:
        """DE, LEDE, CCDE, LECCDE or backprop."""
        return self.runs[0].variant


@dataclass(frozen=True)
class PlannedExperiment:
    """One table of the report: rows that share a data set.

    Parameters
    ----------
    name
        Identifies it within the plan, and names its figures.
    relative_to
        The experiment whose LECCDE is the unit of runtime.
    """

    name: str
    title: str
    dataset: str
    rows: tuple[Row, ...]
    relative_to: str

    def __post_init__(self) -> None:
        _check_file_name("the experiment's name", self.name)


@dataclass(frozen=True)
class Plan:
    """A whole study.

    Parameters
    ----------
    name
        The default name of its store and its report.
    title, about
        Heading and introduction of the report.
    experiments
        Its tables, in the order in which they are run.
    """

    name: str
    title: str
    about: str
    experiments: tuple[PlannedExperiment, ...]

    def __post_init__(self) -> None:
        _check_file_name("the plan's name", self.name)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run once; the first seed of all rows of an experiment comes before the second.

        A study that is stopped early then has results for each row.
        """
        found: dict[str, Run] = {}
        for experiment in self.experiments:
            n_seeds = max(len(row.runs) for row in experiment.rows)
            for position in range(n_seeds):
                for row in experiment.rows:
                    for run in row.runs[position : position + 1]:
                        found.setdefault(run.key, run)
        return tuple(found.values())

    def only(
        self, names: Iterable[str] = (), seeds: int | None = None, rows: Iterable[str] = ()
    ) -> Plan:
        """Return a part of the plan: some experiments, some rows, the first few seeds of each."""
        chosen = list(names) or [experiment.name for experiment in self.experiments]
        for name in chosen:
            check_name("experiment", name, [experiment.name for experiment in self.experiments])
        if seeds is not None:
            check_integer("seeds", seeds, 1)
        labels = {row.label: None for experiment in self.experiments for row in experiment.rows}
        wanted = list(rows) or list(labels)
        for label in wanted:
            check_name("row", label, list(labels))
        parts = []
        for experiment in self.experiments:
            kept = [row for row in experiment.rows if row.label in wanted]
            if experiment.name in chosen and kept:
                shortened = tuple(replace(row, runs=row.runs[:seeds]) for row in kept)
                parts.append(replace(experiment, rows=shortened))
        if not parts:
            raise PlanError(f"none of {', '.join(chosen)} has a row {' or '.join(wanted)}")
        return replace(self, experiments=tuple(parts))


def read_plan(name_or_path: str | Path) -> Plan:
    """Return the plan of a study.

    Parameters
    ----------
    name_or_path
        One of the plans that ship with the package (quick, paper), or a TOML file.

    Examples
    --------
    >>> from coevo.study import read_plan
    >>> [experiment.name for experiment in read_plan("quick").experiments]
    ['WBC', 'digits']
    """
    source = str(name_or_path)
    if source in SHIPPED:
        text = (files("coevo.study") / "plans" / f"{source}.toml").read_text(encoding="utf-8")
    else:
        path = Path(name_or_path)
        if not path.is_file():
            raise PlanError(
                f"there is no plan {source!r}: give the path of a TOML file, or one of "
                f"{', '.join(SHIPPED)}"
            )
        text = path.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
        return _plan(content, Path(source).stem)
    except (tomllib.TOMLDecodeError, ValueError, TypeError) as error:
        raise PlanError(f"{source}: {error}") from error


def _plan(content: dict[str, Any], default_name: str) -> Plan:
    _check_keys("the plan", content, _PLAN_KEYS)
    experiments = content.get("experiment")
    if not isinstance(experiments, list) or not experiments:
        raise PlanError("there is no [[experiment]]")
    planned = tuple(_experiment(entry, content.get("seeds", 20)) for entry in experiments)
    names = [experiment.name for experiment in planned]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"two experiments are named {name!r}")
    for experiment in planned:
        check_name(f"{experiment.name}: relative_to", experiment.relative_to, names)
    name = str(content.get("name", default_name))
    return Plan(name, str(content.get("title", name)), str(content.get("about", "")), planned)


def _experiment(entry: dict[str, Any], seeds: Any) -> PlannedExperiment:
    name = str(entry.get("name") or entry.get("paper") or entry.get("dataset") or "")
    if not name:
        raise PlanError("an experiment needs a name, and paper = or dataset =")
    try:
        _check_keys("an experiment", entry, _EXPERIMENT_KEYS)
        paper = entry.get("paper")
        if paper is not None:
            check_name("paper", paper, PAPER)
        dataset = str(entry.get("dataset", PAPER[paper].dataset if paper else ""))
        check_name("dataset", dataset, NAMES)
        rows = tuple(_rows(entry, dataset, entry.get("seeds", seeds)))
    except (ValueError, TypeError) as error:
        raise PlanError(f"experiment {name!r}: {error}") from error
    title = str(entry.get("title", name))
    return PlannedExperiment(name, title, dataset, rows, str(entry.get("relative_to", name)))


def _rows(entry: dict[str, Any], dataset: str, seeds: Any) -> Iterator[Row]:
    """Yield the rows of an experiment: the variants, and those with settings of their own."""
    own_rows = entry.get("rows", {})
    labels = list(entry.get("variants", () if own_rows else VARIANTS))
    shared, paper = entry.get("settings", {}), entry.get("paper")
    traced = entry.get("trace", [])
    for label in [*labels, *(label for label in own_rows if label not in labels)]:
        own = dict(own_rows.get(label, {}))
        variant = own.get("variant", label)
        check_name("variant", variant, (*VARIANTS, BACKPROP))
        changes = {key: value for key, value in own.items() if key not in _ROW_KEYS}
        share = own.get("share", 1.0)
        settings = _settings(variant, paper, shared, changes, share)
        # Only runs with the paper's settings are compared with its results.
        is_as_reported = (
            paper is not None and label in PAPER[paper].results and not (shared or changes)
        )
        runs = tuple(
            Run(
                dataset=dataset,
                selection=entry.get("selection", "paper"),
                by_group=entry.get("by_group", False),
                official_test=entry.get("official_test", False),
                variant=variant,
                settings=settings,
                seed=seed,
                # One traced run is enough for the figure.
                traces=label in traced and position == 0,
            )
            for position, seed in enumerate(_seeds(own.get("seeds", seeds)))
        )
        yield Row(label, runs, paper if is_as_reported else None, share)
    for label in traced:
        check_name("trace", label, [*labels, *own_rows])


def _settings(
    variant: str,
    paper: str | None,
    shared: Mapping[str, Any],
    changes: Mapping[str, Any],
    share: float,
) -> dict[str, Any]:
    """Return all settings of a run but its seed, checked, as plain values."""
    if variant == BACKPROP:
        known = {field.name for field in fields(BackpropSettings)}
        base = {"hidden_layer_sizes": (PAPER[paper].shape[1],)} if paper else {}
        # The rows of an experiment share the network, not the settings of the search.
        common = {key: value for key, value in shared.items() if key in _NETWORK & known}
        for name in changes:
            check_name("the setting", name, known)
        return asdict(BackpropSettings(**(base | common | dict(changes))))
    given = {**shared, **changes}
    for name in ("seed", "n_threads"):
        if name in given:
            raise PlanError(
                f"{name} is no setting of a plan: `seeds` is a key of its own, and threads are "
                "shared out when the study runs"
            )
    if paper:
        settings = PAPER[paper].settings(variant, **given)
    else:  # a row may say otherwise than its variant: LECCDE with another decomposition, say
        settings = Settings.from_names({"strategy": "rand/1"} | VARIANTS[variant] | given)
    settings.check_end()
    check_real("share", share, 0, 1, above=True)
    # Results are kept: what they stand for must not change with what "auto" chooses.
    settings = resolve(settings)
    values = plain_settings(settings)
    if not isinstance(settings.strategy, Smoothing):
        values |= {name: value for name, value in _FIXED.items() if values[name] == AUTO}
    if share < 1:
        if not isinstance(values["max_evaluations"], int):
            raise PlanError("share needs max_evaluations, of which it is a share")
        values["max_evaluations"] = round(share * values["max_evaluations"])
    del values["seed"], values["n_threads"]
    return values


_FIXED = {"batch_size": 500, "max_evaluations": 200_000}
"""What "auto" is where it would follow the data, which a plan does not know."""
_NETWORK = frozenset({"hidden_layer_sizes", "activation", "dtype"})


def _seeds(given: Any) -> list[int]:
    """Return the seeds: those listed, or 1, 2, … as many as asked for."""
    if isinstance(given, list):
        for seed in given:
            check_integer("seeds", seed, 0)
        if not given or len(set(given)) < len(given):
            raise PlanError("seeds must be different whole numbers, at least one")
        return given
    check_integer("seeds", given, 1)
    return list(range(1, given + 1))


def _check_keys(where: str, entry: Any, known: set[str]) -> None:
    if not isinstance(entry, dict):
        raise PlanError(f"{where} must be a TOML table, got {entry!r}")
    for key in entry:
        check_name(f"the key of {where}", key, sorted(known))
