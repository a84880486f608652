"""Evolves a network for F2 on imbalanced data, beside the same network trained by gradients.

About one instance in twenty is positive, and missing one is worse than a false alarm, which is what
F-beta with beta 2 says. It has no gradient; the search does not need one. MLPClassifier minimises
log loss and decides at its default threshold of one half. Run it with

    python examples/fbeta_imbalanced.py
"""

from __future__ import annotations

import argparse
import statistics

from sklearn.datasets import make_classification
from sklearn.metrics import fbeta_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from coevo import CoevoClassifier
from coevo.fitness import FBeta

HIDDEN = (20,)


def compare(seed: int, budget: int) -> dict[str, float]:
    """Return F2 on held-out instances of both networks, each seed with other data."""
    X, y = make_classification(
        n_samples=6_000, n_features=12, n_informative=6, n_redundant=2, weights=[0.95],
        flip_y=0.02, class_sep=0.8, random_state=seed,
    )  # fmt: skip
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    models = {
        "evolved for F2": CoevoClassifier(
            HIDDEN, fitness=FBeta(beta=2), max_evaluations=budget, random_state=seed
        ),
        "MLPClassifier": make_pipeline(
            MinMaxScaler((-1, 1)),
            MLPClassifier(HIDDEN, activation="tanh", max_iter=1_000, random_state=seed),
        ),
    }
    return {
        name: fbeta_score(y_test, model.fit(X_train, y_train).predict(X_test), beta=2)
        for name, model in models.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    results = []
    for seed in range(arguments.seeds):
        results.append(compare(seed, arguments.evaluations))
        scores = ", ".join(f"{name} {score:.3f}" for name, score in results[-1].items())
        print(f"seed {seed}: {scores}")
    for name in results[0]:
        scores = [result[name] for result in results]
        print(f"{name:>15}: F2 {statistics.median(scores):.3f} in the median")


if __name__ == "__main__":
    main()
