"""Medians and means of a study's runs, and tests of the differences between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coevo._typing import Array
from coevo.study.plan import Plan, PlannedExperiment, Row
from coevo.study.run import Outcome
from coevo.study.store import Record
from coevo.training.paper import PAPER, PaperResult

PARTS = ("train", "validation", "test")
"""The parts of the data, in the order of the tables."""

CONFIDENCE = 0.95
"""Confidence of the bootstrap intervals; the level of the tests is one minus it."""

UNIT = "LECCDE"
"""The row that runtimes are relative to."""

_RESAMPLES = 5000


@dataclass(frozen=True)
class Reported:
    """One accuracy of the paper, in per cent.

    Parameters
    ----------
    value
        A median over runs, or an average.
    spread
        Its "±", None where the paper gives none.
    """

    value: float
    spread: float | None
    is_average: bool = False

    def judge(self, percent: float) -> str:
        """Return "within" if an accuracy is within value ± spread, else "above" or "below".

        "unknown" if there is no spread.
        """
        if self.spread is None:
            return "unknown"
        # Accuracies are printed with two decimals; half a unit of the last one is rounding.
        if abs(percent - self.value) <= self.spread + 0.005:
            return "within"
        return "above" if percent > self.value else "below"


@dataclass(frozen=True)
class Cell:
    """The accuracy of one row on one part of the data, in per cent.

    Parameters
    ----------
    median, mean, deviation
        Over the runs; the deviation is NaN for a single run.
    interval
        A bootstrap interval for the median.
    paper
        The paper's value, None if there is none to compare.
    """

    median: float
    mean: float
    deviation: float
    interval: tuple[float, float]
    paper: Reported | None

    @property
    def verdict(self) -> str:
        """within, above or below the paper's value ± its spread; unknown without one.

        The mean is judged where the paper reports an average, else the median.
        """
        if self.paper is None:
            return "unknown"
        return self.paper.judge(self.mean if self.paper.is_average else self.median)


@dataclass(frozen=True)
class Summary:
    """One row of a table.

    Parameters
    ----------
    outcomes
        Results of the finished runs, in the order of the seeds.
    n_failed, n_missing
        Number of runs that failed, and that have not been done.
    cells
        Accuracies by part; empty if no run has finished.
    seconds
        Median runtime, extrapolated to the whole budget.
    relative_runtime
        That as a multiple of LECCDE's, None if LECCDE has not been run.
    paper_runtime
        The same in the paper.
    evaluations
        Median number of evaluations, None for backprop.
    remark
        The paper's remark on its result.
    """

    row: Row
    outcomes: tuple[Outcome, ...]
    n_failed: int
    n_missing: int
    cells: Mapping[str, Cell]
    seconds: float | None
    relative_runtime: float | None
    paper_runtime: float | None
    evaluations: int | None
    remark: str


@dataclass(frozen=True)
class Comparison:
    """Two rows compared by their test accuracies.

    Parameters
    ----------
    p
        Of the two-sided Wilcoxon rank-sum test, corrected after Holm.
    a12
        Vargha and Delaney's effect size: the probability that a run of the first does better than
        one of the second, ties counting half.
    """

    first: str
    second: str
    p: float
    a12: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than chance, at the level of the tests."""
        return self.p < 1 - CONFIDENCE

    @property
    def size(self) -> str:
        """The effect in words, with the usual thresholds."""
        distance = abs(self.a12 - 0.5)
        names = ((0.06, "negligible"), (0.14, "small"), (0.21, "medium"))
        return next((name for limit, name in names if distance < limit), "large")


@dataclass(frozen=True)
class Table:
    """One experiment's results; pairs of rows are compared if both have at least three runs."""

    experiment: PlannedExperiment
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def has_paper(self) -> bool:
        """Whether any row has a result in the paper."""
        return any(summary.row.paper for summary in self.summaries)


