"""Evolves a 30-50-2 network on breast-cancer data with all four variants, beside the paper.

Run it with `make demo`. One run of each variant at the paper's settings, and one with the library's
defaults; the paper's figures are medians of 20 runs on one core of a 3.5 GHz Xeon E5. Prints a
table and writes a page with a picture of the four runs, out/demo.html.
"""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from coevo import PAPER, VARIANTS, Result, Search, Settings, evolve
from coevo.datasets import Split, load, split
from coevo.persistence.atomic import write_atomically

SEED = 2
DEFAULTS = "defaults"  # the library's settings, which search by smoothing
PAGE = Path("out/demo.html")
EXPERIMENT = PAPER["WBC"]
COLUMNS = ("variant", "train", "validation", "test", "evaluations", "seconds")
# Colours for colour-blind readers; dashes and markers differ too, for print.
STYLES: dict[str, tuple[str, Any, str]] = {
    "DE": ("#D55E00", (0, (1, 1.2)), "s"),
    "LEDE": ("#E69F00", (0, (5, 2)), "^"),
    "CCDE": ("#009E73", (0, (6, 1.5, 1, 1.5)), "D"),
    "LECCDE": ("#0072B2", "solid", "o"),
}


@dataclass(frozen=True)
class Run:
    """A finished run of a variant."""

    variant: str
    result: Result
    accuracies: tuple[float, float, float]

    @property
    def paper_seconds(self) -> float:
        """How long the paper's runs took."""
        assert EXPERIMENT.seconds is not None
        return EXPERIMENT.seconds * EXPERIMENT.results[self.variant].relative_runtime

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table: ours / the paper's, where the paper has it."""
        ours = [f"{100 * accuracy:.1f}" for accuracy in self.accuracies]
        seconds = f"{self.result.seconds:.2f}"
        if self.variant in EXPERIMENT.results:
            theirs = EXPERIMENT.results[self.variant]
            values = (theirs.train, theirs.validation, theirs.test)
            ours = [f"{mine} / {value:.1f}" for mine, value in zip(ours, values, strict=True)]
            seconds += f" / {self.paper_seconds:.0f}"
        return (self.variant, *ours, f"{self.result.evaluations:,}", seconds)


def run_variant(
    variant: str, data: Split, evaluations: int, progress: Progress, task: TaskID
) -> Run:
    """Run one variant and move its bar after each generation."""

    def show(search: Search) -> None:
        latest = search.state.history.latest
        progress.update(task, completed=latest.evaluations)

    if variant == DEFAULTS:
        settings = Settings(seed=SEED, max_evaluations=evaluations, batch_size=100)
    else:
        settings = EXPERIMENT.settings(variant, seed=SEED, max_evaluations=evaluations)
    result = evolve(
        data.train.inputs, data.train.labels, data.validation.inputs, data.validation.labels,
        settings, callbacks=[show],
    )  # fmt: skip
    train, validation, test = (
        float(np.mean(result.predict(part.inputs) == part.labels))
        for part in (data.train, data.validation, data.test)
    )
    return Run(variant, result, (train, validation, test))


def compile_kernels(data: Split) -> None:
    """Run one generation of both engines, so that the runs' seconds are their own."""
    for settings in (
        EXPERIMENT.settings("DE", seed=SEED, max_generations=1),
        EXPERIMENT.settings("LECCDE", seed=SEED, max_generations=1),
        Settings(seed=SEED, max_generations=1, batch_size=100),
    ):
        evolve(
            data.train.inputs, data.train.labels, data.validation.inputs, data.validation.labels,
            settings,
        )  # fmt: skip


# -------------------------------------------------------------------------------------- the page


