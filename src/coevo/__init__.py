"""Lobby: the few public names, nothing computed."""

from typing import TYPE_CHECKING, Any

from coevo.network import Architecture, Network
from coevo.search import Search
from coevo.settings import Settings
from coevo.training import Result, evolve
from coevo.variants import PAPER, VARIANTS

if TYPE_CHECKING:
    from coevo.estimators import CoevoClassifier, CoevoRegressor

__version__ = "0.1.0"

__all__ = [
    "PAPER",
    "VARIANTS",
    "Architecture",
    "CoevoClassifier",
    "CoevoRegressor",
    "Network",
    "Result",
    "Search",
    "Settings",
    "evolve",
]


def __getattr__(name: str) -> Any:
    # The estimators bring in much of scikit-learn, which not every user of a search needs.
    if name in ("CoevoClassifier", "CoevoRegressor"):
        from coevo import estimators  # noqa: PLC0415

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
