"""What "auto" stands for: settings chosen for a task and the size of a problem.

docs/tuning.md says which data the rules were chosen on, and what else was tried.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from coevo.core.component import is_auto
from coevo.core.extensions.base import Extension
from coevo.core.extensions.in_place_fitness import InPlaceFitness
from coevo.core.extensions.population_reduction import PopulationReduction
from coevo.core.extensions.revival import Revival
from coevo.core.extensions.turnover import Turnover
from coevo.core.metrics import Metric, find_metric
from coevo.core.settings import REPLACEMENT, Settings
from coevo.core.smoothing import Smoothing, find_rate
from coevo.core.strategy import find_strategy

_EVOLUTIONARY = frozenset({
    "decomposition", "limited_evaluation", "decay", "population_size", "scale_factor",
    "crossover_rate", "control", "representative", "sampling_rounds", "extensions",
})  # fmt: skip
"""Settings of differential evolution that smoothing does not use, or has one value for."""
_SEARCH_TO_VALIDATION = 10  # instances measured in the search for each one in validation
_COST_OF_PASS = 1.5  # of an instance in validation, where a candidate's is 1: candidates share work
_NEURONS_OF_PART = 500  # of the widest hidden layer that evolve in a generation, at least
_MOST_PARTS = 8  # each part needs a pass of the global solution over its batch
_SMOOTHING_PASSES = 3  # that a generation of smoothing makes over its batch, at least
_DOUBLINGS = 3  # of the first budget, while that pays
_STREAM_GENERATIONS = 600  # what the rate on a stream is chosen for: a stream may be short


class ProblemSize(NamedTuple):
    """What the choice of some settings depends on.

    Attributes
    ----------
    n_instances, n_inputs, n_neurons
        Of the training set and of the network.
    n_validation
        Validation instances; 0 if the cost of validation does not matter.
    replacement_passes
        Full passes over them that validating after each replacement takes in a generation.
    is_stream
        Whether the instances are one batch of a stream, which has no budget.
    """

    n_instances: int
    n_inputs: int
    n_neurons: int
    n_validation: int = 0
    replacement_passes: int = 1
    is_stream: bool = False


def resolve(
    settings: Settings,
    task: str = "classification",
    size: ProblemSize | None = None,
    metric: Metric | None = None,
) -> Settings:
    """Return settings with every "auto" replaced by what it stands for.

    Parameters
    ----------
    settings
        What is given is kept.
    task
        classification, multilabel or regression.
    size
        Size of the problem; without it, what depends on it stays "auto".
    metric
        The metric that `settings.fitness` stands for, if it is known already.
    """
    fitness = metric or choose_fitness(settings.fitness, task)
    metric = find_metric(fitness)
    strategy = _choose_strategy(settings, metric)
    draft = SimpleNamespace(**{f.name: getattr(settings, f.name) for f in fields(settings)})
    draft.fitness, draft.strategy = fitness, strategy
    if size is not None and size.is_stream:
        draft.limited_evaluation = True  # fitness on other batches is inherited
    if draft.max_generations is not None or draft.max_seconds is not None:
        _fill(draft, max_evaluations=None)
    if isinstance(strategy, Smoothing):
        _choose_for_smoothing(draft, metric, size)
    else:
        _choose_for_evolution(draft, task, metric, size)
    return replace(settings, **vars(draft))  # the settings are checked once, with all choices made


def choose_fitness(fitness: Any, task: str) -> Any:
    """Return a fitness as it is, or what "auto" stands for in a task."""
    if not is_auto(fitness):
        return fitness
    return "squared_error" if task == "regression" else "cross_entropy"


def _choose_strategy(settings: Settings, metric: Metric) -> Any:
    """Return the strategy, or what "auto" stands for with a metric and the other settings."""
    if not is_auto(settings.strategy):
        return settings.strategy
    default = _make_default()
    is_evolutionary = settings.validate_every == REPLACEMENT or any(
        getattr(settings, n) != getattr(default, n) for n in _EVOLUTIONARY
    )
    uses_smoothing = Smoothing.is_compiled_for(metric) and not is_evolutionary
    return find_strategy(Smoothing.name if uses_smoothing else "rand/1")


@cache
def _make_default() -> Settings:
    return Settings()  # has objects where a name stands for one


def _fill(draft: SimpleNamespace, **chosen: Any) -> None:
    """Set what is "auto"."""
    vars(draft).update({k: v for k, v in chosen.items() if is_auto(getattr(draft, k))})


# ------------------------------------------------------------------------------------- smoothing


def _choose_for_smoothing(draft: SimpleNamespace, metric: Metric, size: ProblemSize | None) -> None:
    unit = math.sqrt(3)  # uniform in ±√3 has standard deviation 1
    _fill(
        draft,
        # Hidden pre-activations begin with standard deviation 1, outputs with less.
        initial_range=(unit,) * len(draft.hidden_layer_sizes) + (0.3 * unit,),
        scale_initial_range=True,
        extensions=(),
    )
    if size is None:
        return
    _fill(draft, batch_size=_find_smoothing_batch_size(size.n_instances, metric))
    n_batches = size.n_instances / int(draft.batch_size)
    per_generation = 2 * size.n_neurons
    n_measured = _SMOOTHING_PASSES * _find_mean_batch(draft, size.n_instances)
    first_budget = round(20_000 + 20 * n_batches)
    granted = first_budget if is_auto(draft.max_evaluations) else None
    draft.strategy = _fill_strategy(draft.strategy, first_budget=granted)
    _fill(
        draft,
        max_evaluations=per_generation * 2**_DOUBLINGS * first_budget,
        validate_every=_find_interval(size.n_validation, n_measured),
    )
    n_generations = _count_generations(draft, per_generation)
    if size.is_stream:
        n_generations = _STREAM_GENERATIONS
        # Decay is relative to the number of instances, which is unknown.
        draft.strategy = _fill_strategy(draft.strategy, schedule="root", weight_decay=0.0)
    draft.strategy = _resolve_smoothing(draft, metric, size.n_inputs, n_generations)


def _find_smoothing_batch_size(n_instances: int, metric: Metric) -> int:
    """Return the batch size that balances many small moves against noisy ones.

    A metric that counts predictions depends only on the instances near a decision boundary, and so
    needs more of them.
    """
    if not metric.is_graded:
        return min(n_instances, 400)
    return min(n_instances, 200, max(16, n_instances // 20))


def _count_generations(draft: SimpleNamespace, evaluations_per_generation: int) -> float | None:
    """Return how many generations the budget has: infinity for seconds only, None for no budget."""
    limits = (draft.max_evaluations, draft.max_generations, draft.max_seconds)
    if all(limit is None for limit in limits):
        return None
    by_evaluations = (draft.max_evaluations or math.inf) / evaluations_per_generation
    return float(min(draft.max_generations or math.inf, by_evaluations))


def _resolve_smoothing(
    draft: SimpleNamespace, metric: Metric, n_inputs: int, n_generations: float | None
) -> Smoothing:
    """Return the strategy with every "auto" replaced by what it stands for."""
    output_width = 0.5 if metric.is_graded else 1.0
    hidden_width = 1.0 if draft.activation == "sign" else output_width
    rate = find_rate(n_generations or math.inf, n_inputs)
    rate *= min(1.0, (50 / max([1, *draft.hidden_layer_sizes])) ** (1 / 3))
    n_hidden = len(draft.hidden_layer_sizes)
    return _fill_strategy(
        draft.strategy,
        width=(hidden_width,) * n_hidden + (output_width,),
        rate=(rate,) * n_hidden + (2 * rate,),
        adapt_rate=is_auto(draft.strategy.rate) and draft.max_seconds is not None,
        weight_decay=1 / 8,
        adapt_decay=is_auto(draft.strategy.weight_decay),
        schedule="rounds",
    )


def _fill_strategy(strategy: Smoothing, **chosen: Any) -> Smoothing:
    """Return a strategy with these values in place of "auto"."""
    changes = {name: value for name, value in chosen.items() if is_auto(getattr(strategy, name))}
    return replace(strategy, **changes)


# ------------------------------------------------------------------------ differential evolution


def _choose_for_evolution(
    draft: SimpleNamespace, task: str, metric: Metric, size: ProblemSize | None
) -> None:
    is_regression = task == "regression"
    is_limited_neuron = draft.decomposition == "neuron" and draft.limited_evaluation
    _fill(
        draft,
        population_size=20,
        crossover_rate=0.3 if is_regression else 0.5,
        initial_range=0.3 if is_regression else 4.0,
        scale_initial_range=not is_regression,
        representative="mean" if is_limited_neuron and metric.is_graded else "best",
        extensions=_find_extensions(draft),
    )
    n_individuals = int(draft.population_size)
    # Below the critical F individuals become alike whatever is selected (Zaharie, 2002).
    critical = math.sqrt((1 - float(draft.crossover_rate) / 2) / n_individuals)
    ratio = 2.4 if is_regression else 1.05
    _fill(draft, scale_factor=max(0.001, round(ratio * critical, 3)))
    if size is not None:
        _fill(
            draft,
            batch_size=min(500, size.n_instances),
            max_evaluations=max(200_000, 400 * 2 * n_individuals * size.n_neurons),
        )
        _fill(draft, validate_every=_find_validation(draft, size))


def _find_extensions(draft: SimpleNamespace) -> tuple[Extension, ...]:
    found: list[Extension] = []
    # Under full evaluation the sampled fitness of an individual is never measured again.
    if not draft.limited_evaluation and draft.decomposition != "whole":
        found.append(InPlaceFitness())
    if draft.decomposition == "neuron":
        found.append(Revival())
    n_parts = min(_MOST_PARTS, max(draft.hidden_layer_sizes, default=0) // _NEURONS_OF_PART)
    if n_parts > 1 and draft.decomposition == "neuron" and draft.limited_evaluation:
        found.append(Turnover(n_parts))
    return tuple(found)


# ------------------------------------------------------------------------------------ validation


def _find_validation(draft: SimpleNamespace, size: ProblemSize) -> int | str:
    """Return when to validate so that it takes about a tenth of the time.

    A generation measures NP trials, and under limited evaluation NP targets, of each subpopulation
    on its batch. A pass over the validation instances measures each subpopulation once, and an
    engine that follows replacements needs no more for all of a generation.
    """
    reductions = [e for e in draft.extensions if isinstance(e, PopulationReduction)]
    n_individuals = min([int(draft.population_size), *(e.final_size for e in reductions)])
    n_candidates = n_individuals * (2 if draft.limited_evaluation else 1)
    period = max((e.turn_period for e in draft.extensions), default=1)
    n_measured = n_candidates * _find_mean_batch(draft, size.n_instances) / period
    cost = _COST_OF_PASS * size.n_validation
    if _find_interval(cost * size.replacement_passes, n_measured) == 1:
        return REPLACEMENT
    return _find_interval(cost, n_measured)


def _find_mean_batch(draft: SimpleNamespace, n_instances: int) -> float:
    """Return how many instances a batch has on average."""
    if not draft.limited_evaluation:
        return n_instances
    return n_instances / max(1, round(n_instances / int(draft.batch_size)))


def _find_interval(n_validation: float, n_measured: float) -> int:
    """Return every how many generations to validate, from the instances that each measures.

    Counted, not measured by the clock, so that it is the same in every run.
    """
    return max(1, math.ceil(_SEARCH_TO_VALIDATION * n_validation / n_measured))
