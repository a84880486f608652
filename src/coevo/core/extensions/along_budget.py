"""Sizes that change linearly along the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from coevo._validation import check_integer
from coevo.core.extensions.base import Extension

if TYPE_CHECKING:
    from coevo.core.extensible import ExtensibleSearch
    from coevo.core.settings import Settings


@dataclass
class AlongBudget(Extension):
    """An extension that moves a size to its final value as the budget is spent.

    Parameters
    ----------
    final_size
        The size when the budget is spent.
    """

    final_size: int = 1

    follows_budget: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer("final_size", self.final_size, 1)

    def check(self, settings: Settings) -> None:
        """Refuse a run that is limited by neither evaluations nor generations."""
        if settings.max_evaluations is None and settings.max_generations is None:
            raise ValueError(
                f"{self.name} needs a budget to follow: set max_evaluations or max_generations"
            )


def interpolate(search: ExtensibleSearch, first: int, final: int) -> int:
    """Return the size between first and final that belongs to the share of the budget spent.

    Seconds do not count, so that the size is reproducible.
    """
    max_evaluations, max_generations, _ = search.settings.limits
    spent = (search.state.evaluations, max_evaluations), (search.state.generation, max_generations)
    share = min(1.0, max(used / limit for used, limit in spent if limit is not None))
    return round(first + share * (final - first))
