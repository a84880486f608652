"""WBC, 20 seeds of each variant at the paper's settings, beside the paper's table.

Run it with `make reproduce-wbc`; it rewrites benchmarks/results/wbc.csv, a row a run, and wbc.md.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo import PAPER, VARIANTS, evolve
from coevo.datasets import load, split

RESULTS = Path(__file__).parent / "results"
N_SEEDS = 20
FIELDS = ("variant", "seed", "train", "validation", "test", "evaluations", "generations", "seconds")


def run(variant: str, seed: int) -> dict[str, float | str]:
    """One run on the seed's own 70/15/15 split."""
    data = split(load("WBC"), seed)
    result = evolve(
        data.train.inputs, data.train.labels, data.validation.inputs, data.validation.labels,
        PAPER["WBC"].settings(variant, seed=seed),
    )  # fmt: skip
    test = np.mean(result.predict(data.test.inputs) == data.test.labels)
    values = (
        variant, seed, round(100 * result.train_fitness, 3),
        round(100 * result.validation_fitness, 3), round(100 * float(test), 3),
        result.evaluations, result.generations, round(result.seconds, 4),
    )  # fmt: skip
    return dict(zip(FIELDS, values, strict=True))


def summarise(rows: list[dict[str, float | str]], variant: str, field: str) -> tuple[float, float]:
    """Return median and standard deviation of a variant's runs."""
    values = [float(row[field]) for row in rows if row["variant"] == variant]
    return float(np.median(values)), float(np.std(values, ddof=1))


def make_table(rows: list[dict[str, float | str]]) -> str:
    lines = [
        "| variant | train | validation | test | test in the paper | median seconds |",
        "|---|---|---|---|---|---|",
    ]
    for variant in VARIANTS:
        cells = ["{:.2f} ± {:.1f}".format(*summarise(rows, variant, field))
                 for field in ("train", "validation", "test")]  # fmt: skip
        theirs = PAPER["WBC"].results[variant]
        seconds, _ = summarise(rows, variant, "seconds")
        lines.append(
            f"| {variant} | {' | '.join(cells)} | {theirs.test:.2f} ± {theirs.spread} "
            f"| {seconds:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    run("LECCDE", 0)  # compiles the kernels, so that the first run's seconds are a run's seconds
    run("DE", 0)
    rows = []
    for variant in VARIANTS:
        for seed in range(N_SEEDS):
            rows.append(run(variant, seed))
            if sys.stdout.isatty():
                print(f"\r{variant} {seed + 1}/{N_SEEDS}   ", end="", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "wbc.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = (
        f"# WBC at the paper's settings, {N_SEEDS} seeds\n\n"
        "Accuracy in per cent, median ± standard deviation over the runs.\n\n"
        f"{make_table(rows)}\n\nMeasured with `make reproduce-wbc`. {describe_machine()}\n"
    )
    (RESULTS / "wbc.md").write_text(text, encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
