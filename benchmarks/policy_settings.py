"""How the defaults of policies were chosen: settings changed one at a time, on three environments.

Run it with `python benchmarks/policy_settings.py`; it goes on with what is missing from
benchmarks/results/policy_settings.json and rewrites policy_settings.md beside it. CartPole and
Acrobot, on which docs/measured/control.md judges the defaults, are not among the environments.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo import evolve_policy

RESULTS = Path(__file__).parent / "results"
ENVIRONMENTS = ("Pendulum-v1", "MountainCarContinuous-v0", "LunarLander-v3")
N_EPISODES = 3_000
BASE = {
    "hidden_layer_sizes": (8,), "batch_size": 2, "population_size": 10, "scale_factor": 0.5,
    "crossover_rate": 0.5, "initial_range": 1.0, "representative": "best",
}  # fmt: skip
SMALL = {"population_size": 6, "batch_size": 1}  # more generations for as many episodes
SHADE = {"control": "shade", "strategy": "current-to-pbest/1"}
CHANGES = {
    "base": {},
    "no hidden layer": {"hidden_layer_sizes": ()},
    "16 neurons": {"hidden_layer_sizes": (16,)},
    "population 6": {"population_size": 6},
    "population 20": {"population_size": 20},
    "1 seed": {"batch_size": 1},
    "4 seeds": {"batch_size": 4},
    "F 0.8": {"scale_factor": 0.8},
    "F 0.3": {"scale_factor": 0.3},
    "CR 0.9": {"crossover_rate": 0.9},
    "range 0.3": {"initial_range": 0.3},
    "range 3": {"initial_range": 3.0},
    "means": {"representative": "mean"},
    "jde": {"control": "jde"},
    "shade": SHADE,
    "best/1": {"strategy": "best/1"},
    "LEDE": {"decomposition": "whole"},
    "decay 0.5": {"decay": 0.5},
    "small": SMALL,
    "small, shade": SMALL | SHADE,
    "small, 4 neurons": SMALL | {"hidden_layer_sizes": (4,)},
    "small, 4 neurons, shade": SMALL | SHADE | {"hidden_layer_sizes": (4,)},
    "small, 4 neurons, jde": SMALL | {"control": "jde", "hidden_layer_sizes": (4,)},
    "1 seed, by layer": {"batch_size": 1, "decomposition": "layer"},
    "1 seed, by layer, shade": {"batch_size": 1, "decomposition": "layer"} | SHADE,
    "not normalised": {"normalize_observations": False},
}


def measure(name: str, env: str, seed: int) -> float:
    """Return the mean return on fresh seeds after a budget of episodes."""
    result = evolve_policy(
        env, **BASE | CHANGES[name], seed=seed, max_evaluations=None,
        callbacks=[lambda search: search.evaluator.source.n_episodes >= N_EPISODES],
    )  # fmt: skip
    return result.mean_return(100, seed=1).mean


def report(found: dict[str, float], n_seeds: int) -> str:
    lines = [
        "# Choosing the defaults of policies",
        "",
        *(__doc__ or "").splitlines()[2:],
        "",
        f"Mean return on 100 fresh seeds after {N_EPISODES:,} episodes, mean over runs with seeds "
        "0, 1, …; the rank is the mean over environments. One run says little: those that looked "
        "best were repeated.",
        "",
        f"| settings | rank | runs | {' | '.join(ENVIRONMENTS)} |",
        f"|---|---|---|{'---|' * len(ENVIRONMENTS)}",
    ]
    complete, n_runs = {}, {}
    for name in CHANGES:
        whole = [
            [found[key] for env in ENVIRONMENTS if (key := f"{name}/{env}/{seed}") in found]
            for seed in range(n_seeds)
        ]
        whole = [values for values in whole if len(values) == len(ENVIRONMENTS)]
        if whole:
            complete[name], n_runs[name] = np.mean(whole, axis=0), len(whole)
    table = np.array(list(complete.values()))
    ranks = (-table).argsort(axis=0).argsort(axis=0).mean(axis=1) + 1
    for rank, name in sorted(zip(ranks, complete, strict=True)):
        cells = " | ".join(f"{value:.1f}" for value in complete[name])
        lines.append(f"| {name} | {rank:.1f} | {n_runs[name]} | {cells} |")
    base = ", ".join(f"{name} = {value}" for name, value in BASE.items())
    lines += ["", f"Base: {base}. Chosen: 1 seed, by layer."]
    command = "`python benchmarks/policy_settings.py`"
    return "\n".join([*lines, "", f"Measured with {command}. {describe_machine()}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(CHANGES))
    arguments = parser.parse_args()
    path = RESULTS / "policy_settings.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for seed in range(arguments.seeds):
        for name in arguments.only:
            for env in ENVIRONMENTS:
                key = f"{name}/{env}/{seed}"
                if key not in found:
                    found[key] = measure(name, env, seed)
                    print(f"{key}: {found[key]:.1f}", flush=True)
                    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        (RESULTS / "policy_settings.md").write_text(report(found, seed + 1))


if __name__ == "__main__":
    main()
