"""Evaluations per second of complete runs, beside batched NumPy and the machine's matrix product.

Run it with `make bench`. Both sides are measured in turn within one run, because machines are
noisy; what counts are the ratios. Rewrites benchmarks/results/speed.md, speed.json and growth.png.
Real data are used where they are found (COEVO_DATA_HOME), random data of the same shape elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
from machine import describe_machine
from threadpoolctl import threadpool_limits

import coevo.core.operators
import coevo.core.search
from coevo import PAPER, Result, evolve
from coevo.core.metrics import METRICS
from coevo.core.search import Search
from coevo.datasets import DatasetError, load, split
from coevo.diagnostics.baseline import Baseline, sgemm_rate
from coevo.engines import delta, open_instances
from coevo.engines.candidates import StagedCandidates
from coevo.engines.kernels import open_instances as kernels
from coevo.engines.kernels import sweeps
from coevo.engines.open_instances import OpenSweep
from coevo.engines.validation import Validator
from coevo.runtime import threads
from coevo.training.paper import SHARED
from coevo.training.variants import variant_settings

RESULTS = Path(__file__).parent / "results"
FLOORS = {"WBC": 10, "ESR": 40, "HAR": 45, "MNIST": 60}


@dataclass(frozen=True)
class Arrays:
    """Training and validation data in the order in which `evolve` takes them."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_valid: np.ndarray
    y_valid: np.ndarray

    def evolve(self, settings) -> Result:
        """Evolve a network on them."""
        return evolve(self.X_train, self.y_train, self.X_valid, self.y_valid, settings)


