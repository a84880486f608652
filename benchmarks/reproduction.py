"""Makes docs/reproduction.md and README's table of the paper's accuracies from committed results.

Run it with `make reproduction` after results have changed; it runs nothing itself. Reads
paper.json, ranges.json, ties.json, readings.json, runtimes.json and diversity.json. Rewrites
docs/reproduction.md and README.md from benchmarks/templates, paper.md, readings.md, and the figures
paper-*.svg. A test compares the pages with what this makes.
"""

from __future__ import annotations

import json
import re
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
RANGES = {"±1": ", ±1", "±2": ", ±2", "±3": ", ±3", "±4": ""}  # in a row's label


class Results:
    """The committed results, and what the templates ask of them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Table]] = {}
        for name, source in PLANS.items():
            plan = read_plan(source)
            with open_results(RESULTS / f"{name}.json") as results:
                found = summarise(plan, results.records([run.key for run in plan.runs]))
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

    def fits(self, reach: str) -> str:
        """Return how many of the medians with a range lie within the paper's."""
        tables = self.tables["ranges"]
        verdicts = [
            self.reported(name, variant, part).judge(
                self.cell(name, variant + RANGES[reach], part, "ranges").median
            )
            for name in tables for variant in ("LECCDE", "CCDE") for part in PARTS
            if self.row(name, variant + RANGES[reach], "ranges").cells
        ]  # fmt: skip
        return f"{verdicts.count('within')} of {len(verdicts)}"

    def best_validation(self, experiment: str, label: str, seed: int, evaluations: int) -> float:
        """Return the best validation accuracy of a run so far."""
        summary = self.row(experiment, label)
        seeds = [run.seed for run in summary.row.runs]
        assert len(summary.outcomes) > seeds.index(seed)
        rows = summary.outcomes[seeds.index(seed)].history
        return 100 * float(rows[rows[:, EVALUATIONS] <= evaluations][-1, BEST])

    @property
    def n_readings(self) -> int:
        """The number of other readings of MNIST that were tried."""
        return len(self.readings) - 1

    def reading(self, name: str) -> str:
        """Return the mean accuracies on MNIST under a reading."""
        return " / ".join(f"{value:.2f}" for value in average(self.readings, name))

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

    def crossing(self, percent: float) -> tuple[float, float]:
        """Return after which share of a MNIST run validation reaches a level, and what remains."""
        rows = self.row("MNIST", "LECCDE").outcomes[0].history
        reached = rows[100 * rows[:, BEST] >= percent]
        share = reached[0, EVALUATIONS] / rows[-1, EVALUATIONS] if len(reached) else float("nan")
        return float(share), 100 * float(rows[-1, BEST])


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
        VARIANTS=VARIANTS, RANGES=RANGES, SETS=SETS,
    )  # fmt: skip


def make_pages(results: Results) -> dict[Path, str]:
    """Return the content of every page that is made from the results."""
    tables = to_markdown(list(results.tables["paper"].values()), runtimes=False)
    readme = README.read_text(encoding="utf-8")
    return {
        RESULTS / "paper.md": tables.replace("\n## ", "\n### "),
        RESULTS / "readings.md": write_page(results.readings),
        ROOT / "docs" / "reproduction.md": render(results, "reproduction.md"),
        README: replace_table(readme, "reproduction", render(results, "readme.md")),
    }


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
    return found | {RESULTS / file: drawings[name].svg for name, file in FIGURES.items()}


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
