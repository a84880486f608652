"""How much of its diversity a population keeps along a run on HAR.

Run it with `python benchmarks/diversity.py` (some minutes; needs the data). Diversity is the
standard deviation of a gene over the individuals of its population, averaged over all genes, as a
fraction of what it was after the first generation. Rewrites benchmarks/results/diversity.json,
which docs/reproduction.md is made from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from coevo import PAPER, evolve
from coevo.datasets import load, split
from coevo.persistence.atomic import write_atomically

STORED = Path(__file__).parent / "results" / "diversity.json"
VARIANTS = ("LEDE", "CCDE", "LECCDE")  # DE takes half an hour
SEEDS = (1, 2, 3)
MARKS = (20_000, 40_000, 80_000, 160_000)


def spread(search: Any) -> float:
    blocks = search.state.subpopulations
    total = sum(float(block.std(axis=1).sum()) for block in blocks)
    return total / sum(block.shape[0] * block.shape[2] for block in blocks)


def follow(variant: str, seed: int) -> list[float]:
    """Return the diversity at each mark."""
    parts = split(load("HAR"), seed)
    marks, found = list(MARKS), []

    def look(search: Any) -> None:
        if search.state.generation == 1:
            found.append(spread(search))
        while marks and search.state.evaluations >= marks[0]:
            marks.pop(0)
            found.append(spread(search))

    evolve(
        parts.train.inputs, parts.train.labels, parts.validation.inputs, parts.validation.labels,
        PAPER["HAR"].settings(variant, seed=seed, max_evaluations=MARKS[-1], n_threads=1),
        callbacks=[look],
    )  # fmt: skip
    first, *later = found
    return [float(f"{value / first:.3g}") for value in later]


def main() -> None:
    found = {variant: [follow(variant, seed) for seed in SEEDS] for variant in VARIANTS}
    values = {"evaluations": MARKS, "diversity": found}
    write_atomically(STORED, [(json.dumps(values, indent=1) + "\n").encode()])
    for variant, runs in found.items():
        print(variant, np.median(runs, axis=0))


if __name__ == "__main__":
    main()
