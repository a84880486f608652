"""Policies at the defaults: what they solve, how fast episodes are run, Jacobi, double poles.

Run it as `python benchmarks/policies.py`, or with the names of some parts: solved, speed,
simultaneous, double_pole. It goes on with what is missing from benchmarks/results/policies.json,
and rewrites policies.md beside it. Needs coevo[control].
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo import Settings, evolve_policy
from coevo.policies.backends import Processes, Serial
from coevo.policies.evolve import make_simulator
from coevo.policies.simulation import draw_seeds

RESULTS = Path(__file__).parent / "results"
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

SOLVED = {"CartPole-v1": (475.0, 500.0), "Acrobot-v1": (-100.0, -85.0)}
"""The mean return that counts as solved, and the validation return at which a run ends."""
MOST_EPISODES = 20_000
SPEED = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1")
N_TIMED, N_ROUNDS = 60, 5
JACOBI = ("Pendulum-v1", "CartPole-v1")
JACOBI_EPISODES = 2_000


def measure_solved(env: str, seed: int) -> dict:
    """Evolve at the defaults until the validation seeds say enough; measure on fresh seeds."""
    enough = SOLVED[env][1]

    def stop(search) -> bool:
        is_spent = search.evaluator.source.n_episodes >= MOST_EPISODES - 200
        return is_spent or search.state.best_validation >= enough

    result = evolve_policy(env, seed=seed, max_evaluations=None, callbacks=[stop])
    fresh = result.mean_return(100, seed=1234)
    return {"episodes": result.episodes, "steps": result.steps, "mean": fresh.mean}


def replay(simulator, actions, seeds) -> float:
    """Return the seconds of a loop that does nothing but `env.step`, with the same actions."""
    env = simulator._environment()
    began = time.perf_counter()
    for seed, chosen in zip(seeds, actions, strict=True):
        env.reset(seed=int(seed))
        for action in chosen:
            env.step(action)
    return time.perf_counter() - began


def run_bare(simulator, actions, seeds) -> float:
    return replay(simulator if hasattr(simulator, "env") else simulator.unpack(), actions, seeds)


def measure_speed(env: str, n_workers: int) -> dict:
    """Time the evaluation's loop and a bare one in turn, on the same processes."""
    from coevo.policies.episodes import run_episodes  # noqa: PLC0415 - sent to workers

    simulator, architecture = make_simulator(env, None, Settings(hidden_layer_sizes=(8,)))
    genotypes = np.random.default_rng(3).normal(size=(1, architecture.n_genes))
    seeds = draw_seeds(1, 9, N_TIMED)
    rows, centre = np.zeros(N_TIMED, dtype=int), np.zeros(architecture.n_inputs)
    actions = record(simulator, genotypes[0], seeds)
    shares = np.array_split(np.arange(N_TIMED), n_workers)
    ratios, rates = [], []
    with Serial() if n_workers == 1 else Processes(n_workers) as backend:
        packed = backend.pack("env", simulator)
        loops = [(packed, genotypes, rows[s], seeds[s], centre, False) for s in shares]
        bare = [(packed, [actions[k] for k in s], seeds[s]) for s in shares]
        for round_ in range(N_ROUNDS + 1):
            found = backend.run(run_episodes, loops)
            seconds = sum(part.seconds for part in found)
            bare_seconds = sum(backend.run(run_bare, bare))
            if round_:  # the first one compiles
                n_steps = sum(int(part.steps.sum()) for part in found)
                ratios.append(bare_seconds / seconds)
                rates.append(n_steps / seconds)
    return {"share": float(np.median(ratios)), "rate": float(np.median(rates))}


def record(simulator, genotype, seeds) -> list[list]:
    """Return the actions of each episode."""
    actions, decode = [], simulator._decode

    def note(*arguments):
        actions[-1].append(decode(*arguments))
        return actions[-1][-1]

    simulator._decode = note
    centre = np.zeros(simulator.sizes[0])
    for seed in seeds:
        actions.append([])
        simulator.run(genotype[np.newaxis], np.zeros(1, int), np.array([seed]), centre, False)
    simulator._decode = decode
    simulator.close()
    return actions


def measure_simultaneous(env: str, simultaneous: bool, seed: int) -> dict:
    result = evolve_policy(
        env, seed=seed, simultaneous=simultaneous, variant="LECCDE", max_evaluations=None,
        callbacks=[lambda search: search.evaluator.source.n_episodes >= JACOBI_EPISODES],
    )  # fmt: skip
    return {"mean": result.mean_return(100, seed=1234).mean}


def measure_double_pole(has_velocities: bool, seed: int) -> dict:
    from double_pole import evolve  # noqa: PLC0415 - an example

    _, n_steps, n_episodes = evolve(has_velocities, seed, 100_000)
    return {"steps": n_steps, "episodes": n_episodes}


