"""From a simulator, or any other black box, to a network that does well in it."""

from coevo.policies.episodes import EpisodeError, Step

__all__ = ["EpisodeError", "Step"]
