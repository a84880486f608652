"""The paper's statements, judged by our runs: true, partly, not here, or open for lack of runs.

`reproduction.py` puts them into docs/reproduction.md. A verdict follows from the data by the rule
in its function, so that it changes when further runs change what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import levene, mannwhitneyu

from coevo import PAPER
from coevo.core.history import Generation
from coevo.study.statistics import Summary, Table, holm
from coevo.study.tables import format_p

SETS = ("WBC", "ESR", "ESR-NP100", "HAR")
VARIANTS = ("DE", "LEDE", "CCDE", "LECCDE")
Pair = tuple[str, tuple[str, str], tuple[str, str]]  # a name, two rows
LEVEL = 0.05
FEWEST = 3  # runs of each row for a test
STAGNATION = 80_000  # evaluations after which the paper says LEDE finds nothing better
LEVEL_REACHED = 0.85  # of validation accuracy, by which two variants' speeds are compared
BEST, EVALUATIONS = (Generation._fields.index(name) for name in ("best_validation", "evaluations"))


@dataclass(frozen=True)
class Claim:
    """One statement.

    Parameters
    ----------
    statement
        What the paper says, in our words.
    paper, ours
        The figures of each.
    verdict
        true, partly, not here or open.
    test
        The statistical test, empty where there is none.
    rule
        When it counts as true, if no test decides.
    """

    statement: str
    paper: str
    ours: str
    verdict: str
    test: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Contrast:
    """The test accuracies of two rows: their difference in points, p and A12.

    The difference is of means if the paper has an average for either row, else of medians.
    """

    name: str
    difference: float
    paper: float | None
    p: float | None
    a12: float

    @property
    def is_lower(self) -> bool:
        """Whether the first row is significantly lower."""
        return self.p is not None and self.p < LEVEL and self.a12 < 0.5

    @property
    def is_higher(self) -> bool:
        """Whether the first row is significantly higher."""
        return self.p is not None and self.p < LEVEL and self.a12 > 0.5


class Evidence:
    """Looks up rows.

    Parameters
    ----------
    tables
        The study `paper`, by experiment.
    runtimes
        Microseconds an evaluation as a multiple of LECCDE's, by experiment and variant.
    diversity
        What is left of each variant's diversity at `STAGNATION` evaluations, one number a run.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        runtimes: Mapping[str, Mapping[str, float]],
        diversity: Mapping[str, Sequence[float]],
    ) -> None:
        self.tables, self.runtimes, self.diversity = tables, runtimes, diversity

    def row(self, experiment: str, label: str) -> Summary:
        """Return a row of a table."""
        return next(s for s in self.tables[experiment].summaries if s.row.label == label)

    def tests(self, experiment: str, label: str, part: str = "test") -> np.ndarray:
        """Return the accuracies of a row's runs in per cent."""
        outcomes = self.row(experiment, label).outcomes
        return np.array([100 * getattr(outcome, part) for outcome in outcomes])

    def contrast(self, pairs: Iterable[Pair]) -> Contrasts:
        """Compare rows, (experiment, label) each; p-values are corrected after Holm together."""
        kept = []
        for name, first, second in pairs:
            a, b = self.tests(*first), self.tests(*second)
            if not len(a) or not len(b):
                continue
            u, p = mannwhitneyu(a, b, alternative="two-sided")
            theirs = [PAPER[experiment].results.get(label) for experiment, label in (first, second)]
            paper = None if None in theirs else theirs[0].test - theirs[1].test
            middle = np.mean if any(t and t.is_average for t in theirs) else np.median
            enough = min(len(a), len(b)) >= FEWEST
            kept.append((name, float(middle(a) - middle(b)), paper,
                         float(p) if enough else None, float(u) / (len(a) * len(b))))  # fmt: skip
        corrected = iter(holm([p for *_, p, _ in kept if p is not None]))
        return Contrasts([
            Contrast(name, difference, paper, None if p is None else next(corrected), a12)
            for name, difference, paper, p, a12 in kept
        ])  # fmt: skip

    def within_sets(self, first: str, second: str, names: Sequence[str] = SETS) -> Contrasts:
        """Compare two variants on each of some sets."""
        return self.contrast((name, (name, first), (name, second)) for name in names)