def draw(runs: list[Run]) -> str:
    """Draw best validation accuracy against seconds, and where the paper's runs ended, as SVG."""
    with rc_context({"font.size": 10, "svg.hashsalt": "coevo"}):
        figure = Figure(figsize=(9, 4.4), layout="constrained")
        axes = figure.subplots()
        for run in runs:
            if run.variant == DEFAULTS:
                continue  # its fitness is cross-entropy
            color, dashes, marker = STYLES[run.variant]
            history = run.result.history.columns()
            seconds, best = history["seconds"], 100 * history["best_validation"]
            axes.step(seconds, best, where="post", color=color, ls=dashes, lw=2.2)
            axes.plot(seconds[-1], best[-1], marker, color=color, ms=8)
            axes.plot([], [], marker, color=color, ls=dashes, lw=2.2, ms=7, label=run.variant)
            axes.plot(
                run.paper_seconds, EXPERIMENT.results[run.variant].validation, marker,
                color=color, ms=9, mfc="none", mew=1.8,
            )  # fmt: skip
        axes.plot([], [], "o", color="#555555", label="our run ends")
        axes.plot([], [], "o", color="#555555", mfc="none", mew=1.8, label="the paper's ended")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
        axes.set(xlabel="seconds", ylabel="validation accuracy, best so far (%)")
        axes.grid(color="#e3e7ea", lw=0.7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right", ncols=3, handlelength=3.5)
        picture = io.StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue().partition("<!DOCTYPE")[2].partition(">")[2]


def write_page(path: Path, runs: list[Run], data: Split) -> None:
    """Write a page that loads nothing from elsewhere."""
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in run.cells) + "</tr>" for run in runs
    )
    parts = (data.train, data.validation, data.test)
    sizes = "/".join(str(len(part.labels)) for part in parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = TEMPLATE.format(picture=draw(runs), head=head, rows=rows, sizes=sizes)
    write_atomically(path, [page.encode()])


TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>coevo: four variants on WBC</title>
<style>
body {{ margin: 0 auto; max-width: 960px; padding: 2rem 1.25rem 3rem; color: #1d2327;
  background: #fff; font: 16px/1.5 "Segoe UI", "Helvetica Neue", Arial, sans-serif; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; }}
p {{ max-width: 75ch; }} .soft {{ color: #56626e; font-size: .92rem; }}
.scroll {{ overflow-x: auto; }} svg {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .45rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #d9dee2; }}
th:first-child, td:first-child {{ text-align: left; }} tr:nth-child(4) {{ font-weight: 600; }}
</style>
</head>
<body>
<h1>A 30-50-2 network, evolved four ways</h1>
<p>Breast-cancer data (WBC, {sizes} training, validation and test instances), accuracy as fitness,
the paper's settings. Each line is one run on this machine; hollow marks are where the paper's runs
ended.</p>
<figure style="margin: 1rem 0" role="img" aria-label="Best validation accuracy against seconds">
{picture}</figure>
<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>
<p class="soft">Ours / the paper's; accuracies in per cent. The last row has the library's own
defaults, which search by cross-entropy and are therefore not in the picture. The paper's figures
are medians of 20 runs, its seconds were taken on one core of a 3.5 GHz Xeon E5. One run says little
about accuracy: <code>make reproduce-wbc</code> does 20 of each.</p>
</body>
</html>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=EXPERIMENT.max_evaluations)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    console = Console()
    data = split(load("WBC"), SEED)
    console.print(
        f"WBC: {len(data.train.labels)} training, {len(data.validation.labels)} validation and "
        f"{len(data.test.labels)} test instances."
    )
    compiling = "Compiling the inner loops, once for this machine"
    if not console.is_terminal:
        console.print(compiling)
    with console.status(compiling):
        compile_kernels(data)
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TextColumn("{task.completed:>7,.0f} evaluations"),
        TimeElapsedColumn(),
    )
    runs = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for variant in (*VARIANTS, DEFAULTS):
            task = progress.add_task(variant, total=arguments.evaluations)
            runs.append(run_variant(variant, data, arguments.evaluations, progress, task))

    table = Table(
        title="Ours (one run) / the paper's (median of 20 runs); accuracies in per cent",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "variant" else "right")
    for run in runs:
        table.add_row(*run.cells)
    console.print(table)
    console.print("One run says little about accuracy: `make reproduce-wbc` does 20 of each.")
    write_page(arguments.page, runs, data)
    if arguments.picture:
        arguments.picture.write_text(draw(runs), encoding="utf-8")
    console.print(f"A picture of the four runs is in {arguments.page}", soft_wrap=True)


if __name__ == "__main__":
    main()
