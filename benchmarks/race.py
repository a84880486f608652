"""Test accuracy on HAR against seconds: coevo, other libraries and backpropagation.

Run it as `python benchmarks/race.py` in an environment with benchmarks/requirements-peers.txt
(about ten minutes; needs the data, see `coevo data list`; `--draw` only redraws what is committed).
Each searches in a process of its own, one after the other, with all cores. Rewrites
benchmarks/results/race.json, race.md and race.png.
"""
# ruff: noqa: PLC0415  # a library is imported only in the process that runs it

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import libraries
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from apart import print_outcome, run_apart
from libraries import N_GENES, N_HIDDEN, N_INPUTS, N_OUTPUTS, POPULATION, SHAPE, Finished, Task
from machine import QUIET_CORES, Others, describe_machine, wait_for_quiet

from coevo import Network, evolve
from coevo._plotting import LOOK
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.datasets import Split, load, split

RESULTS = Path(__file__).parent / "results"
ARCHITECTURE = Architecture(N_INPUTS, (N_HIDDEN,), N_OUTPUTS)
LIMIT = 3.0  # times the initial range, for libraries that cannot do without limits
FIRST_POINT, GROWTH = 0.05, 1.1  # when accuracy is looked at, in seconds
SPARE_SECONDS = 300  # for imports, compilation and looking at accuracy