def plan(part: str, n_seeds: int):
    """Return the name of each measurement of a part, and how to make it."""
    seeds, both = range(n_seeds), (False, True)
    parts = {
        "solved": (measure_solved, [(env, seed) for env in SOLVED for seed in seeds]),
        "speed": (measure_speed, [(env, n) for env in SPEED for n in (1, 2)]),
        "simultaneous": (
            measure_simultaneous,
            [(env, is_so, seed) for env in JACOBI for seed in seeds[:5] for is_so in both],
        ),
        "double_pole": (measure_double_pole, [(is_so, s) for s in seeds for is_so in both[::-1]]),
    }
    function, values = parts[part]
    return [("/".join(map(str, (part, *given))), function, given) for given in values]


def report(found: dict[str, dict]) -> str:
    def under(prefix: str) -> list[dict]:
        return [value for key, value in found.items() if key.startswith(prefix)]

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
        runs = under(f"solved/{env}/")
        if runs:
            n_solved = sum(run["mean"] >= threshold for run in runs)
            episodes = [run["episodes"] for run in runs]
            lines.append(
                f"| {env} | {threshold:g} ({enough:g}) | {n_solved} of {len(runs)} | "
                f"{np.median(episodes):,.0f} | {max(episodes):,} | "
                f"{min(run['mean'] for run in runs):.1f} |"
            )
    lines += ["", "## Speed of the loop", "",
              "Steps a second in each process, and their share of those of a loop that does "
              "nothing but `env.step` with the same actions and seeds in the same processes; "
              f"medians of {N_ROUNDS} rounds in turn, on a machine that others use too.", "",
              "| environment | processes | steps a second | share of a bare loop |",
              "|---|---|---|---|"]  # fmt: skip
    for env in SPEED:
        for n_workers in (1, 2):
            for run in under(f"speed/{env}/{n_workers}"):
                lines.append(
                    f"| {env} | {n_workers} | {run['rate']:,.0f} | {100 * run['share']:.0f} % |"
                )
    lines += ["", "## All subpopulations in the same global solution", "",
              "What `simultaneous=True` (Jacobi) costs LECCDE, one subpopulation for each neuron: "
              f"mean return on fresh seeds after {JACOBI_EPISODES:,} episodes, median and range.",
              "", "| environment | in turn, as in the paper | simultaneous |",
              "|---|---|---|"]  # fmt: skip
    for env in JACOBI:
        cells = []
        for name in (False, True):
            means = [run["mean"] for run in under(f"simultaneous/{env}/{name}/")]
            if means:
                cells.append(f"{np.median(means):.0f} ({min(means):.0f} to {max(means):.0f})")
        if len(cells) == 2:
            lines.append(f"| {env} | {' | '.join(cells)} |")
    lines += ["", "## Double pole balancing", "",
              "Episodes until a network balances for 100,000 steps (examples/double_pole.py: CCDE, "
              "5 hidden neurons, begun anew when it gets nowhere; all episodes count).", "",
              "| observed | runs | solved | median episodes | mean |",
              "|---|---|---|---|---|"]  # fmt: skip
    for name, text in ((True, "the whole state"), (False, "positions, of this step and the last")):
        runs = under(f"double_pole/{name}/")
        if runs:
            episodes = [run["episodes"] for run in runs]
            n_solved = sum(run["steps"] >= 100_000 for run in runs)
            lines.append(
                f"| {text} | {len(runs)} | {n_solved} | {np.median(episodes):,.0f} | "
                f"{np.mean(episodes):,.0f} |"
            )
    lines += ["", "Gomez, Schmidhuber and Miikkulainen (2008), *Accelerated Neural Evolution "
              "through Cooperatively Coevolved Synapses*, JMLR 9, tabulate the evaluations that "
              "SANE, ESP, NEAT, CoSyNE and CMA-ES took."]  # fmt: skip
    command = "`python benchmarks/policies.py`"
    return "\n".join([*lines, "", f"Measured with {command}. {describe_machine()}", ""])


def main() -> None:
    parts = ["solved", "speed", "simultaneous", "double_pole"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=parts)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after these")
    arguments = parser.parse_args()
    path = RESULTS / "policies.json"
    began = time.perf_counter()
    for part in arguments.parts:
        for key, function, values in plan(part, arguments.seeds):
            found = json.loads(path.read_text()) if path.exists() else {}
            if key in found or time.perf_counter() - began > arguments.seconds:
                continue
            found[key] = function(*values)
            print(key, found[key], flush=True)
            path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            (RESULTS / "policies.md").write_text(report(found))


if __name__ == "__main__":
    main()
