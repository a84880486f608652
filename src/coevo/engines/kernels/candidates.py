"""The candidates of one neuron, as compiled loops take them."""

from __future__ import annotations

from typing import NamedTuple

from coevo._typing import Array
from coevo.engines.kernels.activations import activate
from coevo.runtime.jit import compiled

HIDDEN = -1


class Candidates(NamedTuple):
    """m candidates for a neuron of the last hidden or the output layer, the rest of X fixed.

    Output c of instance k is outputs_ck + slopes_c (ψ(s) − now_k), s being a candidate's
    pre-activation there.

    Attributes
    ----------
    pre_activations : array of shape (m, B)
        Without bias.
    biases : array of shape (m,)
    outputs : array of shape (C, B)
        The outputs of the global solution.
    slopes : array of shape (C,)
        The neuron's outgoing weights; for an output neuron 1 at its own place and 0 elsewhere.
    now : array of shape (B,)
        The neuron's present activations; for an output neuron the present outputs.
    activation
        Code of the neuron's activation function; for an output neuron identity.
    output
        Which output the neuron is, or `HIDDEN`.
    """

    pre_activations: Array
    biases: Array
    outputs: Array
    slopes: Array
    now: Array
    activation: int
    output: int


@compiled
def find_shift(candidates, j, shift):
    """Write how far candidate j shifts the neuron's activation, for each instance, into (B,)."""
    activate(candidates.pre_activations[j], candidates.biases[j], candidates.activation, shift)
    now = candidates.now
    for k in range(len(shift)):
        shift[k] -= now[k]
