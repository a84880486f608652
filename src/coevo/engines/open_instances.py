"""Sweeps that multiply only with a neuron's open instances, shared out among the cores.

See `kernels.open_instances` for the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coevo._typing import Array
from coevo.core.selection import STAYS, Offspring, Outcome, Rule, select
from coevo.engines.candidates import BLOCK_ELEMENTS
from coevo.engines.compiled_metrics import find_confusion_matrices
from coevo.engines.kernels import open_instances as kernels
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.open_instances import OpenLayer
from coevo.runtime import threads

_FEW = 0.2  # share of the instances; a loop over few has half the rate of one large product
_N_SAMPLES = 8
_REPLACEMENT = 3  # candidates that could be multiplied while a replacement waits for all inputs


def find_open_share(layer: OpenLayer, neurons: range) -> float:
    """Return the share of the instances that are open to a neuron, from a sample of neurons."""
    sample = neurons[:: -(-len(neurons) // _N_SAMPLES)]
    n_open = sum(kernels.count_open(layer, neuron) for neuron in sample)
    return float(n_open / (len(sample) * len(layer.targets)))


@dataclass(frozen=True)
class OpenSweep:
    """A last hidden layer whose neurons have few open instances: a small `share` of all."""

    layer: OpenLayer
    share: float

    @classmethod
    def find(cls, layer: OpenLayer, neurons: range) -> OpenSweep | None:
        """Return the layer if few instances are open; else one product for all is faster."""
        share = find_open_share(layer, neurons)
        return cls(layer, share) if share <= _FEW else None

    def run(self, neurons: range, offspring: Offspring, rule: Rule, outcome: Outcome) -> None:
        """Measure accuracy, select and move neurons, one after the other.

        Each step is shared out among the cores if it is long; else one compiled loop does all.
        """
        n_instances, n_inputs = self.layer.inputs.shape
        n_candidates = offspring.trials.shape[1] * (2 if rule.measures_targets else 1)
        size = n_inputs * (_REPLACEMENT + self.share * n_candidates)
        grain = 1 + round(threads.LARGE_PRODUCT / 2 / size)
        if n_instances < 2 * grain:
            kernels.sweep_open(self.layer, offspring, rule, outcome, neurons.start)
        else:
            self.run_in_steps(neurons, offspring, rule, outcome, grain)

    def run_in_steps(
        self, neurons: range, offspring: Offspring, rule: Rule, outcome: Outcome, grain: int
    ) -> None:
        """Share each step out among the cores, in ranges of `grain` instances and more."""
        layer, n_instances = self.layer, len(self.layer.targets)
        n_candidates = offspring.trials.shape[1] * (2 if rule.measures_targets else 1)
        for k, neuron in enumerate(neurons):
            found: list[Array] = []

            def count(
                start: int, stop: int, k: int = k, neuron: int = neuron, into: list[Array] = found
            ) -> None:
                counts = np.empty(n_candidates, dtype=np.int64)
                kernels.count_right_with(
                    layer, neuron, offspring, rule, outcome, k, start, stop, counts
                )
                into.append(counts)

            def replace(start: int, stop: int, k: int = k, neuron: int = neuron) -> None:
                kernels.replace_neuron(layer, neuron, outcome.representatives[k], start, stop)

            threads.share_out(count, n_instances, grain)
            measured = np.sum(found, axis=0) / n_instances
            if select(offspring, rule, outcome, k, measured) != STAYS:
                threads.share_out(replace, n_instances, grain)

    def find_confusion_matrices(self, neuron: int, vectors: Array) -> Array:
        """Count true classes by predicted classes, for each candidate (m, n + 1): (m, C, C).

        The layer's activation is bounded: an instance that has one class at both ends of it has
        that class for every candidate.
        """
        layer, hidden = self.layer, self.layer.hidden
        n_classes, n_instances = hidden.outputs.shape
        at_least, at_greatest = np.empty((2, n_instances), dtype=np.int32)
        kernels.predict_at_ends(layer, neuron, at_least, at_greatest)
        is_settled = at_least == at_greatest
        cells = layer.targets[is_settled] * n_classes + at_least[is_settled]
        settled = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)
        matrices = np.zeros((len(vectors), n_classes, n_classes)) + settled
        is_open = np.flatnonzero(~is_settled)
        step = max(1, BLOCK_ELEMENTS // max(vectors.shape))
        for start in range(0, len(is_open), step):
            some = is_open[start : start + step]
            candidates = Candidates(
                pre_activations=threads.multiply(vectors[:, :-1], layer.inputs[some].T),
                biases=vectors[:, -1].copy(),
                outputs=hidden.outputs.take(some, axis=1),
                slopes=hidden.outgoing[neuron],
                now=hidden.activations[neuron, some],
                activation=hidden.activation,
                output=HIDDEN,
            )
            matrices += find_confusion_matrices(candidates, layer.targets[some], np.ones(len(some)))
        return matrices
