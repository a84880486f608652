"""Runs of differential evolution that never move: how many of 100 seeds on four small sets.

Run it as `python benchmarks/standstill.py`, a minute. CCDE and LECCDE with 20,000 evaluations and
nothing else set, and CCDE by the paper's rule for the first fitness. A run has not moved if no
network validated better than the first one. Rewrites benchmarks/results/standstill.md.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from joblib import Parallel, delayed
from machine import describe_machine
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from coevo import CoevoClassifier

RESULT = Path(__file__).parent / "results" / "standstill.md"
SETS = {"digits": load_digits, "wine": load_wine, "iris": load_iris, "WBC": load_breast_cancer}
ROWS = {
    "LECCDE": {"strategy": "rand/1"},
    "CCDE": {"strategy": "rand/1", "limited_evaluation": False},
    "CCDE, first fitness by sampling": {
        "strategy": "rand/1", "limited_evaluation": False, "extensions": (),
    },
}  # fmt: skip
N_SEEDS = 100


def has_moved(name: str, settings: dict, seed: int) -> bool:
    X, y = SETS[name](return_X_y=True)
    model = CoevoClassifier(max_evaluations=20_000, random_state=seed, n_threads=1, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = model.fit(X, y).history_["best_validation"]
    return bool(best[-1] > best[0])


def main() -> None:
    head = f"| of {N_SEEDS} seeds | {' | '.join(SETS)} |"
    rule = "|---" * (len(SETS) + 1) + "|"
    lines = ["# Runs that never move", "", *__doc__.splitlines()[2:5], "", head, rule]
    for label, settings in ROWS.items():
        counts = []
        for name in SETS:
            moved = Parallel(n_jobs=-1)(
                delayed(has_moved)(name, settings, seed) for seed in range(N_SEEDS)
            )
            counts.append(str(N_SEEDS - sum(moved)))
        lines.append(f"| {label} | {' | '.join(counts)} |")
        print(lines[-1], flush=True)
    lines += ["", f"Measured with `python benchmarks/standstill.py`. {describe_machine()}", ""]
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
