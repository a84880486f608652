"""Evolves a network for profit, by a cost matrix and by a function with each customer's own amount.

A letter costs 1.50. A customer who gets one and wants the offer brings in an amount, several
times that. First the amounts are taken as equal, which a profit matrix can express; then a
function of the true amounts and the predictions states the profit exactly. Run it with

    python examples/profit.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from coevo import CoevoClassifier, CoevoRegressor, metrics

SEED = 0
LETTER = 1.5


def money(amounts: np.ndarray, written_to: np.ndarray) -> float:
    """Return the mean profit of a customer."""
    return float(np.mean(written_to * (amounts - LETTER)))


def profit_of_scores(amounts: np.ndarray, scores: np.ndarray) -> float:
    """Return the profit if everyone with a positive score gets a letter."""
    return money(amounts, scores > 0)


def draw(path: Path, profits: dict[str, float]) -> None:
    """Draw the profits as bars."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    names = list(reversed(profits))
    colors = ["#0072B2" if name.startswith("evolved") else "#BBBBBB" for name in names]
    bars = axes.barh(names, [profits[name] for name in names], color=colors)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.margins(x=0.12)
    axes.set_xlabel("mean profit of a test customer")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=60_000)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    budget = arguments.evaluations
    X, wants = make_classification(
        n_samples=4_000, n_features=8, n_informative=5, weights=[0.85], class_sep=0.7,
        random_state=SEED,
    )  # fmt: skip
    rng = np.random.default_rng(SEED)
    amounts = wants * rng.lognormal(2.5, 0.5, len(wants)) * np.exp(0.5 * np.tanh(X[:, 0]))
    train, test = train_test_split(np.arange(len(X)), stratify=wants, random_state=SEED)

    mean = amounts[wants == 1].mean()
    common = {"hidden_layer_sizes": (10,), "random_state": SEED}
    matrix = metrics.Profit([[0.0, -LETTER], [0.0, mean - LETTER]])
    answers = {"everyone": np.ones(len(test)), "no one": np.zeros(len(test))}
    for name, fitness in (("evolved for accuracy", "accuracy"), ("evolved for a matrix", matrix)):
        model = CoevoClassifier(fitness=fitness, max_evaluations=budget, **common)
        answers[name] = model.fit(X[train], wants[train]).predict(X[test])
    exact = CoevoRegressor(fitness=profit_of_scores, max_evaluations=budget, **common)
    answers["evolved for amounts"] = exact.fit(X[train], amounts[train]).predict(X[test]) > 0

    print(f"mean profit of a customer, {len(test)} test customers")
    profits = {name: money(amounts[test], written_to) for name, written_to in answers.items()}
    for name, profit in profits.items():
        print(f"{name:>22}: {profit:6.2f}")
    if arguments.picture:
        draw(arguments.picture, profits)


if __name__ == "__main__":
    main()
