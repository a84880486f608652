"""Control: the F and CR of each trial; in the paper they are fixed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coevo._typing import Array
from coevo.core.extensions.base import Extension

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.schedule import Turn


@dataclass
class Control(Extension):
    """An extension that chooses F and CR; it may learn in `after_block`."""

    @abstractmethod
    def draw(self, search: ExtensibleSearch, turn: Turn) -> tuple[Array, Array]:
        """Choose F and CR for the trials of a turn.

        Returns
        -------
        two arrays of shape (k, len(turn.targets)): F above 0, CR in [0, 1]
        """


@dataclass
class Fixed(Control):
    """The paper's: every trial has the settings `scale_factor` and `crossover_rate`."""

    name: ClassVar[str] = "fixed"

    def draw(self, search: ExtensibleSearch, turn: Turn) -> tuple[Array, Array]:
        """Return the settings; nothing is drawn."""
        shape = (len(turn.subpopulations), len(turn.targets))
        settings = search.settings
        return np.full(shape, settings.scale_factor), np.full(shape, settings.crossover_rate)
