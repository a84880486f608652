"""Policies for classic control and MuJoCo: coevo's defaults and variants beside CMA-ES and SNES.

Run it with `make control` (hours, with all environments), in an environment with Gymnasium, cma
and, for SNES, EvoTorch (benchmarks/requirements-peers.txt). All methods evolve the same network on
the same loop of episodes, with the same normalisation of observations and as many seeds for each
evaluation; peers have their libraries' defaults. It goes on with what is missing from
benchmarks/results/control.json, and rewrites control.md and control.png beside it.
"""
# ruff: noqa: PLC0415  # a library is imported only if it is measured

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from machine import describe_machine

from coevo import Network, Policy, Settings, evolve_policy
from coevo._plotting import LOOK
from coevo.policies.backends import Serial
from coevo.policies.defaults import DEFAULTS
from coevo.policies.evolve import make_simulator
from coevo.policies.simulation import EpisodeSource

RESULTS = Path(__file__).parent / "results"
BUDGETS = {  # steps of the environment
    "CartPole-v1": 200_000,
    "Acrobot-v1": 150_000,
    "Pendulum-v1": 400_000,
    "LunarLander-v3": 150_000,
    "Swimmer-v5": 200_000,
    "Hopper-v5": 200_000,
    "HalfCheetah-v5": 200_000,
}
MUJOCO = ("Swimmer-v5", "Hopper-v5", "HalfCheetah-v5")
MUJOCO_STEPS = 200  # of an episode: with all 1,000 a budget would be a few generations
VARIANTS = ("default", "LECCDE", "CCDE", "LEDE", "DE")
PEERS = ("CMA-ES", "SNES")
FIXED_SEEDS = 10  # under full evaluation; 1 in MuJoCo, where starts hardly differ
VALIDATE_EVERY = 400  # episodes of a peer, 100 in MuJoCo; coevo validates once a generation
FIRST_DEVIATION = 0.5  # of the peers' weights
COLOURS = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#444444")


def run_variant(variant: str, env: str, seed: int) -> dict:
    points = []

    def follow(search) -> bool:
        source = search.evaluator.source
        points.append([source.n_steps, search.state.seconds, search.state.best_validation])
        return source.n_steps >= BUDGETS[env]

    is_limited = variant == "default" or variant.startswith("LE")
    n_fixed = 1 if env in MUJOCO else FIXED_SEEDS
    result = evolve_policy(
        env, variant=None if variant == "default" else variant, seed=seed, max_evaluations=None,
        callbacks=[follow], n_training_seeds=10_000 if is_limited else n_fixed,
        max_steps=MUJOCO_STEPS if env in MUJOCO else None,
    )  # fmt: skip
    return {"points": points, "final": result.mean_return(100, seed=99).mean}


class Loop:
    """Episodes for a peer: as many seeds for a network as coevo takes, new ones each time."""

    def __init__(self, env: str, seed: int) -> None:
        settings = Settings(hidden_layer_sizes=DEFAULTS["hidden_layer_sizes"])
        max_steps = MUJOCO_STEPS if env in MUJOCO else None
        self.simulator = make_simulator(env, None, settings, max_steps=max_steps)
        self.architecture = self.simulator.architecture
        self.source = EpisodeSource(self.simulator, Serial(), seed, 10_000, 20, normalizes=True)
        self.source.start()
        self.budget, self.points = BUDGETS[env], []
        self._every = 100 if env in MUJOCO else VALIDATE_EVERY
        self._order = np.random.default_rng(seed)
        self._validated_at, self._best = 0, -np.inf
        self._began = time.perf_counter()
        self._kept = None

    def measure(self, genotypes: np.ndarray) -> np.ndarray:
        """Return the fitness of networks on a new batch of seeds."""
        self.source.begin_generation()
        seeds = self._order.integers(10_000, size=DEFAULTS["batch_size"])
        return self.source.measure(genotypes, seeds)

    def is_over(self, favourite: np.ndarray) -> bool:
        """Validate the peer's favourite now and then, and say whether the budget is spent."""
        source = self.source
        ends = source.n_steps >= self.budget
        if ends or source.n_episodes - self._validated_at >= self._every:
            fitness = float(source.validate(favourite[np.newaxis])[0])
            if fitness > self._best:
                self._best, self._kept = fitness, source.fold(favourite, source.scaling)
            self._validated_at = source.n_episodes
            self.points.append([source.n_steps, time.perf_counter() - self._began, self._best])
        return ends

    def outcome(self) -> dict:
        """Return the curve, and the return of the favourite that validated best on fresh seeds."""
        policy = Policy(
            Network(self.architecture, self._kept), self.simulator.observations,
            self.simulator.actions, self.simulator.env, max_steps=self.simulator.max_steps,
        )  # fmt: skip
        return {"points": self.points, "final": policy.mean_return(100, seed=99).mean}


