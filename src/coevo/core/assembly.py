"""Builds the search that settings describe."""

from __future__ import annotations

from collections.abc import Sequence

from coevo._typing import Array
from coevo.core.decomposition import Decomposition, RandomGroups
from coevo.core.evaluator import Evaluator, SmoothingEvaluator
from coevo.core.extensions.archive import Archive
from coevo.core.extensions.base import Extension
from coevo.core.extensions.regrouping import Regrouping
from coevo.core.inheritance import FullEvaluation, Inheritance, LimitedEvaluation
from coevo.core.loop import Callback, SearchLoop
from coevo.core.search import Search
from coevo.core.settings import Settings
from coevo.core.smoothed_search import SmoothedSearch, draw_means
from coevo.core.smoothing import Smoothing
from coevo.core.state import SearchState, draw_state
from coevo.core.strategy import CurrentToPBest


def assemble(
    evaluator: Evaluator,
    decomposition: Decomposition,
    settings: Settings,
    callbacks: Sequence[Callback] = (),
    state: SearchState | None = None,
    initial_network: Array | None = None,
) -> SearchLoop:
    """Return a search, ready to run.

    Parameters
    ----------
    evaluator
        Measures fitness.
    decomposition
        The genes of each subpopulation; random groups are drawn here.
    settings
        What to build; nothing is "auto" (`coevo.core.defaults.resolve`).
    callbacks, initial_network
        As for `Search`.
    state
        A state to continue from; a new one is drawn if there is none.
    """
    if isinstance(settings.strategy, Smoothing):
        if not isinstance(evaluator, SmoothingEvaluator):
            raise TypeError('strategy="smoothing" needs an engine with find_direction')
        if state is None:
            state = draw_means(settings, decomposition, evaluator)
        return SmoothedSearch(evaluator, decomposition, settings, state, callbacks, initial_network)
    if state is None:
        state, decomposition = draw_state(settings, decomposition, evaluator, initial_network)
        if decomposition.is_random:
            evaluator.regroup(decomposition)
    # Groups are redrawn last: individuals are removed by the fitness they competed with.
    extensions = [*settings.extensions, *_find_implied_extensions(settings)]
    inheritance: Inheritance = FullEvaluation()
    if settings.limited_evaluation:
        inheritance = LimitedEvaluation(settings.decay)
    return Search(
        evaluator,
        decomposition,
        settings,
        state,
        inheritance=inheritance,
        control=settings.control,
        extensions=extensions,
        callbacks=callbacks,
        initial_network=initial_network,
    )


def _find_implied_extensions(settings: Settings) -> list[Extension]:
    """Return the extensions that the decomposition and the strategy need."""
    found: list[Extension] = []
    if isinstance(settings.decomposition, RandomGroups):
        found.append(Regrouping(settings.decomposition.redraw_every))
    if isinstance(settings.strategy, CurrentToPBest) and settings.strategy.archive_rate > 0:
        found.append(Archive(settings.strategy.archive_rate))
    return found