@dataclass(frozen=True)
class Contrasts:
    """Several contrasts that are judged together."""

    items: list[Contrast]

    @property
    def paper(self) -> str:
        """The paper's differences."""
        return ", ".join(f"{c.name} {c.paper:+.1f}" for c in self.items if c.paper is not None)

    @property
    def ours(self) -> str:
        """Our differences."""
        return ", ".join(f"{c.name} {c.difference:+.1f}" for c in self.items)

    @property
    def test(self) -> str:
        """The tests."""
        return ", ".join(
            f"{c.name} {'too few runs' if c.p is None else f'p {format_p(c.p)}, A12 {c.a12:.2f}'}"
            for c in self.items
        )

    def judge(self, holds: Callable[[Contrast], bool]) -> str:
        """Return the verdict on a statement that should hold for each contrast that was tested."""
        tested = [c for c in self.items if c.p is not None]
        if not tested:
            return "open"
        return judge([holds(c) for c in tested])


def judge(answers: Sequence[bool]) -> str:
    return "true" if all(answers) else "partly" if any(answers) else "not here"


def format_multiple(value: float) -> str:
    """Return a multiple with two digits, or as a whole number from 10 on."""
    return f"{value:.2g}×" if value < 10 else f"{value:,.0f}×".replace(",", " ")


def list_values(values: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values)


def find_claims(e: Evidence) -> list[Claim]:
    """Return all claims, in the order of the paper."""
    return [
        *_about_accuracy(e),
        *_about_further_experiments(e),
        *_about_single_runs(e),
        *_about_runtime(e),
        *_about_mnist(e),
    ]


