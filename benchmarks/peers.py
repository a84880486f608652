"""Evaluations per second of other libraries on the HAR shape, beside coevo and batched NumPy.

Run it as `python benchmarks/peers.py` in an environment with benchmarks/requirements-peers.txt.
Every library optimises the same flat genotype of the same network on the same batch, each in a
process of its own, so that their thread pools do not meet and a failure stops only one of them.
All are measured in turn; those that other processes disturbed are measured again. Rewrites
benchmarks/results/peers.md and peers.json. benchmarks/race.py says what becomes of the evaluations.
"""
# ruff: noqa: PLC0415  # a library is imported only in the process that measures it

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import libraries
import numpy as np
from apart import print_outcome, run_apart
from libraries import HAR, POPULATION, Finished, Task, timed
from machine import QUIET_CORES, Others, describe_machine, wait_for_quiet

from coevo.diagnostics.baseline import N_NETWORKS, Baseline

RESULTS = Path(__file__).parent / "results"
BATCH_SIZE = 500
BOUND = 4.0
UNIFORM_STD = BOUND / math.sqrt(3)
WARM_UP_SECONDS = 1.0
TIMEOUT_SECONDS = 400


def make_task() -> Task:
    """Return accuracy on the batch of the NumPy baseline; rounding may turn an instance or two."""
    baseline = Baseline(HAR, BATCH_SIZE)
    return Task(
        HAR, baseline.inputs, baseline.targets, libraries.accuracies, tolerance=2.5 / BATCH_SIZE,
        bound=BOUND, limit=BOUND,
    )  # fmt: skip


