"""Evaluations per second of other libraries on the HAR shape, beside coevo and batched NumPy.

Run it as `python benchmarks/peers.py` in an environment with benchmarks/requirements-peers.txt.
Every library optimises the same flat genotype of the same network on the same batch, each in a
process of its own, so that their thread pools do not meet and a failure stops only one of them.
All are measured in turn; those that other processes disturbed are measured again. Rewrites
benchmarks/results/peers.md and peers.json.
"""
# ruff: noqa: PLC0415  # a library is imported only in the process that measures it

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo.machine.baseline import N_NETWORKS, Baseline

RESULTS = Path(__file__).parent / "results"
SHAPE = N_INPUTS, N_HIDDEN, N_OUTPUTS = 561, 50, 6
BATCH_SIZE = 500
POPULATION = 20
BOUND = 4.0
N_GENES = sum((fan_in + 1) * size for fan_in, size in pairwise(SHAPE))
UNIFORM_STD = BOUND / math.sqrt(3)
WARM_UP_SECONDS = 1.0
QUIET_SECONDS = 0.5
QUIET_CORES = 0.1
TIMEOUT_SECONDS = 400


def make_batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the batch of the NumPy baseline: inputs (one column an instance) and classes."""
    baseline = Baseline(SHAPE, BATCH_SIZE)
    return baseline.inputs, baseline.targets


def make_population(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-BOUND, BOUND, (POPULATION, N_GENES)).astype(np.float32)


def accuracies(population, inputs, targets, tanh):
    """The fitness of all peers, in whichever array library the arguments are.

    A genotype holds the weights and biases of the hidden layer, then those of the outputs. All
    first layers are one matrix product.
    """
    n = population.shape[0]
    ends = np.cumsum([N_HIDDEN * N_INPUTS, N_HIDDEN, N_OUTPUTS * N_HIDDEN]).tolist()
    sums = population[:, : ends[0]].reshape(n * N_HIDDEN, N_INPUTS) @ inputs
    sums = sums.reshape(n, N_HIDDEN, BATCH_SIZE)
    sums += population[:, ends[0] : ends[1]].reshape(n, N_HIDDEN, 1)
    outputs = population[:, ends[1] : ends[2]].reshape(n, N_OUTPUTS, N_HIDDEN) @ tanh(sums)
    outputs += population[:, ends[2] :].reshape(n, N_OUTPUTS, 1)
    return (outputs.argmax(1) == targets).sum(1) / BATCH_SIZE


def numpy_accuracies() -> Callable[[np.ndarray], np.ndarray]:
    inputs, targets = make_batch()

    def evaluate(population):
        # SciPy and PyPop7 keep float64; products in float32 are twice as fast.
        return accuracies(np.asarray(population, dtype=np.float32), inputs, targets, np.tanh)

    return evaluate


def check(evaluate: Callable[[np.ndarray], object]) -> None:
    """Stop if a library's fitness is not the same: rounding may turn an instance or two."""
    population = make_population(seed=1)
    ours, theirs = numpy_accuracies()(population), np.asarray(evaluate(population))
    if ours.shape != theirs.shape or np.abs(ours - theirs).max() > 2.5 / BATCH_SIZE:
        raise AssertionError(f"fitness differs from NumPy's: {theirs} instead of {ours}")


class Finished(Exception):  # noqa: N818  # not an error: it ends optimisers from their objective
    """The time of a measurement is over."""


