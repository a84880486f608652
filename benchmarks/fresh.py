"""The library's defaults on data that had no part in choosing them: wine and iris, 20 seeds.

Run it as `python benchmarks/fresh.py`, a minute. Each seed has a split of its own, 70 to 30, the
same for all rows: means as representatives (the default), the best individual as in the paper, and
scikit-learn's MLPClassifier. Rewrites benchmarks/results/fresh.md.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from machine import describe_machine
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from coevo import CoevoClassifier

RESULT = Path(__file__).parent / "results" / "fresh.md"
N_SEEDS = 20


def make_models(seed: int) -> dict[str, object]:
    budget = {"max_evaluations": 20_000, "random_state": seed}
    gradients = MLPClassifier((50,), activation="tanh", max_iter=500, random_state=seed)
    return {
        "defaults (means)": CoevoClassifier(**budget),
        "best represents": CoevoClassifier(representative="best", **budget),
        "backpropagation": make_pipeline(MinMaxScaler((-1, 1)), gradients),
    }


def main() -> None:
    rows = []
    for name, load in (("wine", load_wine), ("iris", load_iris)):
        X, y = load(return_X_y=True)
        scores: dict[str, list[float]] = {}
        for seed in range(N_SEEDS):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
            for label, model in make_models(seed).items():
                score = 100 * model.fit(X_train, y_train).score(X_test, y_test)
                scores.setdefault(label, []).append(score)
        for label, values in scores.items():
            mean, spread = np.mean(values), np.std(values, ddof=1)
            rows.append(
                f"| {name} | {label} | {np.median(values):.2f} | {mean:.2f} ± {spread:.1f} |"
            )
            print(rows[-1], flush=True)
    lines = [
        "# Defaults on fresh data", "", *__doc__.splitlines()[2:5], "",
        "| set | row | median test % | mean ± standard deviation |", "|---|---|---|---|", *rows, "",
        f"Measured with `python benchmarks/fresh.py`. {describe_machine()}", "",
    ]  # fmt: skip
    RESULT.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
