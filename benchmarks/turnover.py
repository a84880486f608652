"""Wide networks by differential evolution: how many of the neurons evolve in each generation.

Run it as `python benchmarks/turnover.py` (15 minutes of one core; needs MNIST, see `coevo data
list`); turnover.json keeps what has been run, and `--report` runs nothing. LECCDE by
`strategy="rand/1"` and cross-entropy, nothing else set but the parts that hidden layers are cut
into (`Turnover`). So that other work on the machine does not matter, a run's budget is counted in
generations: as many as take as long as those of all neurons do, by the least processor time of
three on one thread, measured in turn beforehand. Of the 60,000 training images 5,000 validate and
5,000 others are what accuracy is measured on; the test images are not used. Of the 1,797 digits
these are 300 and 400. Rewrites benchmarks/results/turnover.md and turnover.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from apart import print_outcome, run_apart
from machine import describe_machine
from sklearn.datasets import load_digits

from coevo import Revival, Turnover, evolve
from coevo.datasets import load

RESULTS = Path(__file__).parent / "results"
PATIENCE = 7200  # seconds; a busy machine may grant a small share of its time only
N_TIMED, LEAST_TURNS = 3, 4000  # how often generations are timed, and about how many turns


@dataclass
class InOrder(Turnover):
    """Parts take their turns in the order of neurons."""

    name: ClassVar[str] = "in_order"

    def choose_turns(self, search: Any, turns: Sequence[Any]) -> list[Any]:
        """Take the parts in order."""
        *hidden, outputs = turns
        part = search.state.generation % self.parts
        return [*(take_part(turn, part, self.parts) for turn in hidden), outputs]


@dataclass
class WithOutputs(Turnover):
    """The output layer is cut as hidden layers are."""

    name: ClassVar[str] = "with_outputs"

    def choose_turns(self, search: Any, turns: Sequence[Any]) -> list[Any]:
        """Take the same part of the outputs."""
        *hidden, outputs = super().choose_turns(search, turns)
        part = search.memory(self)["order"][search.state.generation % self.parts]
        some = take_part(outputs, int(part), self.parts)
        return hidden if some is None else [*hidden, some]


def take_part(turn: Any, part: int, parts: int) -> Any:
    n = len(turn.subpopulations)
    return turn.cut(range(n * part // parts, n * (part + 1) // parts))


PARTS = (2, 4, 8, 16)
WAYS: dict[str, dict[str, Any]] = {
    "all in each generation": {"extensions": [Revival()]},
    **{f"{n} parts": {"extensions": [Revival(), Turnover(n)]} for n in PARTS},
    "all, batches of 250": {"extensions": [Revival()], "batch_size": 250},
    "8 parts, in order": {"extensions": [Revival(), InOrder(8)]},
    "8 parts, outputs cut too": {"extensions": [Revival(), WithOutputs(8)]},
    "8 parts, one round of sampling": {
        "extensions": [Revival(), Turnover(8)], "sampling_rounds": 1,
    },
}  # fmt: skip
SIZES = ["all in each generation", *(f"{n} parts" for n in PARTS)]
NETWORKS: dict[str, tuple[int, int, dict[str, int]]] = {  # width, generations of all, seeds
    "MNIST 784-2000-10": (
        2000,
        37,
        {way: 3 if way in (*SIZES[:4:2], "8 parts") else 1 for way in WAYS},
    ),
    "MNIST 784-500-10": (500, 83, {way: 3 if way in SIZES[:4:2] else 1 for way in SIZES}),
    "digits 64-300-10": (300, 17, dict.fromkeys(SIZES, 3)),
}


def read_data(name: str, seed: int) -> list[np.ndarray]:
    """Return inputs and labels to learn from, to validate with and to measure accuracy on."""
    if name.startswith("MNIST"):
        data, ends = load("MNIST", "all"), (5_000, 10_000)
        inputs, labels = data.inputs[:60_000], data.labels[:60_000]
    else:
        (inputs, labels), ends = load_digits(return_X_y=True), (300, 700)
    inputs = np.asarray(inputs, dtype=np.float32)
    inputs /= inputs.max()
    order = np.random.default_rng(seed).permutation(len(inputs))
    validation, measured, training = np.split(order, ends)
    return [array[rows] for rows in (training, validation, measured) for array in (inputs, labels)]


def make_settings(name: str, way: str, seed: int) -> dict[str, Any]:
    return {
        "strategy": "rand/1", "fitness": "cross_entropy", "hidden_layer_sizes": NETWORKS[name][:1],
        "n_threads": 1, "seed": seed, **WAYS[way],
    }  # fmt: skip


def run_here(name: str, way: str, seed: int, n_generations: int) -> dict:
    """Run in this process."""
    *sets, inputs, labels = read_data(name, seed)
    settings = make_settings(name, way, seed)
    result = evolve(*sets, **settings, max_generations=n_generations)
    return {
        "accuracy": float((result.predict(inputs) == labels).mean()),
        "validation": result.validation_fitness,
        "generations": result.generations,
        "evaluations": result.evaluations,
    }


def time_here(name: str) -> dict[str, float]:
    """Return the least processor time of a generation for each way, measured in turn."""
    *sets, _, _ = read_data(name, 1)
    width, _, ways = NETWORKS[name]
    least = dict.fromkeys(ways, np.inf)
    for _ in range(N_TIMED):
        for way in least:
            settings = make_settings(name, way, 1) | {"validate_every": 10**9, "sampling_rounds": 1}
            period = max(extension.turn_period for extension in settings["extensions"])
            n_generations = period * max(1, LEAST_TURNS // width)
            times: list[float] = []
            evolve(
                *sets, **settings, max_generations=1 + n_generations,
                callbacks=[lambda search, times=times: times.append(time.process_time())],
            )  # fmt: skip
            least[way] = min(least[way], (times[-1] - times[0]) / n_generations)
    return least


# ------------------------------------------------------------------------------------ what is shown


def report(results: dict[str, Any]) -> str:
    runs, times = results["runs"], results["times"]
    lines = ["# Wide networks by differential evolution", "", *__doc__.splitlines()[2:11]]
    for name, (_, _, ways) in NETWORKS.items():
        lines += [
            "", f"## {name}", "",
            "| evolving in a generation | accuracy %, by seed | mean | mean validation loss "
            "| ms a generation | generations | evaluations |",
            "|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for way, n_seeds in ways.items():
            found = [runs.get(f"{name}|{way}|{seed}") for seed in range(1, n_seeds + 1)]
            done = [run for run in found if run is not None]
            if not done:
                continue
            mean = {key: np.mean([run[key] for run in done]) for key in done[0]}
            each = ", ".join(f"{100 * run['accuracy']:.1f}" for run in done)
            lines.append(
                f"| {way} | {each} | {100 * mean['accuracy']:.2f} | {-mean['validation']:.4f} | "
                f"{1000 * times[name][way]:.1f} | {mean['generations']:.0f} | "
                f"{mean['evaluations']:,.0f} |"
            )
    measured = f"Measured with `python benchmarks/turnover.py`. {results['machine']}"
    return "\n".join([*lines, "", measured, ""])


def measure(results: dict[str, Any], name: str, way: str, seed: int) -> None:
    """Time generations, unless that has been done, and run as many as there is time for."""
    if name not in results["times"]:
        results["times"][name] = run_or_exit(["--time", name])
    times = results["times"][name]
    n_generations = round(NETWORKS[name][1] * times[SIZES[0]] / times[way])
    results["runs"][f"{name}|{way}|{seed}"] = run_or_exit(["--run", name, way, seed, n_generations])


def run_or_exit(arguments: list[Any]) -> dict:
    outcome = run_apart(__file__, arguments, PATIENCE, {})
    if "not_run" in outcome:
        raise SystemExit(f"{arguments}: {outcome['not_run']}")
    print(*arguments, outcome, flush=True)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help=f"of {', '.join(NETWORKS)}; all if none")
    parser.add_argument("--again", action="store_true", help="also what turnover.json has already")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--time", help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        print_outcome(lambda: time_here(options.time))
        return
    if options.run:
        name, way, *numbers = options.run
        print_outcome(lambda: run_here(name, way, *map(int, numbers)))
        return
    path = RESULTS / "turnover.json"
    results = {"times": {}, "runs": {}}
    if path.exists() and not options.again:
        results = json.loads(path.read_text())
    # Seed by seed, so that what is compared is run close in time.
    todo = [
        (name, way, seed)
        for name, (_, _, ways) in NETWORKS.items()
        for seed in range(1, max(ways.values()) + 1)
        for way, n_seeds in ways.items()
        if seed <= n_seeds and name in (options.networks or NETWORKS)
    ]
    for name, way, seed in [] if options.report else todo:
        if f"{name}|{way}|{seed}" not in results["runs"]:
            measure(results, name, way, seed)
            results["machine"] = describe_machine()
            path.write_text(json.dumps(results, indent=1) + "\n")
    (RESULTS / "turnover.md").write_text(report(results))


if __name__ == "__main__":
    main()