class Meter:
    """Counts evaluations for so many seconds, after a warm-up that does not count.

    It also notes how much of the processor other processes took meanwhile, in cores, where the
    operating system tells. It begins and ends only at multiples of `group` evaluations.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        self.seconds = seconds
        self.patience = patience
        self.group = 1
        self.evaluations = self.calls = 0
        self.created = time.perf_counter()
        self.begin = self.end = None
        self.others: float | None = None

    def count(self, evaluations: int) -> None:
        """Count a call; raise Finished when time is up."""
        now = time.perf_counter()
        self.calls += evaluations
        if self.begin is None:
            warm = now - self.created >= WARM_UP_SECONDS and self.calls >= 3 * POPULATION
            if warm and self.calls % self.group == 0:
                self.start()
            return
        self.evaluations += evaluations
        if now - self.begin >= self.seconds and self.calls % self.group == 0:
            self.stop()
            raise Finished

    def start(self) -> None:
        """Begin what counts, after waiting for a quiet machine as long as patience lasts."""
        wait_for_quiet(self.patience)
        self._busy, self._own = busy_seconds(), time.process_time()
        self.begin = time.perf_counter()

    def stop(self) -> None:
        """End what counts."""
        self.end = time.perf_counter()
        busy, own = busy_seconds(), time.process_time()
        if busy is not None and self._busy is not None:
            self.others = max(0.0, (busy - self._busy) - (own - self._own)) / (
                self.end - self.begin
            )

    def run(self, step: Callable[[], int]) -> None:
        """Call a generation, which returns its number of evaluations, until time is up."""
        with contextlib.suppress(Finished):
            while True:
                self.count(step())

    def rate(self) -> float:
        """Return evaluations per second."""
        return self.evaluations / (self.end - self.begin)


def busy_seconds() -> float | None:
    """Return the processor time the whole machine has spent, where /proc/stat tells."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    times = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
    idle = times[3] + times[4]
    return (sum(times) - idle) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(patience: float) -> None:
    """Return when the machine does nothing while this process sleeps, or when patience is over."""
    end = time.perf_counter() + patience
    busy = busy_seconds()
    while busy is not None and time.perf_counter() < end:
        time.sleep(QUIET_SECONDS)
        before, busy = busy, busy_seconds()
        if busy - before < QUIET_CORES * QUIET_SECONDS:
            return


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


# Each of the following measures one library. It fills the meter and returns what else is to tell.


def measure_coevo(meter: Meter) -> dict:
    from speed import random_data

    from coevo import PAPER

    experiment = PAPER["HAR"]
    assert experiment.shape == SHAPE
    assert experiment.batch_size == BATCH_SIZE
    data = random_data(N_INPUTS, N_OUTPUTS, 5000, 1072)
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
    baseline = Baseline(SHAPE, BATCH_SIZE)
    meter.start()
    rate = baseline.rate(meter.seconds)
    meter.stop()
    return {"evaluations_per_second": rate, "population": N_NETWORKS}


def measure_scipy(meter: Meter) -> dict:
    from scipy.optimize import differential_evolution

    evaluate = numpy_accuracies()

    def objective(genes_by_individuals):
        meter.count(genes_by_individuals.shape[1])
        return -evaluate(genes_by_individuals.T)

    with contextlib.suppress(Finished):
        differential_evolution(
            objective,
            [(-BOUND, BOUND)] * N_GENES,
            init=make_population(),  # its own population sizes are multiples of the genes
            vectorized=True,
            updating="deferred",
            polish=False,
            maxiter=10**9,
            atol=-1,  # never converged
            tol=0,
            rng=0,
        )
    return {}


def measure_evosax(meter: Meter) -> dict:
    import jax
    import jax.numpy as jnp
    from evosax.algorithms import DifferentialEvolution

    generations_a_call = 5
    inputs, targets = (jnp.asarray(part) for part in make_batch())

    def one_accuracy(genes):
        return accuracies(genes[None], inputs, targets, jnp.tanh)[0]

    evaluate = jax.vmap(one_accuracy)
    check(jax.jit(evaluate))
    algorithm = DifferentialEvolution(population_size=POPULATION, solution=jnp.zeros(N_GENES))
    params = algorithm.default_params

    def generation(state, key):
        ask_key, tell_key = jax.random.split(key)
        population, state = algorithm.ask(ask_key, state, params)
        state, _ = algorithm.tell(tell_key, population, -evaluate(population), state, params)
        return state, None

    @jax.jit
    def generations(state, key):
        keys = jax.random.split(key, generations_a_call)
        return jax.lax.scan(generation, state, keys)[0]

    population = jnp.asarray(make_population())
    key = jax.random.key(0)
    state = algorithm.init(key, population, -evaluate(population), params)

    def step():
        nonlocal state, key
        key, now = jax.random.split(key)
        state = jax.block_until_ready(generations(state, now))
        return generations_a_call * POPULATION

    first = timed(step)
    meter.run(step)
    return {"first_seconds": first, "compiled": True}


