"""Differential evolution that stays alive: how NP and the constants of `Revival` were chosen.

Run it as `python benchmarks/revival.py --jobs 2`, half an hour on two cores (needs HAR and MNIST,
see `coevo data list`); revival.json keeps what has been run, and `--report` runs nothing. LECCDE by
`strategy="rand/1"`, cross-entropy and 50 hidden neurons; nothing else is set but what a row says,
and NP begins with 20 in those that revive. Budgets are evaluations, so that other work on the
machine does not matter; an evaluation costs about the same in all rows. A run may end before, when
it stagnates. Publishers' test parts are not used: of the training part, one part validates and
another is what accuracy is measured on. Rewrites benchmarks/results/revival.md and revival.json.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from apart import print_outcome, run_apart
from machine import describe_machine
from sklearn.datasets import load_digits

from coevo import Revival, evolve
from coevo.datasets import load

RESULTS = Path(__file__).parent / "results"
SEEDS = (1, 2)
BUDGETS = {  # evaluations; the shorter one of MNIST takes ten seconds of one core
    "MNIST": (1_000_000, 4_000_000, 16_000_000),
    "HAR": (500_000, 2_000_000, 8_000_000),
    "digits": (200_000, 1_000_000, 4_000_000),
}


def revive(least: float, spread: float, largest: int = 160) -> dict[str, Any]:
    """Return settings by which NP doubles at each collapse."""
    return {"extensions": [Revival(least, spread, largest, crowded=least)]}


WAYS: dict[str, dict[str, Any]] = {
    **{f"NP {n}, not revived": {"population_size": n, "extensions": []} for n in (20, 40, 80, 160)},
    "least 0.02, spread 0.2": revive(0.02, 0.2),
    "least 0.005, spread 0.2": revive(0.005, 0.2),
    "least 0.08, spread 0.2": revive(0.08, 0.2),
    "least 0.02, spread 0.05": revive(0.02, 0.05),
    "least 0.02, spread 0.8": revive(0.02, 0.8),
    "least 0.08, spread 0.4": revive(0.08, 0.4),
    "least 0.2, spread 0.4": revive(0.2, 0.4),
    "least 0.2, spread 0.8": revive(0.2, 0.8),
    "the default": {},
    "least 0.02, spread 0.2, never doubled": revive(0.02, 0.2, 20),
    "least 0.02, spread 0.2, doubled to 640": revive(0.02, 0.2, 640),
}
LONG_WAYS = (
    "NP 80, not revived", "NP 160, not revived", "least 0.02, spread 0.2", "the default",
)  # fmt: skip
"""Those that the longest budget is for."""


def read_data(name: str, seed: int) -> list[np.ndarray]:
    """Return inputs and labels to learn from, to validate with and to measure accuracy on."""
    if name == "digits":
        inputs, labels = load_digits(return_X_y=True)
        ends = (300, 700)
    else:
        data = load(name, "all")
        n_training, ends = (60_000, (5_000, 10_000)) if name == "MNIST" else (7_352, (800, 1_800))
        inputs, labels = data.inputs[:n_training], data.labels[:n_training]
    inputs = np.asarray(inputs, dtype=np.float32)
    order = np.random.default_rng(seed).permutation(len(inputs))
    validation, measured, training = np.split(order, ends)
    return [array[rows] for rows in (training, validation, measured) for array in (inputs, labels)]


def run_here(name: str, way: str, seed: int, budget: int) -> dict:
    """Run in this process."""
    *sets, inputs, labels = read_data(name, seed)
    sizes: list[int] = []
    result = evolve(
        *sets, strategy="rand/1", fitness="cross_entropy", hidden_layer_sizes=(50,), n_threads=1,
        seed=seed, max_evaluations=budget, **WAYS[way],
        callbacks=[lambda search: sizes.append(search.state.fitness.shape[1])],
    )  # fmt: skip
    return {
        "accuracy": float((result.predict(inputs) == labels).mean()),
        "validation": result.validation_fitness,
        "evaluations": result.evaluations,
        "population_size": sizes[-1],
        "seconds": result.seconds,
        "ended by": result.stop_reason,
    }


def run(options: argparse.Namespace, results: dict[str, Any], path: Path) -> None:
    """Run what is missing."""
    lock = Lock()

    def measure(job: tuple[str, str, int, int]) -> None:
        key = "|".join(map(str, job))
        if key in results["runs"]:
            return
        outcome = run_apart(__file__, ["--run", *job], 3600, {"OPENBLAS_NUM_THREADS": "1"})
        if "not_run" in outcome:
            raise SystemExit(f"{key}: {outcome['not_run']}")
        with lock:
            results["runs"][key] = outcome
            results["machine"] = describe_machine()
            path.write_text(json.dumps(results, indent=1) + "\n")
            print(key, outcome, flush=True)

    jobs = [
        (name, way, seed, budget)
        for name, budgets in BUDGETS.items()
        for budget in budgets
        for way in WAYS
        for seed in SEEDS
        if name in (options.sets or BUDGETS) and (way in LONG_WAYS or budget < budgets[-1])
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(measure, jobs))


def report(results: dict[str, Any]) -> str:
    runs = results["runs"]
    lines = ["# NP, and the constants of revival", "", *__doc__.splitlines()[2:]]
    for name, budgets in BUDGETS.items():
        heads = [
            f"{budget / 1e6:g} million: accuracy %, by seed | validation loss | last NP"
            for budget in budgets
        ]
        lines += [
            "",
            f"## {name}",
            "",
            f"| | {' | '.join(heads)} |",
            "|---" * (1 + 3 * len(budgets)) + "|",
        ]
        for way in WAYS:
            cells = []
            for budget in budgets:
                found = [runs.get(f"{name}|{way}|{seed}|{budget}") for seed in SEEDS]
                done = [outcome for outcome in found if outcome]
                each = ", ".join(f"{100 * outcome['accuracy']:.1f}" for outcome in done)
                loss = f"{-np.mean([r['validation'] for r in done]):.4f}" if done else ""
                sizes = sorted({outcome["population_size"] for outcome in done})
                cells += [each, loss, ", ".join(map(str, sizes))]
            lines.append(f"| {way} | {' | '.join(cells)} |")
    measured = f"Measured with `python benchmarks/revival.py --jobs 2`. {results['machine']}"
    return "\n".join([*lines, "", measured, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(BUDGETS)}; all if none")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, on a core each")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        name, way, seed, budget = options.run
        print_outcome(lambda: run_here(name, way, int(seed), int(budget)))
        return
    path = RESULTS / "revival.json"
    results = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    if not options.report:
        run(options, results, path)
    (RESULTS / "revival.md").write_text(report(results))


if __name__ == "__main__":
    main()