def run_cma(env: str, seed: int) -> dict:
    import cma

    loop = Loop(env, seed)
    start = np.zeros(loop.architecture.n_genes)
    search = cma.CMAEvolutionStrategy(
        start,
        FIRST_DEVIATION,
        {"seed": seed + 1, "verbose": -9, "tolfun": 0, "tolflatfitness": 1e9},
    )
    while True:
        genotypes = search.ask()
        search.tell(genotypes, -loop.measure(np.array(genotypes)))
        if loop.is_over(search.mean):
            return loop.outcome()


def run_snes(env: str, seed: int) -> dict:
    import torch
    from evotorch import Problem
    from evotorch.algorithms import SNES

    loop = Loop(env, seed)

    class Episodes(Problem):
        def __init__(self) -> None:
            super().__init__(
                "max", solution_length=loop.architecture.n_genes, initial_bounds=(-1e-9, 1e-9),
                dtype=torch.float64, seed=seed + 1,
            )  # fmt: skip

        def _evaluate_batch(self, batch) -> None:
            fitness = loop.measure(batch.values.numpy().copy())
            batch.set_evals(torch.as_tensor(fitness))

    search = SNES(Episodes(), stdev_init=FIRST_DEVIATION)
    while True:
        search.step()
        if loop.is_over(search.status["center"].numpy().copy()):
            return loop.outcome()


def measure(method: str, env: str, seed: int) -> dict:
    if method in VARIANTS:
        return run_variant(method, env, seed)
    return {"CMA-ES": run_cma, "SNES": run_snes}[method](env, seed)


def describe() -> str:
    """Return what a run is measured on: the machine, and the versions of the libraries."""
    packages = [name for name in ("cma", "evotorch", "gymnasium") if find_spec(name)]
    return f"{describe_machine()} {', '.join(f'{name} {version(name)}' for name in packages)}."


def report(found: dict[str, Any], seeds: range) -> str:
    environments = [env for env in BUDGETS if any(f"/{env}/" in key for key in found)]
    lines = [
        "# Policies: other libraries",
        "",
        *(__doc__ or "").splitlines()[2:],
        "",
        "The default is LECCDE with one subpopulation for each layer; the variants have one for "
        "each neuron, or a single one.",
        "",
        "Mean return on 100 fresh seeds of the policy that validated best, after as many steps of "
        "the environment for every method: median over "
        f"{len(seeds)} seeds, and their range, which is a 94 % interval of the median for five. "
        "The best median of a row is bold. Pendulum and LunarLander are among the environments on "
        "which our defaults were chosen. MuJoCo's episodes (Swimmer, Hopper, HalfCheetah) end "
        f"after {MUJOCO_STEPS} steps, in training and in the end: with all 1,000 the budget would "
        "be a few generations. A run ends with the generation that spends its steps; "
        "where that is more than a fifth above the budget, the steps are given.",
        "",
        f"| environment | steps | {' | '.join((*VARIANTS, *PEERS))} |",
        f"|---|---|{'---|' * (len(VARIANTS) + len(PEERS))}",
    ]
    rates = {}
    for env in environments:
        cells, medians = [], {}
        for method in (*VARIANTS, *PEERS):
            runs = [found[k] for s in seeds if (k := f"{method}/{env}/{s}") in found]
            finals = [run["final"] for run in runs]
            if len(finals) < len(seeds):
                cells.append("not run")
                continue
            medians[method] = np.median(finals)
            spent = np.median([run["points"][-1][0] for run in runs])
            cells.append(f"{np.median(finals):.0f} ({min(finals):.0f} to {max(finals):.0f})")
            if spent > 1.2 * BUDGETS[env]:
                cells[-1] += f", {spent:,.0f} steps"
            rates.setdefault(method, []).append(
                np.median([run["points"][-1][0] / run["points"][-1][1] for run in runs])
            )
        best = max(medians.values())
        for k, method in enumerate((*VARIANTS, *PEERS)):
            if medians.get(method) == best:
                cells[k] = f"**{cells[k]}**"
        lines.append(f"| {env} | {BUDGETS[env]:,} | {' | '.join(cells)} |")
    speeds = ", ".join(f"{m} {np.median(r):,.0f}" for m, r in rates.items())
    lines += ["", f"Steps a second, median over environments, on a shared machine: {speeds}."]
    lines += ["", "![validation return against steps and seconds](control.png)"]
    return "\n".join([*lines, "", f"Measured with `make control`. {found['machine']}", ""])


