"""Test accuracy on HAR and MNIST against seconds: coevo, other libraries and backpropagation.

Run it in an environment with benchmarks/requirements-peers.txt (needs the data, see `coevo data
list`), first to choose the other libraries' settings, then to race:

    python benchmarks/race.py HAR --tune       # 26 searches of 20 s; a quarter of an hour
    python benchmarks/race.py HAR              # 10 of 60 s; 12 minutes
    python benchmarks/race.py MNIST --tune     # a quarter of an hour
    python benchmarks/race.py MNIST            # 10 of 180 s; 35 minutes
    python benchmarks/race.py --report         # runs nothing

Each searches in a process of its own, one after the other, with all cores. What race.json has
already is not run again, unless `--only` names it, so that a race can be run piece by piece.
Rewrites benchmarks/results/race.json, race.md, race.png and race_mnist.png.
"""
# ruff: noqa: PLC0415  # a library is imported only in the process that runs it

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import libraries
import numpy as np
import race_report
from apart import print_outcome, run_apart
from libraries import POPULATION, Finished, Shape, Task
from machine import Others, describe_machine, wait_for_quiet
from mnist import read_data

from coevo import Network, evolve
from coevo.core.defaults import resolve
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.datasets import Part, Split, load, split

RESULTS = Path(__file__).parent / "results"
LIMIT = 3.0  # times the initial range, for libraries that cannot do without limits
FIRST_POINT, GROWTH = 0.05, 1.1  # when accuracy is looked at, in seconds
SPARE_SECONDS = 300  # for imports, compilation and looking at accuracy
TUNING_SECONDS = 20.0


class Referee:
    """Holds the clock of one search, and looks at the accuracy of its best network now and then.

    Whichever of the networks looked at did best on the validation set is the one that is tested,
    and the clock stands still meanwhile.
    """

    def __init__(
        self, seconds: float, parts: Split, shape: Shape, scale: np.ndarray | None = None
    ) -> None:
        self.seconds = seconds
        self.parts = parts
        self.shape = shape
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
            return libraries.forward(genotype, inputs.T, self.shape, self.scale, np)[0].argmax(0)

        self.look(seconds, self.evaluations, predict)
        if seconds >= self.seconds:
            raise Finished
        self._stood += time.perf_counter() - came

    def look(
        self,
        seconds: float,
        evaluations: int,
        predict: Callable[[np.ndarray], np.ndarray],
        is_end: bool = False,
    ) -> None:
        """Add a point, if one is due or the search has ended; predict returns classes."""
        if seconds < min(self._due, self.seconds) and not is_end:
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


# --------------------------------------------------------------------------------- what is run for


@dataclass(frozen=True)
class Race:
    """A data set, a network for it and the seconds that each search gets."""

    name: str
    shape: Shape
    seconds: float
    marks: tuple[float, ...]  # seconds at which the table says how far each search is
    picture: str
    read: Callable[[int], Split]


def read_mnist(seed: int) -> Split:
    """Return 55,000 training images, 5,000 of validation and the official test images."""
    data = read_data(seed)

    def part(name: str) -> Part:
        labels = data[f"y_{name}"]
        return Part(data[f"X_{name}"], labels, np.arange(len(labels)))

    return Split(part("train"), part("valid"), part("test"), None)


RACES = {
    "HAR": Race(
        "HAR", libraries.HAR, 60.0, (10.0, 60.0), "race.png", lambda seed: split(load("HAR"), seed)
    ),
    "MNIST": Race(
        "MNIST", libraries.MNIST, 180.0, (10.0, 60.0, 180.0), "race_mnist.png", read_mnist
    ),
}


@dataclass(frozen=True)
class Start:
    """What a search is told."""

    parts: Split
    shape: Shape
    seconds: float
    seed: int


# ------------------------------------------------------------------------------------- the searches


