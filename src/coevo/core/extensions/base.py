"""The interface of extensions: hooks that the search calls, and arrays that go into checkpoints.

An extension adds to the search what the paper does not have. The search calls its hooks without
knowing what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from coevo._typing import Array
from coevo.core.component import Component
from coevo.core.selection import Offspring

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.schedule import TrialLog, Turn
    from coevo.core.settings import Settings

Memory = dict[str, Array]
"""Arrays that an extension carries from one generation to the next, by name."""


class Donors(NamedTuple):
    """Individuals outside k subpopulations that a mutant's last parent may be drawn from.

    Attributes
    ----------
    individuals : array of shape (k, size, genes)
    counts : integer array of shape (k,)
        Number of donors of each subpopulation: its first individuals.
    """

    individuals: Array
    counts: Array


@dataclass
class Extension(Component):
    """An addition to the search; all hooks do nothing by default.

    Within a hook, `search.memory(self)` is its memory, which is part of the search's state: a
    resumed run continues bit for bit.
    """

    follows_budget: ClassVar[bool] = False
    """Whether it depends on the budget, so that it cannot be used where there is none."""

    may_stagnate: ClassVar[bool] = False
    """Whether it may end a run early, so that the time left is the most there can be."""

    def check(self, settings: Settings) -> None:
        """Raise if it cannot be used with the other settings, some of which may still be "auto"."""

    @property
    def turn_period(self) -> int:
        """In how many generations each subpopulation takes its turn at least once."""
        return 1

    def population_sizes(self, size: int) -> tuple[int, int]:
        """Return the fewest and the most individuals that it leaves of subpopulations of a size."""
        return size, size

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Return the memory that a search begins with."""
        return {}

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Return whether a memory belongs to such a search: by default, by shapes and dtypes."""
        fresh, found = (
            {name: (array.shape, array.dtype) for name, array in arrays.items()}
            for arrays in (self.begin(search), memory)
        )
        return fresh == found

    def resume(self, search: ExtensibleSearch) -> None:
        """Called once at the start, with the memory in place."""

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Called before the generation's batch is taken."""

    def choose_turns(self, search: ExtensibleSearch, turns: Sequence[Turn]) -> Sequence[Turn]:
        """Return which turns the generation has, or parts of them (`Turn.cut`), in order."""
        return turns

    def before_block(self, search: ExtensibleSearch, turn: Turn, offspring: Offspring) -> None:
        """Called when the trials of a block have been made, before they are measured."""

    def after_block(self, search: ExtensibleSearch, turn: Turn, log: TrialLog) -> None:
        """Called after selection in a block; `log` has the generation's wins and gains so far."""

    def stagnates(self, search: ExtensibleSearch) -> bool:
        """Return whether the run should end after this generation, as it gains nothing any more."""
        return False

    def turn_to_new_instances(self, search: ExtensibleSearch) -> None:
        """Called when a warm start or a stream goes on with other instances."""

    def keep(self, search: ExtensibleSearch, survivors: Array) -> None:
        """Called when individuals are removed; survivors: (SP, NP) indices of those that remain."""

    def donors(self, search: ExtensibleSearch, turn: Turn) -> Donors | None:
        """Return individuals outside a block's subpopulations that may be parents."""
        return None

    def penalty(self, vectors: Array) -> Array | None:
        """Return what is subtracted from the fitness of vectors (k, n, genes): (k, n)."""
        return None
