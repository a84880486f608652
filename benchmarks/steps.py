"""Prototypes of LECCDE: free trials, F solved instead of set, weighted means, momentum.

Run it as `python benchmarks/steps.py`, eleven minutes of one core (needs HAR and MNIST), or part by
part: `python benchmarks/steps.py MNIST --seconds 30`; steps.json keeps what has been run, and
`--report` runs nothing.

(a) Without crossover a trial is a combination of individuals, and so are its pre-activations, which
therefore cost no product: a free trial. Crossover or noise leaves the span of the individuals.
(b) Along x + t d an instance is right within an interval of t. The t with most instances right is
found exactly, by sorting the ends of the intervals; d leads from the target to its trial.
(d) The representative is a mean weighted by rank: the better half, by log(NP / 2 + ½) − log(rank).
(e) All individuals of a subpopulation are shifted by a share of its mean's last move.

Prototypes have 50 tanh neurons, batches of 500, F at 1.05 times its critical value, CR 0.5, NP 40
(for accuracy 20) and no revival. They measure by coevo's own kernels, but multiply all instances;
for accuracy coevo leaves out those that cannot change. How free trials are mixed and the limits of
t were chosen in some forty shorter runs on MNIST, which flatters (a) and (b) a little. All run on
one core, in one process, in turn; seconds are processor time. Publishers' test parts are not used:
of the training part, one part held out chooses the network along the run, another one is reported.
(d), (e) and the prototype beside them were run later than the other rows, while other work took
both cores.
Rewrites benchmarks/results/steps.md and steps.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from machine import describe_machine
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from coevo import evolve
from coevo.core import loop, smoothed_search
from coevo.core.operators import MUTATIONS, draw_parents, make_trials, mean_fitness
from coevo.datasets import load
from coevo.engines.kernels.activations import IDENTITY, TANH, activate
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.intervals import find_hidden_intervals, find_output_intervals
from coevo.engines.kernels.layers import move_outputs
from coevo.engines.kernels.metrics import AccuracyOn, CrossEntropyOn, measure_candidates
from coevo.runtime.jit import compiled, copy, fill

RESULTS = Path(__file__).parent / "results"
N_HIDDEN, BATCH_SIZE, DECAY, CROSSOVER_RATE, RATIO = 50, 500, 0.2, 0.5, 1.05
RAND_1 = MUTATIONS["rand/1"]
MIX = np.float32(0.04)  # of a third individual in free trials, without which their spread grows
NOISE = 0.1  # relative to the deviation of individuals
VALIDATE_EVERY = 5
SECONDS = {"MNIST": 10.0, "HAR": 5.0, "digits": 2.0}
Parts = list[tuple[np.ndarray, np.ndarray]]
clock = time.process_time


class Plan(NamedTuple):
    """How a prototype makes its trials."""

    fitness: str = "cross_entropy"
    size: int = 40  # NP
    free: int = 0  # trials of each target on each batch, one after the other
    every: int = 1  # how many generations there is a trial outside of the span,
    by_noise: bool = False  # by noise, not by crossover
    solves: bool = False  # the length of each step
    takes_means: bool = True  # as representatives, not the fittest
    weighted: bool = False  # means by rank
    momentum: float = 0.0  # share of a mean's last move that is added to the next one


BEST, MEAN = Plan("accuracy", 20, takes_means=False), Plan("accuracy", 20)
METHODS: dict[tuple[str, str], Plan | dict] = {
    ("cross_entropy", "coevo, smoothing"): {},
    ("cross_entropy", "coevo, LECCDE"): {"variant": "LECCDE"},
    ("cross_entropy", "prototype"): Plan(),
    ("cross_entropy", "(a) 1 free trial beside"): Plan(free=1),
    ("cross_entropy", "(a) 4 free trials beside"): Plan(free=4),
    ("cross_entropy", "(a) 4 free trials beside, crossover every 5th time"): Plan(free=4, every=5),
    ("cross_entropy", "(a) 4 free trials beside noise, no crossover"): Plan(free=4, by_noise=True),
    ("cross_entropy", "prototype again, beside (d) and (e)"): Plan(),
    ("cross_entropy", "(d) means weighted by rank"): Plan(weighted=True),
    ("cross_entropy", "(e) momentum 0.5"): Plan(momentum=0.5),
    ("cross_entropy", "(e) momentum 0.9"): Plan(momentum=0.9),
    ("accuracy", "coevo, smoothing"): {"fitness": "accuracy"},
    ("accuracy", "coevo, LECCDE"): {"fitness": "accuracy", "variant": "LECCDE"},
    ("accuracy", "prototype"): BEST,
    ("accuracy", "prototype, means"): MEAN,
    ("accuracy", "(a) 1 free trial beside"): BEST._replace(free=1),
    ("accuracy", "(b) solved"): BEST._replace(solves=True),
    ("accuracy", "(b) solved, means"): MEAN._replace(solves=True),
}


@compiled
def solve_step(base, direction, bounds, room):
    """Find the t in [−1, 1] for which base + t direction is most often within bounds, (2, B).

    The middle of the widest such range. Returns t and the share of instances that are inside.
    """
    n, always, low, high, starts, ends = 0, 0, bounds[0], bounds[1], room[0], room[1]
    for k in range(len(base)):
        d = direction[k] if direction[k] != 0 else base.dtype.type(1e-30)
        first, last = (low[k] - base[k]) / d, (high[k] - base[k]) / d
        first, last = min(first, last), max(first, last)
        if low[k] > high[k] or first > 1 or last < -1:
            continue
        if first <= -1 and last >= 1:
            always += 1
        else:
            starts[n], ends[n] = max(first, -1), min(last, 1)
            n += 1
    starts[:n].sort()
    ends[:n].sort()
    step, width, best, ended = base.dtype.type(0), base.dtype.type(0), 0, 0
    for begun in range(n):
        while ends[ended] < starts[begun]:
            ended += 1
        until = ends[ended] if begun + 1 == n else min(ends[ended], starts[begun + 1])
        count, wide = begun + 1 - ended, until - starts[begun]
        if count > best or (count == best and wide > width):
            best, width, step = count, wide, starts[begun] + wide / 2
    return step, (always + best) / len(base)


@compiled
def combine(vectors, parents, scale, combined):
    """Write the directions of free trials; vectors and combined: (NP, n), parents: (NP, 3)."""
    for j in range(len(vectors)):
        a, b, c = parents[j]
        for k in range(vectors.shape[1]):
            combined[j, k] = scale * (vectors[b, k] - vectors[c, k])
            combined[j, k] += MIX * (vectors[a, k] - vectors[j, k])


@compiled
def take_steps(metric, candidates, directions, bounds, trials, steps, measured):
    """Go along each direction, by 1 or, if there are bounds, by the best step, and measure."""
    rows, biases, outputs, slopes, now, activation, output = candidates
    room = np.empty((2, rows.shape[1]), dtype=rows.dtype)
    for j in range(len(rows)):
        steps[j] = 1
        if len(bounds) > 0:
            steps[j], measured[j] = solve_step(rows[j], directions[j], bounds, room)
        for k in range(rows.shape[1]):
            trials[j, k] = rows[j, k] + steps[j] * directions[j, k]
    if len(bounds) == 0:
        moved = Candidates(trials, biases, outputs, slopes, now, activation, output)
        measure_candidates(metric, moved, measured)


@compiled
def compete(metric, candidates, crossed, parents, scale, solves, inherited, by_crossed, mixture):
    """Let the targets of one neuron compete with their trials; return their fitness, (NP,).

    crossed: (NP or 0, B), directions that were multiplied; parents: (rounds, NP, 3); mixture:
    (NP, 2 NP), the individuals and crossed directions that survivors are made of. Pre-activations,
    inherited and mixture are changed in place.
    """
    rows, biases, outputs, slopes, now, activation, output = candidates
    size, bounds = len(rows), np.empty((2 if solves else 0, rows.shape[1]), dtype=rows.dtype)
    if solves and output == HIDDEN:
        find_hidden_intervals(
            outputs, metric.targets, slopes, now, activation, bounds[0], bounds[1]
        )
    elif solves:
        find_output_intervals(outputs, metric.targets, output, bounds[0], bounds[1])
    measured, new, new_inherited = np.empty(size), np.empty(size), np.empty(size)
    directions, trials, changes = np.empty_like(rows), np.empty_like(rows), np.zeros_like(mixture)
    steps = np.empty_like(biases)
    measure_candidates(metric, candidates, measured)
    for r in range(-1 if len(crossed) else 0, len(parents)):
        for j in range(size):
            if r == -1:
                copy(crossed[j], directions[j])
                changes[j, size + j] = 1
                new_inherited[j] = by_crossed[j]
            else:
                a, b, c = parents[r, j]
                mutant = (inherited[a] + inherited[b] + inherited[c]) / 3
                new_inherited[j] = (inherited[j] + mutant) / 2
        if r >= 0:
            combine(rows, parents[r], scale, directions)
            combine(mixture, parents[r], scale, changes)
        take_steps(metric, candidates, directions, bounds, trials, steps, new)
        for j in range(size):
            if new_inherited[j] + new[j] > inherited[j] + measured[j]:
                inherited[j], measured[j] = new_inherited[j], new[j]
                copy(trials[j], rows[j])
                for m in range(2 * size):
                    mixture[j, m] += steps[j] * changes[j, m]
    return inherited + measured


@compiled
def sweep(metric, rows, network, parents, scale, rule, fitness, inherited, mixtures):
    """Let all neurons of a layer compete, one after the other, and move the network along.

    fitness: (n, NP) and mixtures: (n, NP, 2 NP), written. The rule has the weights of individuals
    in the representative, the fittest's first.
    """
    (own, crossed), (activations, outgoing, outputs, are_outputs) = rows, network
    (solves, weights), (by_targets, by_crossed) = rule, inherited
    biases, slopes = np.zeros_like(own[0, :, 0]), outgoing[0].copy()
    row, after = np.empty_like(outputs[0]), np.empty_like(outputs[0])
    for i in range(len(own)):
        if are_outputs:
            fill(slopes, biases[0])
            slopes[i] = 1
            now, activation, output = outputs[i], IDENTITY, i
        else:
            copy(outgoing[i], slopes)
            now, activation, output = activations[i], TANH, HIDDEN
        candidates = Candidates(own[i], biases, outputs, slopes, now, activation, output)
        fitness[i] = compete(metric, candidates, crossed[i], parents[i], scale, solves,
                             by_targets[i], by_crossed[i], mixtures[i])  # fmt: skip
        fill(row, biases[0])
        order = np.argsort(-fitness[i])
        for rank in range(len(weights)):
            for k in range(len(row)):
                row[k] += weights[rank] * own[i, order[rank], k]
        activate(row, biases[0], activation, after)
        if not are_outputs:
            move_outputs(outputs, np.int64(0), slopes, now, after)
        copy(after, now)


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.vstack([X, np.ones((1, X.shape[1]), dtype=X.dtype)])


def measure(network: list[np.ndarray], X: np.ndarray, y: np.ndarray, fitness: str) -> float:
    z = network[1] @ with_ones(np.tanh(network[0] @ with_ones(X.T)))
    if fitness == "accuracy":
        return float((z.argmax(axis=0) == y).mean())
    z -= z.max(axis=0)
    return float((z[y, range(len(y))] - np.log(np.exp(z).sum(axis=0))).mean())


class Prototype:
    """LECCDE on neurons, by a plan. Each layer: (n, NP, inputs + 1), the bias comes last."""

    def __init__(self, X: np.ndarray, y: np.ndarray, plan: Plan, seed: int) -> None:
        self.X, self.y, self.plan = X, y.astype(np.int32), plan
        self.rng = np.random.Generator(np.random.SFC64(seed))
        self.layers: list[np.ndarray] = []
        shapes = [(N_HIDDEN, X.shape[1]), (int(y.max()) + 1, N_HIDDEN)]
        for (n, m), input_size in zip(shapes, (np.sqrt(np.square(X).mean()), 1), strict=True):
            drawn = self.rng.uniform(-1, 1, (n, plan.size, m + 1)) * 4 / np.sqrt(m) / input_size
            self.layers.append(drawn.astype(np.float32))
        self.fitness = [np.zeros(layer.shape[:2]) for layer in self.layers]
        self.network = [layer[:, 0].copy() for layer in self.layers]
        self.moves = [np.zeros_like(matrix) for matrix in self.network]
        weights = np.ones(plan.size)
        if plan.weighted:
            ranks = np.arange(1, plan.size + 1)
            weights = np.maximum(0, np.log(plan.size / 2 + 0.5) - np.log(ranks))
        if not plan.takes_means:
            weights = np.ones(1)
        self.weights = (weights / weights.sum()).astype(np.float32)
        self.left = np.array([], dtype=int)
        self.generation, names = 0, ("evaluations", "products", "product_seconds", "sweep_seconds")
        self.counts = dict.fromkeys(names, 0)

    def evolve(self) -> None:
        """Take one generation on the next batch."""
        if len(self.left) < BATCH_SIZE:
            self.left = self.rng.permutation(len(self.y))
        batch, self.left = self.left[:BATCH_SIZE], self.left[BATCH_SIZE:]
        inputs, metric = with_ones(self.X[batch].T), AccuracyOn(self.y[batch])
        for k, move in enumerate(self.moves if self.plan.momentum else ()):
            self.layers[k] += np.float32(self.plan.momentum) * move[:, np.newaxis]
            self.network[k] = self.network[k] + np.float32(self.plan.momentum) * move
        if self.plan.fitness == "cross_entropy":
            weights = np.full(len(batch), 1 / len(batch), dtype=np.float32)
            metric = CrossEntropyOn(self.y[batch], weights)
        hidden = with_ones(np.tanh(self.network[0] @ inputs))
        outputs, outgoing = self.network[1] @ hidden, self.network[1][:, :-1].T.copy()
        for k, seen in enumerate((inputs, hidden)):
            self._evolve_layer(k, metric, seen, (hidden[:-1], outgoing, outputs, k == 1))
        self.generation += 1

    def _evolve_layer(self, k: int, metric: tuple, inputs: np.ndarray, network: tuple) -> None:
        plan, own, fitness = self.plan, self.layers[k], self.fitness[k]
        n, size, _ = own.shape
        own_rows = self._multiply(own, inputs)
        nothing = (own[:, :0], own_rows[:, :0].copy(), fitness[:, :0].copy())
        leaves = self.generation % plan.every == 0
        found = self._leave_span(own, fitness, inputs) if leaves else nothing
        crossed, crossed_rows, by_crossed = found
        parents = np.empty((n, plan.free, size, 3), dtype=np.int64)
        for r in range(plan.free):
            parents[:, r] = draw_parents(self.rng, RAND_1, fitness, range(size))
        mixtures = np.zeros((n, size, 2 * size), dtype=np.float32)
        mixtures[:, range(size), range(size)] = 1
        began = clock()
        sweep(
            metric, (own_rows, crossed_rows), network, parents,
            np.float32(RATIO * np.sqrt(0.5 / size)), (plan.solves, self.weights), fitness,
            ((1 - DECAY) * fitness, by_crossed), mixtures,
        )  # fmt: skip
        self.counts["sweep_seconds"] += clock() - began
        before = own.mean(axis=1) - np.float32(plan.momentum) * self.moves[k]  # without the shift
        self.layers[k] = mixtures[:, :, :size] @ own
        if crossed.shape[1]:
            self.layers[k] += mixtures[:, :, size:] @ crossed
        ranked = np.argsort(-fitness, axis=1)[:, : len(self.weights), np.newaxis]
        fittest = np.take_along_axis(self.layers[k], ranked, axis=1)
        self.network[k] = np.einsum("j,njm->nm", self.weights, fittest)
        self.moves[k] = self.layers[k].mean(axis=1) - before
        self.counts["evaluations"] += n * (size + crossed.shape[1] + plan.free * size)

    def _leave_span(self, own: np.ndarray, fitness: np.ndarray, inputs: np.ndarray) -> tuple:
        """Return directions, their pre-activations, and what the trials inherit."""
        rng, targets = self.rng, range(own.shape[1])
        if self.plan.by_noise:  # the same for all neurons of the layer, but for its size
            noise = rng.standard_normal(own.shape[1:], dtype=np.float32)
            sizes = NOISE * own.std(axis=1).mean(axis=1)[:, np.newaxis, np.newaxis]
            return sizes * noise, sizes * self._multiply(noise, inputs), (1 - DECAY) * fitness
        parents = draw_parents(rng, RAND_1, fitness, targets)
        scale = RATIO * np.sqrt((1 - CROSSOVER_RATE / 2) / len(targets))
        rates = (scale, "binomial", CROSSOVER_RATE)
        directions = make_trials(rng, own, targets, parents, RAND_1, *rates) - own
        inherited = (1 - DECAY) / 2 * (fitness + mean_fitness(fitness, parents))
        return directions, self._multiply(directions, inputs), inherited

    def _multiply(self, vectors: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        began = clock()
        rows = vectors.reshape(-1, len(inputs)) @ inputs
        self.counts["product_seconds"] += clock() - began
        self.counts["products"] += len(rows)
        return rows.reshape(*vectors.shape[:-1], -1)


def run_prototype(parts: Parts, plan: Plan, seed: int, seconds: float) -> dict:
    search, spent, curve = Prototype(*parts[0], plan, seed), 0.0, [(0, -1e9)]
    while spent < seconds or len(curve) == 1:
        began = clock()
        search.evolve()
        if search.generation % VALIDATE_EVERY == 0:
            fitness = measure(search.network, *parts[1], plan.fitness)
            if fitness > curve[-1][1]:
                best = search.network.copy()
            curve.append((search.counts["evaluations"], max(curve[-1][1], fitness)))
        spent += clock() - began
    held_out = measure(best, *parts[2], "accuracy")
    return {"held out": held_out, "curve": curve, **search.counts}


def run_coevo(parts: Parts, settings: dict, seed: int, seconds: float) -> dict:
    budget = {"max_seconds": seconds} if seconds else {"max_generations": 3}
    known = {"hidden_layer_sizes": (N_HIDDEN,), "seed": seed, "n_threads": 1}
    result = evolve(*parts[0], *parts[1], **known, **settings, **budget)
    right = result.predict(parts[2][0]) == parts[2][1]
    curve = result.history.rows[:, [1, 5]].tolist()  # evaluations, best validation fitness
    return {"held out": float(right.mean()), "evaluations": result.evaluations, "curve": curve}


def read(name: str, seed: int) -> Parts:
    """Return training, validation and held-out part of a set's training part."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X /= 16
    else:
        data = load(name, "all")
        X, y = data.inputs[~data.is_official_test], data.labels[~data.is_official_test]
        X = X / (X.max() if name == "MNIST" else 1)
    X, y = X.astype(np.float32), np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))
    n = round(len(y) / 12 if name == "MNIST" else 0.15 * len(y))
    return [(X[rows], y[rows]) for rows in (order[2 * n :], order[:n], order[n : 2 * n])]