def random_data(n_inputs: int, n_classes: int, n_train: int, n_valid: int) -> Arrays:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n_train + n_valid, n_inputs)).astype(np.float32)
    y = (X @ rng.normal(size=(n_inputs, n_classes)).astype(np.float32)).argmax(axis=1)
    return Arrays(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def find_data(name: str) -> tuple[Arrays, str]:
    experiment = PAPER[name]
    try:
        parts = split(load(experiment.dataset, download=False), seed=0)
    except DatasetError:
        n_inputs, _, n_outputs = experiment.shape
        n_valid = round(0.15 * experiment.n_instances)
        n_train = experiment.n_instances - 2 * n_valid
        return random_data(n_inputs, n_outputs, n_train, n_valid), "random"
    train, valid = parts.train, parts.validation
    return Arrays(train.inputs, train.labels, valid.inputs, valid.labels), "real"


def measure_shape(name: str, seconds: float) -> dict[str, float | str]:
    """Complete LECCDE runs at the paper's settings, between measurements of the baseline."""
    experiment = PAPER[name]
    data, kind = find_data(name)
    baseline = Baseline(experiment.shape, experiment.batch_size)
    data.evolve(experiment.settings("LECCDE", seed=0, max_generations=3))  # compiles
    rates, products, ours = [baseline.rate()], [sgemm_rate(0.5)], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(ours) < 3:
        ours.append(rate_of_runs(data, name, first_seed=len(ours)))
        rates.append(baseline.rate())
        products.append(sgemm_rate(0.5))
    with threadpool_limits(1, user_api="blas"):
        alone, products_alone = [], [sgemm_rate(0.5)]
        while len(alone) < 3:
            alone.append(rate_of_runs(data, name, first_seed=len(alone), budget=500_000))
            products_alone.append(sgemm_rate(0.5))
    rate = float(np.median(ours))
    return {
        "shape": "-".join(map(str, experiment.shape)),
        "batch": experiment.batch_size,
        "population_size": experiment.population_size,
        "data": kind,
        "evaluations_per_second": rate,
        "baseline": float(np.median(rates)),
        "ratio": rate / float(np.median(rates)),
        "floor": FLOORS[name],
        "seconds_of_a_run": experiment.max_evaluations / rate,
        "sgemm": float(np.median(products)),
        "part_of_sgemm": part_of_product(name, ours, products),
        "evaluations_per_second_on_one_core": float(np.median(alone)),
        "sgemm_on_one_core": float(np.median(products_alone)),
        "part_of_sgemm_on_one_core": part_of_product(name, alone, products_alone),
        "part_in_reach": measure_open_share(name),
    }


def rate_of_runs(data: Arrays, name: str, first_seed: int, budget: int | None = None) -> float:
    """Evaluations per second; short runs are repeated, so that it is no matter of milliseconds."""
    budget = min(PAPER[name].max_evaluations, budget or PAPER[name].max_evaluations)
    evaluations, taken = 0, 0.0
    while taken < 0.5:
        settings = PAPER[name].settings("LECCDE", seed=first_seed, max_evaluations=budget)
        result = data.evolve(settings)
        evaluations += result.evaluations
        taken += result.seconds
    return evaluations / taken


def part_of_product(name: str, rates: list[float], products: list[float]) -> float:
    """Arithmetic of the hidden pre-activations, as a share of the matrix product's rate."""
    n_inputs, n_hidden, n_outputs = PAPER[name].shape
    work = 2 * PAPER[name].batch_size * n_inputs * n_hidden / (n_hidden + n_outputs)
    around = (np.array(products[:-1]) + products[1:]) / 2
    return float(np.median(work * np.array(rates) / around))


@contextmanager
def stopwatch():
    """Time the parts of a run from outside, on every thread: the library holds no stopwatches."""
    spent: dict[str, float] = defaultdict(float)
    lock = Lock()
    parts = [
        (coevo.core.operators, "draw_lanes", "random numbers"),
        (coevo.core.search, "draw_parents", "parents"),
        (coevo.core.operators, "_cross_binomial", "trials"),
        (StagedCandidates, "prepare", "product"),
        (delta.DeltaEvaluator, "_run_global_solution", "activations of the global solution"),
        (kernels, "count_right_with", "intervals, and products with open instances"),
        (open_instances, "select", "selection"),
        (kernels, "replace_neuron", "moves"),
        (sweeps, "sweep", "sweep and selection"),
        (Validator, "follow", "validation"),
        (Search, "_evolve", "total"),
    ]
    parts_and_loop = [(owner, name) for owner, name, _ in parts] + [(kernels, "sweep_open")]
    originals = [(owner, name, getattr(owner, name)) for owner, name in parts_and_loop]

    def timed(function, label):
        def wrapper(*arguments, **options):
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                with lock:
                    spent[label] += time.perf_counter() - start

        return wrapper

    for owner, name, label in parts:
        setattr(owner, name, timed(getattr(owner, name), label))
    kernels.sweep_open = sweep_in_steps
    try:
        yield spent
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def sweep_in_steps(layer, offspring, rule, outcome, first_neuron: int) -> None:
    """What one compiled loop does, in steps that can be timed."""
    neurons = range(first_neuron, first_neuron + len(offspring.trials))
    sweep = OpenSweep(layer, share=1.0)
    sweep.run_in_steps(neurons, offspring, rule, outcome, grain=len(layer.targets))


def measure_open_share(name: str) -> float:
    """Return the share of a batch that is open to a hidden neuron, over a whole run."""
    data, _ = find_data(name)
    shares, find_share, few = [], open_instances.find_open_share, open_instances._FEW

    def note(layer, neurons):
        shares.append(find_share(layer, neurons))
        return shares[-1]

    open_instances.find_open_share, open_instances._FEW = note, 1.0  # however many are open
    try:
        data.evolve(PAPER[name].settings("LECCDE", seed=0))
    finally:
        open_instances.find_open_share, open_instances._FEW = find_share, few
    return float(np.mean(shares))


def measure_shares(name: str) -> dict[str, float]:
    """Return the share of the cores' time that each part takes."""
    data, _ = find_data(name)
    budget = min(PAPER[name].max_evaluations, 500_000)
    with stopwatch() as spent:
        data.evolve(PAPER[name].settings("LECCDE", seed=0, max_generations=3))  # compiles
        spent.clear()
        data.evolve(PAPER[name].settings("LECCDE", seed=0, max_evaluations=budget))
    total = spent.pop("total") * threads.available_threads()
    shares = {label: seconds / total for label, seconds in spent.items()}
    shares["rest, and waiting"] = 1 - sum(shares.values())
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def measure_growth(seconds: float) -> list[dict[str, float | str]]:
    """561 inputs and 6 outputs: wider, deeper, and with a larger batch."""
    data = random_data(561, 6, 10_000, 1000)
    cases = [((h,), 500) for h in (50, 100, 200, 400, 800)]
    cases += [((50, 50), 500), ((50, 50, 50), 500), ((50,), 5000)]
    rows = []
    for hidden, batch_size in cases:
        settings = variant_settings(
            "LECCDE", **SHARED | {"hidden_layer_sizes": hidden, "batch_size": batch_size},
            seed=0, max_evaluations=None, max_seconds=seconds,
        )  # fmt: skip
        data.evolve(settings)
        cost = cost_of_generations(data.evolve(settings))
        base = Baseline((561, *hidden, 6), batch_size).rate(seconds / 2)
        rows.append({
            "hidden": "-".join(map(str, hidden)),
            "batch": batch_size,
            "microseconds": cost,
            "baseline_microseconds": 1e6 / base,
        })  # fmt: skip
    return rows


def measure_metrics(seconds: float) -> dict[str, float]:
    """Microseconds for each evaluation with each metric, on MNIST's shape."""
    experiment = PAPER["MNIST"]
    data, _ = find_data("MNIST")
    costs = {}
    for name, metric in METRICS.items():
        if metric.task == "regression":
            continue
        settings = experiment.settings(
            "LECCDE", seed=0, fitness=name, max_evaluations=None, max_seconds=seconds
        )
        data.evolve(experiment.settings("LECCDE", seed=0, fitness=name, max_generations=1))
        costs[name] = cost_of_generations(data.evolve(settings))
    return costs


def cost_of_generations(result: Result) -> float:
    """Microseconds for each evaluation, the initial sampling of whole networks left out."""
    history = result.history.columns()
    taken = history["seconds"][-1] - history["seconds"][0]
    return 1e6 * taken / (history["evaluations"][-1] - history["evaluations"][0])


def plot_growth(rows: list[dict[str, float | str]], path: Path) -> None:
    import matplotlib  # noqa: PLC0415  # only this benchmark draws

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    wide = [row for row in rows if "-" not in str(row["hidden"]) and row["batch"] == 500]
    sizes = [int(row["hidden"]) for row in wide]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for key, label, style in (
        ("baseline_microseconds", "batched NumPy, whole network", "s--"),
        ("microseconds", "coevo, one neuron (complete run)", "o-"),
    ):
        axes.loglog(sizes, [row[key] for row in wide], style, label=label)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("hidden neurons (561 inputs, 6 outputs, batch 500)")
    axes.set_ylabel("microseconds per evaluation")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def make_report(shapes, shares, growth, costs) -> str:
    lines = [
        "# Speed",
        "",
        "Complete LECCDE runs at the paper's settings, random numbers, selection and validation",
        "included, beside a full forward pass of 20 networks in batched NumPy (accuracy only) with",
        "the same shapes, threads and dtype, measured in turn within one run.",
        "",
        "| set | shape (batch, NP) | evaluations/s | batched NumPy | ratio | floor | seconds a run "
        "| of SGEMM rate | on one core | open instances |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in shapes.items():
        lines.append(
            f"| {name} | {row['shape']} ({row['batch']}, {row['population_size']}) "
            f"| {row['evaluations_per_second']:,.0f} | {row['baseline']:,.0f} "
            f"| {row['ratio']:.1f} | {row['floor']} | {row['seconds_of_a_run']:.2f} "
            f"| {row['part_of_sgemm']:.0%} of {row['sgemm'] / 1e9:.0f} GFLOP/s "
            f"| {row['part_of_sgemm_on_one_core']:.0%} of "
            f"{row['sgemm_on_one_core'] / 1e9:.0f} GFLOP/s "
            f"| {row.get('part_in_reach', np.nan):.1%} |"
        )
    lines += ["", "The SGEMM columns count 2 · batch · inputs for each evaluation of a hidden",
              "neuron, as a share of the rate of a 2048³ float32 product around each run.",
              "It can exceed 100%, as candidates are multiplied only with the instances that the",
              "neuron can still make right or wrong (last column: their mean share of a batch).",
              "", "## Where the cores' time goes", ""]  # fmt: skip
    for name, parts in shares.items():
        text = ", ".join(f"{label} {share:.0%}" for label, share in parts.items())
        lines.append(f"- {name}: {text}.")
    lines += ["", "## How cost grows", "",
              "561 inputs, 6 outputs, NP 20, the paper's settings, microseconds for each",
              "evaluation.", "",
              "| hidden layers | batch | coevo | batched NumPy | ratio |",
              "|---|---|---|---|---|"]  # fmt: skip
    for row in growth:
        ratio = row["baseline_microseconds"] / row["microseconds"]
        lines.append(
            f"| {row['hidden']} | {row['batch']} | {row['microseconds']:.1f} "
            f"| {row['baseline_microseconds']:.0f} | {ratio:.0f} |"
        )
    lines += ["", "## What metrics cost", "",
              "784-60-10, batch 1000, NP 60.", "",
              "| fitness | microseconds for each evaluation | × accuracy |",
              "|---|---|---|"]  # fmt: skip
    for name, cost in costs.items():
        lines.append(f"| {name} | {cost:.1f} | {cost / costs['accuracy']:.1f} |")
    lines += ["", "![growth](growth.png)", "", f"Measured with `make bench`. {describe_machine()}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="for each shape")
    parser.add_argument(
        "--shapes", nargs="*", choices=list(FLOORS),
        help="measure only these anew and keep the rest of speed.json",
    )  # fmt: skip
    arguments = parser.parse_args()
    kept = json.loads((RESULTS / "speed.json").read_text()) if arguments.shapes else {}
    shapes, shares = kept.get("shapes", {}), kept.get("shares", {})
    for name in arguments.shapes or FLOORS:
        shapes[name] = measure_shape(name, arguments.seconds)
        shares[name] = measure_shares(name)
        print(name, {key: value if isinstance(value, str) else round(value, 3)
                     for key, value in shapes[name].items()}, flush=True)  # fmt: skip
    growth = kept.get("growth") or measure_growth(arguments.seconds / 4)
    costs = kept.get("measures") or measure_metrics(arguments.seconds / 2)
    RESULTS.mkdir(exist_ok=True)
    plot_growth(growth, RESULTS / "growth.png")
    content = {
        "shapes": shapes,
        "shares": shares,
        "growth": growth,
        "measures": costs,
        "on": describe_machine(),
    }
    (RESULTS / "speed.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    report = make_report(shapes, shares, growth, costs)
    (RESULTS / "speed.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
