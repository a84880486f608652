"""A hook that shows the progress of a search."""

from __future__ import annotations

from coevo.core.extensions.base import Extension
from coevo.core.hooks import Hook
from coevo.core.loop import SearchLoop
from coevo.core.settings import Settings
from coevo.core.smoothing import Smoothing
from coevo.runtime.progress import Progress, format_seconds


class SearchProgress(Hook):
    """Shows evaluations, generation, best fitness, speed and the time left; the total must be 1."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        # Counts at the first call, because the rate of a resumed run does not include its past.
        self._start: tuple[int, float, float | None] | None = None

    unit = "evaluations"
    """Name of what `count` counts."""

    def count(self, search: SearchLoop) -> int:
        """Return the number to show."""
        return search.state.evaluations

    def after_generation(self, search: SearchLoop) -> None:
        """Update the display."""
        if self._start is not None and not self._progress.is_due:
            return
        state = search.state
        done = _fraction_done(search)
        count = self.count(search)
        if self._start is None:
            self._start = count, state.seconds, done
        count_before, seconds, done_before = self._start
        words = [
            f"{count:,} {self.unit}",
            f"gen. {state.generation:,}",
            f"best {state.best_validation:.4g}",
        ]
        taken = state.seconds - seconds
        if taken > 0:
            words.append(f"{(count - count_before) / taken:,.0f}/s")
            if done is not None and done_before is not None and done > done_before:
                left = taken * (1 - done) / (done - done_before)
                most = "at most " if _may_stagnate(search.settings) else ""
                words.append(f"{most}{format_seconds(left)} left")
        self._progress.update(done, "  ".join(words))


def describe_choices(settings: Settings) -> str:
    """Return a line with the most important settings, once nothing is "auto"."""
    words = [f"batches of {settings.batch_size}" if settings.limited_evaluation else "no batches"]
    if isinstance(settings.strategy, Smoothing):
        rates = "/".join(f"{rate:.2g}" for rate in settings.strategy.list_by_layer("rate"))
        words.insert(0, f"rate {rates}")
    else:
        words.insert(
            0,
            f"NP {settings.population_size}, F {settings.scale_factor:.3g}, "
            f"CR {settings.crossover_rate:.3g}",
        )
    units = ("evaluations", "generations", "s")
    words += [
        f"at most {limit:,.10g} {unit}"
        for limit, unit in zip(settings.limits, units, strict=True)
        if limit is not None
    ]
    return f"searching by {settings.strategy.name}: {', '.join(words)}"


def _may_stagnate(settings: Settings) -> bool:
    """Return whether a search ends early when it no longer improves."""
    return isinstance(settings.strategy, Smoothing) or any(
        isinstance(extension, Extension) and extension.may_stagnate
        for extension in settings.extensions
    )


def _fraction_done(search: SearchLoop) -> float | None:
    """Return the fraction of the budget that is spent, by the limit nearest to its end."""
    state, settings = search.state, search.settings
    spent = (state.evaluations, state.generation, state.seconds)
    fractions = [
        value / limit
        for value, limit in zip(spent, settings.limits, strict=True)
        if limit is not None
    ]
    return min(1.0, max(fractions)) if fractions else None