def _about_accuracy(e: Evidence) -> Iterable[Claim]:
    names = [(a, b) for i, a in enumerate(VARIANTS) for b in VARIANTS[i + 1 :]]
    wbc = e.contrast((f"{a} − {b}", ("WBC", a), ("WBC", b)) for a, b in names)
    yield Claim(
        "On WBC the four variants do not differ significantly.",
        f"largest difference {max(abs(c.paper) for c in wbc.items):.1f} points, no test given",
        f"largest difference {max(abs(c.difference) for c in wbc.items):.1f} points",
        wbc.judge(lambda c: not (c.is_higher or c.is_lower)),
        f"smallest p of six {format_p(min(c.p for c in wbc.items if c.p is not None))}",
    )  # fmt: skip
    for name in ("WBC", "ESR"):
        yield _rank_first(e, name, "CCDE")
    pairs = [(a, b, name) for name in ("HAR", "ESR-NP100")
             for a, b in (("CCDE", "DE"), ("LECCDE", "LEDE"))]  # fmt: skip
    helps = e.contrast((f"{n} {a} − {b}", (n, a), (n, b)) for a, b, n in pairs)
    yield Claim(
        "Co-evolution raises accuracy on the large set (HAR) and with a large population (NP 100).",
        helps.paper, helps.ours, helps.judge(lambda c: c.is_higher), helps.test,
    )  # fmt: skip
    on_har = helps.items[:2]
    yield Claim(
        "On HAR co-evolution is about 15 to 20 % better.",
        list_values((c.name, f"{c.paper:+.1f}") for c in on_har),
        list_values((c.name, f"{c.difference:+.1f}") for c in on_har),
        judge([14.5 <= c.difference < 20.5 for c in on_har]),
        rule="each difference, rounded, is from 15 to 20 points, which the paper's own are not",
    )  # fmt: skip
    small = e.contrast(
        (f"{n} {a} − {b}", (n, a), (n, b))
        for n in ("WBC", "ESR") for a, b in (("CCDE", "DE"), ("LECCDE", "LEDE"))
    )  # fmt: skip
    yield Claim(
        "Co-evolution raises accuracy, on the small sets too (WBC, ESR), as the conclusion names "
        "no set.",
        small.paper, small.ours, small.judge(lambda c: c.is_higher), small.test,
    )  # fmt: skip
    limited = e.contrast(
        (f"{n} {a} − {b}", (n, a), (n, b))
        for a, b in (("LECCDE", "CCDE"), ("LEDE", "DE")) for n in SETS
    )  # fmt: skip
    yield Claim(
        "Limited evaluation does not lower accuracy.",
        limited.paper, limited.ours, limited.judge(lambda c: not c.is_lower), limited.test,
    )  # fmt: skip
    better = e.within_sets("CCDE", "LECCDE")
    yield Claim(
        "CCDE is overall a little better than LECCDE, as it sees all instances.",
        better.paper, better.ours, better.judge(lambda c: c.is_higher), better.test,
    )  # fmt: skip
    improves = e.within_sets("LEDE", "DE", ("HAR",))
    yield Claim(
        "On HAR LEDE is better than DE.",
        improves.paper, improves.ours, improves.judge(lambda c: c.is_higher), improves.test,
    )  # fmt: skip
    larger = e.contrast((v, ("ESR-NP100", v), ("ESR", v)) for v in VARIANTS)
    yield Claim(
        "At equal evaluations a population of 100 does worse on ESR than one of 20.",
        larger.paper, larger.ours, larger.judge(lambda c: c.is_lower), larger.test,
    )  # fmt: skip
    deviations = {v: float(e.tests("HAR", v, "train").std(ddof=1)) for v in VARIANTS
                  if len(e.tests("HAR", v)) > 1}  # fmt: skip
    spreads = {v: PAPER["HAR"].results[v].spreads for v in VARIANTS}
    others = [v for v in deviations if v != "LECCDE" and len(e.tests("HAR", v)) >= FEWEST]
    ps = holm([float(levene(e.tests("HAR", "LECCDE", "train"), e.tests("HAR", v, "train")).pvalue)
               for v in others])  # fmt: skip
    smallest = [deviations["LECCDE"] < deviations[v] and p < LEVEL
                for v, p in zip(others, ps, strict=True)]  # fmt: skip
    yield Claim(
        "On HAR LECCDE has the smallest spread of training accuracy.",
        list_values((v, f"± {s[0]}") for v, s in spreads.items() if s),
        list_values((v, f"± {d:.1f}") for v, d in deviations.items()),
        judge(smallest),
        "Brown–Forsythe, LECCDE against " + list_values(
            (v, f"p {format_p(p)}") for v, p in zip(others, ps, strict=True)),
    )  # fmt: skip


def _rank_first(e: Evidence, name: str, variant: str) -> Claim:
    """Return the claim that a variant has the highest test accuracy on a set."""

    def order(accuracies: Mapping[str, float]) -> str:
        ranked = sorted(accuracies, key=lambda v: -accuracies[v])
        return list_values((v, f"{accuracies[v]:.2f}") for v in ranked)

    leads = e.contrast((v, (name, variant), (name, v)) for v in VARIANTS if v != variant)
    medians = {v: float(np.median(e.tests(name, v))) for v in VARIANTS}
    return Claim(
        f"On {name} {variant} appears to be the best of the four in test accuracy"
        + (", LECCDE close behind." if name == "ESR" else "."),
        order({v: PAPER[name].results[v].test for v in VARIANTS}),
        order(medians),
        leads.judge(lambda c: c.is_higher) if any(c.is_higher for c in leads.items)
        else "partly" if max(medians, key=lambda v: medians[v]) == variant else "not here",
        f"{variant} against {leads.test}",
        f"{variant} is significantly higher than each other; partly, if than some, or if its "
        "median is the highest",
    )  # fmt: skip


