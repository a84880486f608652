"""A network in an environment: from an observation to an action, at every step."""

from __future__ import annotations

from typing import Any, Never

import numpy as np

from coevo._typing import Array
from coevo.core.network import Architecture
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.policies.kernels import (
    CENTRE,
    GENES,
    LOW,
    N_ROWS,
    OUTPUTS,
    SHAPE,
    SQUARES,
    SUMS,
    WRONG_LENGTH,
    choose,
    steer,
)
from coevo.policies.spaces import Actions, Observations, Plain


class Actor:
    """Acts by a network on one observation after the other, and adds the observations up.

    Parameters
    ----------
    architecture
        Of the network.
    observations, actions
        The spaces, as JSON values.

    Attributes
    ----------
    act
        Returns the action for an observation: what `env.step` takes. One method for each kind of
        action, so that nothing is decided at every step.
    statistics : array of shape (2, n_inputs)
        Sums of the differences of all observations from a centre, and of their squares; whoever
        runs episodes sets them back to 0.
    """

    def __init__(self, architecture: Architecture, observations: Plain, actions: Plain) -> None:
        self._actions = Actions(actions)
        self._flatten = Observations(observations).flatten
        n_genes, n_inputs = architecture.n_genes, architecture.n_inputs
        n_outputs, hidden = architecture.n_outputs, architecture.hidden_layer_sizes
        code = ACTIVATION_CODES[architecture.activation]
        shape = [code, len(hidden) + 1, n_inputs, *hidden, n_outputs]
        self._table = np.zeros((N_ROWS, max(n_genes, len(shape))))
        self._table[SHAPE, : len(shape)] = shape
        self._genes, self._centre = self._table[GENES, :n_genes], self._table[CENTRE, :n_inputs]
        self._outputs = self._table[OUTPUTS, :n_outputs]
        self.statistics = self._table[SUMS : SQUARES + 1, :n_inputs]
        self._choose, self._steer = choose.entry, steer.entry  # spares a call at every step
        self.act = self._act_in_parts
        if self._actions.kind == "Box":
            self._table[LOW:, :n_outputs] = self._actions.box
            self._blank = np.empty(n_outputs, self._actions.dtype)
            self._is_vector = len(self._actions.shape) == 1
            self.act = self._act_in_a_box
        elif self._actions.kind == "Discrete":
            self._start = self._actions.plain["start"]
            self.act = self._act_by_choice

    def load(self, genotype: Array, centre: Array | float = 0.0) -> None:
        """Act by another network from now on, with sums around a centre."""
        self._genes[:] = genotype
        self._centre[:] = centre

    def _act_by_choice(self, observation: Any) -> Any:
        choice = self._choose(self._table, self._flatten(observation))
        if choice < 0:
            self._refuse(choice, observation)
        return choice + self._start

    def _act_in_a_box(self, observation: Any) -> Any:
        action = self._blank.copy()  # whoever gets it may keep it
        fault = self._steer(self._table, self._flatten(observation), action)
        if fault < 0:
            self._refuse(fault, observation)
        return action if self._is_vector else action.reshape(self._actions.shape)

    def _act_in_parts(self, observation: Any) -> Any:
        fault = self._choose(self._table, self._flatten(observation))
        if fault < 0:
            self._refuse(fault, observation)
        return self._actions.decode(self._outputs)

    def _refuse(self, fault: int, observation: Any) -> Never:
        if fault == WRONG_LENGTH:
            n = np.size(self._flatten(observation))
            raise ValueError(
                f"the observation has {n} numbers; the policy takes {len(self._centre)}"
            )
        raise ValueError("an observation holds NaN or infinity")
