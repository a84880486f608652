"""Evolves a network for a table of costs on imbalanced data, beside one trained by gradients.

About one instance in twenty is positive; a miss costs as much as twenty false alarms. A sum of
such costs has no gradient, and the search does not need one. MLPClassifier, the same network,
minimises log loss and predicts with threshold 1/2. With the threshold that the costs imply it is
better, as far as its probabilities are good. Run it with

    python examples/costs_imbalanced.py
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from coevo import CoevoClassifier, metrics

HIDDEN = (20,)
COSTS = np.array([[0, 1], [20, 0]])  # rows: true classes; columns: predicted ones


def compare(seed: int, budget: int) -> dict[str, float]:
    """Return the mean cost of a held-out instance, each seed with other data."""
    X, y = make_classification(
        n_samples=6_000, n_features=12, n_informative=6, n_redundant=2, weights=[0.95],
        flip_y=0.02, class_sep=0.8, random_state=seed,
    )  # fmt: skip
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    evolved = CoevoClassifier(
        HIDDEN, fitness=metrics.Profit(-COSTS), representative="mean", max_evaluations=budget,
        random_state=seed,
    ).fit(X_train, y_train)  # fmt: skip
    trained = make_pipeline(
        MinMaxScaler((-1, 1)),
        MLPClassifier(HIDDEN, activation="tanh", max_iter=2_000, random_state=seed),
    ).fit(X_train, y_train)
    probabilities = trained.predict_proba(X_test)[:, 1]
    answers = {
        "evolved for the costs": evolved.predict(X_test),
        "gradients, threshold 1/2": probabilities > 1 / 2,
        "gradients, threshold 1/21": probabilities > 1 / 21,  # where 1 − p = 20 p
    }
    return {name: COSTS[y_test, answer.astype(int)].mean() for name, answer in answers.items()}


def draw(path: Path, results: list[dict[str, float]]) -> None:
    """Draw the costs of each seed, and their medians."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for row, name in enumerate(reversed(results[0])):
        costs = [result[name] for result in results]
        axes.barh(row, statistics.median(costs), color="#0072B2" if row == 2 else "#BBBBBB")
        axes.plot(costs, [row] * len(costs), "o", color="#333333", ms=4)
    axes.set_yticks(range(len(results[0])), list(reversed(results[0])))
    axes.set_xlabel("mean cost of a test instance (dots: seeds, bars: medians)", loc="right")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    results = []
    for seed in range(arguments.seeds):
        results.append(compare(seed, arguments.evaluations))
        costs = ", ".join(f"{name}: {cost:.3f}" for name, cost in results[-1].items())
        print(f"seed {seed}  {costs}")
    ours, theirs, *_ = zip(*(result.values() for result in results), strict=True)
    print(f"evolved is cheaper than threshold 1/2 in {np.less(ours, theirs).sum()} of {len(ours)}")
    for name in results[0]:
        print(f"{name:>25}: {statistics.median(r[name] for r in results):.3f} in the median")
    if arguments.picture:
        draw(arguments.picture, results)


if __name__ == "__main__":
    main()
