"""Compiled measures of a neuron's candidates: the outputs are formed, measured and forgotten.

With everything else fixed, output c of instance k is outputs_ck + slopes_c (ψ(s) − now_k) for a
candidate whose sum there is s. Each loop forms these C numbers for one candidate and instance at a
time and adds up what the measure makes of them, so nothing of size candidates × instances × outputs
is ever stored. The formulas are those of `coevo.fitness`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coevo.compiling import compiled
from coevo.evaluation._kernels import activate
from coevo.network import Array


class Candidates(NamedTuple):
    """The candidates of one neuron in their surroundings.

    Attributes
    ----------
    sums : array of shape (m, B)
        Their sums without bias.
    biases : array of shape (m,)
    outputs : array of shape (C, B)
        The outputs of the global solution.
    slopes : array of shape (C,)
        How the outputs follow the neuron's activation: its outgoing weights; for an output neuron
        1 at its own place and 0 elsewhere.
    now : array of shape (B,)
        The neuron's present activations; for an output neuron the present outputs.
    activation
        Code of the neuron's activation function; for an output neuron identity.
    """

    sums: Array
    biases: Array
    outputs: Array
    slopes: Array
    now: Array
    activation: int


@compiled
def _form_outputs(candidates, j, k, moved):
    """Write the outputs of candidate j for instance k into moved, (C,)."""
    total = candidates.sums[j, k] + candidates.biases[j]
    shift = activate(total, candidates.activation) - candidates.now[k]
    for c in range(len(moved)):
        moved[c] = candidates.outputs[c, k] + candidates.slopes[c] * shift


@compiled
def count_classes(candidates, targets, weights, first, last, counts):
    """Count true classes by predicted classes, for the candidates from first to last.

    targets: (B,) int32, weights: (B,), counts: (m, C, C) float64, written.
    """
    moved = np.empty_like(candidates.outputs[:, 0])
    for j in range(first, last):
        counts[j] = 0
        for k in range(len(targets)):
            _form_outputs(candidates, j, k, moved)
            chosen = 0
            for c in range(1, len(moved)):
                if moved[c] > moved[chosen]:
                    chosen = c
            counts[j, targets[k], chosen] += weights[k]


@compiled
def sum_cross_entropy(candidates, targets, weights, first, last, measured):
    """Add up the log-probabilities of the right classes, for the candidates from first to last.

    targets: (B,) int32, weights: (B,) that sum to 1, measured: (m,) float64, written.
    """
    moved = np.empty_like(candidates.outputs[:, 0])
    for j in range(first, last):
        fitness = 0.0
        for k in range(len(targets)):
            _form_outputs(candidates, j, k, moved)
            largest = moved[0]
            for c in range(1, len(moved)):
                largest = max(largest, moved[c])
            total = moved[0] - moved[0]  # a zero of the right type
            for c in range(len(moved)):
                total += math.exp(moved[c] - largest)
            fitness += weights[k] * (moved[targets[k]] - largest - math.log(total))
        measured[j] = fitness


@compiled
def sum_margins(candidates, targets, weights, limit, first, last, measured):
    """Add up the clipped margins, for the candidates from first to last; see above."""
    moved = np.empty_like(candidates.outputs[:, 0])
    for j in range(first, last):
        fitness = 0.0
        for k in range(len(targets)):
            _form_outputs(candidates, j, k, moved)
            rival = -np.inf
            for c in range(len(moved)):
                if c != targets[k]:
                    rival = max(rival, moved[c])
            fitness += weights[k] * min(limit, moved[targets[k]] - rival)
        measured[j] = fitness


@compiled
def sum_errors(candidates, targets, weights, is_squared, first, last, measured):
    """Add up minus the squared or absolute errors, for the candidates from first to last.

    targets: (B, C), weights: (B,) that sum to 1, measured: (m,) float64, written.
    """
    moved = np.empty_like(candidates.outputs[:, 0])
    for j in range(first, last):
        fitness = 0.0
        for k in range(len(targets)):
            _form_outputs(candidates, j, k, moved)
            error = 0.0
            for c in range(len(moved)):
                difference = abs(moved[c] - targets[k, c])
                error += difference * difference if is_squared else difference
            fitness -= weights[k] * error / len(moved)
        measured[j] = fitness
