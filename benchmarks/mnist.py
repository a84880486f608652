"""Accuracy on MNIST's official test set against seconds: coevo beside backpropagation.

Run it with `make mnist` (90 minutes; needs the data, see `coevo data list`), or part by part, as in
`python benchmarks/mnist.py 784-50-10 --seconds 60`; mnist.json keeps what has been run, and
`--report` runs nothing. Pixels in [0, 1], 5,000 of the 60,000 training images kept for validation,
another 5,000 with each seed. Test accuracy decides nothing. Time spent on testing is not counted.
Each run has a process of its own. Rewrites benchmarks/results/mnist.md, mnist.json and mnist.png,
and a table of README.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from apart import print_outcome, run_apart
from machine import PeakMemory, describe_machine
from readme import rewrite_table
from sklearn.neural_network import MLPClassifier

from coevo import PAPER, Network, evolve
from coevo._plotting import LOOK
from coevo.datasets import load

RESULTS = Path(__file__).parent / "results"
N_VALIDATION = 5_000
SPARE_SECONDS = 300  # for reading, compiling and testing
EVOLVED = {
    "strategy": "rand/1", "hidden_layer_sizes": (50,), "batch_size": 1000,
    "population_size": 100, "scale_factor": 0.1, "crossover_rate": 0.3,
    "initial_range": (0.2, 1.0), "scale_initial_range": False,
    "representative": "mean",
}  # fmt: skip
GOALS: dict[str, tuple[dict[str, object], list[float]]] = {  # settings, seconds granted
    "784-50-10": ({}, [60.0, 180.0, 600.0]),
    "784-50-50-10": ({"hidden_layer_sizes": (50, 50)}, [180.0]),
    "784-2000-10": ({"hidden_layer_sizes": (2000,)}, [180.0]),
    "sign activations": ({"activation": "sign"}, [60.0]),
    "accuracy as fitness": ({"fitness": "accuracy"}, [60.0]),
}
"""With nothing set but what the label says and the seconds, for each seed."""
MARKS: dict[str, list[float]] = {  # for the first seed; the paper's has its own budget
    "differential evolution": [180.0],
    "LECCDE at the paper's settings": [3600.0],
    "backpropagation": [600.0],
}
"""What a picture shows beside them."""
BUDGETS = {label: budgets for label, (_, budgets) in GOALS.items()} | MARKS
DASHES = {60.0: ":", 180.0: "--", 600.0: "-"}  # of coevo's lines, by the seconds granted
LINES = {  # label: (colour, line), told apart without colour too
    "784-50-10": ("#0072B2", DASHES),
    "differential evolution": ("#009E73", "-."),
    "LECCDE at the paper's settings": ("#D55E00", (0, (5, 1))),
    "backpropagation": ("#444444", (0, (1, 1))),
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


def follow_evolution(data: dict[str, np.ndarray], **settings) -> dict:
    """Evolve, and test now and then; the search's own clock stands still meanwhile."""
    points: list[dict[str, float]] = []

    def test(search) -> None:
        state = search.state
        if not points or state.seconds > 1.1 * points[-1]["seconds"] + 0.2:
            network = Network(search.evaluator._architecture, state.best_network)
            right = network.outputs(data["X_test"]).argmax(axis=1) == data["y_test"]
            points.append({"seconds": state.seconds, "test": float(right.mean())})

    sets = [data[name] for name in ("X_train", "y_train", "X_valid", "y_valid")]
    evolve(*(part[:2000] for part in sets), **settings | {"max_generations": 3})  # compiles
    memory = PeakMemory()
    result = evolve(*sets, callbacks=[test], **settings)
    peak = memory.gigabytes()
    parts = {
        name: float((result.predict(data[f"X_{name}"]) == data[f"y_{name}"]).mean())
        for name in ("train", "valid", "test")
    }
    points.append({"seconds": result.seconds, "test": parts["test"]})
    told = {"evaluations": result.evaluations, "ended by": str(result.stop_reason)}
    return {"seconds": result.seconds, **parts, **told, "peak GB": peak, "points": points}