class Referee:
    """Holds the clock of one search, and looks at the accuracy of its best network now and then.

    Whichever of the networks looked at did best on the validation set is the one that is tested,
    and the clock stands still meanwhile.
    """

    def __init__(self, seconds: float, parts: Split, scale: np.ndarray | None = None) -> None:
        self.seconds = seconds
        self.parts = parts
        self.scale = scale
        self.evaluations = 0
        self.points: list[dict[str, float]] = []
        self._due = FIRST_POINT
        self._began = self._stood = 0.0

    def begin(self) -> None:
        """Start the clock, now that all is compiled."""
        self._others = Others()
        self._began = time.perf_counter()

    def outcome(self) -> dict:
        """Return the points, and how much of the machine others took since the clock started."""
        return {"points": self.points, "cores_of_others": self._others.cores()}

    def count(self, evaluations: int, best: Callable[[], object]) -> None:
        """Count a library's evaluations; raise Finished when time is up."""
        self.evaluations += evaluations
        came = time.perf_counter()
        seconds = came - self._began - self._stood

        def predict(inputs: np.ndarray) -> np.ndarray:
            genotype = np.array(best(), dtype=np.float32)[None]
            return libraries.forward(genotype, inputs.T, self.scale, np)[0].argmax(0)

        self.look(seconds, self.evaluations, predict)
        if seconds >= self.seconds:
            raise Finished
        self._stood += time.perf_counter() - came

    def look(
        self, seconds: float, evaluations: int, predict: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        """Add a point, if one is due; predict returns the classes of inputs."""
        if seconds < min(self._due, self.seconds):
            return
        self._due = GROWTH * seconds
        best = self.points[-1] if self.points else {"validation": -1.0, "test": 0.0}
        validation = self._accuracy(self.parts.validation, predict)
        if validation > best["validation"]:
            best = {"validation": validation, "test": self._accuracy(self.parts.test, predict)}
        point = {"seconds": round(seconds, 3), "evaluations": evaluations}
        self.points.append(point | {key: best[key] for key in ("validation", "test")})

    @staticmethod
    def _accuracy(part, predict: Callable[[np.ndarray], np.ndarray]) -> float:
        return float((predict(part.inputs) == part.labels).mean())


# ------------------------------------------------------------------------------------- the searches


def search_coevo(parts: Split, seconds: float, seed: int) -> dict:
    """Evolve with the defaults; the search's own clock counts, which validation is part of."""
    referee = Referee(seconds, parts)
    train, valid = parts.train, parts.validation
    arrays = (train.inputs, train.labels, valid.inputs, valid.labels)

    def look(search) -> None:
        state = search.state
        referee.look(
            state.seconds, state.evaluations, Network(ARCHITECTURE, state.best_network).predict
        )

    evolve(*arrays, max_generations=3, seed=seed)  # compiles
    referee.begin()
    result = evolve(*arrays, callbacks=[look], max_seconds=seconds, max_evaluations=None, seed=seed)
    return referee.outcome() | {"population": result.settings.population_size}


def search_backprop(parts: Split, seconds: float, seed: int) -> dict:
    """Train by scikit-learn an epoch at a time; only its training is timed."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((N_HIDDEN,), activation="tanh", random_state=seed)
    referee = Referee(seconds, parts)
    taken, epochs = 0.0, 0
    referee.begin()
    while taken < seconds:
        began = time.perf_counter()
        model.partial_fit(parts.train.inputs, parts.train.labels, classes=np.arange(N_OUTPUTS))
        taken += time.perf_counter() - began
        epochs += 1
        referee.look(taken, epochs, model.predict)
    return referee.outcome() | {"population": None}


def make_task(parts: Split, seed: int) -> Task:
    """Return cross-entropy on all training instances, with genes in units of the initial range.

    That range is coevo's: see `Settings.scale_initial_range`.
    """
    inputs = parts.train.inputs
    size = np.sqrt(np.mean(np.square(inputs, dtype=np.float64)))
    first_range = Settings(strategy="rand/1").resolved().initial_range
    widths = first_range / np.sqrt([N_INPUTS, N_HIDDEN]) / [size, 1.0]
    genes = [(N_INPUTS + 1) * N_HIDDEN, (N_HIDDEN + 1) * N_OUTPUTS]
    return Task(
        np.ascontiguousarray(inputs.T),
        np.eye(N_OUTPUTS, dtype=np.float32)[:, parts.train.labels],
        libraries.minus_losses,
        tolerance=1e-3,
        bound=1.0,
        limit=LIMIT,
        scale=np.repeat(widths, genes).astype(np.float32),
        seed=seed,
    )


def search_library(
    parts: Split, seconds: float, seed: int, run: Callable[..., dict], **options
) -> dict:
    task = make_task(parts, seed)
    referee = Referee(seconds, parts, task.scale)
    told = run(task, referee, **options)
    return {"population": POPULATION} | told | referee.outcome()


@dataclass(frozen=True)
class Runner:
    """One row of the table and one line of the picture.

    Its colour says the library; dashes and marker tell the algorithms apart without colour.
    """

    library: str
    algorithm: str
    package: str
    search: Callable[..., dict]
    remark: str
    colour: str
    dashes: str | tuple
    marker: str


def by(run: Callable[..., dict], **options) -> Callable[..., dict]:
    return partial(search_library, run=run, **options)


BLUE, ORANGE, GREEN, SKY, VERMILION, PURPLE = (  # Okabe and Ito's, which colour-blind people tell
    "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY, INK = "#777777", "#222222"

RUNNERS = {
    "coevo": Runner(
        "coevo", "LECCDE", "coevo", search_coevo,
        "all settings the defaults of `evolve`; batches of 500; an evaluation changes one neuron",
        BLUE, "-", "o",
    ),
    "scipy": Runner(
        "SciPy", "differential_evolution", "scipy", by(libraries.run_scipy),
        f"its default F and CR; genes limited to {LIMIT:g} × the initial range",
        ORANGE, "--", "s",
    ),
    "evosax": Runner(
        "evosax", "DifferentialEvolution", "evosax", by(libraries.run_evosax, generations_a_call=1),
        "its default F and CR", GREEN, "-.", "^",
    ),
    "evox": Runner(
        "EvoX", "DE", "evox", by(libraries.run_evox),
        f"its default F and CR; genes limited to {LIMIT:g} × the initial range",
        SKY, (0, (6, 1, 1, 1, 1, 1)), "v",
    ),
    "cosyne": Runner(
        "EvoTorch", "CoSyNE", "evotorch", by(libraries.run_cosyne, mutation_stdev=0.1),
        "half the genes mutate, by 0.1 × the initial range; tournaments of 4; one elite",
        VERMILION, (0, (3, 1)), "D",
    ),
    "snes": Runner(
        "EvoTorch", "SNES", "evotorch",
        by(libraries.run_snes, stdev=0.1, population=None, batch_size=500),
        "a new random batch of 500 each generation; first steps of 0.1 × the initial range; its "
        "mean is tested", VERMILION, (0, (8, 2)), "P",
    ),
    "cocma": Runner(
        "PyPop7", "COCMA", "pypop7", by(libraries.run_cocma, sigma=0.3),
        "parts of 30 genes (its default); first steps of 0.3 × the initial range",
        PURPLE, (0, (4, 1, 1, 1)), "X",
    ),
    "shade": Runner(
        "PyPop7", "SHADE", "pypop7", by(libraries.run_shade),
        "its crossover is a Python loop over the genes", PURPLE, (0, (2, 1)), ">",
    ),
    "backprop": Runner(
        "scikit-learn", "backpropagation (Adam)", "scikit-learn", search_backprop,
        "`MLPClassifier`, its defaults, an epoch at a time", GREY, ":", "",
    ),
}  # fmt: skip


def search_here(name: str, seconds: float, seed: int) -> dict:
    """Search in this process."""
    runner = RUNNERS[name]
    release = version(runner.package)  # before all else, as it may be missing
    parts = split(load("HAR"), seed)
    return {"version": release} | runner.search(parts, seconds, seed)


# ------------------------------------------------------------------------------------ what is shown

HEADINGS = (
    "library", "algorithm", "version", "population", "evaluations", "validation %",
    "test %", "with",
)  # fmt: skip


def make_row(name: str, outcome: dict) -> str:
    runner = RUNNERS[name]
    if "not_run" in outcome:
        reason = outcome["not_run"].replace("|", "\\|")
        return f"| {runner.library} | {runner.algorithm} | | | not run | | | {reason} |"
    last = outcome["points"][-1]
    remarks = [runner.remark]
    if outcome.get("note"):
        remarks.append(outcome["note"])
    if (outcome.get("cores_of_others") or 0) > QUIET_CORES:
        remarks.append(f"disturbed: others took {outcome['cores_of_others']:.1f} cores")
    unit = " epochs" if name == "backprop" else ""
    cells = [
        runner.library, runner.algorithm, outcome["version"], str(outcome["population"] or ""),
        f"{last['evaluations']:,}{unit}", f"{100 * last['validation']:.2f}",
        f"{100 * last['test']:.2f}", "; ".join(remarks),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def make_report(content: dict) -> str:
    seconds, seed = content["seconds"], content["seed"]
    command = "python benchmarks/race.py"
    if seconds != 60 or seed != 1:
        command += f" --seconds {seconds:g} --seed {seed}"
    lines = [
        "# Accuracy against seconds: other libraries on HAR",
        "",
        f"Each searched for {seconds:g} seconds for the {N_GENES:,} weights and biases of a",
        f"{'-'.join(map(str, SHAPE))} network (tanh): one run each, on the same split (seed",
        f"{seed}) of 5,000 rows for training, 1,072 for validation and 1,072 for the test.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---" * len(HEADINGS) + "|",
        *(make_row(name, outcome) for name, outcome in content["outcomes"].items()),
        "",
        "![test accuracy against seconds of searching](race.png)",
        "",
        "What is comparable: the data, the network, the seconds on all cores of one machine, and",
        "what is tested: of the networks looked at, whenever a tenth more time has passed, the one",
        "with the best validation accuracy. All evolutionary searches maximise minus the",
        "cross-entropy and begin with weights from the same range, coevo's default; the genes of",
        "the other libraries are in units of that range, so that one step size suits both layers.",
        f"Their populations are {POPULATION}, as coevo's default is, unless a library has a size",
        "of its own. All that the table does not mention is a library's default.",
        "",
        "What is not: an evaluation of coevo measures a change of one neuron on a batch of 500,",
        "one of the others a whole network on all 5,000 training rows (SNES: on 500), so that",
        "numbers of evaluations say little across rows. coevo is made for this task, and its",
        "defaults were chosen with this data set among others; the other libraries are made for",
        "optimisation at large, and got far less attention. Of their settings only three step",
        "sizes were chosen for the task, by validation accuracy on this split in one run of 20",
        "seconds each, on a busy machine and so with few evaluations, not equally many: SNES and",
        "CoSyNE, the best of 0.03, 0.1 and 0.3; COCMA, 0.3, which did no better or worse than 0.1",
        "and 0.667 (its default). In longer runs other steps, and with them other settings, may do",
        "better. One run each says nothing about small differences.",
        "Backpropagation uses gradients, which the others do without; it is there as a mark.",
        "",
        "Time for imports, compilation and looking at accuracy is not counted, except that coevo",
        "validates each generation within its time. The evaluation of the first population is",
        "counted, except in evosax and EvoX, where it is part of the preparation.",
        "",
        f"Measured with `{command}`. {content['on']}",
    ]
    return "\n".join(lines) + "\n"


def spread(heights: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the given heights, in the same order, at least a gap apart."""
    order = np.argsort(heights, kind="stable")
    # Neighbours that are too close are joined and stand, gap by gap, around their mean.
    groups: list[list[float]] = []

    def stand(group: list[float]) -> np.ndarray:
        places = np.mean(group) + gap * (np.arange(len(group)) - (len(group) - 1) / 2)
        return places + max(0.0, low - places[0]) - max(0.0, places[-1] - high)

    for index in order:
        groups.append([heights[index]])
        while len(groups) > 1 and stand(groups[-1])[0] - stand(groups[-2])[-1] < gap:
            last = groups.pop()
            groups[-1] += last
    places = np.empty(len(heights))
    places[order] = np.concatenate([stand(group) for group in groups])
    return places.tolist()


def darker(colour: str) -> np.ndarray:
    """Return a colour for words, which need more contrast than lines."""
    return 0.72 * np.array(mpl.colors.to_rgb(colour))


def draw(content: dict, path: Path) -> None:
    outcomes = {name: o for name, o in content["outcomes"].items() if o.get("points")}
    low, high = 0.0, 100.0
    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(figsize=(7.6, 4.4))
        figure.subplots_adjust(left=0.075, right=0.735, bottom=0.115, top=0.92)
        seconds = [p["seconds"] for outcome in outcomes.values() for p in outcome["points"]]
        axes.set(
            xscale="log", xlim=(0.9 * min(0.1, *seconds), 1.05 * max(seconds)), ylim=(low, high)
        )
        ends = [100 * outcome["points"][-1]["test"] for outcome in outcomes.values()]
        places = spread(ends, 0.052 * (high - low), low, high)
        for (name, outcome), end, place in zip(outcomes.items(), ends, places, strict=True):
            runner, points = RUNNERS[name], outcome["points"]
            weight = {"coevo": 2.6, "backprop": 1.8}.get(name, 1.5)
            axes.plot(
                [point["seconds"] for point in points], [100 * point["test"] for point in points],
                color=runner.colour, linestyle=runner.dashes, linewidth=weight,
                marker=runner.marker, markersize=6, markevery=0.12, markeredgecolor="white",
                markeredgewidth=0.5, zorder=3 if name == "coevo" else 2,
            )  # fmt: skip
            words = "backpropagation" if name == "backprop" else runner.library
            if name not in ("backprop", "coevo"):
                words += f" {runner.algorithm.replace('DifferentialEvolution', 'DE')}"
            axes.annotate(
                f"{end:.1f}  {words.replace('differential_evolution', 'DE')}",
                (points[-1]["seconds"], end),
                xytext=(1.06, place), textcoords=("axes fraction", "data"), va="center",
                color=darker(runner.colour), weight="bold" if name == "coevo" else "normal",
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-", "color": runner.colour, "linewidth": 0.9, "shrinkA": 1,
                    "shrinkB": 1, "relpos": (0, 0.5),
                },
            )  # fmt: skip
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set(xlabel="seconds of searching", ylabel="test accuracy, %")
        axes.set_title(f"HAR, {'-'.join(map(str, SHAPE))}", loc="left")
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each search")
    parser.add_argument("--seed", type=int, default=1, help="of the split and of the searches")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for a quiet machine, each time"
    )
    parser.add_argument("--only", nargs="*", choices=list(RUNNERS), help="run only these")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results go")
    parser.add_argument("--draw", action="store_true", help="run nothing, redraw race.json")
    parser.add_argument("--search", choices=list(RUNNERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seconds, seed, folder = arguments.seconds, arguments.seed, arguments.folder
    if arguments.search:
        print_outcome(lambda: search_here(arguments.search, seconds, seed))
        return
    if arguments.draw:
        content = json.loads((folder / "race.json").read_text(encoding="utf-8"))
    else:
        outcomes = {}
        for name in arguments.only or RUNNERS:
            wait_for_quiet(arguments.patience)
            outcomes[name] = run_apart(
                __file__, ["--search", name, "--seconds", seconds, "--seed", seed],
                2 * seconds + SPARE_SECONDS, {},
            )  # fmt: skip
            last = outcomes[name]["points"][-1] if "points" in outcomes[name] else outcomes[name]
            print(name, last, flush=True)
        content = {
            "shape": SHAPE, "genes": N_GENES, "seconds": seconds, "seed": seed,
            "outcomes": outcomes, "on": describe_machine(),
        }  # fmt: skip
        folder.mkdir(exist_ok=True)
        (folder / "race.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    report = make_report(content)
    (folder / "race.md").write_text(report, encoding="utf-8")
    if any(outcome.get("points") for outcome in content["outcomes"].values()):
        draw(content, folder / "race.png")
    print(report)


if __name__ == "__main__":
    main()
