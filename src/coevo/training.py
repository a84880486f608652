"""From arrays to an evolved network: has the data checked, builds the parts and runs the search."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coevo import model, threads
from coevo.arrays import check_classes, check_inputs, check_numbers, name_arrays
from coevo.checkpoint import Purpose
from coevo.checkpointer import Checkpointer
from coevo.decomposition import Decomposition, decompose
from coevo.errors import check_name
from coevo.evaluation import Data, Evaluator
from coevo.evaluation.batched import BatchedEvaluator
from coevo.evaluation.delta import DeltaEvaluator
from coevo.evaluation.partial import PartialEvaluator, serves
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.files import StrPath
from coevo.fitness import find_fitness
from coevo.history import History
from coevo.network import Architecture, Array, Network
from coevo.search import Callback, Search
from coevo.settings import Settings
from coevo.stopping import StopReason
from coevo.variants import with_switches

logger = logging.getLogger("coevo")


def _delta_evaluator(
    architecture: Architecture, decomposition: Decomposition, *arguments: Any
) -> Evaluator:
    """Two engines share the name, because one thing is said of both: only what changed is run."""
    engine = DeltaEvaluator if decomposition.name == "neuron" else PartialEvaluator
    return engine(architecture, decomposition, *arguments)


ENGINES: dict[str, Callable[..., Evaluator]] = {
    "delta": _delta_evaluator,
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
    classes : array of shape (n_classes,), or None
        The label that each output of the network stands for; None for regression.
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
    engine
        Which engine measured fitness: "delta", "batched" (full passes) or "reference".
    """

    network: Network
    classes: Array | None
    train_fitness: float
    validation_fitness: float
    history: History
    stop_reason: StopReason
    generations: int
    evaluations: int
    seconds: float
    settings: Settings
    engine: str

    def predict(self, X: ArrayLike) -> Array:
        """Return the label of each instance of X, or the numbers predicted for it.

        Parameters
        ----------
        X : array of shape (n_instances, n_inputs)

        Returns
        -------
        array of shape (n_instances,), or (n_instances, n_outputs) for regression
        """
        dtype = self.network.genotype.dtype
        inputs = check_inputs("X", X, dtype, self.network.architecture.n_inputs)
        if self.classes is None:
            return self.network.outputs(inputs)
        return np.asarray(self.classes[self.network.predict(inputs)])

    def save(self, path: StrPath, feature_names: Sequence[str] | None = None) -> None:
        """Write the network to a model file; see `coevo.model.save`."""
        model.save(
            path,
            self.network,
            classes=self.classes,
            feature_names=feature_names,
            settings=self.settings,
            fitness={"train": self.train_fitness, "validation": self.validation_fitness},
        )


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
    checkpoint: StrPath | None = None,
    checkpoint_every_seconds: float | None = 60.0,
    checkpoint_every_generations: int | None = None,
    resume: bool = False,
    initial_network: Network | None = None,
    **changes: Any,
) -> Result:
    """Evolve a network that classifies or, with a measure for it, one that predicts numbers.

    Parameters
    ----------
    X_train, X_valid : arrays of shape (n_instances, n_inputs)
        Inputs, best scaled to about [−1, 1]. The training instances make the fitness; the
        validation instances choose the network that is returned.
    y_train, y_valid : arrays of shape (n_instances,), or (n_instances, n_outputs) for regression
        Labels of any type; the classes are those of `y_train`. If the fitness is a measure for
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
        A file to freeze the search to, now and then and at the end, also after Ctrl-C. The
        checkpoint before is kept beside it as `<checkpoint>.previous`. No two runs can use the same
        one at the same time.
    checkpoint_every_seconds, checkpoint_every_generations
        How often: after this many seconds, after this many generations, or whichever comes first;
        None for not by that.
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
    >>> bool((result.predict(X[1::2]) == y[1::2]).mean() > 0.9)
    True
    """
    settings = _resolve(settings, variant, changes)
    if find_fitness(settings.fitness).task == "regression":
        training, validation = check_numbers(X_train, y_train, X_valid, y_valid, settings.dtype)
        classes, n_outputs = None, training.targets.shape[1]
    else:
        training, validation, classes = check_classes(
            X_train, y_train, X_valid, y_valid, settings.dtype
        )
        n_outputs = len(classes)
    return evolve_data(
        training,
        validation,
        n_outputs,
        settings,
        classes=classes,
        engine=engine,
        callbacks=callbacks,
        checkpoint=checkpoint,
        checkpoint_every_seconds=checkpoint_every_seconds,
        checkpoint_every_generations=checkpoint_every_generations,
        resume=resume,
        initial_network=initial_network,
    )


