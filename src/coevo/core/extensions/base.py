"""What an extension is: hooks that the search calls, and arrays that go into checkpoints.

An extension adds to the search what the paper does not have. It is passed to the search, which
calls its hooks without knowing what it is. All hooks do nothing by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coevo._typing import Array
from coevo.core.component import Component
from coevo.core.selection import Offspring

if TYPE_CHECKING:
    from coevo.core.schedule import TrialLog, Turn
    from coevo.core.search import Search

Memory = dict[str, Array]
"""What an extension carries from one generation to the next."""


class Donors(NamedTuple):
    """Individuals outside of k subpopulations that a mutant's last parent may be drawn from.

    Attributes
    ----------
    individuals : array of shape (k, size, genes)
    counts : integer array of shape (k,)
        How many of them each subpopulation has; the first ones count.
    """

    individuals: Array
    counts: Array


@dataclass
class Extension(Component):
    """An addition to the search.

    `search.memory(self)` is its memory within a hook. The memory is part of the search's state, so
    that a resumed run goes on bit for bit.
    """

    def begin(self, search: Search) -> Memory:
        """Return the memory that a search begins with."""
        return {}

    def fits(self, search: Search, memory: Memory) -> bool:
        """Return whether a memory belongs to such a search; by default by shapes and dtypes."""
        fresh, found = (
            {name: (array.shape, array.dtype) for name, array in arrays.items()}
            for arrays in (self.begin(search), memory)
        )
        return fresh == found

    def resume(self, search: Search) -> None:
        """Called once at the start, when the memory is in place."""

    def before_generation(self, search: Search) -> None:
        """Called before the generation's batch is taken."""

    def before_block(self, search: Search, turn: Turn, offspring: Offspring) -> None:
        """Called when the trials of a block have been made, before they are measured."""

    def after_block(self, search: Search, turn: Turn, log: TrialLog) -> None:
        """Called after selection in a block; `log` says how the generation's trials did so far."""

    def keep(self, search: Search, survivors: Array) -> None:
        """Called when individuals are removed; survivors: (SP, NP) indices of those that stay."""

    def donors(self, search: Search, turn: Turn) -> Donors | None:
        """Return further individuals that may be parents in a block."""
        return None

    def penalty(self, vectors: Array) -> Array | None:
        """Return what is taken off the fitness of vectors (k, n, genes): (k, n)."""
        return None