def _about_further_experiments(e: Evidence) -> Iterable[Claim]:
    longer, larger = ("HAR-900k", "LECCDE"), ("HAR-batch1000", "LECCDE")
    gains = e.contrast([
        ("900 000 evaluations", longer, ("HAR", "LECCDE")),
        ("batches of 1000", larger, ("HAR", "LECCDE")),
    ])  # fmt: skip
    yield Claim(
        "On HAR more evaluations, or larger batches, raise LECCDE by about a point.",
        gains.paper, gains.ours, gains.judge(lambda c: c.is_higher), gains.test,
    )  # fmt: skip
    second = e.contrast([("batches of 1000 − 900 000 evaluations", larger, longer)])
    yield Claim(
        "Larger batches do more than more evaluations.",
        second.paper, second.ours, second.judge(lambda c: c.is_higher), second.test,
    )  # fmt: skip


def _about_single_runs(e: Evidence) -> Iterable[Claim]:
    gains = {v: _late_gains(e.row("HAR", v)) for v in ("LEDE", "LECCDE")}
    p = float(mannwhitneyu(gains["LEDE"], gains["LECCDE"], alternative="two-sided").pvalue)
    medians = {v: float(np.median(g)) for v, g in gains.items()}
    left = {v: float(np.median(d)) for v, d in e.diversity.items()}
    yield Claim(
        "On HAR LEDE has lost its diversity, and improves no more, after about 80 000 evaluations.",
        "one run",
        "after 80 000 evaluations the best validation accuracy still rises by "
        + list_values((v, f"{gain:.1f}") for v, gain in medians.items())
        + " points; the diversity left at that point is "
        + list_values(
            (v, "under 0.1 %" if share < 0.001 else f"{100 * share:.0f} %")
            for v, share in left.items()
        ),
        judge([medians["LEDE"] < 0.5, left["LEDE"] < 0.05]),
        f"gains after 80 000 evaluations differ, p {format_p(p)}",
        "LEDE gains less than 0.5 points and has less than 5 % of its diversity",
    )  # fmt: skip
    speeds = {v: [_reach(o.history, LEVEL_REACHED) for o in e.row("HAR", v).outcomes]
              for v in ("CCDE", "LECCDE")}  # fmt: skip
    p = float(mannwhitneyu(*speeds.values(), alternative="two-sided").pvalue)
    needed = {v: float(np.median(found)) for v, found in speeds.items()}
    yield Claim(
        "On HAR LECCDE improves the speed of CCDE.",
        "one run",
        f"evaluations to reach {100 * LEVEL_REACHED:.0f} % in validation accuracy: "
        + list_values((v, f"{n:,.0f}".replace(",", " ")) for v, n in needed.items()),
        judge([p < LEVEL and needed["LECCDE"] < needed["CCDE"]]),
        f"p {format_p(p)}",
    )  # fmt: skip
    trace = next(o.trace for o in e.row("HAR", "LECCDE").outcomes if o.trace is not None)
    train, validation, test = 100 * trace[len(trace) // 10 :, 1:].T  # without the steep beginning
    highest = float((train >= np.maximum(validation, test)).mean())
    apart = float(np.abs(test - validation).mean())
    above = float((test > validation).mean())
    yield Claim(
        "Along one run training accuracy is nearly always the highest; test follows validation "
        "closely and is at times higher.",
        "one run",
        f"after the first tenth of a run training is highest in {100 * highest:.0f} % of the "
        f"points, test {apart:.1f} points from validation on average, above it in "
        f"{100 * above:.0f} %",
        judge([highest > 0.9, apart < 2, above > 0]),
        rule="training highest in more than 90 %, test less than 2 points away, above at times",
    )  # fmt: skip


def _late_gains(summary: Summary) -> list[float]:
    """Return how much the best validation accuracy of each run rose after `STAGNATION`."""
    gains = []
    for outcome in summary.outcomes:
        rows = outcome.history
        before = rows[rows[:, EVALUATIONS] <= STAGNATION][-1, BEST]
        gains.append(100 * float(rows[-1, BEST] - before))
    return gains


def _reach(history: np.ndarray, level: float) -> float:
    """Return after how many evaluations the best validation accuracy reached a level."""
    reached = np.flatnonzero(history[:, BEST] >= level)
    if not len(reached):
        return float("inf")
    last = max(int(reached[0]), 1)
    (before, after), (low, high) = (history[last - 1 : last + 1, c] for c in (EVALUATIONS, BEST))
    return float(before + (after - before) * (level - low) / (high - low))


def _about_runtime(e: Evidence) -> Iterable[Claim]:
    runtimes, sets = e.runtimes, [name for name in PAPER if name in e.runtimes]

    def theirs(name: str, variant: str) -> float:
        return PAPER[name].results[variant].relative_runtime

    others = [(name, v) for name in sets for v in VARIANTS[:-1]]
    yield Claim(
        "LECCDE is the fastest of the four on every set.",
        "second fastest " + list_values(
            (n, format_multiple(min(theirs(n, v) for v in VARIANTS[:-1]))) for n in sets),
        "second fastest " + list_values(
            (n, format_multiple(min(runtimes[n][v] for v in VARIANTS[:-1]))) for n in sets),
        judge([runtimes[name][v] > 1 for name, v in others]),
        rule="every multiple is above 1",
    )  # fmt: skip
    full = {"CCDE": "LECCDE", "DE": "LEDE"}
    pairs = [(n, a, b) for a, b in full.items() for n in sets]
    saved = {(n, a): runtimes[n][a] / runtimes[n][b] for n, a, b in pairs}
    yield Claim(
        "Limited evaluation saves time, the more the larger the set.",
        list_values(
            (f"{n} {a}/{b}", format_multiple(theirs(n, a) / theirs(n, b))) for n, a, b in pairs
        ),
        list_values((f"{n} {a}/{b}", format_multiple(saved[n, a])) for n, a, b in pairs),
        judge([bool(np.all(np.diff([1, *(saved[n, a] for n in sets)]) > 0)) for a in full]),
        rule="the multiples rise from each set to the next, for CCDE and for DE",
    )  # fmt: skip
    lede = [runtimes[n]["LEDE"] for n in sets]
    yield Claim(
        "LEDE's runtime as a multiple of LECCDE's is about the same on every set.",
        list_values((n, format_multiple(theirs(n, 'LEDE'))) for n in sets),
        list_values((n, format_multiple(runtimes[n]['LEDE'])) for n in sets),
        judge([max(lede) < 1.5 * min(lede)]),
        rule="the largest multiple is less than 1.5 times the smallest",
    )  # fmt: skip


def _about_mnist(e: Evidence) -> Iterable[Claim]:
    lead = e.within_sets("LECCDE", "LEDE", ("MNIST",))
    tested = [c for c in lead.items if c.p is not None]
    yield Claim(
        "On MNIST LECCDE is 8 points better than LEDE.",
        lead.paper, lead.ours,
        judge([tested[0].difference > 0, 6 < tested[0].difference < 10]) if tested else "open",
        lead.test,
        "better by 6 to 10 points; three runs of each cannot be significant",
    )  # fmt: skip
    ours = e.row("MNIST", "LECCDE").cells["test"]
    backprop = e.row("MNIST", "backprop").cells["test"]
    yield Claim(
        "On MNIST LECCDE has 90.80 % on average, about 4 points below backpropagation.",
        "90.80, −4",
        f"{ours.mean:.2f}, {ours.mean - backprop.mean:+.1f}",
        judge([ours.verdict == "within", -6 < ours.mean - backprop.mean < -2]),
        rule="within the paper's spread, and 2 to 6 points below",
    )