def run(options: argparse.Namespace, results: dict, path: Path) -> None:
    loop.clock = smoothed_search.clock = clock  # so that coevo's budget is processor time too
    wanted = [(name, seed) for seed in options.seeds for name in options.sets]
    for name, seed in [("digits", 0), *wanted]:
        parts, seconds = read(name, seed), (options.seconds or SECONDS[name]) if seed else 0
        for (fitness, method), how in METHODS.items():
            key = f"{name}|{seconds:g}|{fitness}|{method}|{seed}"
            if key in results["runs"]:
                continue
            follow = run_prototype if isinstance(how, Plan) else run_coevo
            outcome = follow(parts, how, seed, seconds)
            if seed:  # the first runs only compile
                print(key, f"{outcome['held out']:.4f}", flush=True)
                outcome["curve"] = outcome["curve"][:: max(1, len(outcome["curve"]) // 50)]
                results["runs"][key], results["machine"] = outcome, describe_machine()
                path.write_text(json.dumps(results) + "\n")


def tabulate(found: dict[str, list[dict]]) -> list[str]:
    """Return a table of a set and a fitness, from the runs of each method."""
    common = min(run["evaluations"] for seeds in found.values() for run in seeds)
    rows = ["| | accuracy, %, by seed | evaluations, million | products, million | seconds in "
            f"products, in sweeps | validation fitness at {common / 1e6:.2f} million evaluations |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    for method, seeds in found.items():
        names = ("evaluations", "products", "product_seconds", "sweep_seconds")
        means = [np.mean([run.get(name, np.nan) for run in seeds]) for name in names]
        counts = f"{means[0] / 1e6:.2f} | {means[1] / 1e6:.2f} | {means[2]:.1f}, {means[3]:.1f}"
        accuracy = ", ".join(f"{100 * run['held out']:.1f}" for run in seeds)
        early = ", ".join(f"{max(f for e, f in r['curve'] if e <= common):.3f}" for r in seeds)
        rows.append(f"| {method} | {accuracy} | {counts.replace('nan', '–')} | {early} |")
    return rows


def report(results: dict) -> str:
    tables: dict[str, dict[str, list[dict]]] = {}
    for key, outcome in results["runs"].items():
        name, seconds, fitness, method, _ = key.split("|")
        title = f"## {name}, {fitness.replace('_', '-')} as fitness, {seconds} s"
        tables.setdefault(title, {}).setdefault(method, []).append(outcome)
    lines = ["# Free trials, solved steps, weighted means, momentum", "", *__doc__.splitlines()[2:]]
    for title, found in tables.items():
        lines += ["", title, "", *tabulate(found)]
    told = f"Measured with `python benchmarks/steps.py`. {results['machine']}"
    return "\n".join([*lines, "", told, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SECONDS))
    parser.add_argument("--seconds", type=float, help="of each run; by default the set's")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--report", action="store_true", help="run nothing")
    options, path = parser.parse_args(), RESULTS / "steps.json"
    results = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    if not options.report:
        with threadpool_limits(1):
            run(options, results, path)
    path.with_suffix(".md").write_text(report(results))


if __name__ == "__main__":
    main()