def search_coevo(start: Start, **settings) -> dict:
    """Evolve with the defaults; the search's own clock counts, which validation is part of."""
    parts, shape, seed = start.parts, start.shape, start.seed
    architecture = Architecture(shape.n_inputs, (shape.n_hidden,), shape.n_outputs)
    referee = Referee(start.seconds, parts, shape)
    train, valid = parts.train, parts.validation
    arrays = (train.inputs, train.labels, valid.inputs, valid.labels)

    def look(search) -> None:
        state = search.state
        predict = Network(architecture, state.best_network).predict
        referee.look(state.seconds, state.evaluations, predict)

    evolve(*arrays, max_generations=3, seed=seed, **settings)  # compiles
    referee.begin()
    result = evolve(*arrays, callbacks=[look], max_seconds=start.seconds, seed=seed, **settings)
    referee.look(result.seconds, result.evaluations, result.network.predict, is_end=True)
    chosen = result.settings
    note = f"batches of {chosen.batch_size}"
    if result.seconds < start.seconds:
        note += f"; ended by itself after {result.seconds:.0f} s ({result.stop_reason})"
    population = chosen.population_size if settings else None
    return referee.outcome() | {"population": population, "note": note}


def search_backprop(start: Start) -> dict:
    """Train by scikit-learn an epoch at a time; only its training is timed."""
    from sklearn.neural_network import MLPClassifier

    train, shape = start.parts.train, start.shape
    model = MLPClassifier((shape.n_hidden,), activation="tanh", random_state=start.seed)
    referee = Referee(start.seconds, start.parts, shape)
    taken, epochs = 0.0, 0
    referee.begin()
    while taken < start.seconds:
        began = time.perf_counter()
        model.partial_fit(train.inputs, train.labels, classes=np.arange(shape.n_outputs))
        taken += time.perf_counter() - began
        epochs += 1
        referee.look(taken, epochs, model.predict)
    return referee.outcome() | {"population": None}


def make_task(start: Start, rows: int | None = None) -> Task:
    """Return cross-entropy on some or all training instances, genes in units of the initial range.

    That range is coevo's: see `Settings.scale_initial_range`.
    """
    inputs, labels = start.parts.train.inputs, start.parts.train.labels
    size = np.sqrt(np.mean(np.square(inputs, dtype=np.float64)))
    if rows is not None and rows < len(inputs):
        chosen = np.random.default_rng(start.seed).permutation(len(inputs))[:rows]
        inputs, labels = inputs[chosen], labels[chosen]
    first_range = resolve(Settings(strategy="rand/1")).initial_range
    n_inputs, n_hidden, n_outputs = start.shape
    widths = first_range / np.sqrt([n_inputs, n_hidden]) / [size, 1.0]
    genes = [(n_inputs + 1) * n_hidden, (n_hidden + 1) * n_outputs]
    return Task(
        start.shape,
        np.ascontiguousarray(inputs.T),
        np.eye(n_outputs, dtype=np.float32)[:, labels],
        libraries.minus_losses,
        tolerance=1e-3,
        bound=1.0,
        limit=LIMIT,
        scale=np.repeat(widths, genes).astype(np.float32),
        seed=start.seed,
    )


def search_library(
    start: Start, run: Callable[..., dict], rows: int | None = None, **options
) -> dict:
    task = make_task(start, rows)
    referee = Referee(start.seconds, start.parts, start.shape, task.scale)
    told = run(task, referee, **options)
    return {"population": POPULATION} | told | referee.outcome()


