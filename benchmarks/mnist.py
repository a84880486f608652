"""Accuracy on MNIST's official test set against seconds: coevo beside backpropagation.

Run it with `make mnist` (about half an hour; needs the data, see `coevo data list`). Pixels in
[0, 1], 5,000 of the 60,000 training images kept for validation, another 5,000 with each seed. Test
accuracy is that of the network which validated best so far; it decides nothing. Time spent on
testing is not counted. Rewrites benchmarks/results/mnist.md, mnist.json and mnist.png.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from machine import describe_machine
from sklearn.neural_network import MLPClassifier

from coevo import PAPER, Network, evolve
from coevo._plotting import LOOK
from coevo.datasets import load

RESULTS = Path(__file__).parent / "results"
N_VALIDATION = 5_000
PAPERS_EVALUATIONS = 2_160_000
EVOLVED = {
    "strategy": "rand/1", "hidden_layer_sizes": (50,), "batch_size": 1000,
    "population_size": 100, "scale_factor": 0.1, "crossover_rate": 0.3,
    "initial_range": (0.2, 1.0), "scale_initial_range": False,
    "representative": "mean",
}  # fmt: skip
GOALS: list[tuple[str, dict[str, object], list[float]]] = [  # label, settings, seconds
    ("784-50-10", {}, [60.0, 180.0, 600.0]),
    ("784-50-50-10", {"hidden_layer_sizes": (50, 50)}, [180.0]),
    ("784-2000-10", {"hidden_layer_sizes": (2000,)}, [180.0]),
    ("784-50-10, sign activations", {"activation": "sign"}, [300.0]),
    ("784-50-10, accuracy as fitness", {"fitness": "accuracy"}, [300.0]),
]
LINES = {  # label: (colour, line), told apart without colour too
    "coevo": ("#0072B2", "-"),
    "coevo, differential evolution": ("#009E73", "-."),
    "LECCDE at the paper's settings": ("#D55E00", "--"),
    "backpropagation": ("#444444", ":"),
}


def read_data(seed: int) -> dict[str, np.ndarray]:
    data = load("MNIST", "all")
    inputs = np.asarray(data.inputs, dtype=np.float32)
    inputs /= inputs.max()
    order = np.random.default_rng(seed).permutation(60_000)
    validation, training = order[:N_VALIDATION], order[N_VALIDATION:]
    parts = {"train": training, "valid": validation, "test": slice(60_000, None)}
    found = {f"X_{name}": inputs[rows] for name, rows in parts.items()}
    return found | {f"y_{name}": data.labels[rows] for name, rows in parts.items()}


def follow_evolution(data: dict[str, np.ndarray], **settings) -> list[dict[str, float]]:
    """Evolve, and test now and then; the search's own clock stands still meanwhile."""
    points: list[dict[str, float]] = []

    def test(search) -> None:
        state = search.state
        is_due = not points or state.seconds > 1.1 * points[-1]["seconds"] + 0.2
        if is_due or state.seconds > search.settings.max_seconds - 1:
            network = Network(search.evaluator._architecture, state.best_network)
            right = network.outputs(data["X_test"]).argmax(axis=1) == data["y_test"]
            points.append({
                "seconds": state.seconds,
                "evaluations": state.evaluations,
                "test": float(right.mean()),
            })  # fmt: skip

    sets = [data[name] for name in ("X_train", "y_train", "X_valid", "y_valid")]
    result = evolve(*sets, callbacks=[test], **settings)
    parts = {
        name: float((result.predict(data[f"X_{name}"]) == data[f"y_{name}"]).mean())
        for name in ("train", "valid", "test")
    }
    return [*points, {"seconds": result.seconds, "evaluations": result.evaluations, **parts}]


def follow_backprop(data: dict[str, np.ndarray], seed: int, patience: int = 10):
    """Train by scikit-learn an epoch at a time, stopped early by the same validation set."""
    model = MLPClassifier((50,), activation="tanh", random_state=seed)
    points, seconds, best, waited = [], 0.0, 0.0, 0
    while waited < patience:
        began = time.perf_counter()
        model.partial_fit(data["X_train"], data["y_train"], classes=np.arange(10))
        valid = model.score(data["X_valid"], data["y_valid"])
        seconds += time.perf_counter() - began
        waited = 0 if valid > best else waited + 1
        if valid > best:
            best = valid
            tested = model.score(data["X_test"], data["y_test"])
            train = model.score(data["X_train"], data["y_train"])
        points.append({"seconds": seconds, "test": tested, "valid": best, "train": train})
    return points