def evolve_data(
    training: Data,
    validation: Data,
    n_outputs: int,
    settings: Settings,
    *,
    classes: Array | None = None,
    engine: str = "auto",
    callbacks: Sequence[Callback] = (),
    checkpoint: StrPath | None = None,
    checkpoint_every_seconds: float | None = 60.0,
    checkpoint_every_generations: int | None = None,
    resume: bool = False,
    initial_network: Network | None = None,
) -> Result:
    """Evolve a network on data that have been checked already; see `evolve`.

    Parameters
    ----------
    training, validation
        Inputs of the settings' dtype, with class indices or numbers as targets.
    n_outputs
        Number of classes, or of numbers to predict.
    settings
        How to search and when to stop.
    classes : array of shape (n_outputs,), optional
        The labels that the class indices stand for.
    engine, callbacks, checkpoint, checkpoint_every_seconds, checkpoint_every_generations, resume, \
    initial_network
        As for `evolve`.
    """
    if not (settings.has_end or callbacks):
        raise ValueError(
            "the run would never end: set max_evaluations, max_generations, max_seconds, "
            "target_fitness or patience, or give a callback that says stop"
        )
    architecture = Architecture(
        training.inputs.shape[1], settings.hidden_layer_sizes, n_outputs, settings.activation
    )
    genotype = None
    if initial_network is not None:
        check_network(initial_network, architecture)
        genotype = initial_network.genotype
    decomposition = decompose(settings.decomposition, architecture, settings.group_size)
    engine = choose_engine(engine, architecture, decomposition)
    evaluator = ENGINES[engine](
        architecture, decomposition, find_fitness(settings.fitness), training, validation
    )
    checkpointer = None
    if checkpoint is not None:
        arrays = name_arrays(training, validation, classes) | {"initial network": genotype}
        purpose = Purpose.of(settings, engine, arrays)
        checkpointer = Checkpointer(
            checkpoint, purpose, checkpoint_every_seconds, checkpoint_every_generations
        )
        callbacks = (*callbacks, checkpointer)
    elif resume:
        raise ValueError("resume=True needs a checkpoint to go on from")
    with checkpointer or nullcontext(), threads.limit(settings.n_threads):
        frozen = None if checkpointer is None else checkpointer.begin(evaluator, resume)
        search = Search(evaluator, decomposition, settings, callbacks, frozen, genotype)
        state = search.state
        stop_reason = search.run()
        if checkpointer is not None:
            checkpointer.save(search)
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
        engine=engine,
    )


def check_network(network: Network, architecture: Architecture) -> None:
    """Raise unless a network to begin around has the architecture of those to be evolved."""
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


def choose_engine(engine: str, architecture: Architecture, decomposition: Decomposition) -> str:
    """Return the engine's name, for "auto" that of the fastest that serves the decomposition."""
    check_name("engine", engine, ("auto", *ENGINES))
    if engine == "auto":
        is_served = decomposition.name == "neuron" or serves(architecture, decomposition)
        engine = "delta" if is_served else "batched"
        logger.debug("%s: served by the %s engine", decomposition.name, engine)
    return engine


def _resolve(settings: Settings | None, variant: str | None, changes: dict[str, Any]) -> Settings:
    for name in changes:
        check_name("the setting", name, Settings.__dataclass_fields__)
    if variant is not None:
        changes = with_switches(variant, changes)
    return replace(settings or Settings(), **changes)
