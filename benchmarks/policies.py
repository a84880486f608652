"""Policies at the defaults: what they solve, how fast episodes are run, Jacobi, double poles.

Run it as `python benchmarks/policies.py`, or with the names of some parts: solved, speed,
simultaneous, double_pole, by_layer, two_steps. It goes on with what is missing from
benchmarks/results/policies.json, and rewrites policies.md beside it. Needs coevo[control].
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

from coevo import Settings, evolve_policy
from coevo.policies.actor import Actor
from coevo.policies.backends import Processes, Serial
from coevo.policies.episodes import Simulator
from coevo.policies.evolve import make_simulator
from coevo.policies.simulation import draw_seeds

RESULTS = Path(__file__).parent / "results"
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

SOLVED = {"CartPole-v1": (475.0, 500.0), "Acrobot-v1": (-100.0, -85.0)}
"""The mean return that counts as solved, and the validation return at which a run ends."""
MOST_EPISODES = 20_000
SPEED = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1")
N_TIMED, N_AT_ONCE, N_ROUNDS = 80, 10, 9  # episodes, those timed together, repetitions
JACOBI = ("Pendulum-v1", "CartPole-v1")
JACOBI_EPISODES = 2_000
SEEDS = {
    "solved": 10, "speed": 1, "simultaneous": 5, "double_pole": 50, "by_layer": 20, "two_steps": 3,
}  # fmt: skip
"""The parts, and how many runs each has."""
PUBLISHED = {
    "random weights": (474_329, 1_232_296),
    "evolutionary programming": (307_200, None),
    "cellular encoding": (None, 840_000),
    "conventional neuroevolution": (22_100, 87_623),
    "SANE": (12_600, 451_612),
    "ESP": (3_800, 26_342),
    "NEAT": (3_600, 6_929),
    "CoSyNE": (954, 3_416),
    "CMA-ES": (895, 6_061),
}
"""Mean evaluations to balance two poles, with velocities and without; the report says whence."""


def measure_solved(env: str, seed: int) -> dict:
    """Evolve at the defaults until the validation seeds say enough; measure on fresh seeds."""
    enough = SOLVED[env][1]

    def stop(search) -> bool:
        is_spent = search.evaluator.source.n_episodes >= MOST_EPISODES - 200
        return is_spent or search.state.best_validation >= enough

    result = evolve_policy(env, seed=seed, max_evaluations=None, callbacks=[stop])
    fresh = result.mean_return(100, seed=1234)
    return {"episodes": result.episodes, "steps": result.steps, "mean": fresh.mean}


def record(simulator, genotype, seeds) -> list[list]:
    """Return the actions of each episode."""
    actor = Actor(simulator.architecture, simulator.observations, simulator.actions)
    actor.load(genotype)
    env, actions = simulator._environment(), []
    for seed in seeds:
        observation, _ = env.reset(seed=int(seed))
        chosen, is_over = [], False
        while not is_over:
            chosen.append(actor.act(observation))
            observation, _, terminated, truncated, _ = env.step(chosen[-1])
            is_over = terminated or truncated
        actions.append(chosen)
    simulator.close()
    return actions


def replay(env, actions, seeds) -> None:
    """Do nothing but reset and step."""
    for seed, chosen in zip(seeds, actions, strict=True):
        env.reset(seed=int(seed))
        for action in chosen:
            env.step(action)


def time_both(simulator, genotype, actions, seeds) -> tuple[float, float, int]:
    """Return seconds of our loop and of the bare one, in turn on a few episodes, and steps.

    Seconds of the processor, so that others on the machine do not count.
    """
    simulator = simulator if isinstance(simulator, Simulator) else simulator.unpack()
    env, centre = simulator._environment(), np.zeros(simulator.architecture.n_inputs)
    ours = bare = n_steps = 0.0
    for first in range(0, len(seeds), N_AT_ONCE):
        some, rows = slice(first, first + N_AT_ONCE), np.zeros(N_AT_ONCE, dtype=int)
        for is_ours in (True, False) if first // N_AT_ONCE % 2 else (False, True):
            began = time.thread_time()
            if is_ours:
                found = simulator.run(genotype[np.newaxis], rows, seeds[some], centre, False)
                ours += time.thread_time() - began
                n_steps += int(found.steps.sum())
                assert found.steps.tolist() == [len(chosen) for chosen in actions[some]]
            else:
                replay(env, actions[some], seeds[some])
                bare += time.thread_time() - began
    return ours, bare, n_steps


def measure_speed(env: str, n_workers: int) -> dict:
    """Time the evaluation's loop and a bare one over the same episodes in the same processes."""
    simulator = make_simulator(env, None, Settings(hidden_layer_sizes=(8,)))
    genotype = np.random.default_rng(3).normal(size=simulator.architecture.n_genes)
    seeds = draw_seeds(1, 9, N_TIMED)
    actions = record(simulator, genotype, seeds)
    shares, rates = [], []
    with Serial() if n_workers == 1 else Processes(n_workers) as backend:
        packed = backend.pack("env", simulator)
        tasks = [
            (packed, genotype, actions[k::n_workers], seeds[k::n_workers]) for k in range(n_workers)
        ]
        for round_ in range(N_ROUNDS + 1):
            ours, bare, n_steps = np.sum(backend.run(time_both, tasks), axis=0)
            if round_:  # the first one compiles
                shares.append(float(bare / ours))
                rates.append(float(n_steps / ours))
    return {"shares": sorted(shares), "rate": float(np.median(rates))}