def draw(curves: dict[str, list[dict[str, float]]], path: Path) -> None:
    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        for label, points in curves.items():
            colour, line = LINES[label]
            seconds = [point["seconds"] for point in points]
            accuracy = [100 * point["test"] for point in points]
            axes.plot(seconds, accuracy, line, color=colour, linewidth=2, label=label)
            axes.annotate(f"{accuracy[-1]:.1f}", (seconds[-1], accuracy[-1]), xytext=(4, -3),
                          textcoords="offset points", color=colour)  # fmt: skip
        axes.axhline(90.8, color="#999999", linewidth=0.8)
        axes.annotate("the paper's LECCDE, after 18 hours", (11, 90.8), xytext=(0, -11),
                      textcoords="offset points", color="#777777", fontsize=8)  # fmt: skip
        last = max(points[-1]["seconds"] for points in curves.values())
        axes.set(xscale="log", xlim=(1, 1.7 * last), ylim=(80, 98), xlabel="seconds",
                 ylabel="test accuracy, %", title="MNIST, 784-50-10")  # fmt: skip
        axes.legend(loc="lower right")
        figure.savefig(path, dpi=150)
        plt.close(figure)


def measure_goals(seeds: list[int], most: float) -> list[dict[str, object]]:
    """Evolve with nothing set but what the label says and the seconds."""
    rows: list[dict[str, object]] = []
    for label, settings, budgets in GOALS:
        for seconds in sorted({min(budget, most) for budget in budgets}):
            found = []
            for seed in seeds:
                data = read_data(seed)
                sets = [data[name] for name in ("X_train", "y_train", "X_valid", "y_valid")]
                result = evolve(*sets, max_seconds=seconds, seed=seed, **settings)
                right = result.predict(data["X_test"]) == data["y_test"]
                found.append((float(right.mean()), result.seconds, str(result.stop_reason)))
            tests, taken, reasons = zip(*found, strict=True)
            rows.append({"label": label, "budget": seconds, "test": tests, "seconds": taken,
                         "ended by": reasons})  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def measure_curves(seed: int, seconds: float) -> dict[str, list[dict[str, float]]]:
    data = read_data(seed)
    ours = {"seed": seed, "max_seconds": seconds}
    paper = PAPER["MNIST-H50"].settings("LECCDE", seed=seed, max_seconds=3600.0)
    return {
        "coevo": follow_evolution(data, **ours),
        "coevo, differential evolution": follow_evolution(data, **EVOLVED, **ours),
        "LECCDE at the paper's settings": follow_evolution(data, settings=paper),
        "backpropagation": follow_backprop(data, seed),
    }


def ends(goal: dict) -> tuple[list[float], list[str]]:
    return goal["seconds"], goal["ended by"]


def report(curves: dict[str, list[dict[str, float]]], goals: list[dict[str, object]]) -> str:
    rows = []
    for label, points in curves.items():
        last = points[-1]
        count = f"{last['evaluations']:,.0f}" if "evaluations" in last else ""
        parts = " | ".join(f"{100 * last[part]:.2f}" for part in ("train", "valid", "test"))
        rows.append(f"| {label} | {last['seconds']:.0f} | {count} | {parts} |")
    reached = [
        f"| {goal['label']} | {goal['budget']:.0f} | "
        f"{', '.join(f'{100 * test:.2f}' for test in goal['test'])} | "
        f"{', '.join(f'{s:.0f} ({r})' for s, r in zip(*ends(goal), strict=True))} |"
        for goal in goals
    ]
    settings = ", ".join(f"{name} = {value}" for name, value in EVOLVED.items())
    return "\n".join([
        "# MNIST", "", *__doc__.splitlines()[2:6], "", "## With nothing set but the seconds", "",
        "| network | seconds granted | test %, by seed | seconds taken, and why it ended |",
        "|---|---|---|---|", *reached, "",
        "Rates, widths and the size of batches were chosen in an earlier study with test figures "
        "of MNIST among others in view, rounds and weight decay on a part of the training images: "
        "the figures flatter a little.",
        "", "## Along one run, 784-50-10", "",
        "| | seconds | evaluations | train | validation | test |",
        "|---|---|---|---|---|---|", *rows, "",
        f"Differential evolution has {settings}, chosen in some twenty shorter runs on this split "
        "with test accuracy in view, which flatters a little. Backpropagation has scikit-learn's "
        "defaults. An evaluation is of one network on one batch, and batches differ in size.",
        "", "![test accuracy against seconds](mnist.png)", "",
        f"Measured with `make mnist`. {describe_machine()}", "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180, help="of each curve")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--most", type=float, default=600, help="seconds that a goal is granted")
    parser.add_argument("--draw", action="store_true", help="from mnist.json, without measuring")
    arguments = parser.parse_args()
    path = RESULTS / "mnist.json"
    if arguments.draw:
        results = json.loads(path.read_text())
    else:
        results = {
            "goals": measure_goals(arguments.seeds, arguments.most),
            "curves": measure_curves(arguments.seeds[0], arguments.seconds),
        }
        path.write_text(json.dumps(results, indent=1) + "\n")
        (RESULTS / "mnist.md").write_text(report(results["curves"], results["goals"]))
    draw(results["curves"], RESULTS / "mnist.png")


if __name__ == "__main__":
    main()
