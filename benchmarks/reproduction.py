"""Makes docs/reproduction.md and README's table of the paper's accuracies from committed results.

Run it with `make reproduction` after results have changed; it runs nothing itself. Reads
paper.json, ranges.json, ties.json, readings.json, runtimes.json and diversity.json. Rewrites
docs/reproduction.md and README.md from benchmarks/templates, paper.md, ranges.md, ties.md,
readings.md, and the figures paper-*.svg. A test compares the pages with what this makes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
import numpy as np
from claims import (
    BEST,
    EVALUATIONS,
    SETS,
    STAGNATION,
    VARIANTS,
    Evidence,
    find_claims,
    format_multiple,
)
from readings import BASE, PER_CONTEST, average, write_page
from readme import README, replace_table

from coevo import PAPER
from coevo._plotting import LOOK
from coevo._typing import Array
from coevo.persistence.atomic import write_atomically
from coevo.study import open_results, read_plan
from coevo.study.figures import draw_figures, draw_runtimes
from coevo.study.statistics import PARTS, Cell, Reported, Summary, Table, summarise
from coevo.study.tables import count_runs, format_seconds, label_of, to_markdown

HERE = Path(__file__).parent
ROOT, RESULTS = HERE.parent, HERE / "results"
PLANS = {"paper": "paper", "ranges": HERE / "plans/ranges.toml", "ties": HERE / "plans/ties.toml"}
FIGURES = {"figure-2-one-run": "paper-one-run.svg", "figure-3-variants": "paper-variants.svg",
           "figure-4-mnist": "paper-mnist.svg"}  # fmt: skip
MARKS = {"within": "✓", "above": "▲", "below": "▼", "unknown": ""}
PAPER_FIGURE_4 = 91.62  # the best validation accuracy of the run that the paper shows, in its text
MINOR = (
    "batches redrawn each epoch", "validation after each generation only",
    "a trial must be fitter than its target", "decay 0.5",
    "one crossover mask for all trials of a subpopulation",
    "the last global solution, not the best validated", "70/15/15 of all 70,000",
    "pixels as they are, 0 to 255",
)  # fmt: skip
WORSE = (
    "100 hidden neurons", "decay 0", "F 0.3 and CR 0.1, exchanged", "F 0.5, CR 0.9, usual for DE",
    "F 0.5", "CR 0.9", "pixels from −1 to 1", "each pixel standardised",
    "individuals replaced at once (asynchronous)", "exponential crossover",
)  # fmt: skip
RANGES = {"±1": ", ±1", "±2": ", ±2", "±3": ", ±3", "±4": ""}  # in a row's label


class Results:
    """The committed results, and what the templates ask of them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Table]] = {}
        self.outcomes: dict[str, Any] = {}  # of all runs, by key
        for name, source in PLANS.items():
            plan = read_plan(source)
            with open_results(RESULTS / f"{name}.json") as results:
                records = results.records([run.key for run in plan.runs])
            self.outcomes |= {key: record.outcome for key, record in records.items()}
            found = summarise(plan, records)
            self.tables[name] = {table.experiment.name: table for table in found}
        self.runtimes = json.loads((RESULTS / "runtimes.json").read_text(encoding="utf-8"))
        self.readings = json.loads((RESULTS / "readings.json").read_text(encoding="utf-8"))
        diversity = json.loads((RESULTS / "diversity.json").read_text(encoding="utf-8"))
        mark = diversity["evaluations"].index(STAGNATION)
        self.diversity = {
            variant: [run[mark] for run in runs] for variant, runs in diversity["diversity"].items()
        }

    def row(self, experiment: str, label: str, study: str = "paper") -> Summary:
        """Return one row of a study's table."""
        table = self.tables[study][experiment]
        return next(s for s in table.summaries if s.row.label == label)

    def cell(self, experiment: str, label: str, part: str = "test", study: str = "paper") -> Cell:
        """Return the accuracies of a row on a part of the data."""
        return self.row(experiment, label, study).cells[part]

    def reported(self, experiment: str, label: str, part: str = "test") -> Reported:
        """Return the paper's accuracy."""
        result = PAPER[experiment].results[label]
        spread = None if result.spreads is None else result.spreads[PARTS.index(part)]
        return Reported(getattr(result, part), spread, result.is_average)

    def seconds(self, experiment: str, variant: str) -> float:
        """Return what a complete run takes at the measured microseconds an evaluation."""
        return self._microseconds(experiment, variant) * PAPER[experiment].max_evaluations / 1e6

    def relative(self, experiment: str, variant: str) -> float:
        """Return the microseconds an evaluation as a multiple of LECCDE's."""
        unit = self._microseconds(experiment, "LECCDE")
        return self._microseconds(experiment, variant) / unit

    def _microseconds(self, experiment: str, variant: str) -> float:
        measured = self.runtimes["experiments"][experiment][variant]
        return float(np.median([run["microseconds"] for run in measured]))

    @property
    def relative_runtimes(self) -> dict[str, dict[str, float]]:
        """All relative runtimes, by experiment and variant."""
        return {name: {variant: self.relative(name, variant) for variant in VARIANTS}
                for name in self.runtimes["experiments"]}  # fmt: skip

    def judged(self) -> list[tuple[str, str, str, Cell]]:
        """Return the cells that have a spread in the paper: experiment, row, part, cell."""
        return [
            (name, summary.row.label, part, cell)
            for name, table in self.tables["paper"].items()
            for summary in table.summaries
            for part, cell in summary.cells.items()
            if cell.verdict != "unknown"
        ]

    def groups_of_esr(self) -> tuple[Cell, list[float]]:
        """Return LECCDE on ESR with further seeds, and the medians of all seeds by twenty."""
        rows = [self.row("ESR", "LECCDE", study) for study in ("paper", "ranges")]
        values = [100 * outcome.test for row in rows for outcome in row.outcomes]
        groups = [float(np.median(values[i : i + 20])) for i in range(0, len(values), 20)]
        return rows[1].cells["test"], groups

    def range_cell(self, experiment: str, variant: str, reach: str) -> str:
        """Return medians with first weights from a range, each with the paper's mark."""
        row = self.row(experiment, variant + RANGES[reach], "ranges")
        if not row.cells:
            return "–"
        medians = [(row.cells[part].median, part) for part in PARTS]
        return " / ".join(
            f"{median:.2f} {MARKS[self.reported(experiment, variant, part).judge(median)]}"
            for median, part in medians
        )

    def seeds_of(self, experiment: str, variant: str) -> str:
        """Return how many seeds each range has, the last one for itself if it has more."""
        counts = [self.row(experiment, variant + label, "ranges") for label in RANGES.values()]
        first, last = (count_runs(row) for row in (counts[0], counts[-1]))
        return f"{first} seeds" + ("" if first == last else f" ({[*RANGES][-1]}: {last})")

    def fits(self, reach: str, verdict: str = "within") -> str:
        """Return how many of the medians with a range lie within the paper's, or below."""
        tables = self.tables["ranges"]
        verdicts = [
            self.reported(name, variant, part).judge(
                self.cell(name, variant + RANGES[reach], part, "ranges").median
            )
            for name in tables for variant in ("LECCDE", "CCDE") for part in PARTS
            if self.row(name, variant + RANGES[reach], "ranges").cells
        ]  # fmt: skip
        return f"{verdicts.count(verdict)} of {len(verdicts)}"

    def best_validations(self, experiment: str, label: str, partial: Summary) -> list[float]:
        """Return what the seeds of a partial row had by then: their best validation accuracies."""
        complete = {run.seed: run.key for run in self.row(experiment, label).row.runs}
        found = []
        for run in partial.row.runs:
            if self.outcomes.get(run.key) is not None:
                rows = self.outcomes[complete[run.seed]].history
                rows = rows[rows[:, EVALUATIONS] <= partial.evaluations]
                found.append(100 * float(rows[-1, BEST]))
        return found

    def all_lower(self, partial: Summary, others: Sequence[float]) -> bool:
        """Return whether each run of a partial row has a lower validation accuracy than another."""
        ours = [100 * outcome.validation for outcome in partial.outcomes]
        return all(a < b for a, b in zip(ours, others, strict=True))

    def last_of(self, experiment: str, label: str) -> float:
        """Return the best validation accuracy at the end of the run that figure 3 shows."""
        return float(self.row(experiment, label).outcomes[0].history[-1, BEST])

    def is_above(self, rows: list[tuple[str, str]]) -> bool:
        """Return whether the test accuracies of rows are above the paper's spread."""
        return all(self.cell(*row).verdict == "above" for row in rows)

    def means(self, experiment: str, label: str) -> str:
        """Return a row's mean accuracies."""
        return " / ".join(f"{self.cell(experiment, label, part).mean:.2f}" for part in PARTS)

    @property
    def n_readings(self) -> int:
        """The number of other readings of MNIST that were tried."""
        return len(self.readings) - 1

    def reading(self, name: str) -> str:
        """Return the mean accuracies on MNIST under a reading."""
        return " / ".join(f"{value:.2f}" for value in average(self.readings, name))

    def test_of(self, name: str) -> float:
        """Return the mean test accuracy on MNIST under a reading."""
        return float(average(self.readings, name)[2])

    def largest_change(self, names: Sequence[str]) -> float:
        """Return by how much at most some readings change an accuracy on MNIST."""
        base = average(self.readings, BASE)
        return max(float(np.abs(average(self.readings, name) - base).max()) for name in names)

    def count_fitting(self, name: str) -> tuple[int, int]:
        """Return how many medians of LECCDE on other sets fit the paper under a reading, of all."""
        verdicts = [
            self.reported(cell.split()[0], "LECCDE", part).judge(median)
            for cell, found in self.readings[name].items()
            if cell.endswith(" LECCDE") and not cell.startswith("MNIST")
            for part, median in zip(PARTS, np.median(list(found.values()), axis=0), strict=True)
        ]
        return verdicts.count("within"), len(verdicts)

    def medians_of(self, name: str, cell: str) -> str:
        """Return the medians on the three parts under a reading."""
        medians = np.median(list(self.readings[name][cell].values()), axis=0)
        return " / ".join(f"{median:.2f}" for median in medians)

    def crossing(self, percent: float) -> tuple[Array, float]:
        """Return between which shares of a MNIST run validation reaches a level, and its end."""
        rows = self.row("MNIST", "LECCDE").outcomes[0].history
        reached = int(np.flatnonzero(100 * rows[:, BEST] >= percent)[0])
        shares = rows[reached - 1 : reached + 1, EVALUATIONS] / rows[-1, EVALUATIONS]
        return shares, 100 * float(rows[-1, BEST])