@dataclass(frozen=True)
class Runner:
    """One row of the table and one line of the picture.

    Its colour says the library; dashes and marker tell the algorithms apart without colour. `tuned`
    has the settings of which the best are found by `--tune`.
    """

    library: str
    algorithm: str
    package: str
    search: Callable[..., dict]
    remark: str
    colour: str
    dashes: str | tuple
    marker: str
    tuned: dict[str, tuple] = field(default_factory=dict)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield all settings that are tried; none if there is nothing to choose."""
        if self.tuned:
            for values in product(*self.tuned.values()):
                yield dict(zip(self.tuned, values, strict=True))


def by(run: Callable[..., dict], **options) -> Callable[..., dict]:
    return partial(search_library, run=run, **options)


BLUE, ORANGE, GREEN, SKY, VERMILION, PURPLE = (  # Okabe and Ito's, which colour-blind people tell
    "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#777777"
ROWS = {"rows": (1000, 5000)}  # on how many training instances fitness is measured
STEPS = (0.03, 0.1, 0.3)

RUNNERS = {
    "coevo": Runner(
        "coevo", "smoothing", "coevo", search_coevo,
        "nothing set but the seconds; sees what each instance adds to the fitness",
        BLUE, "-", "o",
    ),
    "leccde": Runner(
        "coevo", "LECCDE", "coevo", partial(search_coevo, variant="LECCDE"),
        '`variant="LECCDE"`, nothing else set but the seconds; an evaluation changes one neuron',
        BLUE, (0, (5, 1.5)), "h",
    ),
    "scipy": Runner(
        "SciPy", "differential_evolution", "scipy", by(libraries.run_scipy),
        f"its default F and CR; genes limited to {LIMIT:g} × the initial range",
        ORANGE, "--", "s", ROWS,
    ),
    "evosax": Runner(
        "evosax", "DifferentialEvolution", "evosax", by(libraries.run_evosax, generations_a_call=1),
        "its default F and CR", GREEN, "-.", "^", ROWS,
    ),
    "evox": Runner(
        "EvoX", "DE", "evox", by(libraries.run_evox),
        f"its default F and CR; genes limited to {LIMIT:g} × the initial range",
        SKY, (0, (6, 1, 1, 1, 1, 1)), "v", ROWS,
    ),
    "cosyne": Runner(
        "EvoTorch", "CoSyNE", "evotorch", by(libraries.run_cosyne),
        "half the genes mutate; tournaments of 4; one elite",
        VERMILION, (0, (3, 1)), "D", {"mutation_stdev": STEPS} | ROWS,
    ),
    "snes": Runner(
        "EvoTorch", "SNES", "evotorch", by(libraries.run_snes, population=None),
        "a new random batch each generation; its mean is tested",
        VERMILION, (0, (8, 2)), "P", {"stdev": STEPS, "batch_size": (500, 1000)},
    ),
    "cocma": Runner(
        "PyPop7", "COCMA", "pypop7", by(libraries.run_cocma),
        f"parts of {libraries.COCMA_GENES} genes (its default)",
        PURPLE, (0, (4, 1, 1, 1)), "X", {"sigma": (0.1, 0.3, 0.667)} | ROWS,
    ),
    "shade": Runner(
        "PyPop7", "SHADE", "pypop7", by(libraries.run_shade),
        "its crossover is a Python loop over the genes", PURPLE, (0, (2, 1)), ">", ROWS,
    ),
    "backprop": Runner(
        "scikit-learn", "backpropagation (Adam)", "scikit-learn", search_backprop,
        "`MLPClassifier`, its defaults, an epoch at a time", GREY, ":", "",
    ),
}  # fmt: skip


def search_here(
    race: Race, name: str, seconds: float, seed: int, options: dict, tune: bool
) -> dict:
    """Search in this process. To tune, the validation part is all there is to be tested on."""
    runner = RUNNERS[name]
    release = version(runner.package)  # before all else, as it may be missing
    parts = race.read(seed)
    if tune:
        parts = replace(parts, test=parts.validation)
    start = Start(parts, race.shape, seconds, seed)
    outcome = runner.search(start, **options)
    return {"version": release, "seconds": seconds, "seed": seed, "options": options} | outcome


# --------------------------------------------------------------------------- what is run, and kept


class Store:
    """race.json: what was tried to choose settings, and the outcomes of each race.

    Written whenever something has been added, so that nothing is lost if the program is stopped.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "race.json"
        self.content: dict[str, dict] = {}
        if self._path.exists():
            self.content = json.loads(self._path.read_text(encoding="utf-8"))

    def tried(self, race: Race, name: str) -> list[dict]:
        """Return what was tried to choose a library's settings."""
        return self.content.get(race.name, {}).get("tuning", {}).get(name, [])

    def add_trial(self, race: Race, name: str, trial: dict) -> None:
        """Keep what a library's settings came to, in place of an earlier try of the same."""
        others = [t for t in self.tried(race, name) if t["options"] != trial["options"]]
        tuning = self.content.setdefault(race.name, {}).setdefault("tuning", {})
        tuning[name] = [*others, trial]
        self._write()

    def outcome(self, race: Race, name: str) -> dict:
        """Return the outcome of a search, empty if there is none."""
        return self.content.get(race.name, {}).get("outcomes", {}).get(name, {})

    def add_outcome(self, race: Race, name: str, outcome: dict) -> None:
        """Keep the outcome of a search."""
        found = self.content.setdefault(race.name, {})
        outcomes = found.get("outcomes", {}) | {name: outcome}
        found["outcomes"] = {name: outcomes[name] for name in RUNNERS if name in outcomes}
        found["on"] = describe_machine()
        self._write()

    def best_options(self, race: Race, name: str) -> dict:
        """Return the settings that validated best; without any to choose, none."""
        runner = RUNNERS[name]
        if not runner.tuned:
            return {}
        tried = {json.dumps(t["options"]): t for t in self.tried(race, name)}
        wanted = [json.dumps(options) for options in runner.combinations()]
        if any(options not in tried for options in wanted):
            raise SystemExit(
                f"{name}: not all of its settings have been tried on {race.name}; run "
                f"python benchmarks/race.py {race.name} --tune --only {name} first"
            )
        return max((tried[o] for o in wanted), key=lambda t: t["validation"])["options"]

    def _write(self) -> None:
        self.folder.mkdir(exist_ok=True)
        beside = self._path.with_suffix(".part")
        beside.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
        beside.replace(self._path)


