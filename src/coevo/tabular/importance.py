"""Permutation importance: how much worse a network gets if a column is shuffled among the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from coevo._typing import Array
from coevo.core.metrics import METRICS
from coevo.core.network import ACTIVATIONS, Architecture, Network

N_SHUFFLES = 5
_MOST_ACTIVATIONS = 10**8  # about a second; fewer rows are taken if it would be more
_FEWEST_ROWS = 100


def choose_metric(fitness: str, task: str) -> str:
    """Return the metric by which importance is reported.

    For regression it is R²; for classification the fitness, if that is one of coevo's metrics of
    predicted classes, or else accuracy. A metric of scikit-learn's may be undefined on rows that
    lack a class.
    """
    if task == "regression":
        return "r2"
    is_read = fitness in METRICS and not METRICS[fitness].is_graded
    return fitness if is_read and METRICS[fitness].task == task else "accuracy"


def score_by(metric: str, targets: Array) -> Callable[[Array], float]:
    """Return a function that scores outputs against class indices or numbers (n_rows,)."""
    if metric != "r2":
        return lambda outputs: float(METRICS[metric](outputs, targets))
    spread = np.sum((targets - targets.mean()) ** 2)
    return lambda outputs: float(1 - np.sum((outputs[:, 0] - targets) ** 2) / spread)


def limit_rows(n_rows: int, network: Network, n_columns: int) -> int:
    """Return how many of the rows are taken."""
    most = _MOST_ACTIVATIONS // (N_SHUFFLES * n_columns * len(network.biases[0]))
    return min(n_rows, max(most, _FEWEST_ROWS))


def measure_importance(
    network: Network,
    inputs: Array,
    targets: Array,
    columns: Mapping[str, Sequence[int]],
    metric: str,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Return the mean and the standard deviation of each column's importance, the largest first.

    Shuffling a column moves the pre-activations of the first layer by what its inputs add, so only
    that is computed and the layers above are run from there.

    Parameters
    ----------
    inputs : array of shape (n_rows, n_inputs)
    targets : array of shape (n_rows,)
        Class indices, or numbers.
    columns
        Which inputs are made of each column.
    """
    rng = np.random.default_rng([seed, 0x1897])  # another stream than the search's
    weights, biases = network.weights[0], network.biases[0]
    n_rows = limit_rows(len(inputs), network, len(columns))
    if n_rows < len(inputs):
        rows = rng.choice(len(inputs), n_rows, replace=False)
        inputs, targets = inputs[rows], targets[rows]
    run_rest = _run_from_first_layer(network)
    score = score_by(metric, targets)
    pre_activations = inputs @ weights.T + biases
    usual = score(run_rest(pre_activations))
    losses: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(N_SHUFFLES):
        order = rng.permutation(len(inputs))
        for name, places in columns.items():
            values = inputs[:, places]
            change = (values[order] - values) @ weights[:, places].T
            losses[name].append(usual - score(run_rest(pre_activations + change)))
    ranked = sorted(losses, key=lambda name: -float(np.mean(losses[name])))
    return {
        name: {"mean": float(np.mean(losses[name])), "sd": float(np.std(losses[name]))}
        for name in ranked
    }


def _run_from_first_layer(network: Network) -> Callable[[Array], Array]:
    """Return what turns pre-activations of the first layer into outputs."""
    whole = network.architecture
    if not whole.hidden_layer_sizes:
        return ACTIVATIONS[whole.output_activation]
    first, *others = whole.hidden_layer_sizes
    rest = Architecture(
        first, tuple(others), whole.n_outputs, whole.activation, whole.output_activation
    )
    genes = network.genotype[whole.layers[0].stop :]
    return lambda pre: rest.forward(genes, ACTIVATIONS[whole.activation](pre))
