"""Shows how an evolution of policies goes: steps, the best return, steps a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coevo.core.hooks import Hook, Run
from coevo.core.loop import SearchLoop
from coevo.policies.evaluator import SourceEvaluator
from coevo.policies.simulation import EpisodeSource
from coevo.training.progress import SearchProgress, describe_choices


@dataclass
class Announcement(Hook):
    """Says how a run searches, and when it ends at the latest, once its settings are valid."""

    say: Callable[[str], None]

    def open(self, run: Run) -> None:
        """Say it."""
        self.say(describe_choices(run.settings))


class PolicyProgress(SearchProgress):
    """Counts steps of the environment; the best fitness is a mean return."""

    unit = "steps"

    def count(self, search: SearchLoop) -> int:
        """Return the steps of all episodes so far."""
        evaluator = search.evaluator
        assert isinstance(evaluator, SourceEvaluator)
        assert isinstance(evaluator.source, EpisodeSource)
        return evaluator.source.n_steps