def render(results: Results, name: str) -> str:
    """Fill a template; a value that there is not is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "two": "{:.2f}".format, "one": "{:.1f}".format, "times": format_multiple,
        "count": lambda number: f"{number:,}".replace(",", " "),
        "seconds": format_seconds, "mark": MARKS.__getitem__,
        "paper": lambda r: f"{r.value:.2f}" + ("" if r.spread is None else f" ± {r.spread:g}"),
        "minus": lambda text: re.sub(r"(?<![\w<])-(?=\d)", "−", text),
        "label": label_of, "runs": count_runs,
    }  # fmt: skip
    evidence = Evidence(results.tables["paper"], results.relative_runtimes, results.diversity)
    return environment.get_template(name).render(
        r=results, claims=find_claims(evidence), BASE=BASE, PER_CONTEST=PER_CONTEST,
        PAPER=PAPER, PARTS=PARTS,
        VARIANTS=VARIANTS, RANGES=RANGES, SETS=SETS, MINOR=MINOR, WORSE=WORSE,
        PAPER_FIGURE_4=PAPER_FIGURE_4,
    )  # fmt: skip


def make_pages(results: Results) -> dict[Path, str]:
    """Return the content of every page that is made from the results."""
    readme = README.read_text(encoding="utf-8")
    others = {
        RESULTS / f"{name}.md": to_markdown(list(results.tables[name].values()))
        for name in ("ties", "ranges")
    }
    return others | {
        RESULTS / "paper.md": _make_tables(results),
        RESULTS / "readings.md": write_page(results.readings),
        ROOT / "docs" / "reproduction.md": render(results, "reproduction.md"),
        README: replace_table(readme, "reproduction", render(results, "readme.md")),
    }


def _make_tables(results: Results) -> str:
    """Return the tables of the paper's study, with a note on the further seeds of one row."""
    tables = results.tables["paper"]
    text = to_markdown(list(tables.values()), runtimes=False).replace("\n## ", "\n### ")
    further, _ = results.groups_of_esr()
    low, high = further.interval
    note = (
        f"LECCDE with {count_runs(results.row('ESR', 'LECCDE', 'ranges'))} further seeds: "
        f"{further.median:.2f} [{low:.2f}, {high:.2f}] in test accuracy.\n\n"
    )
    end = text.index(f"### {tables['ESR-NP100'].experiment.title}")
    return text[:end] + note + text[end:]