def torch_accuracies():
    import torch

    torch.manual_seed(0)
    inputs, targets = (torch.from_numpy(part) for part in make_batch())

    def evaluate(population):
        return accuracies(population, inputs, targets, torch.tanh)

    check(lambda population: evaluate(torch.from_numpy(population)))
    return evaluate


def measure_evox(meter: Meter) -> dict:
    import torch
    from evox.algorithms import DE
    from evox.core import Problem, compile
    from evox.workflows import StdWorkflow

    evaluate = torch_accuracies()

    class Accuracy(Problem):
        """The fitness as EvoX wants it."""

        def evaluate(self, population):
            """Return the accuracy of each individual."""
            return evaluate(population)

    bounds = torch.full((N_GENES,), BOUND)
    workflow = StdWorkflow(DE(POPULATION, -bounds, bounds), Accuracy(), opt_direction="max")
    workflow.init_step()
    generation, compiled, note = compile(workflow.step), True, "torch.compile"

    def step():
        generation()
        return POPULATION

    try:
        first = timed(step)
    except Exception as error:
        generation, compiled = workflow.step, False
        note = f"eager, as torch.compile failed ({type(error).__name__})"
        first = timed(step)
    meter.run(step)
    return {"first_seconds": first, "compiled": compiled, "note": note}


def evotorch_problem():
    import torch
    from evotorch import Problem

    evaluate = torch_accuracies()
    counter = {"evaluations": 0}

    def fitness(population):
        counter["evaluations"] += len(population)
        return evaluate(population.as_subclass(torch.Tensor))  # EvoTorch's are read-only

    problem = Problem(
        "max", fitness, solution_length=N_GENES, initial_bounds=(-BOUND, BOUND), vectorized=True,
        seed=0,
    )  # fmt: skip
    return problem, counter


def run_evotorch(meter: Meter, algorithm, counter: dict[str, int]) -> dict:
    def step():
        before = counter["evaluations"]
        algorithm.step()
        return counter["evaluations"] - before

    first = timed(step)
    meter.run(step)
    return {"first_seconds": first, "evaluations_per_generation": step()}


def measure_cosyne(meter: Meter) -> dict:
    from evotorch.algorithms import Cosyne

    problem, counter = evotorch_problem()
    algorithm = Cosyne(
        problem, popsize=POPULATION, tournament_size=4, mutation_stdev=0.3,
        mutation_probability=0.5, permute_all=True, num_elites=1,
    )  # fmt: skip
    extra = run_evotorch(meter, algorithm, counter)
    extra["note"] = f"{extra['evaluations_per_generation']} evaluations a generation"
    return extra


def measure_snes(meter: Meter) -> dict:
    from evotorch.algorithms import SNES

    problem, counter = evotorch_problem()
    algorithm = SNES(problem, popsize=POPULATION, stdev_init=UNIFORM_STD)
    return run_evotorch(meter, algorithm, counter)


def run_pypop7(meter: Meter, optimiser: type, **options) -> None:
    evaluate = numpy_accuracies()

    def objective(genes):
        meter.count(1)
        return -float(evaluate(genes[None])[0])

    problem = {
        "fitness_function": objective,
        "ndim_problem": N_GENES,
        "lower_boundary": np.full(N_GENES, -BOUND),
        "upper_boundary": np.full(N_GENES, BOUND),
    }
    with contextlib.suppress(Finished):
        optimiser(problem, {"seed_rng": 0, "verbose": 0, **options}).optimize()