def summarise(plan: Plan, records: Mapping[str, Record]) -> tuple[Table, ...]:
    """Return a table for each experiment of a plan, from the runs that there are, by key."""
    units = {experiment.name: _unit_seconds(experiment, records) for experiment in plan.experiments}
    tables = []
    for experiment in plan.experiments:
        summaries = tuple(
            _summary(row, records, units.get(experiment.relative_to)) for row in experiment.rows
        )
        tables.append(Table(experiment, summaries, compare(summaries)))
    return tuple(tables)


def _outcomes(row: Row, records: Mapping[str, Record]) -> tuple[Outcome, ...]:
    found = (records.get(run.key) for run in row.runs)
    return tuple(record.outcome for record in found if record and record.outcome)


def _seconds(row: Row, outcomes: Sequence[Outcome]) -> float | None:
    if not outcomes:
        return None
    return float(np.median([outcome.seconds for outcome in outcomes])) / row.share


def _unit_seconds(experiment: PlannedExperiment, records: Mapping[str, Record]) -> float | None:
    rows = [row for row in experiment.rows if row.label == UNIT]
    return _seconds(rows[0], _outcomes(rows[0], records)) if rows else None


def _summary(row: Row, records: Mapping[str, Record], unit: float | None) -> Summary:
    outcomes = _outcomes(row, records)
    found = [records[run.key] for run in row.runs if run.key in records]
    n_failed = sum(record.state == "failed" for record in found)
    seconds = _seconds(row, outcomes)
    evaluations = [outcome.evaluations for outcome in outcomes if outcome.evaluations is not None]
    paper = PAPER[row.paper].results[row.label] if row.paper else None
    return Summary(
        row=row,
        outcomes=outcomes,
        n_failed=n_failed,
        n_missing=len(row.runs) - len(outcomes) - n_failed,
        cells={part: _cell(paper, part, outcomes) for part in PARTS} if outcomes else {},
        seconds=seconds,
        relative_runtime=seconds / unit if seconds is not None and unit else None,
        paper_runtime=paper.relative_runtime if paper else None,
        evaluations=int(np.median(evaluations)) if evaluations else None,
        remark=paper.remark if paper else "",
    )


def _cell(paper: PaperResult | None, part: str, outcomes: Sequence[Outcome]) -> Cell:
    values = 100 * np.array([getattr(outcome, part) for outcome in outcomes])
    reported = None
    if paper is not None:
        spread = None if paper.spreads is None else paper.spreads[PARTS.index(part)]
        reported = Reported(getattr(paper, part), spread, paper.is_average)
    return Cell(
        median=float(np.median(values)),
        mean=float(values.mean()),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        interval=median_interval(values),
        paper=reported,
    )


def median_interval(values: Array) -> tuple[float, float]:
    """Return a bootstrap interval for a median, by percentiles, from resamples of a fixed seed."""
    rng = np.random.default_rng(1804)
    drawn = rng.choice(values, (_RESAMPLES, len(values)))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.median(drawn, axis=1), [tail, 100 - tail])
    return float(low), float(high)


def compare(summaries: Sequence[Summary]) -> tuple[Comparison, ...]:
    """Compare the test accuracies of all pairs of rows that have at least three runs each."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - slow to import

    values = {
        summary.row.label: np.array([outcome.test for outcome in summary.outcomes])
        for summary in summaries
        if len(summary.outcomes) >= 3
    }
    pairs = list(combinations(values, 2))
    ps, a12s = [], []
    for first, second in pairs:
        a, b = values[first], values[second]
        # Equivalent to the rank-sum test; U counts the pairs that the first wins.
        u, p = mannwhitneyu(a, b, alternative="two-sided")
        ps.append(float(p))
        a12s.append(float(u) / (len(a) * len(b)))
    return tuple(
        Comparison(first, second, p, a12)
        for (first, second), p, a12 in zip(pairs, holm(ps), a12s, strict=True)
    )


def holm(ps: Sequence[float]) -> list[float]:
    """Return Holm-corrected p-values: the smallest times m, the next times m − 1, and so on.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [1.0] * len(ps)
    largest = 0.0
    for rank, position in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[position]))
        corrected[position] = largest
    return corrected
