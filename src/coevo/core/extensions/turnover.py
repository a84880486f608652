"""A part of the hidden subpopulations in each generation, for wide networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._validation import check_integer
from coevo.core.extensions.base import Extension, Memory

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.schedule import Turn
    from coevo.core.settings import Settings

_CUT = ("neuron", "neuron_outgoing", "synapse")  # decompositions with many in a layer


@dataclass
class Turnover(Extension):
    """Cuts each hidden layer's subpopulations into parts, one of which evolves in a generation.

    In a wide network a generation takes long, and all of its neurons follow one batch. With
    `parts` of them, as many batches come in the same time. Parts come in random order, drawn anew
    once all have had their turn, so that all evolve equally often and meet all batches. Output
    neurons, which are few and depend on all others, evolve in every generation.

    Parameters
    ----------
    parts
        In so many generations each hidden subpopulation evolves once.
    """

    name: ClassVar[str] = "turnover"
    parts: int = 8

    def __post_init__(self) -> None:
        check_integer("parts", self.parts, 1)

    def check(self, settings: Settings) -> None:
        """Refuse decompositions with one subpopulation in a layer, or none that is in one."""
        given = settings.decomposition
        if not (isinstance(given, str) and given in _CUT):
            raise ValueError(
                "turnover cuts layers of subpopulations: decomposition must be one of "
                f"{', '.join(_CUT)}, got {given!r}"
            )

    @property
    def turn_period(self) -> int:
        """As many generations as there are parts."""
        return self.parts

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Return the order of parts, which is drawn when the first is chosen."""
        return {"order": np.arange(self.parts)}

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Also refuse what is not a permutation of the parts."""
        return super().fits(search, memory) and np.array_equal(
            np.sort(memory["order"]), np.arange(self.parts)
        )

    def choose_turns(self, search: ExtensibleSearch, turns: Sequence[Turn]) -> list[Turn]:
        """Keep output neurons and one part of each hidden layer."""
        order = search.memory(self)["order"]
        place = search.state.generation % self.parts
        if place == 0:
            order[:] = search.state.rng.permutation(self.parts)
        part = int(order[place])
        decomposition = search.decomposition
        last_layer = len(decomposition.layer_inputs) - 1
        chosen: list[Turn | None] = []
        for turn in turns:
            is_output = decomposition.first_layers[turn.subpopulations.start] == last_layer
            n_rows = len(decomposition.blocks[turn.block])
            rows = range(n_rows * part // self.parts, n_rows * (part + 1) // self.parts)
            chosen.append(turn if is_output else turn.cut(rows))
        return [turn for turn in chosen if turn is not None]