def search_apart(
    race: Race, name: str, seconds: float, arguments: argparse.Namespace, options: dict
) -> dict:
    """Search in a process of its own, when the machine is quiet or patience is over."""
    wait_for_quiet(arguments.patience)
    told: list[object] = [race.name, "--search", name, "--seconds", seconds]
    told += ["--seed", arguments.seed, "--options", json.dumps(options)]
    if arguments.tune:
        told.append("--tune")
    return run_apart(__file__, told, 2 * seconds + SPARE_SECONDS, {})


def tune(race: Race, store: Store, arguments: argparse.Namespace) -> None:
    """Try the settings that have not been tried for so long; only validation accuracy is seen."""
    seconds = arguments.seconds or TUNING_SECONDS
    for name in arguments.only or RUNNERS:
        for options in RUNNERS[name].combinations():
            trial = {"options": options, "seconds": seconds}
            is_done = any(trial.items() <= t.items() for t in store.tried(race, name))
            if is_done and not arguments.only:
                continue
            outcome = search_apart(race, name, seconds, arguments, options)
            last = outcome["points"][-1] if outcome.get("points") else {}
            trial |= {key: last.get(key, 0) for key in ("evaluations", "validation")}
            trial |= {k: outcome[k] for k in ("not_run", "cores_of_others") if k in outcome}
            store.add_trial(race, name, trial)
            print(race.name, name, trial, flush=True)


def run(race: Race, store: Store, arguments: argparse.Namespace) -> None:
    """Run those that race.json does not have with these versions, seconds and settings."""
    seconds = arguments.seconds or race.seconds
    for name in arguments.only or RUNNERS:
        options, runner = store.best_options(race, name), RUNNERS[name]
        before = {"seconds": seconds, "seed": arguments.seed, "options": options}
        with contextlib.suppress(PackageNotFoundError):
            before["version"] = version(runner.package)
        if before.items() <= store.outcome(race, name).items() and not arguments.only:
            continue
        outcome = search_apart(race, name, seconds, arguments, options)
        store.add_outcome(race, name, outcome)
        points = outcome.get("points")
        print(race.name, name, points[-1] if points else outcome, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("race", nargs="?", choices=list(RACES))
    parser.add_argument("--tune", action="store_true", help="choose the others' settings")
    parser.add_argument("--seconds", type=float, help="for each search, in place of the race's")
    parser.add_argument("--seed", type=int, default=1, help="of the split and of the searches")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for a quiet machine, each time"
    )
    parser.add_argument("--only", nargs="*", choices=list(RUNNERS), help="run these, again too")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results go")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--search", choices=list(RUNNERS), help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, default={}, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.race is None and not arguments.report:
        parser.error("name a race, or --report")
    if arguments.search:
        told = (arguments.search, arguments.seconds, arguments.seed, arguments.options)
        print_outcome(lambda: search_here(RACES[arguments.race], *told, arguments.tune))
        return
    store = Store(arguments.folder)
    if not arguments.report:
        (tune if arguments.tune else run)(RACES[arguments.race], store, arguments)
    race_report.write(store.content, RACES, RUNNERS, arguments.folder)


if __name__ == "__main__":
    main()
