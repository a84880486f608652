"""An archive of replaced individuals, so that mutants may point away from them (JADE, SHADE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_real
from coevo.core.extensions.base import Donors, Extension, Memory
from coevo.core.selection import Offspring
from coevo.runtime.jit import compiled, copy

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.schedule import TrialLog, Turn


@dataclass
class Archive(Extension):
    """Keeps, for each subpopulation, targets that were replaced by a fitter trial.

    A target that was replaced after a tie is not archived: there is no reason to move away from it.
    Once an archive is full, a new individual replaces a random one.

    Parameters
    ----------
    rate
        Size of an archive as a multiple of NP.
    """

    name: ClassVar[str] = "archive"
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_real("rate", self.rate, 0)
        self._targets: Array | None = None

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Return empty archives, one array for each block."""
        state = search.state
        size = self._size(search)
        arrays = {
            f"individuals.{b}": np.zeros((len(block), size, block.shape[2]), block.dtype)
            for b, block in enumerate(state.subpopulations)
        }
        return arrays | {"counts": np.zeros(len(state.fitness), dtype=np.int64)}

    def fits(self, search: ExtensibleSearch, memory: Memory) -> bool:
        """Also refuse counts beyond the archives' size."""
        if not super().fits(search, memory):
            return False
        counts = memory["counts"]
        is_possible = (counts >= 0) & (counts <= self._size(search))
        return bool(is_possible.all())

    def donors(self, search: ExtensibleSearch, turn: Turn) -> Donors:
        """Return the archived individuals."""
        memory = search.memory(self)
        individuals = memory[f"individuals.{turn.block}"][turn.rows]
        return Donors(individuals, memory["counts"][turn.here])

    def before_block(self, search: ExtensibleSearch, turn: Turn, offspring: Offspring) -> None:
        """Copy the targets, as selection may replace them."""
        block = search.state.subpopulations[turn.block]
        self._targets = block[turn.rows, turn.columns].copy()

    def after_block(self, search: ExtensibleSearch, turn: Turn, log: TrialLog) -> None:
        """Archive the targets with a fitter trial."""
        donors = self.donors(search, turn)
        gains = log.gains[turn.here, turn.columns]
        uniforms = search.state.rng.random(gains.shape)
        _archive(donors.individuals, donors.counts, self._targets, gains, uniforms)

    def keep(self, search: ExtensibleSearch, survivors: Array) -> None:
        """Shrink the archives with the subpopulations."""
        memory, size = search.memory(self), self._size(search)
        for name in memory:
            if name != "counts":
                memory[name] = memory[name][:, :size].copy()
        np.minimum(memory["counts"], size, out=memory["counts"])

    def _size(self, search: ExtensibleSearch) -> int:
        size: int = search.state.fitness.shape[1]
        return round(self.rate * size)


@compiled
def _archive(archived, n_archived, targets, gains, uniforms):
    """Copy targets (k, n, genes) whose trial gained, (k, n), into archived (k, size, genes)."""
    size = archived.shape[1]
    for i in range(len(targets)):
        for t in range(targets.shape[1]):
            if not gains[i, t] > 0:
                continue
            place = n_archived[i]
            if place < size:
                n_archived[i] += 1
            else:
                place = int(uniforms[i, t] * size)
            copy(targets[i, t], archived[i, place])
