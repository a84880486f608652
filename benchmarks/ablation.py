"""Table and figure of the ablation study: the library's defaults with one setting changed.

`make ablation` runs the study, benchmarks/plans/ablation.toml, and then this. Rewrites
benchmarks/results/ablation.md and ablation.png from ablation.json, so that they can be made anew
without running anything.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from machine import describe_machine

from coevo._plotting import LOOK
from coevo.study.exchange import open_results
from coevo.study.plan import read_plan

HERE = Path(__file__).parent
RESULTS = HERE / "results"
REACH = 10  # points below the defaults' median that the figure shows; beyond, an arrowhead


def collect() -> dict[str, dict[str, np.ndarray]]:
    """Return, by experiment and row, an array of (test accuracy in %, seconds) of the runs."""
    plan = read_plan(HERE / "plans" / "ablation.toml")
    with open_results(RESULTS / "ablation.json") as results:
        records = results.records([run.key for run in plan.runs])
    found: dict[str, dict[str, np.ndarray]] = {}
    for experiment in plan.experiments:
        for row in experiment.rows:
            done = [records[run.key].outcome for run in row.runs if run.key in records]
            if done:
                values = np.array([(100 * outcome.test, outcome.seconds) for outcome in done])
                found.setdefault(experiment.name, {})[row.label] = values
    return found


def write_table(found: dict[str, dict[str, np.ndarray]]) -> str:
    sets = list(found)
    labels = list(dict.fromkeys(label for rows in found.values() for label in rows))
    runs = ", ".join(f"{name} {len(found[name]['defaults'])}" for name in sets)
    lines = [
        "| changed | " + " | ".join(f"{name}, test %" for name in sets) + " |",
        "|---|" + "---|" * len(sets),
    ]
    for label in labels:
        cells = []
        for name in sets:
            values = found[name].get(label)
            if values is None:
                cells.append("")
                continue
            difference = np.median(values[:, 0]) - np.median(found[name]["defaults"][:, 0])
            change = "" if label == "defaults" else f" ({difference:+.2f})"
            cells.append(f"{np.median(values[:, 0]):.2f} ± {values[:, 0].std(ddof=1):.1f}{change}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join([
        *lines, "",
        f"Median ± standard deviation of test accuracy (runs: {runs}), and the difference from the "
        f"defaults. Measured with `make ablation`. {describe_machine()}", "",
    ])  # fmt: skip


def draw(found: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    labels = list(dict.fromkeys(label for rows in found.values() for label in rows))[::-1]
    with plt.rc_context(LOOK):
        figure, panels = plt.subplots(
            1, len(found), figsize=(1.9 * len(found) + 2.4, 0.2 * len(labels) + 1), sharey=True,
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for axes, (name, rows) in zip(panels[0], found.items(), strict=True):
            usual = np.median(rows["defaults"][:, 0])
            axes.axvline(usual, color="#0072B2", linewidth=1)
            edge = usual - REACH
            for place, label in enumerate(labels):
                if label not in rows:
                    continue
                test = rows[label][:, 0]
                colour = "#0072B2" if label == "defaults" else "#444444"
                if np.median(test) < edge:
                    axes.plot(edge, place, "<", color=colour, markersize=5, clip_on=False)
                    continue
                axes.plot([max(test.min(), edge), test.max()], [place] * 2, color=colour, lw=1)
                axes.plot(np.median(test), place, "o", color=colour, markersize=5)
            axes.set(title=name, xlabel="test accuracy, %", yticks=range(len(labels)))
            axes.set_xlim(left=edge)
            axes.set_yticklabels(labels)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main() -> None:
    found = collect()
    table = write_table(found)
    (RESULTS / "ablation.md").write_text(table, encoding="utf-8")
    draw(found, RESULTS / "ablation.png")
    print(table)


if __name__ == "__main__":
    main()