def measure_cocma(meter: Meter) -> dict:
    from pypop7.optimizers.cc.cocma import COCMA
    from pypop7.optimizers.es.cmaes import CMAES

    genes = 30  # its own default
    part = {"ndim_problem": genes, "lower_boundary": np.zeros(genes), "upper_boundary": np.ones(30)}
    population = CMAES(part, {"sigma": 1.0}).n_individuals
    run_pypop7(meter, COCMA, ndim_subproblem=genes)
    return {"population": population}


def measure_shade(meter: Meter) -> dict:
    from pypop7.optimizers.de.shade import SHADE

    meter.group = POPULATION  # its evaluations come in bursts, one a generation
    run_pypop7(meter, SHADE, n_individuals=POPULATION)
    return {}


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
        "SciPy", "differential_evolution", "scipy", measure_scipy,
        "`vectorized=True` with the batched NumPy fitness; search in float64",
    ),
    "evosax": Subject(
        "evosax", "DifferentialEvolution", "evosax", measure_evosax,
        "JAX: `vmap`, five generations in one `jit` and `scan`",
    ),
    "evox": Subject("EvoX", "DE", "evox", measure_evox, "PyTorch, batched fitness"),
    "cosyne": Subject(
        "EvoTorch", "CoSyNE", "evotorch", measure_cosyne, "PyTorch, vectorised fitness"
    ),
    "snes": Subject("EvoTorch", "SNES", "evotorch", measure_snes, "PyTorch, vectorised fitness"),
    "cocma": Subject(
        "PyPop7", "COCMA", "pypop7", measure_cocma,
        "one NumPy call for each individual; parts of 30 genes (its default), whose population "
        "size follows from that number",
    ),
    "shade": Subject(
        "PyPop7", "SHADE", "pypop7", measure_shade,
        "one NumPy call for each individual; its crossover is a Python loop over the genes",
    ),
}  # fmt: skip


def measure_here(name: str, seconds: float, patience: float) -> dict:
    """Measure in this process. What goes wrong is told, not raised."""
    subject = SUBJECTS[name]
    try:
        meter = Meter(seconds, patience)
        outcome = {"version": version(subject.package), "population": POPULATION}
        outcome |= subject.measure(meter)
        if "evaluations_per_second" not in outcome:
            outcome["evaluations"] = meter.evaluations
            outcome["evaluations_per_second"] = meter.rate()
    except Exception as error:
        traceback.print_exc()
        return {"not_run": f"{type(error).__name__}: {error}".splitlines()[0]}
    return outcome | {"cores_of_others": meter.others}


def measure_apart(name: str, seconds: float, patience: float) -> dict:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--measure", name]
    command += ["--seconds", str(seconds), "--patience", str(patience)]
    with tempfile.TemporaryDirectory() as empty:
        # Without earlier compilations, so that compilation can be timed.
        caches = {"NUMBA_CACHE_DIR": empty, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
                env=os.environ | caches,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"not_run": f"took longer than {TIMEOUT_SECONDS} seconds"}
    try:
        outcome = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        outcome = {"not_run": f"the process ended with code {ended.returncode}"}
    if "not_run" in outcome:
        print(ended.stderr, file=sys.stderr)
    return outcome


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
        f"Evaluations per second with a {'-'.join(map(str, SHAPE))} network (tanh, then linear",
        f"outputs; {N_GENES:,} genes), a batch of {BATCH_SIZE} random instances, accuracy as",
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
            "shape": SHAPE,
            "genes": N_GENES,
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
        outcome = measure_here(arguments.measure, arguments.seconds, arguments.patience)
        print(json.dumps(outcome), flush=True)
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
