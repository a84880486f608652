"""What an evaluation costs in each variant, on one core, all in one session.

Run it with `make runtimes` (about ten minutes on a quiet machine; needs the data). The variants run
in turn, several times, each for a whole run of the paper's or for some seconds of it after the
initial sampling; the median of the microseconds an evaluation counts. Runs of the study `paper`
were done at different times and beside other work, so their seconds are no basis for a comparison.
Rewrites benchmarks/results/runtimes.json, which docs/reproduction.md is made from.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from machine import Others, describe_machine

from coevo import PAPER, VARIANTS, Settings, evolve
from coevo.core.history import Generation
from coevo.datasets import load, split
from coevo.persistence.atomic import write_atomically

STORED = Path(__file__).parent / "results" / "runtimes.json"
EXPERIMENTS = ("WBC", "ESR", "HAR", "MNIST")
EVALUATIONS, SECONDS = map(Generation._fields.index, ("evaluations", "seconds"))
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def run(data: Data, settings: Settings, seconds: float) -> dict[str, float]:
    """Search for some seconds after the initial sampling, or to the end.

    Initial sampling runs complete networks, and would be all that a short run of CCDE does.
    """

    def is_over(search: Any) -> bool:
        return bool(search.state.seconds - search.state.history.rows[0, SECONDS] > seconds)

    result = evolve(*data, settings, callbacks=[is_over])
    first, *_, last = result.history.rows
    evaluations = last[EVALUATIONS] - first[EVALUATIONS]
    return {
        "microseconds": round(1e6 * (last[SECONDS] - first[SECONDS]) / evaluations, 3),
        "evaluations": int(evaluations),
    }


def measure(experiment: str, seconds: float, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Return what each variant's runs gave, in the order of the rounds."""
    paper = PAPER[experiment]
    parts = split(load(paper.dataset), 1)
    data = (parts.train.inputs, parts.train.labels, parts.validation.inputs,
            parts.validation.labels)  # fmt: skip
    settings = {variant: paper.settings(variant, seed=1, n_threads=1) for variant in VARIANTS}
    for chosen in settings.values():
        evolve(*data, chosen, max_generations=1)  # compiles
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    for _ in range(rounds):
        for variant, chosen in settings.items():
            found[variant].append(run(data, chosen, seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="of each run at most")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    others = Others()
    found = {}
    for name in EXPERIMENTS:
        found[name] = measure(name, options.seconds, options.rounds)
        print(name, found[name], flush=True)
    cores = others.cores()
    values = {
        "experiments": found,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "machine": describe_machine(),
        "other_cores": None if cores is None else round(cores, 1),
    }
    write_atomically(STORED, [(json.dumps(values, indent=1) + "\n").encode()])


if __name__ == "__main__":
    main()
