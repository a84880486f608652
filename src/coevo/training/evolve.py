"""`evolve`: from arrays to an evolved network."""

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
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.training.data import check_classes, check_numbers
from coevo.training.result import Result
from coevo.training.run import DataProblem, run_search
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
    """Evolve a network that classifies or, with a metric for it, one that predicts numbers.

    Parameters
    ----------
    X_train, X_valid : arrays of shape (n_instances, n_inputs)
        Inputs, best scaled to about [−1, 1]. The training instances make the fitness; the
        validation instances choose the network that is returned.
    y_train, y_valid : arrays of shape (n_instances,), or (n_instances, n_outputs) for regression
        Labels of any type; the classes are those of `y_train`. If the fitness is a metric for
        regression (squared_error, absolute_error), the numbers to predict.
    settings
        How to search and when to stop; the defaults if not given.
    variant
        DE, LEDE, CCDE or LECCDE: a short name for the settings `decomposition` and
        `limited_evaluation`.
    engine
        Which Evaluator measures fitness: "delta", which serves the decompositions "neuron",
        "neuron_outgoing", "synapse" and your own groups if each is part of one neuron, "batched",
        "reference", or "auto" for the fastest one that serves the decomposition; `Result.engine`
        says which one that was. All give the same fitness, up to rounding.
    callbacks
        Called with the search after each generation; a true answer ends the run.
    checkpoint
        A file to save the search to, every minute and at the end, also after Ctrl-C. The
        checkpoint before is kept beside it as `<checkpoint>.previous`. No two runs can use the same
        one at the same time. A `coevo.Checkpoint` object also says how often.
    resume
        Go on from the checkpoint, if there is one, and end as if the run had never stopped. Data,
        settings and engine must be the same, but for the stopping criteria and `n_threads`. If
        False, there must be no checkpoint yet.
    initial_network
        A network of the same shape to begin around. It is the first global solution. One individual
        of each subpopulation is its part; the others are that part with uniform noise of
        `initial_range` added, since differential evolution moves by differences between
        individuals. So `initial_range` says how far around the network the search begins, and is
        best small. Every individual is measured once in its place in the network, instead of
        sampling random ones.
    changes
        Single settings that differ from `settings`; nested names such as `control__memory_size`
        too.

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
    """Return what a metric is for; a function is for classification unless it says otherwise."""
    metric = METRICS.get(fitness) if isinstance(fitness, str) else fitness
    return metric.task if isinstance(metric, Metric) else "classification"


def resolve_settings(
    settings: Settings | None, variant: str | None, changes: dict[str, Any]
) -> Settings:
    """Return settings with a variant's switches and single changes; arguments as for `evolve`."""
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"settings must be a coevo.Settings, got {settings!r}")
    if variant is not None:
        changes = with_switches(variant, changes)
    if settings is None:
        return Settings.from_names(changes)
    nested = {name.partition("__")[0] for name in changes if "__" in name}
    given = {name: getattr(settings, name) for name in nested} | changes
    return replace(settings, **resolve_names(given))


def gather_hooks(
    callbacks: Sequence[Callback | Hook], checkpoint: StrPath | Checkpoint | None, resume: bool
) -> list[Hook | Callback]:
    """Return callbacks and checkpoint as hooks of one run; arguments as for `evolve`."""
    hooks = check_callbacks(callbacks)
    if checkpoint is not None:
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        hooks.append(checkpoint.with_resume(resume))
    elif resume:
        raise ValueError("resume=True needs a checkpoint to go on from")
    return hooks
