"""One way to run a search: a problem, settings and hooks in, a result out.

`evolve`, the estimators, studies and policies all call `run_search`. It resolves the settings,
decomposes the genotype and chooses the engine, each once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.assembly import assemble
from coevo.core.decomposition import Decomposition, decompose
from coevo.core.defaults import resolve
from coevo.core.history import Generation
from coevo.core.hooks import Hook, Run, as_hook
from coevo.core.loop import Callback
from coevo.core.network import Architecture, Network
from coevo.core.settings import Settings
from coevo.core.state import SearchState
from coevo.persistence.plain import as_plain, plain_settings
from coevo.runtime import threads
from coevo.training.problem import Ongoing, Problem
from coevo.training.result import Result
from coevo.training.thread_choice import ThreadChoice

# After as many of both a search should have improved. Neurons that evolve nearly always do in the
# first generation, one population of networks within 25 generations of 40 evaluations.
_ENOUGH_GENERATIONS, _ENOUGH_EVALUATIONS = 5, 1000


def run_search(
    problem: Problem,
    settings: Settings,
    hooks: Sequence[Hook | Callback] = (),
    *,
    engine: str = "auto",
) -> Result:
    """Search until a stopping criterion is met.

    Parameters
    ----------
    problem
        What the network is evolved for.
    settings
        How to search and when to stop.
    hooks
        Checkpoints, progress displays and callbacks that follow the run.
    engine
        For a `DataProblem`: delta, batched, reference, or "auto" for the fastest that serves the
        decomposition.
    """
    followers = [as_hook(hook) for hook in hooks]
    metric = problem.find_metric(settings)
    if not any(hook.may_stop for hook in followers):
        settings.check_end()
    architecture = problem.architecture(settings)
    # Settings as given: some choices for "auto" depend on the budget, which may change on resuming.
    arguments = problem.arguments or plain_settings(settings) | {"fitness": as_plain(metric)}
    settings = resolve(settings, problem.task, problem.measure_size(architecture), metric)
    problem.check(settings, architecture)
    genotype = _check_initial_network(problem, architecture)
    decomposition = decompose(settings.decomposition, architecture)
    engine, evaluator = problem.make_evaluator(engine, settings, architecture, decomposition)
    state = None
    if problem.previous is not None:
        state = _check_previous(problem.previous, architecture, decomposition, settings)
        settings = _extend_budget(settings, state)
    run = Run(settings, engine, evaluator, arguments, problem.named_arrays())
    with ExitStack() as stack:
        n_threads = stack.enter_context(threads.limit(settings.n_threads))
        if settings.n_threads is None and n_threads > 1:
            followers.append(ThreadChoice(n_threads))
        stack.enter_context(warnings.catch_warnings())
        for category in metric.ignored_warnings:
            warnings.simplefilter("ignore", category)
        for hook in followers:
            stack.callback(hook.close)
            hook.open(run)
        for hook in followers:
            state = hook.restore(run) or state
        callbacks = [hook.after_generation for hook in followers]
        search = assemble(evaluator, decomposition, settings, callbacks, state, genotype)
        if problem.previous is not None:
            search.turn_to_new_instances()
        for hook in followers:
            hook.begin(search)
        stop_reason = search.run()
        for hook in followers:
            hook.end(search)
        search.settle()
        state = search.state
        if problem.previous is None:  # else the history begins on other instances
            _warn_if_not_improved(state)
        best = state.best_network.copy()
        train_fitness = problem.measure_training(evaluator, best, state.batches)
    return Result(
        network=Network(architecture, best),
        classes=problem.classes,
        train_fitness=train_fitness,
        validation_fitness=state.best_validation,
        history=state.history,
        stop_reason=stop_reason,
        generations=state.generation,
        evaluations=state.evaluations,
        seconds=state.seconds,
        settings=settings,
        engine=engine,
    )


def _warn_if_not_improved(state: SearchState) -> None:
    """Warn if the best network is still the first one, which users could take for a trained one."""
    first_best = state.history.rows[0][Generation._fields.index("best_validation")]
    is_too_early = state.generation < _ENOUGH_GENERATIONS or state.evaluations < _ENOUGH_EVALUATIONS
    if not (is_too_early or state.best_validation > first_best):
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - slow to import

        warnings.warn(
            f"in {state.generation:,} generations no network was better than the first one; "
            "another seed, fitness, initial_range or strategy may help",
            ConvergenceWarning,
            stacklevel=3,
        )


def _check_initial_network(problem: Problem, architecture: Architecture) -> Array | None:
    """Return the genotype to begin around, None if there is none; raise if its shape is wrong."""
    network = problem.initial_network
    if network is None:
        return None
    if problem.previous is not None:
        raise ValueError(
            "initial_network begins a search, and warm_start=True goes on with the previous one"
        )
    if not isinstance(network, Network):
        raise TypeError(f"initial_network must be a coevo.Network, got {type(network).__name__}")
    if network.architecture != architecture:
        raise ValueError(
            f"initial_network has {network.architecture}, and what is to be evolved has "
            f"{architecture}"
        )
    if network.genotype.shape != (architecture.n_genes,) or not np.isfinite(network.genotype).all():
        raise ValueError(
            f"initial_network must have {architecture.n_genes} finite weights and biases"
        )
    return network.genotype


def _check_previous(
    previous: Ongoing, architecture: Architecture, decomposition: Decomposition, settings: Settings
) -> SearchState:
    """Return the state to continue from; raise if the settings do not fit it.

    Subpopulations may have shrunk or grown since.
    """
    state = previous.state
    smallest, largest = settings.population_sizes
    if not (
        architecture == previous.architecture
        and decomposition.name == previous.decomposition.name
        and decomposition.sizes == previous.decomposition.sizes
        and smallest <= state.fitness.shape[1] <= largest
        and state.global_solution.dtype == settings.dtype
    ):
        raise ValueError(
            "hidden_layer_sizes, activation, decomposition, population_size, strategy if one is "
            "smoothing, dtype and the number of outputs must be what they were to go on from the "
            "previous fit"
        )
    return state


def _extend_budget(settings: Settings, state: SearchState) -> Settings:
    """Return settings whose limits are the budget on top of what the search has spent."""
    spent: dict[str, Any] = {
        "max_evaluations": state.evaluations,
        "max_generations": state.generation,
        "max_seconds": state.seconds,
    }
    limits = {name: getattr(settings, name) for name in spent}
    return replace(settings, **{n: v + spent[n] for n, v in limits.items() if v is not None})