def digest_results() -> str:
    """Return a digest of the results that are drawn; each figure carries it."""
    content = b"".join((RESULTS / name).read_bytes() for name in ("paper.json", "runtimes.json"))
    return f"drawn from the results {hashlib.sha256(content).hexdigest()[:16]}"


def draw(results: Results) -> dict[Path, bytes]:
    """Return the paper's four figures."""
    runtimes: dict[str, Any] = {
        name: {v: (ours, PAPER[name].results[v].relative_runtime) for v, ours in rows.items()}
        for name, rows in results.relative_runtimes.items()
    }
    with matplotlib.rc_context(LOOK):
        found = {RESULTS / "paper-runtime.svg": draw_runtimes(runtimes)}
    drawings = {drawing.name: drawing for drawing in draw_figures(
        list(results.tables["paper"].values()))}  # fmt: skip
    found |= {RESULTS / file: drawings[name].svg for name, file in FIGURES.items()}
    mark = f"<!-- {digest_results()} -->\n".encode()
    return {path: content + mark for path, content in found.items()}


def main() -> None:
    results = Results()
    for path, text in make_pages(results).items():
        write_atomically(path, [text.encode()])
        print(f"wrote {path.relative_to(ROOT)}")
    for path, content in draw(results).items():
        write_atomically(path, [content])
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