def draw(found: dict[str, Any], seeds: range, path: Path) -> None:
    environments = [env for env in BUDGETS if any(f"/{env}/" in key for key in found)]
    with plt.rc_context(LOOK):
        figure, rows = plt.subplots(
            2, len(environments), figsize=(2.9 * len(environments), 4.8), layout="constrained",
            sharey="col", squeeze=False,
        )  # fmt: skip
        for column, env in enumerate(environments):
            for row, label in enumerate(("million steps", "seconds")):
                axes = rows[row][column]
                for method, colour in zip((*VARIANTS, *PEERS), COLOURS, strict=True):
                    runs = [found[k] for s in seeds if (k := f"{method}/{env}/{s}") in found]
                    if not runs:
                        continue
                    start = min(run["points"][0][row] for run in runs)
                    end = np.median([run["points"][-1][row] for run in runs])
                    grid = np.linspace(start, end, 400)
                    curves = [sample(np.array(run["points"]), row, grid) for run in runs]
                    median = np.median(curves, axis=0)
                    median[np.isinf(median)] = np.nan  # before most runs have validated
                    scale = 1e-6 if row == 0 else 1
                    axes.plot(scale * grid, median, color=colour, label=method)
                axes.set_xlabel(label)
            rows[0][column].set_title(env)
            rows[0][column].set_ylabel("validation return" if column == 0 else "")
        rows[1][0].set_ylabel("validation return")
        handles, labels = rows[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.savefig(path, dpi=110)


def sample(points: np.ndarray, row: int, grid: np.ndarray) -> np.ndarray:
    """Return the best validation return so far at each place of a grid, −∞ before the first."""
    place = np.searchsorted(points[:, row], grid, side="right") - 1
    return np.where(place < 0, -np.inf, points[place, 2])


def thin(run: dict, n: int = 60) -> dict:
    points = run["points"]
    kept = np.unique(np.linspace(0, len(points) - 1, n).round().astype(int))
    return run | {"points": [[int(p[0]), round(p[1], 2), round(p[2], 2)] for p in
                             (points[k] for k in kept)]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", nargs="*", default=list(BUDGETS))
    parser.add_argument("--methods", nargs="*", default=[*VARIANTS, *PEERS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no run after these")
    arguments = parser.parse_args()
    path, seeds = RESULTS / "control.json", range(arguments.seeds)
    found = json.loads(path.read_text()) if path.exists() else {}
    began = time.perf_counter()
    for seed in seeds:
        for env in arguments.environments:
            for method in arguments.methods:
                key = f"{method}/{env}/{seed}"
                if key in found or time.perf_counter() - began > arguments.seconds:
                    continue
                try:
                    found |= {key: thin(measure(method, env, seed)), "machine": describe()}
                except ModuleNotFoundError as error:
                    print(f"{key}: not run, {error.name} is not installed", flush=True)
                    continue
                print(f"{key}: {found[key]['final']:.1f}", flush=True)
                path.write_text(json.dumps(found, sort_keys=True) + "\n")
    (RESULTS / "control.md").write_text(report(found, seeds))
    draw(found, seeds, RESULTS / "control.png")


if __name__ == "__main__":
    main()
