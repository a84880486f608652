"""`evolve`: evolves a network on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from coevo._typing import StrPath
from coevo.core.hooks import Hook, check_callbacks
from coevo.core.loop import Callback
from coevo.core.metrics import METRICS, Metric
from coevo.core.network import Network
from coevo.core.responses import ClassResponses, NumberResponses, Responses
from coevo.core.settings import Settings, resolve_names
from coevo.persistence.checkpoint_hook import Checkpoint, find_checkpoint
from coevo.training.data import check_classes, check_numbers
from coevo.training.problem import DataProblem
from coevo.training.result import Result
from coevo.training.run import run_search
from coevo.training.variants import with_switches


def evolve(
    X_train: ArrayLike,
    y_train: ArrayLike,
    X_valid: ArrayLike,
    y_valid: ArrayLike,
    settings: Settings | None = None,
    *,
    variant: str | None = None,
    engine: str = "auto",
    callbacks: Sequence[Hook | Callback] = (),
    checkpoint: StrPath | Checkpoint | None = None,
    resume: bool = False,
    initial_network: Network | None = None,
    **changes: Any,
) -> Result:
    """Evolve a network for classification or, if the fitness is an error, for regression.

    Parameters
    ----------
    X_train, X_valid : arrays of shape (n_instances, n_inputs)
        Inputs, which should be scaled to about [−1, 1]. Fitness is measured on the training
        instances; the network that is returned is the best on the validation instances.
    y_train, y_valid : arrays of shape (n_instances,), or (n_instances, n_outputs) for regression
        Labels of any type; the classes are those of `y_train`. For regression, that is if the
        fitness is squared_error or absolute_error, numbers.
    settings
        How to search and when to stop; None for the defaults.
    variant
        DE, LEDE, CCDE or LECCDE: a short name for the settings `decomposition` and
        `limited_evaluation`.
    engine
        The Evaluator that measures fitness: "delta", for the decompositions "neuron",
        "neuron_outgoing", "synapse" and groups of your own that are each within one neuron;
        "batched"; "reference"; or "auto" for the fastest that supports the decomposition, which
        `Result.engine` then names. All give the same fitness, up to rounding.
    callbacks
        Functions called with the search after each generation; the run ends when one returns true.
    checkpoint
        A file to which the search is saved every minute and at the end, also after Ctrl-C, or a
        `coevo.Checkpoint`, which sets how often. The previous checkpoint is kept as
        `<checkpoint>.previous`. Two runs cannot use the same file at the same time.
    resume
        Continue from the checkpoint, if the file exists; the result is the same as if the run had
        never stopped. Data, settings and engine must be the same except for the stopping criteria
        and `n_threads`. If False, the file must not exist yet.
    initial_network
        A network of the same architecture to begin around. It is the first global solution. In
        each subpopulation, one individual is taken from it; the others have uniform noise of
        `initial_range` added, because differential evolution needs differences between individuals.
        `initial_range` should therefore be small. The initial fitness of every individual is that
        of the network with the individual in its place, instead of an average over random networks.
    changes
        Settings that differ from `settings`, also nested ones such as `control__memory_size`.

    Returns
    -------
    the best network, its fitness, the history and why the run stopped

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coevo import evolve
    >>> X, y = load_iris(return_X_y=True)
    >>> result = evolve(
    ...     X[::2], y[::2], X[1::2], y[1::2], hidden_layer_sizes=(5,), batch_size=25,
    ...     max_evaluations=5_000, seed=1,
    ... )
    >>> result.stop_reason
    <StopReason.MAX_EVALUATIONS: 'max_evaluations'>
    >>> bool((result.predict(X[1::2]) == y[1::2]).mean() > 0.9)
    True
    """
    settings = resolve_settings(settings, variant, changes)
    hooks = gather_hooks(callbacks, checkpoint, resume)
    arrays = (X_train, y_train, X_valid, y_valid)
    responses: Responses
    if _find_task(settings.fitness) == "regression":
        training, validation = check_numbers(*arrays, settings.dtype)
        responses = NumberResponses()
    else:
        training, validation, classes = check_classes(*arrays, settings.dtype)
        responses = ClassResponses(classes)
    problem = DataProblem(training, validation, responses, initial_network=initial_network)
    return run_search(problem, settings, hooks, engine=engine)


def _find_task(fitness: Any) -> str:
    """Return the task of a metric; a plain function is for classification."""
    metric = METRICS.get(fitness) if isinstance(fitness, str) else fitness
    return metric.task if isinstance(metric, Metric) else "classification"


def resolve_settings(
    settings: Settings | None, variant: str | None, changes: dict[str, Any]
) -> Settings:
    """Return settings with the switches of a variant and changes; arguments as for `evolve`."""
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"settings must be a coevo.Settings, got {settings!r}")
    if variant is not None:
        changes = with_switches(variant, changes)
    if settings is None:
        return Settings.from_names(changes)
    if not changes:
        return settings
    nested = {name.partition("__")[0] for name in changes if "__" in name}
    given = {name: getattr(settings, name) for name in nested} | changes
    return replace(settings, **resolve_names(given))


def gather_hooks(
    callbacks: Sequence[Callback | Hook], checkpoint: StrPath | Checkpoint | None, resume: bool
) -> list[Hook | Callback]:
    """Return callbacks and checkpoint as hooks; arguments as for `evolve`."""
    hooks = check_callbacks(callbacks)
    found = find_checkpoint(checkpoint, resume)
    return hooks if found is None else [*hooks, found]