class Meter:
    """Counts evaluations for so many seconds, after a warm-up that does not count.

    It also notes how much of the processor other processes took meanwhile, in cores, where the
    operating system tells. It starts and stops only at multiples of `group` evaluations.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        self.seconds = seconds
        self.patience = patience
        self.group = 1
        self.evaluations = self.calls = 0
        self.created = time.perf_counter()
        self.started = self.stopped = None
        self.others: float | None = None

    def begin(self) -> None:
        """Do nothing yet: the search warms up first."""

    def count(self, evaluations: int, best: object = None) -> None:
        """Count a call; raise Finished when time is up."""
        now = time.perf_counter()
        self.calls += evaluations
        if self.started is None:
            warm = now - self.created >= WARM_UP_SECONDS and self.calls >= 3 * POPULATION
            if warm and self.calls % self.group == 0:
                self.start()
            return
        self.evaluations += evaluations
        if now - self.started >= self.seconds and self.calls % self.group == 0:
            self.stop()
            raise Finished

    def start(self) -> None:
        """Begin what counts, after waiting for a quiet machine as long as patience lasts."""
        wait_for_quiet(self.patience)
        self._others = Others()
        self.started = time.perf_counter()

    def stop(self) -> None:
        """End what counts."""
        self.stopped = time.perf_counter()
        self.others = self._others.cores()

    def rate(self) -> float:
        """Return evaluations per second."""
        return self.evaluations / (self.stopped - self.started)


# Each of the following measures one library. It fills the meter and returns what else is to tell.


def measure_coevo(meter: Meter) -> dict:
    from speed import random_data

    from coevo import PAPER

    experiment = PAPER["HAR"]
    assert experiment.shape == HAR
    assert experiment.batch_size == BATCH_SIZE
    data = random_data(HAR.n_inputs, HAR.n_outputs, 5000, 1072)
    short = experiment.settings("LECCDE", seed=0, max_generations=3)
    first = timed(lambda: data.evolve(short))
    evaluations, taken, runs = 0, 0.0, 0
    meter.start()
    while taken < meter.seconds:
        result = data.evolve(experiment.settings("LECCDE", seed=0))
        evaluations += result.evaluations
        taken += result.seconds
        runs += 1
    meter.stop()
    return {
        "evaluations_per_second": evaluations / taken,
        "evaluations": evaluations,
        "compiled": True,
        "first_seconds": first,
        "runs": runs,
        "population": experiment.population_size,
    }


def measure_numpy(meter: Meter) -> dict:
    baseline = Baseline(HAR, BATCH_SIZE)
    meter.start()
    rate = baseline.rate(meter.seconds)
    meter.stop()
    return {"evaluations_per_second": rate, "population": N_NETWORKS}


def measure_library(meter: Meter, run: Callable[..., dict]) -> dict:
    return run(make_task(), meter)


def measure_shade(meter: Meter) -> dict:
    meter.group = POPULATION  # its evaluations come in bursts, one a generation
    return libraries.run_shade(make_task(), meter)


def by(run: Callable[..., dict], **options) -> Callable[[Meter], dict]:
    """Return how to measure a library that needs no more than these options."""
    return partial(measure_library, run=partial(run, **options))


@dataclass(frozen=True)
class Subject:
    """One row of the table."""

    library: str
    algorithm: str
    package: str
    measure: Callable[[Meter], dict]
    remark: str


SUBJECTS = {
    "coevo": Subject(
        "coevo", "LECCDE", "coevo", measure_coevo,
        "complete runs at the paper's HAR settings; an evaluation changes one neuron",
    ),
    "numpy": Subject(
        "batched NumPy", "no search", "numpy", measure_numpy, "full forward passes only, in float32"
    ),
    "scipy": Subject(
        "SciPy", "differential_evolution", "scipy", by(libraries.run_scipy),
        "`vectorized=True` with the batched NumPy fitness; search in float64",
    ),
    "evosax": Subject(
        "evosax", "DifferentialEvolution", "evosax", by(libraries.run_evosax, generations_a_call=5),
        "JAX: `vmap`, five generations in one `jit` and `scan`",
    ),
    "evox": Subject("EvoX", "DE", "evox", by(libraries.run_evox), "PyTorch, batched fitness"),
    "cosyne": Subject(
        "EvoTorch", "CoSyNE", "evotorch", by(libraries.run_cosyne, mutation_stdev=0.3),
        "PyTorch, vectorised fitness",
    ),
    "snes": Subject(
        "EvoTorch", "SNES", "evotorch",
        by(libraries.run_snes, stdev=UNIFORM_STD, population=POPULATION),
        "PyTorch, vectorised fitness",
    ),
    "cocma": Subject(
        "PyPop7", "COCMA", "pypop7", by(libraries.run_cocma),
        "one NumPy call for each individual; parts of 30 genes (its default), whose population "
        "size follows from that number",
    ),
    "shade": Subject(
        "PyPop7", "SHADE", "pypop7", measure_shade,
        "one NumPy call for each individual; its crossover is a Python loop over the genes",
    ),
}  # fmt: skip


def measure_here(name: str, seconds: float, patience: float) -> dict:
    """Measure in this process."""
    subject = SUBJECTS[name]
    meter = Meter(seconds, patience)
    outcome = {"version": version(subject.package), "population": POPULATION}
    outcome |= subject.measure(meter)
    if "evaluations_per_second" not in outcome:
        outcome["evaluations"] = meter.evaluations
        outcome["evaluations_per_second"] = meter.rate()
    return outcome | {"cores_of_others": meter.others}


def measure_apart(name: str, seconds: float, patience: float) -> dict:
    """Measure in a process of its own."""
    arguments = ["--measure", name, "--seconds", seconds, "--patience", patience]
    with tempfile.TemporaryDirectory() as empty:
        # Without earlier compilations, so that compilation can be timed.
        caches = {"NUMBA_CACHE_DIR": empty, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        return run_apart(__file__, arguments, TIMEOUT_SECONDS, caches)


def is_disturbed(outcome: dict) -> bool:
    """Tell whether other processes took so much that it is worth measuring again."""
    return (outcome.get("cores_of_others") or 0) > QUIET_CORES


def least_disturbed(outcomes: list[dict]) -> dict:
    """Return the measurement during which other processes took least of the machine.

    The choice looks at the others' processor time, never at the rate itself.
    """
    ran = [outcome for outcome in outcomes if "not_run" not in outcome]
    return min(ran or outcomes, key=lambda outcome: outcome.get("cores_of_others") or 0)


def make_row(name: str, outcome: dict, coevo: float | None) -> str:
    subject = SUBJECTS[name]
    cells = [subject.library, subject.algorithm]
    if "not_run" in outcome:
        cells += ["", "", "not run", "", outcome["not_run"].replace("|", "\\|")]
        return f"| {' | '.join(cells)} |"
    remarks = [subject.remark]
    if "note" in outcome:
        remarks.append(outcome["note"])
    if outcome.get("compiled"):
        remarks.append(f"first call, with compilation, {outcome['first_seconds']:.1f} s (left out)")
    if is_disturbed(outcome):
        remarks.append(f"disturbed: others took {outcome['cores_of_others']:.1f} cores")
    rate = outcome["evaluations_per_second"]
    cells += [
        outcome["version"],
        str(outcome["population"]),
        f"{rate:,.0f}",
        f"{coevo / rate:,.0f}" if coevo else "",
        "; ".join(remarks),
    ]
    return f"| {' | '.join(cells)} |"


def make_report(outcomes: dict[str, dict], seconds: float, loads: list[float]) -> str:
    coevo = outcomes.get("coevo", {}).get("evaluations_per_second")
    others = [row["cores_of_others"] for row in outcomes.values() if row.get("cores_of_others")]
    lines = [
        "# Other libraries on the HAR shape",
        "",
        f"Evaluations per second with a {HAR} network (tanh, then linear",
        f"outputs; {HAR.n_genes:,} genes), a batch of {BATCH_SIZE} random instances, accuracy as",
        f"fitness and a population of {POPULATION}, or the size given where a library decides.",
        "",
        "| library | algorithm | version | population | evaluations/s | coevo ÷ it | remark |",
        "|---|---|---|---|---|---|---|",
        *(make_row(name, outcome, coevo) for name, outcome in outcomes.items()),
        "",
        "What is comparable: the network, the number type of its products, the batch size and the",
        "fitness are the same, and every evaluation, here and there, yields one accuracy over 500",
        "instances. What is not: the peers evaluate whole networks, while an evaluation of coevo",
        "changes one neuron (562 or 51 genes) of a network whose other sums it already holds. An",
        "evaluation of coevo thus tells as much, one accuracy, but about a smaller change; the",
        "table says how fast candidates are tried, not how fast each search learns. COCMA is",
        "cooperative too and changes 30 genes at a time, but its interface asks for the whole",
        "network each time.",
        "",
        "The peers and NumPy get one fixed batch, the same for all of them, and are counted after",
        "warm-up and compilation. coevo's rate is that of complete runs after compilation, on",
        "random data of the HAR size (5,000 training and 1,072 validation rows), with batches",
        "drawn from them, initial sampling, selection and validation included.",
        "",
        f"Each was measured for {seconds:g} seconds in its own process with all cores, one after",
        f"the other. Where other processes took more than {QUIET_CORES} cores meanwhile, it was",
        "measured again later in the run, and the least disturbed measurement counts, whatever its",
        "rate; peers.json holds all of them.",
    ]
    if others:
        lines.append(
            f"In those shown, others took at most {max(others):.2f} cores (median "
            f"{np.median(others):.2f})."
        )
    if loads:
        before, after = loads
        lines.append(f"Load average (1 minute) before {before:.2f}, after {after:.2f}.")
    lines += ["", f"Measured with `python benchmarks/peers.py`. {describe_machine()}"]
    return "\n".join(lines) + "\n"


def read_loads() -> list[float]:
    return [os.getloadavg()[0]] if hasattr(os, "getloadavg") else []


def conclude(
    measured: dict[str, list[dict]], seconds: float, loads: list[float], save: bool
) -> str:
    """Return the report of all measurements so far, and save it, so that no round is lost."""
    loads = loads + read_loads()
    chosen = {name: least_disturbed(outcomes) for name, outcomes in measured.items()}
    report = make_report(chosen, seconds, loads)
    if save:
        content = {
            "shape": HAR,
            "genes": HAR.n_genes,
            "batch": BATCH_SIZE,
            "seconds": seconds,
            "load_average_before_and_after": loads,
            "chosen": chosen,
            "all": measured,
            "on": describe_machine(),
        }
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "peers.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        (RESULTS / "peers.md").write_text(report, encoding="utf-8")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=4, help="at most, of disturbed ones")
    parser.add_argument(
        "--patience", type=float, default=20, help="seconds to wait for a quiet machine, each time"
    )
    parser.add_argument("--only", nargs="*", choices=list(SUBJECTS), help="print, save nothing")
    parser.add_argument("--measure", choices=list(SUBJECTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print_outcome(
            lambda: measure_here(arguments.measure, arguments.seconds, arguments.patience)
        )
        return
    loads = read_loads()
    measured: dict[str, list[dict]] = {name: [] for name in arguments.only or SUBJECTS}
    for _ in range(arguments.rounds):
        for name, outcomes in measured.items():
            if not outcomes or is_disturbed(least_disturbed(outcomes)):
                outcomes.append(measure_apart(name, arguments.seconds, arguments.patience))
                print(name, outcomes[-1], flush=True)
        report = conclude(measured, arguments.seconds, loads, save=not arguments.only)
    print(report)


if __name__ == "__main__":
    main()