def measure_simultaneous(env: str, simultaneous: bool, seed: int) -> dict:
    result = evolve_policy(
        env, seed=seed, simultaneous=simultaneous, variant="LECCDE", max_evaluations=None,
        callbacks=[lambda search: search.evaluator.source.n_episodes >= JACOBI_EPISODES],
    )  # fmt: skip
    return {"mean": result.mean_return(100, seed=1234).mean}


def measure_double_pole(has_velocities: bool, seed: int, **changes) -> dict:
    from double_pole import evolve  # noqa: PLC0415 - an example

    _, n_steps, n_episodes = evolve(has_velocities, seed, 100_000, **changes)
    return {"steps": n_steps, "episodes": n_episodes}


def plan(part: str):
    """Return the name of each measurement of a part, and how to make it."""
    seeds, both = range(SEEDS[part]), (False, True)
    by_layer = partial(measure_double_pole, True, decomposition="layer")
    two_steps = partial(measure_double_pole, False, has_changes=False)
    parts = {
        "solved": (measure_solved, [(env, seed) for env in SOLVED for seed in seeds]),
        "speed": (measure_speed, [(env, n) for env in SPEED for n in (1, 2)]),
        "simultaneous": (
            measure_simultaneous,
            [(env, is_so, seed) for env in JACOBI for seed in seeds for is_so in both],
        ),
        "double_pole": (measure_double_pole, [(is_so, s) for s in seeds for is_so in both[::-1]]),
        "by_layer": (by_layer, [(seed,) for seed in seeds]),
        "two_steps": (two_steps, [(seed,) for seed in seeds]),
    }
    function, values = parts[part]
    return [("/".join(map(str, (part, *given))), function, given) for given in values]


def under(found: dict[str, Any], prefix: str) -> list[dict]:
    return [value for key, value in found.items() if key.startswith(prefix)]


def report(found: dict[str, Any]) -> str:
    lines = ["# Policies", "", *(__doc__ or "").splitlines()[2:], "", "## Solved", ""]
    lines += [
        f"At the defaults, within {MOST_EPISODES:,} episodes, validation included. Environments on "
        "which the defaults were not chosen. A run ends when the validation return reaches the "
        "figure in brackets; solved is judged on 100 fresh seeds.",
        "",
        "| environment | solved at | runs solved | median episodes | most | worst fresh return |",
        "|---|---|---|---|---|---|",
    ]
    for env, (threshold, enough) in SOLVED.items():
        runs = under(found, f"solved/{env}/")
        if runs:
            n_solved = sum(run["mean"] >= threshold for run in runs)
            episodes = [run["episodes"] for run in runs]
            lines.append(
                f"| {env} | {threshold:g} ({enough:g}) | {n_solved} of {len(runs)} | "
                f"{np.median(episodes):,.0f} | {max(episodes):,} | "
                f"{min(run['mean'] for run in runs):.1f} |"
            )
    lines += ["", "## Speed of the loop", "",
              "Steps in a second of processor time, and their share of those of a loop that does "
              "nothing but `env.reset` and `env.step`, with the same actions and seeds, in the "
              f"same processes, {N_AT_ONCE} episodes of each in turn: median and range of "
              f"{N_ROUNDS} repetitions of {N_TIMED} episodes, on a machine that others use too.",
              "", "| environment | processes | steps a second | share of a bare loop |",
              "|---|---|---|---|"]  # fmt: skip
    for env in SPEED:
        for n_workers in (1, 2):
            for run in under(found, f"speed/{env}/{n_workers}"):
                low, share, high = (100 * np.quantile(run["shares"], q) for q in (0, 0.5, 1))
                lines.append(
                    f"| {env} | {n_workers} | {run['rate']:,.0f} | {share:.0f} % "
                    f"({low:.0f} to {high:.0f}) |"
                )
    lines += ["", "## All subpopulations in the same global solution", "",
              "What `simultaneous=True` (Jacobi) costs LECCDE, one subpopulation for each neuron: "
              f"mean return on fresh seeds after {JACOBI_EPISODES:,} episodes, median and range.",
              "", "| environment | in turn, as in the paper | simultaneous |",
              "|---|---|---|"]  # fmt: skip
    for env in JACOBI:
        cells = []
        for name in (False, True):
            means = [run["mean"] for run in under(found, f"simultaneous/{env}/{name}/")]
            if means:
                cells.append(f"{np.median(means):.0f} ({min(means):.0f} to {max(means):.0f})")
        if len(cells) == 2:
            lines.append(f"| {env} | {' | '.join(cells)} |")
    lines += describe_double_pole(found)
    command = "`python benchmarks/policies.py`"
    return "\n".join([*lines, "", f"Measured with {command}. {found['machine']}", ""])


