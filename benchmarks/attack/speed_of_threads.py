"""The default number of threads beside one thread and all, in turn within one run."""

from __future__ import annotations

import time
from pathlib import Path

from speed import find_data

from attack.tally import Tally
from coevo.runtime import threads
from coevo.training.paper import PAPER

BUDGETS = {"WBC": 2_000_000, "ESR": 300_000, "HAR": 300_000, "MNIST": 600_000}
"""Evaluations of a burst, which take about a second."""
LEAST = 4
"""Bursts of each, whatever the time."""
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
        end, burst = time.monotonic() + seconds / len(BUDGETS), 0
        while burst < LEAST or time.monotonic() < end:
            for label, n_threads in numbers.items():
                settings = PAPER[name].settings(
                    "LECCDE", seed=burst, max_evaluations=budget, n_threads=n_threads
                )
                result = data.evolve(settings)
                networks.add((burst, result.network.genotype.tobytes()))
                if burst:  # the first one warms up
                    rates[label].append(result.evaluations / result.seconds)
            burst += 1
        tally.expect(len(networks) == burst, f"{name}: the result depends on the threads")
        for label in ("all threads", "default"):
            ratio = max(rates[label]) / max(rates["one thread"])  # others disturb some bursts
            tally.counts[f"% of one thread's rate with {label} on {name}"] = round(100 * ratio)
        tally.expect(ratio > NOISE, f"{name}: the default has {ratio:.2f} of one thread's rate")
        tally.counts["bursts"] += len(rates["default"])
    return tally
