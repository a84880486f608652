"""Evolves a network for F2 on imbalanced data, beside the same network trained by gradients.

About one instance in twenty is positive, and missing one is worse than a false alarm, which is what
F-beta with beta 2 says. It has no gradient; the search does not need one. MLPClassifier minimises
log loss and decides at its default threshold of one half. Run it with

    python examples/fbeta_imbalanced.py
"""

from __future__ import annotations

import argparse
import time

from sklearn.datasets import make_classification
from sklearn.metrics import fbeta_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from coevo import CoevoClassifier
from coevo.fitness import FBeta

SEED = 0
HIDDEN = (20,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=150_000)
    budget = parser.parse_args().evaluations
    X, y = make_classification(
        n_samples=6_000, n_features=12, n_informative=6, n_redundant=2, weights=[0.95],
        flip_y=0.02, class_sep=0.8, random_state=SEED,
    )  # fmt: skip
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=SEED
    )
    models = {
        "evolved for F2": CoevoClassifier(
            HIDDEN, fitness=FBeta(beta=2), max_evaluations=budget, random_state=SEED
        ),
        "MLPClassifier": make_pipeline(
            MinMaxScaler((-1, 1)),
            MLPClassifier(HIDDEN, activation="tanh", max_iter=1_000, random_state=SEED),
        ),
    }
    print(f"{len(y_train)} training instances, {y_train.mean():.1%} of them positive")
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        score = fbeta_score(y_test, model.predict(X_test), beta=2)
        print(f"{name:>15}: F2 {score:.3f} on {len(y_test)} test instances, {seconds:.1f} s")


if __name__ == "__main__":
    main()
