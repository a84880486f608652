"""Evolves a 30-50-2 network on breast-cancer data with all four variants, beside the paper.

Run it with `make demo`. One run of each variant at the paper's settings; the paper's figures are
medians of 20 runs on one core of a 3.5 GHz Xeon E5.
"""

from __future__ import annotations

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from coevo import PAPER, VARIANTS, Result, Search, evolve
from coevo.datasets import Split, load, split

SEED = 2


def evolve_with_progress(variant: str, data: Split, progress: Progress, task: TaskID) -> Result:
    """Run one variant and move its bar after each generation."""

    def show(search: Search) -> None:
        latest = search.state.history.latest
        progress.update(task, completed=latest.evaluations, best=latest.best_validation)

    settings = PAPER["WBC"].settings(variant, seed=SEED)
    return evolve(
        data.train.inputs, data.train.labels, data.validation.inputs, data.validation.labels,
        settings, callbacks=[show],
    )  # fmt: skip


def compile_kernels(data: Split) -> None:
    """Run one generation of both engines, so that the runs' seconds are their own."""
    for variant in ("DE", "LECCDE"):
        evolve(
            data.train.inputs, data.train.labels, data.validation.inputs, data.validation.labels,
            PAPER["WBC"].settings(variant, seed=SEED, max_generations=1),
        )  # fmt: skip


def main() -> None:
    console = Console()
    paper = PAPER["WBC"]
    data = split(load("WBC"), SEED)
    console.print(
        f"WBC: {len(data.train.labels)} training, {len(data.validation.labels)} validation and "
        f"{len(data.test.labels)} test instances."
    )
    with console.status("Compiling the inner loops, once for this machine"):
        compile_kernels(data)
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TextColumn("{task.completed:>7,.0f} evaluations, best validation {task.fields[best]:.1%}"),
        TimeElapsedColumn(),
    )
    results = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for variant in VARIANTS:
            task = progress.add_task(variant, total=paper.max_evaluations, best=0.0)
            results[variant] = evolve_with_progress(variant, data, progress, task)

    table = Table(
        title="Ours (one run) / the paper's (median of 20 runs); accuracies in per cent",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("variant")
    for heading in ("train", "validation", "test", "evaluations", "seconds"):
        table.add_column(heading, justify="right")
    for variant, result in results.items():
        test = np.mean(result.predict(data.test.inputs) == data.test.labels)
        theirs = paper.results[variant]
        assert paper.seconds is not None
        table.add_row(
            variant,
            f"{100 * result.train_fitness:.1f} / {theirs.train:.1f}",
            f"{100 * result.validation_fitness:.1f} / {theirs.validation:.1f}",
            f"{100 * test:.1f} / {theirs.test:.1f}",
            f"{result.evaluations:,}",
            f"{result.seconds:.2f} / {paper.seconds * theirs.relative_runtime:.0f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
