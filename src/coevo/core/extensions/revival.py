"""New individuals for subpopulations whose individuals have become alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_integer, check_real
from coevo.core.extensions.base import Extension, Memory
from coevo.core.stopping import gains_too_little
from coevo.runtime import memory

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch

_EVERY = 20  # turns of a subpopulation between two checks, as a check reads all individuals
_COPIES = 4  # of all individuals that must fit in memory: they, their trials, what else there is


@dataclass
class Revival(Extension):
    """Draws new individuals around the means when the subpopulations have collapsed.

    Differential evolution moves by differences between individuals. In the long run these vanish
    unless F is above the critical √((1 − CR/2) / NP) (Zaharie, 2002), and the search stops moving,
    however much budget is left. When the individuals of half of the subpopulations deviate from
    their mean by less than `crowded` times its root mean square, all are drawn anew around it with
    a deviation of `spread` times that, NP doubles and F is divided by √2, which keeps its ratio to
    the critical one; so are the ranges that the controls dither and jDE draw F from. The global
    solution does not change. Once NP can no longer double, individuals are left to converge until
    they deviate by less than `least`, and are drawn anew then. When the best validation fitness has
    hardly risen from one such collapse to the next but one, the run ends: it stagnates.

    Parameters
    ----------
    least
        The relative deviation below which subpopulations have collapsed.
    spread
        The relative deviation of the new individuals.
    largest_size
        NP doubles up to this, but only while a quarter of the memory holds all individuals.
    crowded
        The relative deviation below which NP doubles.
    """

    name: ClassVar[str] = "revival"
    least: float = 0.02
    spread: float = 0.4
    largest_size: int = 160
    crowded: float = 0.2

    may_stagnate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_real("least", self.least, 0)
        check_real("spread", self.spread, 0, above=True)
        check_integer("largest_size", self.largest_size, 1)
        check_real("crowded", self.crowded, 0)

    def population_sizes(self, size: int) -> tuple[int, int]:
        """From the first size to the largest."""
        return size, max(size, self.largest_size)

    def begin(self, search: ExtensibleSearch) -> Memory:
        """Remember the best validation fitness at the last two collapses, and whether to end."""
        return {
            "best": np.full(2, -np.inf),
            "stagnates": np.zeros(1, dtype=np.int64),
            "judged": np.array([search.state.generation]),  # in which generation
        }

    def turn_to_new_instances(self, search: ExtensibleSearch) -> None:
        """Fitness on other instances cannot be compared."""
        search.memory(self).update(self.begin(search))

    def stagnates(self, search: ExtensibleSearch) -> bool:
        """Return whether too little was gained since the collapse before the last one."""
        return bool(search.memory(self)["stagnates"][0])

    def resume(self, search: ExtensibleSearch) -> None:
        """Set F for the NP of a resumed search."""
        self._fit_scale_factor(search, search.state.fitness.shape[1])

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Check for a collapse, and draw new individuals."""
        state = search.state
        if state.generation == 0 or state.generation % (_EVERY * search.turn_period):
            return
        blocks = state.subpopulations
        ratios = [
            np.sqrt(block.var(axis=1).mean(axis=-1) / np.maximum(_mean_squares(block), 1e-30))
            for block in blocks
        ]
        new_size = self._find_size(blocks)
        grows = new_size > blocks[0].shape[1]
        if float(np.median(np.concatenate(ratios))) < (self.crowded if grows else self.least):
            judged = search.memory(self)
            self._fit_scale_factor(search, new_size)
            search.repopulate([self._draw(search, b, new_size) for b in range(len(blocks))])
            # Repopulating lets every extension begin afresh, this one too.
            search.memory(self).update(judged)
            if not grows:  # NP that grows is a remedy, to be tried first
                self._judge(search)

    def _judge(self, search: ExtensibleSearch) -> None:
        """Find out whether the search stagnates, if there was a validation to tell."""
        state, remembered = search.state, search.memory(self)
        if not search.has_validated_since(int(remembered["judged"][0])):
            return
        best, before = remembered["best"]
        first = state.history.least_best_validation
        remembered["stagnates"][0] = gains_too_little(state.best_validation, before, first)
        remembered["best"][:] = state.best_validation, best
        remembered["judged"][0] = state.generation

    def _find_size(self, blocks: Sequence[Array]) -> int:
        """Return how many individuals to draw: not more than before if memory has no room.

        Whether a run can begin is checked for its first NP, as most runs end before they grow.
        """
        size: int = blocks[0].shape[1]
        new_size = max(size, min(2 * size, self.largest_size))
        needed = _COPIES * sum(block.nbytes for block in blocks) * new_size / size
        available = memory.find_size()
        return size if available is not None and needed > available else new_size

    def _draw(self, search: ExtensibleSearch, b: int, size: int) -> Array:
        """Return individuals (k, size, genes) with the old mean.

        The first is X_i, unless the representative is the mean, which the new ones keep.
        """
        state, old = search.state, search.state.subpopulations[b]
        drawn = np.empty((len(old), size, old.shape[2]), dtype=old.dtype)
        for individuals in drawn:  # one by one: random numbers take twice the memory of float32
            individuals[:] = state.rng.standard_normal(individuals.shape)
        drawn -= drawn.mean(axis=1, keepdims=True)
        drawn *= (self.spread * np.sqrt(_mean_squares(old)))[:, np.newaxis, np.newaxis]
        drawn += old.mean(axis=1, keepdims=True)
        if not search.settings.takes_means:
            block = search.decomposition.blocks[b]
            for k, i in enumerate(block):
                drawn[k, 0] = state.global_solution[search.decomposition.groups[i]]
        return drawn

    def _fit_scale_factor(self, search: ExtensibleSearch, size: int) -> None:
        """Set F ∝ 1 / √NP, as the critical F is."""
        first = search.first_settings
        if size != first.population_size:
            ratio = math.sqrt(int(first.population_size) / size)
            scale_factor = float(first.scale_factor) * ratio
            search.settings = replace(search.settings, scale_factor=scale_factor)


def _mean_squares(individuals: Array) -> Array:
    """Return the mean square of the mean individual's genes: (k,)."""
    return np.asarray(np.square(individuals.mean(axis=1)).mean(axis=-1))