def describe_double_pole(found: dict[str, Any]) -> list[str]:
    """Return the part of the report on double pole balancing."""
    lines = ["", "## Double pole balancing", "",
              "Episodes until a network balances for 100,000 steps (examples/double_pole.py: CCDE, "
              "5 hidden neurons, begun anew when it gets nowhere; all episodes count), 100,000 at "
              "most. Without velocities a network sees positions and 20 times their change since "
              "the step before, which is a fixed linear map of two steps' positions. The range of "
              "weights, the factor 20 and the patience were chosen on other seeds (1000 to 1019).",
              "", "| observed | subpopulations | runs | solved | median episodes | mean |",
              "|---|---|---|---|---|---|"]  # fmt: skip
    rows = {
        "double_pole/True": "the whole state | by neuron",
        "by_layer": "the whole state | by layer",
        "double_pole/False": "positions and their change | by neuron",
        "two_steps": "positions of two steps | by neuron",
    }
    for part, text in rows.items():
        runs = under(found, f"{part}/")
        if runs:
            episodes = [run["episodes"] for run in runs]
            n_solved = sum(run["steps"] >= 100_000 for run in runs)
            lines.append(
                f"| {text} | {len(runs)} | {n_solved} | {np.median(episodes):,.0f} | "
                f"{np.mean(episodes):,.0f} |"
            )
    first = [found.get(f"double_pole/True/{seed}") for seed in range(SEEDS["by_layer"])]
    if all(first):
        median = np.median([run["episodes"] for run in first])
        lines += ["", f"On the {len(first)} seeds that were run by layer, the median by neuron is "
                  f"{median:,.0f}."]  # fmt: skip
    ours = np.mean([run["episodes"] for run in under(found, "double_pole/True/")] or [np.nan])
    lines += ["", "Evaluations that others took on average, by tables 3 and 4 of Gomez, "
              "Schmidhuber and Miikkulainen (2008), *Accelerated Neural Evolution through "
              "Cooperatively Coevolved Synapses*, JMLR 9, as quoted in examples/double_pole and "
              "examples/double_pole_no_velocities of the repository tachsin/genoxide; the paper "
              "itself was not at hand:", "",
              "| | with velocities | without |", "|---|---|---|"]  # fmt: skip
    for method, figures in PUBLISHED.items():
        cells = ["" if figure is None else f"{figure:,}" for figure in figures]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    cosyne, cma = PUBLISHED["CoSyNE"][0], PUBLISHED["CMA-ES"][0]
    lines += ["", f"With velocities our mean is {ours / PUBLISHED['ESP'][0]:.1f} times that of ESP "
              f"and {ours / PUBLISHED['NEAT'][0]:.1f} times that of NEAT, and we lose to CoSyNE "
              f"and CMA-ES, of which it is {ours / cosyne:.1f} and {ours / cma:.1f} times the "
              "mean. Their long pole starts at 4°, that of NEAT and CMA-ES at 1°, ours at 4.5°; "
              "CMA-ES's network has no biases, which by that source makes it easier. "
              "Without velocities their networks see one step and are recurrent, and have to "
              "balance from many other starts too: the second column is of a harder task than "
              "ours. For that, Stanley and Miikkulainen (2002), *Evolving Neural Networks through "
              "Augmenting Topologies*, Evolutionary Computation 10(2), have 169,466 for ESP and "
              "33,184 for NEAT, as quoted in the notes on that paper in the repository "
              "dbsxdbsx/only_torch."]  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(SEEDS))
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after these")
    arguments = parser.parse_args()
    path = RESULTS / "policies.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    began = time.perf_counter()
    for part in arguments.parts:
        for key, function, values in plan(part):
            if key in found or time.perf_counter() - began > arguments.seconds:
                continue
            found |= {key: function(*values), "machine": describe_machine()}
            print(key, found[key], flush=True)
            path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    (RESULTS / "policies.md").write_text(report(found))


if __name__ == "__main__":
    main()