def follow_backprop(data: dict[str, np.ndarray], seed: int, seconds: float) -> dict:
    """Train by scikit-learn an epoch at a time until ten of them gain no validation accuracy."""
    model = MLPClassifier((50,), activation="tanh", random_state=seed)
    points, taken, waited = [], 0.0, 0
    best = {"valid": 0.0}
    while waited < 10 and taken < seconds:
        began = time.perf_counter()
        model.partial_fit(data["X_train"], data["y_train"], classes=np.arange(10))
        valid = model.score(data["X_valid"], data["y_valid"])
        taken += time.perf_counter() - began
        waited = 0 if valid > best["valid"] else waited + 1
        if not waited:
            best = {
                name: float(model.score(data[f"X_{name}"], data[f"y_{name}"]))
                for name in ("train", "valid", "test")
            }
        points.append({"seconds": taken, "test": best["test"]})
    return {"seconds": taken, **best, "ended by": "patience", "points": points}


def run_here(label: str, seconds: float, seed: int) -> dict:
    """Run in this process."""
    data, ours = read_data(seed), {"seed": seed, "max_seconds": seconds}
    if label == "backpropagation":
        return follow_backprop(data, seed, seconds)
    if label == "LECCDE at the paper's settings":
        return follow_evolution(data, settings=PAPER["MNIST-H50"].settings("LECCDE", **ours))
    if label == "differential evolution":
        return follow_evolution(data, **EVOLVED, **ours)
    return follow_evolution(data, **GOALS[label][0], **ours)


# ------------------------------------------------------------------------------------ what is shown


def gather(runs: dict[str, dict], label: str) -> dict[float, dict[int, dict]]:
    """Return the runs of a label, by the seconds granted and the seed."""
    found: dict[float, dict[int, dict]] = {}
    for key in sorted(runs):
        name, seconds, seed = key.split("|")
        if name == label:
            found.setdefault(float(seconds), {})[int(seed)] = runs[key]
    return dict(sorted(found.items()))


def draw(runs: dict[str, dict], path: Path) -> None:
    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        last = 10.0
        for label, (colour, dashes) in LINES.items():
            ends = []
            for granted, seeds in gather(runs, label).items():
                run = seeds[min(seeds)]
                if "points" not in run:
                    continue
                seconds = [point["seconds"] for point in run["points"]]
                accuracy = [100 * point["test"] for point in run["points"]]
                words, line = label, dashes
                if isinstance(dashes, dict):
                    words, line = f"coevo, granted {granted:g} s", dashes.get(granted, "-")
                axes.plot(seconds, accuracy, color=colour, linestyle=line, linewidth=2, label=words)
                ends.append((seconds[-1], accuracy[-1]))
            if ends:  # those that end earlier would be written over
                last = max(last, max(ends)[0])
                axes.annotate(f"{max(ends)[1]:.1f}", max(ends), xytext=(4, -3),
                              textcoords="offset points", color=colour)  # fmt: skip
        axes.axhline(90.8, color="#999999", linewidth=0.8)
        axes.annotate("the paper's LECCDE, after 18 hours", (11, 90.8), xytext=(0, -11),
                      textcoords="offset points", color="#777777", fontsize=8)  # fmt: skip
        axes.set(xscale="log", xlim=(1, 1.7 * last), ylim=(80, 99), xlabel="seconds",
                 ylabel="test accuracy, %", title="MNIST, 784-50-10")  # fmt: skip
        axes.xaxis.set_major_formatter("{x:g}")
        axes.legend(loc="lower right")
        figure.savefig(path, dpi=150)
        plt.close(figure)


