"""A hook that shows the progress of a search."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coevo.core.extensions.base import Extension
from coevo.core.hooks import Hook
from coevo.core.loop import SearchLoop
from coevo.core.settings import Settings
from coevo.core.smoothing import Smoothing
from coevo.runtime.progress import Progress, format_seconds

Spent = tuple[float, float, float]
Limits = tuple[float | None, float | None, float | None]


class SearchProgress(Hook):
    """Shows evaluations, generation, best fitness, speed and the time left; the total must be 1."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        # Counts at the first call, because the rate of a resumed run does not include its past.
        self._start: tuple[int, Spent] | None = None

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
        spent = (state.evaluations, state.generation, state.seconds)
        count = self.count(search)
        if self._start is None:
            self._start = count, spent
        count_before, spent_before = self._start
        words = [
            f"{count:,} {self.unit}",
            f"gen. {state.generation:,}",
            f"best {state.best_validation:.4g}",
        ]
        taken = spent[-1] - spent_before[-1]
        if taken > 0:
            words.append(f"{(count - count_before) / taken:,.0f}/s")
            words += _describe_left(search, spent_before, spent)
        self._progress.update(_find_fraction(spent, search.limits), "  ".join(words))


def _describe_left(search: SearchLoop, before: Spent, spent: Spent) -> list[str]:
    """Return how long the search goes on: for what it is granted, and for all that it may be."""
    granted, most = (
        _find_seconds_left(before, spent, limits)
        for limits in (search.limits, search.settings.limits)
    )
    if granted is None or most is None:
        return []
    if format_seconds(granted) != format_seconds(most):
        return [f"{format_seconds(granted)} to {format_seconds(most)} left"]
    return [f"{'at most ' * _may_stagnate(search.settings)}{format_seconds(most)} left"]


def describe_choices(settings: Settings) -> str:
    """Return a line with the most important settings, once nothing is "auto"."""
    strategy, first_budget = settings.strategy, None
    if isinstance(strategy, Smoothing):
        words = [f"rate {_join(strategy.list_by_layer('rate'))}"]
        first_budget = strategy.first_budget
    else:
        words = [
            f"NP {settings.population_size}", f"F {settings.scale_factor:.3g}",
            f"CR {settings.crossover_rate:.3g}",
        ]  # fmt: skip
    words += [
        f"batches of {settings.batch_size}" if settings.limited_evaluation else "no batches",
        f"initial range {_join(np.atleast_1d(settings.initial_range))}",
    ]
    if first_budget is not None:
        words.append(f"at first {first_budget:,} generations")
    units = ("evaluations", "generations", "s")
    words += [
        f"at most {limit:,.10g} {unit}"
        for limit, unit in zip(settings.limits, units, strict=True)
        if limit is not None
    ]
    return f"searching by {strategy.name}: {', '.join(words)}"


def _join(by_layer: Iterable[float]) -> str:
    return "/".join(f"{number:.2g}" for number in by_layer)


def _may_stagnate(settings: Settings) -> bool:
    """Return whether a search ends early when it no longer improves."""
    return isinstance(settings.strategy, Smoothing) or any(
        isinstance(extension, Extension) and extension.may_stagnate
        for extension in settings.extensions
    )


def _find_fraction(spent: Spent, limits: Limits) -> float | None:
    """Return the fraction of the budget that is spent, by the limit nearest to its end."""
    fractions = [n / limit for n, limit in zip(spent, limits, strict=True) if limit is not None]
    return min(1.0, max(fractions)) if fractions else None


def _find_seconds_left(before: Spent, spent: Spent, limits: Limits) -> float | None:
    """Return the seconds to the nearest limit, at the speed since a time before."""
    taken = spent[-1] - before[-1]
    found = [
        taken * (limit - now) / (now - start)
        for start, now, limit in zip(before, spent, limits, strict=True)
        if limit is not None and now > start
    ]
    return max(0.0, min(found)) if found else None
