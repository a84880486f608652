"""Multiplies only where a neuron of the last hidden layer makes a difference, if that is rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coevo import threads
from coevo.evaluation import _measures, _reach, measuring
from coevo.evaluation._reach import LastHidden
from coevo.evaluation.sums import BLOCK_ELEMENTS
from coevo.network import Array
from coevo.selection import STAYS, Contest, select

_SHORT = 0.2  # part of the instances; a loop over few has half the rate of one large product
_N_SAMPLES = 8
_MOVE = 3  # candidates that could be multiplied while a move waits for all inputs from memory


class Reached(NamedTuple):
    """A last hidden layer whose neurons reach few instances.

    Attributes
    ----------
    layer
        The layer in its surroundings.
    part
        The part of the instances that a neuron can make right or wrong, as things stand.
    """

    layer: LastHidden
    part: float


def look_around(layer: LastHidden, neurons: range) -> Reached | None:
    """Look how far some of the neurons reach; None if one product for all will be faster."""
    sample = neurons[:: -(-len(neurons) // _N_SAMPLES)]
    n_open = sum(_reach.count_open(layer, neuron) for neuron in sample)
    part = float(n_open / (len(sample) * len(layer.targets)))
    return Reached(layer, part) if part <= _SHORT else None


def sweep(reached: Reached, neurons: range, contest: Contest) -> None:
    """Measure accuracy, select and move neurons, one after the other.

    Each step is shared out among the cores if it is long; else one compiled loop does all.

    Parameters
    ----------
    reached
        The neurons' layer, moved along.
    neurons
        Their places in the layer.
    contest
        Their candidates.
    """
    layer, part = reached
    n_instances, n_inputs = layer.inputs.shape
    size = n_inputs * (_MOVE + part * contest.trials.shape[1] * len(contest.candidates))
    grain = 1 + round(threads.LARGE_PRODUCT / 2 / size)
    if n_instances < 2 * grain:
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


def count_classes(layer: LastHidden, neuron: int, candidates: Sequence[Array]) -> Array:
    """Count true classes by predicted classes, for each candidate for a neuron.

    Parameters
    ----------
    layer
        The neuron's layer; its activation is bounded.
    neuron
        Its place there.
    candidates : arrays of shape (m, n + 1)

    Returns
    -------
    float64 array of shape (candidates, C, C)
    """
    n_outputs, n_instances = layer.outputs.shape
    at_least, at_greatest = np.empty((2, n_instances), dtype=np.int32)
    _reach.predict_at_ends(layer, neuron, at_least, at_greatest)
    is_settled = at_least == at_greatest
    cells = layer.targets[is_settled] * n_outputs + at_least[is_settled]
    settled = np.bincount(cells, minlength=n_outputs**2).reshape(n_outputs, n_outputs)
    vectors = np.concatenate(candidates)
    counts = np.zeros((len(vectors), n_outputs, n_outputs)) + settled
    is_open = np.flatnonzero(~is_settled)
    step = max(1, BLOCK_ELEMENTS // max(vectors.shape))
    for start in range(0, len(is_open), step):
        some = is_open[start : start + step]
        in_their_place = _measures.Candidates(
            sums=threads.multiply(vectors[:, :-1], layer.inputs[some].T),
            biases=vectors[:, -1].copy(),
            outputs=layer.outputs.take(some, axis=1),
            slopes=layer.outgoing[neuron],
            now=layer.activations[neuron, some],
            activation=layer.activation,
        )
        weights = np.ones(len(some))
        counts += measuring.count_classes(in_their_place, layer.targets[some], weights)
    return counts
