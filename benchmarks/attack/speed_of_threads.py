"""The default number of threads beside one thread and all, in turn within one run."""

from __future__ import annotations

from pathlib import Path

from speed import find_data

from attack.tally import Tally, rounds
from coevo.runtime import threads
from coevo.training.paper import PAPER

BUDGETS = {"WBC": 50_000, "ESR": 300_000, "HAR": 300_000, "MNIST": 600_000}
"""Evaluations of a burst: the paper's, or as many as take about a second."""
NOISE = 0.9
"""What share of one thread's rate the default must have; bursts differ by some per cent."""


def attack(seconds: float, seed: int, folder: Path) -> Tally:
    """Race the default against one thread and all of them; it must not lose to one."""
    tally = Tally()
    n_available = threads.available_threads()
    numbers = {"one thread": 1, "all threads": n_available, "default": None}
    for name, budget in BUDGETS.items():
        data, _ = find_data(name)
        rates: dict[str, list[float]] = {label: [] for label in numbers}
        networks = set()
        for burst in rounds(seconds / len(BUDGETS)):
            for label, n_threads in numbers.items():
                settings = PAPER[name].settings(
                    "LECCDE", seed=burst, max_evaluations=budget, n_threads=n_threads
                )
                result = data.evolve(settings)
                networks.add((burst, result.network.genotype.tobytes()))
                if burst:  # the first one warms up
                    rates[label].append(result.evaluations / result.seconds)
        tally.expect(len(networks) == burst + 1, f"{name}: the result depends on the threads")
        if not rates["default"]:
            continue
        for label in ("all threads", "default"):
            ratio = max(rates[label]) / max(rates["one thread"])  # others disturb some bursts
            tally.counts[f"{name}, {label}, per cent of one thread"] = round(100 * ratio)
        ratio = tally.counts[f"{name}, default, per cent of one thread"] / 100
        tally.expect(ratio > NOISE, f"{name}: the default has {ratio} of one thread's rate")
        tally.counts["bursts"] += len(rates["default"])
    return tally
