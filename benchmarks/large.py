"""What validation costs on a large table: 3 million rows of 28 columns, one hidden layer of 50.

Run it as `python benchmarks/large.py`, five minutes and 2 GB. The same search with 5,000 and
with 280,000 validation rows, in turn, three times each; what counts is the ratio of
microseconds for an evaluation. Searches are the default, smoothing, and differential evolution
by cross-entropy and by accuracy. Rewrites benchmarks/results/large.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from machine import PeakMemory, describe_machine

from coevo import Result, evolve

RESULT = Path(__file__).parent / "results" / "large.md"
SIZES = (5_000, 280_000)
SEARCHES: dict[str, dict[str, Any]] = {
    "smoothing": {},
    "LECCDE, cross-entropy": {"variant": "LECCDE"},
    "LECCDE, accuracy": {"variant": "LECCDE", "fitness": "accuracy"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    X = rng.standard_normal((options.rows, 28), dtype=np.float32)
    y = (np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + rng.standard_normal(len(X)) > 0).astype(int)
    n = len(X) - max(SIZES)
    rows, memory = [], None
    for name, changes in SEARCHES.items():
        evolve(X[:5000], y[:5000], X[-5000:], y[-5000:], max_generations=5, **changes)  # compiles
        memory = memory or PeakMemory()
        results: dict[int, list[Result]] = {size: [] for size in SIZES}
        for turn in range(3):
            for size, found in results.items():
                parts = (X[:n], y[:n], X[n : n + size], y[n : n + size])
                found.append(evolve(*parts, max_seconds=options.seconds, seed=turn, **changes))
                print(name, size, list(map(find_cost, found)), flush=True)
        few, many = (float(np.median([find_cost(r) for r in results[size]])) for size in SIZES)
        rows += [
            f"| {name} | {size:,} | {found[0].settings.validate_every} generations | "
            f"{', '.join(f'{find_cost(r):.2f}' for r in found)} | {ratio} |"
            for (size, found), ratio in zip(results.items(), ("", f"{many / few:.2f}"), strict=True)
        ]
    peak = None if memory is None else memory.gigabytes()
    lines = [
        "# A large table", "", *__doc__.splitlines()[2:6], "",
        "| search | validation rows | validates every | microseconds for an evaluation, three runs "
        "| ratio of medians |", "|---|---|---|---|---|", *rows, "",
        "" if peak is None else f"Peak memory beyond the data: {peak:.2f} GB.",
        "", f"Measured with `python benchmarks/large.py --seconds {options.seconds:g}`. "
        f"{describe_machine()}", "",
    ]  # fmt: skip
    RESULT.write_text("\n".join(lines))


def find_cost(result: Result) -> float:
    """Return the microseconds that an evaluation took."""
    return 1e6 * result.seconds / result.evaluations


if __name__ == "__main__":
    main()
