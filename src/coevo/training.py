"""From arrays to an evolved network: checks the data, builds the parts and runs the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coevo import threads
from coevo.decomposition import decompose
from coevo.errors import check_name
from coevo.evaluation import Data, Evaluator
from coevo.evaluation.batched import BatchedEvaluator
from coevo.evaluation.delta import DeltaEvaluator
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import FITNESSES
from coevo.history import History
from coevo.network import Architecture, Array, Network
from coevo.search import Callback, Search
from coevo.settings import Settings
from coevo.stopping import StopReason
from coevo.variants import with_switches

ENGINES: dict[str, Callable[..., Evaluator]] = {
    "delta": DeltaEvaluator,
    "batched": BatchedEvaluator,
    "reference": ReferenceEvaluator,
}
"""The Evaluators by name."""


@dataclass(frozen=True)
class Result:
    """What a run of `evolve` leaves behind.

    Parameters
    ----------
    network
        The global solution that did best on the validation set.
    classes : array of shape (n_classes,)
        The label that each output of the network stands for.
    train_fitness, validation_fitness
        The network's fitness on all training instances and on the validation set.
    history
        How the run went.
    stop_reason
        Why it ended.
    generations, evaluations, seconds
        What it took.
    settings
        The settings it ran with.
    """

    network: Network
    classes: Array
    train_fitness: float
    validation_fitness: float
    history: History
    stop_reason: StopReason
    generations: int
    evaluations: int
    seconds: float
    settings: Settings

    def predict(self, X: ArrayLike) -> Array:
        """Return the label of each instance of X, an array of shape (n_instances, n_inputs)."""
        dtype = self.network.genotype.dtype
        inputs = check_inputs("X", X, dtype, self.network.architecture.n_inputs)
        return np.asarray(self.classes[self.network.predict(inputs)])


def evolve(
    X_train: ArrayLike,
    y_train: ArrayLike,
    X_valid: ArrayLike,
    y_valid: ArrayLike,
    settings: Settings | None = None,
    *,
    variant: str | None = None,
    engine: str = "auto",
    callbacks: Sequence[Callback] = (),
    **changes: Any,
) -> Result:
    """Evolve a network that classifies.

    Parameters
    ----------
    X_train, X_valid : arrays of shape (n_instances, n_inputs)
        Inputs, best scaled to about [−1, 1]. The training instances make the fitness; the
        validation instances choose the network that is returned.
    y_train, y_valid : arrays of shape (n_instances,)
        Labels of any type; the classes are those of `y_train`.
    settings
        How to search and when to stop; the defaults if not given.
    variant
        DE, LEDE, CCDE or LECCDE: a short name for the settings `decomposition` and
        `limited_evaluation`.
    engine
        Which Evaluator measures fitness: "delta", which serves decomposition "neuron", "batched",
        "reference", or "auto" for the fastest one that serves the decomposition. All give the same
        fitness, up to rounding.
    callbacks
        Called with the search after each generation; a true answer ends the run.
    changes
        Single settings that differ from `settings`.

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
    >>> result.validation_fitness > 0.9
    True
    """
    settings = _resolve(settings, variant, changes)
    if not (settings.has_end or callbacks):
        raise ValueError(
            "the run would never end: set max_evaluations, max_generations, max_seconds, "
            "target_fitness or patience, or give a callback that says stop"
        )
    check_name("engine", engine, ("auto", *ENGINES))
    training, validation, classes = _check_data(
        X_train, y_train, X_valid, y_valid, np.dtype(settings.dtype)
    )
    architecture = Architecture(
        training.inputs.shape[1], settings.hidden_layer_sizes, len(classes), settings.activation
    )
    decomposition = decompose(settings.decomposition, architecture)
    fitness = FITNESSES[settings.fitness]
    if engine == "auto":
        engine = "delta" if decomposition.name == "neuron" else "batched"
    evaluator = ENGINES[engine](architecture, decomposition, fitness, training, validation)
    search = Search(evaluator, decomposition, settings, callbacks)
    state = search.state
    with threads.limit(settings.n_threads):
        stop_reason = search.run()
        best = state.best_network[np.newaxis]
        train_fitness = evaluator.evaluate_networks(best, slice(0, len(training)))[0]
    return Result(
        network=Network(architecture, state.best_network),
        classes=classes,
        train_fitness=float(train_fitness),
        validation_fitness=state.best_validation,
        history=state.history,
        stop_reason=stop_reason,
        generations=state.generation,
        evaluations=state.evaluations,
        seconds=state.seconds,
        settings=settings,
    )


def _resolve(settings: Settings | None, variant: str | None, changes: dict[str, Any]) -> Settings:
    for name in changes:
        check_name("the setting", name, Settings.__dataclass_fields__)
    if variant is not None:
        changes = with_switches(variant, changes)
    return replace(settings or Settings(), **changes)


def _check_data(
    X_train: ArrayLike, y_train: ArrayLike, X_valid: ArrayLike, y_valid: ArrayLike, dtype: Any
) -> tuple[Data, Data, Array]:
    """Return training and validation data, labels as class indices, and the classes."""
    train_inputs = check_inputs("X_train", X_train, dtype)
    valid_inputs = check_inputs("X_valid", X_valid, dtype, train_inputs.shape[1])
    train_labels = _check_labels("y_train", y_train, "X_train", len(train_inputs))
    valid_labels = _check_labels("y_valid", y_valid, "X_valid", len(valid_inputs))
    classes, train_targets = np.unique(train_labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y_train holds one class only ({classes[0]!r}); there must be at least two"
        )
    is_known = np.isin(valid_labels, classes)
    if not is_known.all():
        raise ValueError(
            f"y_valid holds the label {valid_labels[~is_known][0]!r}, which is not among the "
            f"{len(classes)} classes of y_train"
        )
    valid_targets = np.searchsorted(classes, valid_labels)
    return Data(train_inputs, train_targets), Data(valid_inputs, valid_targets), classes


def check_inputs(argument: str, given: ArrayLike, dtype: Any, n_inputs: int | None = None) -> Array:
    """Return inputs as a matrix of the dtype, or raise an error that names the argument.

    Parameters
    ----------
    argument
        What the caller calls them.
    given
        The inputs.
    dtype
        What they are converted to.
    n_inputs
        How many columns they must have, if that is known.
    """
    try:
        inputs = np.ascontiguousarray(given, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must be an array of numbers: {error}") from None
    if inputs.ndim != 2:
        raise ValueError(
            f"{argument} must have shape (n_instances, n_inputs), got shape {np.shape(given)}"
        )
    if 0 in inputs.shape:
        raise ValueError(f"{argument} is empty: its shape is {inputs.shape}")
    if n_inputs is not None and inputs.shape[1] != n_inputs:
        raise ValueError(
            f"{argument} has {inputs.shape[1]} columns; the network has {n_inputs} inputs"
        )
    is_finite = np.isfinite(inputs)
    if not is_finite.all():
        row, column = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"{argument} must be finite in {inputs.dtype}; {(~is_finite).sum()} values are not, "
            f"the first is {inputs[row, column]} in row {row}, column {column}"
        )
    return inputs


def _is_missing(label: object) -> bool:
    return label is None or (isinstance(label, float) and np.isnan(label))


def _check_labels(argument: str, given: ArrayLike, inputs_argument: str, n_instances: int) -> Array:
    labels = np.asarray(given)
    if labels.shape != (n_instances,):
        raise ValueError(
            f"{argument} must have shape ({n_instances},), one label for each row of "
            f"{inputs_argument}, got shape {labels.shape}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{argument} must not hold NaN or infinity")
    if labels.dtype.kind == "O" and any(_is_missing(label) for label in labels):
        raise ValueError(f"{argument} must not hold missing labels")
    return labels
