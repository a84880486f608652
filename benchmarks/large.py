"""What validation costs on a large table: 3 million rows of 28 columns, one hidden layer of 50.

Run it as `python benchmarks/large.py`, two minutes and 2 GB. The same search with 5,000 and
with 280,000 validation rows, in turn, three times each; what counts is the ratio of
microseconds for an evaluation. Rewrites benchmarks/results/large.md.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo import evolve

RESULT = Path(__file__).parent / "results" / "large.md"
SIZES = (5_000, 280_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    X = rng.standard_normal((options.rows, 28), dtype=np.float32)
    y = (np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + rng.standard_normal(len(X)) > 0).astype(int)
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    evolve(X[:5000], y[:5000], X[-5000:], y[-5000:], max_generations=5)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for turn in range(3):
        for size, found in costs.items():
            n = len(X) - max(SIZES)
            parts = (X[:n], y[:n], X[n : n + size], y[n : n + size])
            result = evolve(*parts, max_seconds=options.seconds, seed=turn)
            found.append(1e6 * result.seconds / result.evaluations)
            print(size, found, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    few, many = (float(np.median(costs[size])) for size in SIZES)
    rows = [f"| {s:,} | {', '.join(f'{c:.2f}' for c in found)} |" for s, found in costs.items()]
    lines = [
        "# A large table", "", *__doc__.splitlines()[2:5], "",
        "| validation rows | microseconds for an evaluation, three runs |", "|---|---|",
        *rows, "", f"Ratio of the medians: {many / few:.2f}. "
        f"Peak memory beyond the data: {peak / 1e6:.2f} GB.",
        "", f"Measured with `python benchmarks/large.py --seconds {options.seconds:g}`. "
        f"{describe_machine()}", "",
    ]  # fmt: skip
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
