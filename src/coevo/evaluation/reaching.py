"""Multiplies only where a neuron of the last hidden layer makes a difference, if that is rare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo import threads
from coevo.evaluation import _measures, _reach, measuring
from coevo.evaluation._kernels import BOUNDED
from coevo.evaluation._reach import LastHidden
from coevo.network import Array
from coevo.selection import STAYS, Contest, select

_SHORT = 0.2  # part of the instances; a loop over few has half the rate of one large product
_N_SAMPLES = 8
_MOVE = 3  # candidates that could be multiplied while a move waits for all inputs from memory


def part_in_reach(layer: LastHidden, neurons: range) -> float:
    """Return which part of the instances a neuron can still make right or wrong.

    A mean over some of the neurons, as they are now.
    """
    sample = neurons[:: -(-len(neurons) // _N_SAMPLES)]
    n_open = sum(_reach.count_open(layer, neuron) for neuron in sample)
    return float(n_open / (len(sample) * len(layer.targets)))


def is_short(part: float) -> bool:
    """Whether so few instances are in reach that one product for all candidates does not pay."""
    return part <= _SHORT


def sweep(layer: LastHidden, neurons: range, contest: Contest, part: float) -> None:
    """Measure, select and move neurons, one after the other.

    Each step is shared out among the cores if it is long; else one compiled loop does all.

    Parameters
    ----------
    layer
        The neurons' layer, moved along.
    neurons
        Their places in the layer.
    contest
        Their candidates.
    part
        The part of the instances in their reach, as found before.
    """
    n_instances, n_inputs = layer.inputs.shape
    n_candidates = contest.trials.shape[1] * len(contest.candidates)
    size = n_inputs * (_MOVE + part * n_candidates)
    grain = 1 + round(threads.LARGE_PRODUCT / 2 / size)
    if threads.available_threads() == 1 or n_instances < 2 * grain:
        _reach.sweep(layer, contest, neurons.start)
    else:
        sweep_in_steps(layer, neurons, contest, grain)


def sweep_in_steps(layer: LastHidden, neurons: range, contest: Contest, grain: int) -> None:
    """Sweep with each step shared out among the cores, in ranges of `grain` instances and more."""
    n_candidates = contest.trials.shape[1] * len(contest.candidates)
    for k, neuron in enumerate(neurons):
        counts = _count_right(layer, neuron, contest, k, n_candidates, grain)
        if select(contest, k, counts / len(layer.targets)) != STAYS:
            _move(layer, neuron, contest.representatives[k], grain)


def _count_right(
    layer: LastHidden, neuron: int, contest: Contest, k: int, n_candidates: int, grain: int
) -> Array:
    parts: list[Array] = []

    def work(start: int, stop: int) -> None:
        counts = np.empty(n_candidates, dtype=np.int64)
        _reach.count_right(layer, neuron, contest, k, start, stop, counts)
        parts.append(counts)

    threads.share_out(work, len(layer.targets), grain)
    return np.asarray(np.sum(parts, axis=0))


def _move(layer: LastHidden, neuron: int, individual: Array, grain: int) -> None:
    def work(start: int, stop: int) -> None:
        _reach.move(layer, neuron, individual, start, stop)

    threads.share_out(work, len(layer.targets), grain)


def count_classes(
    layer: LastHidden, neuron: int, candidates: Sequence[Array], weights: Array
) -> Array | None:
    """Count true classes by predicted classes, for each candidate for a neuron.

    Parameters
    ----------
    layer
        The neuron's layer.
    neuron
        Its place there.
    candidates : arrays of shape (m, n + 1)
    weights : array of shape (B,)
        How much each instance counts.

    Returns
    -------
    float64 array of shape (candidates, C, C), or None if it is not worth while: the neuron can
    change the class of many instances
    """
    if layer.activation not in BOUNDED:
        return None
    n_outputs, n_instances = layer.outputs.shape
    at_least, at_greatest = np.empty((2, n_instances), dtype=np.int32)
    _reach.predict_at_ends(layer, neuron, at_least, at_greatest)
    is_open = at_least != at_greatest
    if not is_short(is_open.mean()):
        return None
    is_settled = ~is_open
    cells = layer.targets[is_settled] * n_outputs + at_least[is_settled]
    settled = np.bincount(cells, weights[is_settled], n_outputs**2)
    chosen = np.flatnonzero(is_open)
    inputs = layer.inputs[chosen]
    counts = measuring.count_classes(
        _measures.Candidates(
            sums=np.concatenate([vectors[:, :-1] @ inputs.T for vectors in candidates]),
            biases=np.concatenate([vectors[:, -1] for vectors in candidates]),
            outputs=layer.outputs.take(chosen, axis=1),
            slopes=layer.outgoing[neuron],
            now=layer.activations[neuron, chosen],
            activation=layer.activation,
        ),
        layer.targets[chosen],
        weights[chosen],
    )
    return counts + settled.reshape(n_outputs, n_outputs)
