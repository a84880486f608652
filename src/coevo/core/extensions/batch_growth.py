"""Batches that grow along the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coevo.core.component import is_auto
from coevo.core.extensions.along_budget import AlongBudget, interpolate

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.settings import Settings


@dataclass
class BatchGrowth(AlongBudget):
    """Lets batches grow linearly from `batch_size`, whenever they are drawn anew.

    Parameters
    ----------
    final_size
        Instances in a batch when the budget is spent.
    """

    name: ClassVar[str] = "batch_growth"
    final_size: int = 1000

    def check(self, settings: Settings) -> None:
        """Refuse batches that would shrink, or are never drawn anew."""
        super().check(settings)
        if not is_auto(settings.batch_size) and self.final_size < int(settings.batch_size):
            raise ValueError(
                f"final_size={self.final_size} must be at least batch_size={settings.batch_size}: "
                "batches can only grow"
            )
        if not (settings.limited_evaluation and settings.reshuffle_batches):
            raise ValueError(
                "batch_growth needs limited_evaluation=True and reshuffle_batches=True: "
                "batches grow when they are drawn anew"
            )

    def before_generation(self, search: ExtensibleSearch) -> None:
        """Set the size of batches in the next partition."""
        final_size = min(self.final_size, search.evaluator.n_instances)
        first_size = int(search.settings.batch_size)
        search.state.batches.next_size = interpolate(search, first_size, final_size)
