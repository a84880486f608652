"""Batches that grow along the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coevo._validation import check_integer
from coevo.core.extensions.base import Extension
from coevo.core.stopping import spent_share

if TYPE_CHECKING:
    from coevo.core.search import Search


@dataclass
class BatchGrowth(Extension):
    """Lets batches grow linearly from `batch_size`, whenever they are drawn anew.

    Parameters
    ----------
    final_size
        Instances in a batch when the budget is spent.
    """

    name: ClassVar[str] = "batch_growth"
    final_size: int = 1000

    follows_budget: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer("final_size", self.final_size, 1)

    def before_generation(self, search: Search) -> None:
        """Say how large the batches of the next partition are."""
        state, settings = search.state, search.settings
        share = spent_share(settings, state.evaluations, state.generation)
        first_size = int(settings.batch_size)
        growth = min(self.final_size, search.evaluator.n_instances) - first_size
        state.batches.next_size = round(first_size + share * growth)
