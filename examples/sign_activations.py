"""Evolves a network whose hidden activations are −1 or 1, which gradients cannot train.

The derivative of the sign function is zero wherever there is one. Run it with

    python examples/sign_activations.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from coevo import CoevoClassifier

SEED = 0


def draw(path: Path, hidden: np.ndarray, labels: np.ndarray) -> None:
    """Draw what the hidden neurons say to the test instances, sorted by digit."""
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    order = np.argsort(labels, kind="stable")
    axes.imshow(
        hidden[order].T, aspect="auto", interpolation="nearest",
        cmap=ListedColormap(["#D3E6F4", "#0072B2"]),
    )  # fmt: skip
    starts = np.searchsorted(labels[order], np.arange(11))
    axes.set_xticks((starts[:-1] + starts[1:]) / 2, range(10))
    axes.vlines(starts[1:-1] - 0.5, -0.5, hidden.shape[1] - 0.5, color="white", lw=2)
    axes.set(xlabel="test instances, by digit", ylabel="hidden neuron: −1 pale, 1 dark")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=300_000)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    budget = arguments.evaluations
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=SEED)
    print(f"digits, {len(y_train)} training instances, a network of 64-50-10 neurons")
    for activation in ("sign", "tanh"):
        model = CoevoClassifier(
            (50,), activation=activation, max_evaluations=budget, random_state=SEED
        ).fit(X_train, y_train)
        accuracy = model.score(X_test, y_test)
        print(f"{activation:>5}: accuracy {accuracy:.3f} on {len(y_test)} test instances")
        if activation == "sign":
            network = model.network_
            hidden = np.sign(X_test @ network.weights[0].T + network.biases[0])
            print(f"       the hidden neurons' values: {np.unique(hidden).tolist()}")
            if arguments.picture:
                draw(arguments.picture, hidden, y_test)


if __name__ == "__main__":
    main()
