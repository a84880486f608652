"""The rate of smoothing on a wide network with a short budget: chosen for it, or for a long one.

Run it as `python benchmarks/pace.py`, four minutes (needs MNIST, see `coevo data list`).
784-2000-10 with so few generations as some seconds are enough for, once with the rate that is
chosen for them and once with that of a long run. Where seconds are granted, a search measures on
its first generations how many there will be, and takes the first rate. Of the 60,000 training
images 10,000 are what accuracy is measured on; the test images are not used. Rewrites
benchmarks/results/pace.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from machine import describe_machine

from coevo import CoevoClassifier, Smoothing
from coevo.datasets import load

RESULT = Path(__file__).parent / "results" / "pace.md"
WIDTH, BUDGETS, SEEDS = 2000, (150, 300, 600, 1200), (1, 2)


def main() -> None:
    data = load("MNIST", "all")
    inputs = np.asarray(data.inputs[:60_000], dtype=np.float32)
    labels = data.labels[:60_000]
    rows = []
    for n_generations in BUDGETS:
        cells = []
        for is_long in (False, True):
            accuracies = []
            for seed in SEEDS:
                order = np.random.default_rng(seed).permutation(len(inputs))
                measured, training = np.split(order, [10_000])
                rate = find_long_rate(inputs, labels) if is_long else "auto"
                model = CoevoClassifier(
                    (WIDTH,), max_generations=n_generations, random_state=seed,
                    strategy=Smoothing(rate=rate),
                ).fit(inputs[training], labels[training])  # fmt: skip
                accuracies.append(100 * model.score(inputs[measured], labels[measured]))
            cells.append(", ".join(f"{accuracy:.2f}" for accuracy in accuracies))
            print(n_generations, is_long, accuracies, flush=True)
        rows.append(f"| {n_generations} | {' | '.join(cells)} |")
    lines = [
        "# The rate for a short budget", "", *__doc__.splitlines()[2:], "",
        "| generations | rate for them: accuracy %, by seed | rate of a long run |",
        "|---|---|---|",
        *rows, "", f"Measured with `python benchmarks/pace.py`. {describe_machine()}", "",
    ]  # fmt: skip
    RESULT.write_text("\n".join(lines))


def find_long_rate(inputs: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """Return the rates that are chosen if generations do not count: those for seconds."""
    model = CoevoClassifier((WIDTH,), max_seconds=0.001).fit(inputs[:500], labels[:500])
    return model.settings_.strategy.rate


if __name__ == "__main__":
    main()
