"""Lobby: the few public names, nothing computed."""

from coevo.network import Architecture, Network
from coevo.search import Search
from coevo.settings import Settings
from coevo.training import Result, evolve
from coevo.variants import PAPER, VARIANTS

__version__ = "0.1.0"

__all__ = [
    "PAPER",
    "VARIANTS",
    "Architecture",
    "Network",
    "Result",
    "Search",
    "Settings",
    "evolve",
]