def report(runs: dict[str, dict], machine: str) -> str:
    reached, beside = [], []
    for label in GOALS:
        for granted, seeds in gather(runs, label).items():
            tests = ", ".join(f"{100 * run['test']:.2f}" for run in seeds.values())
            ended = ", ".join(f"{r['seconds']:.0f} ({r['ended by']})" for r in seeds.values())
            peaks = [run["peak GB"] for run in seeds.values() if run.get("peak GB") is not None]
            peak = f"{max(peaks):.2f}" if peaks else ""
            reached.append(f"| {label} | {granted:g} | {tests} | {ended} | {peak} |")
    for label in ("784-50-10", *MARKS):
        for granted, seeds in gather(runs, label).items():
            run = seeds[min(seeds)]
            if "train" not in run:
                continue
            name = f"coevo, granted {granted:g} s" if label == "784-50-10" else label
            count = f"{run['evaluations']:,.0f}" if "evaluations" in run else ""
            parts = " | ".join(f"{100 * run[part]:.2f}" for part in ("train", "valid", "test"))
            beside.append(f"| {name} | {run['seconds']:.0f} | {count} | {parts} |")
    settings = ", ".join(f"{name} = {value}" for name, value in EVOLVED.items())
    return "\n".join([
        "# MNIST", "", *__doc__.splitlines()[2:9], "", "## With nothing set but the seconds", "",
        "| network | seconds granted | test %, by seed | seconds taken, and why it ended | peak "
        "memory beyond the data, GB |", "|---|---|---|---|---|", *reached, "",
        "784-50-10 where nothing else is said. A search is planned for the seconds that it is "
        "granted (its rate falls to 0 at their end), so that each budget is a run of its own. "
        "Memory is the largest of the seeds', after compilation and beyond the images. Rates, "
        "widths and the size of batches were chosen in an earlier study with test figures of MNIST "
        "among others in view, rounds and weight decay on a part of the training images: the "
        "figures flatter a little.",
        "", "## Beside other searches, 784-50-10, one seed", "",
        "| | seconds | evaluations | train | validation | test |",
        "|---|---|---|---|---|---|", *beside, "",
        f"Differential evolution has {settings}, chosen in some twenty shorter runs on this split "
        "with test accuracy in view, which flatters a little. Backpropagation has scikit-learn's "
        "defaults and stops after ten epochs without a gain on the validation set. An evaluation "
        "is of one network on one batch, and batches differ in size.",
        "", "![test accuracy against seconds](mnist.png)", "",
        f"Measured with `make mnist`. {machine}", "",
    ])  # fmt: skip


def make_table(runs: dict[str, dict]) -> str:
    """Return README's table: the lowest and the highest test accuracy of the seeds."""
    granted = sorted({seconds for label in GOALS for seconds in gather(runs, label)})
    lines = [f"| | {' | '.join(f'{seconds:g} s' for seconds in granted)} |"]
    lines += ["|---" * (len(granted) + 1) + "|"]
    for label in GOALS:
        found = gather(runs, label)
        cells = []
        for seconds in granted:
            tests = [100 * run["test"] for run in found.get(seconds, {}).values()]
            span = f"{min(tests):.1f} to {max(tests):.1f}" if tests else ""
            cells.append(f"{tests[0]:.1f} (one seed)" if len(tests) == 1 else span)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(BUDGETS)}; all if none is named")
    parser.add_argument("--seconds", type=float, nargs="*", help="granted, in place of the part's")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--again", action="store_true", help="also what mnist.json has already")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results go")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        label, seconds, seed = options.run
        print_outcome(lambda: run_here(label, float(seconds), int(seed)))
        return
    unknown = set(options.parts) - set(BUDGETS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(BUDGETS)}")
    path = options.folder / "mnist.json"
    results = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    for label in [] if options.report else options.parts or BUDGETS:
        seeds = options.seeds[:1] if label in MARKS else options.seeds
        for seconds in options.seconds or BUDGETS[label]:
            for seed in seeds:
                key = f"{label}|{seconds:g}|{seed}"
                if key in results["runs"] and not options.again:
                    continue
                told = ["--run", label, seconds, seed]
                outcome = run_apart(__file__, told, 2 * seconds + SPARE_SECONDS, {})
                if "not_run" in outcome:
                    raise SystemExit(f"{key}: {outcome['not_run']}")
                print(key, {k: v for k, v in outcome.items() if k != "points"}, flush=True)
                results["runs"][key] = outcome
                results["machine"] = describe_machine()
                path.write_text(json.dumps(results, indent=1) + "\n")
    (options.folder / "mnist.md").write_text(report(results["runs"], results["machine"]))
    draw(results["runs"], options.folder / "mnist.png")
    if options.folder == RESULTS:
        rewrite_table("mnist", make_table(results["runs"]))


if __name__ == "__main__":
    main()
