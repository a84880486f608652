"""One way to run a search: a problem, settings and hooks in, a result out.

`evolve`, the estimators, studies and policies all end here. Settings are resolved once, the
genotype is decomposed once, the engine is chosen once.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coevo._typing import Array
from coevo._validation import check_name
from coevo.core.assembly import assemble
from coevo.core.batches import Batches
from coevo.core.decomposition import Decomposition, decompose
from coevo.core.evaluator import Data, Evaluator
from coevo.core.history import Generation
from coevo.core.hooks import Hook, Run, as_hook
from coevo.core.loop import Callback
from coevo.core.metrics import Metric
from coevo.core.network import Architecture, Network
from coevo.core.responses import ClassResponses, Responses
from coevo.core.settings import ProblemSize, Settings
from coevo.core.smoothing import Smoothing
from coevo.core.state import SearchState
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.registry import ENGINES, SMOOTHING_ENGINES, choose_engine
from coevo.engines.two_metrics import TwoMetricEvaluator
from coevo.persistence.plain import plain_settings
from coevo.runtime import memory, threads
from coevo.training.result import Result
from coevo.training.scorers import resolve_metric
from coevo.training.thread_choice import ThreadChoice

_MANY = 20  # generations after which a search should have moved


@dataclass(frozen=True, kw_only=True)
class Problem(ABC):
    """What a network is evolved for; subclasses say what networks are measured on, and by what.

    Parameters
    ----------
    initial_network
        A network to begin around.
    previous
        A search to go on with, on these instances and with its budget granted anew.
    arguments
        All that the result depends on, by the names a user knows, for the fingerprint of
        checkpoints; by default the settings.
    """

    initial_network: Network | None = None
    previous: Ongoing | None = None
    arguments: Mapping[str, Any] | None = None

    @property
    @abstractmethod
    def task(self) -> str:
        """What the library's choices for "auto" depend on; see `Settings.resolved`."""

    @property
    def classes(self) -> Array | None:
        """The label of each output, None if outputs are no classes."""
        return None

    @abstractmethod
    def find_metric(self, settings: Settings) -> Metric:
        """Return what is maximised."""

    @abstractmethod
    def architecture(self, settings: Settings) -> Architecture:
        """Return the architecture of the networks that are evolved."""

    def check(self, settings: Settings, architecture: Architecture) -> None:  # noqa: B027
        """Refuse what cannot work, before anything is allocated; by default nothing."""

    @property
    @abstractmethod
    def n_instances(self) -> int:
        """Number of training instances."""

    @abstractmethod
    def make_evaluator(
        self,
        engine: str,
        settings: Settings,
        architecture: Architecture,
        decomposition: Decomposition,
    ) -> tuple[str, Evaluator]:
        """Return the name of the engine that serves the search, and the engine."""

    def measure_training(self, evaluator: Evaluator, network: Array, batches: Batches) -> float:
        """Return the training fitness of the final network (n_genes,), on all instances."""
        everything = slice(0, evaluator.n_instances)
        return float(evaluator.evaluate_networks(network[np.newaxis], everything)[0])

    def named_arrays(self) -> dict[str, Array | None]:
        """Return all arrays that the result depends on, by name."""
        network = self.initial_network
        return {"initial network": None if network is None else network.genotype}


@dataclass(frozen=True)
class DataProblem(Problem):
    """Outputs that should match targets; all arrays have been checked.

    Parameters
    ----------
    training, validation
        Inputs of the settings' dtype, with class indices or numbers as targets.
    responses
        Turns outputs into labels, probabilities or numbers, for metrics that want these.
    validation_fitness
        Another metric for the validation set, None for the same; as for `Settings.fitness`.
    arrays
        The arrays that the result depends on, by the names a user knows; by default the data.
    initial_network, previous, arguments
        As for `Problem`.
    """

    training: Data
    validation: Data
    responses: Responses
    validation_fitness: Any = None
    arrays: Mapping[str, Array | None] | None = None

    @property
    def task(self) -> str:
        """Whether this is classification, multilabel or regression."""
        return self.responses.task

    @property
    def classes(self) -> Array | None:
        """The label of each output; None for regression and for multilabel targets."""
        return self.responses.classes if isinstance(self.responses, ClassResponses) else None

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self.training)

    @property
    def n_outputs(self) -> int:
        """Number of classes, of labels, or of numbers to predict."""
        if isinstance(self.responses, ClassResponses):
            return len(self.responses.classes)
        n_outputs: int = self.training.targets.shape[1]
        return n_outputs

    def find_metric(self, settings: Settings) -> Metric:
        """Return the settings' metric for these responses."""
        return self._find(settings.resolved(self.task).fitness, self.training)

    def architecture(self, settings: Settings) -> Architecture:
        """Return the architecture of the networks that are evolved."""
        n_inputs = self.training.inputs.shape[1]
        sizes, activation = settings.hidden_layer_sizes, settings.activation
        return Architecture(n_inputs, sizes, self.n_outputs, activation)

    def check(self, settings: Settings, architecture: Architecture) -> None:
        """Refuse a search that cannot fit into memory."""
        check_memory(self, settings, architecture)

    def make_evaluator(
        self,
        engine: str,
        settings: Settings,
        architecture: Architecture,
        decomposition: Decomposition,
    ) -> tuple[str, Evaluator]:
        """Return one of `ENGINES`, or of `SMOOTHING_ENGINES`."""
        engine = choose_engine(engine, architecture, decomposition)
        engines = SMOOTHING_ENGINES if isinstance(settings.strategy, Smoothing) else ENGINES
        check_name("engine", engine, engines)
        training, validation = self.training, self.validation
        if training.weights is None and validation.weights is not None:
            # An engine that sees no weights in training does not look for any in validation.
            training = replace(training, weights=np.ones(len(training)))
        parts = (architecture, decomposition)
        evaluator = engines[engine](*parts, settings.fitness, training, validation)
        if self.validation_fitness is None:
            return engine, evaluator
        has_weights = validation.weights is not None
        other = resolve_metric(
            self.validation_fitness, self.responses, has_weights, "validation_fitness"
        )
        validator = BatchedEvaluator(*parts, other, validation, validation)
        return engine, TwoMetricEvaluator(evaluator, validator, decomposition)

    def named_arrays(self) -> dict[str, Array | None]:
        """Return all arrays that the result depends on, by name."""
        further = {"classes": self.classes} | super().named_arrays()
        if self.arrays is not None:
            return {**self.arrays, **further}
        data = {"training": self.training, "validation": self.validation}
        arrays = {
            f"{name} {field.name}": getattr(instances, field.name)
            for name, instances in data.items()
            for field in fields(instances)
        }
        return arrays | further

    def _find(self, fitness: Any, data: Data) -> Metric:
        return resolve_metric(fitness, self.responses, data.weights is not None)


@dataclass(frozen=True)
class Ongoing:
    """A search that has ended and may go on: warm starts and streams."""

    state: SearchState
    architecture: Architecture
    decomposition: Decomposition


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
        What follows the run: checkpoints, progress, callbacks.
    engine
        For data: delta, batched, reference, or "auto" for the fastest that serves the
        decomposition.
    """
    followers = [as_hook(hook) for hook in hooks]
    metric = problem.find_metric(settings)
    settings = replace(settings, fitness=metric)
    if not any(hook.may_stop for hook in followers):
        settings.check_end()
    architecture = problem.architecture(settings)
    # What depends on the budget is left out: a resumed run may have another one.
    arguments = problem.arguments or plain_settings(settings.resolved(problem.task))
    size = ProblemSize(problem.n_instances, architecture.n_inputs, architecture.n_neurons)
    settings = settings.resolved(problem.task, size)
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
        if problem.previous is None:  # what went before was measured on other instances
            _warn_if_it_never_moved(state)
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


def _warn_if_it_never_moved(state: SearchState) -> None:
    """Warn if the best network is still the first one, which the user could take for trained."""
    first_best = state.history.rows[0][Generation._fields.index("best_validation")]
    if state.generation >= _MANY and not state.best_validation > first_best:
        warnings.warn(
            f"in {state.generation:,} generations no network was better than the first one; "
            "another seed, fitness, initial_range or strategy may help",
            ConvergenceWarning,
            stacklevel=3,
        )


def check_memory(problem: DataProblem, settings: Settings, architecture: Architecture) -> None:
    """Refuse a search that cannot fit into memory, before anything is allocated.

    Counted are the subpopulations with their trials and random draws, the networks of the initial
    sampling, the activations of a batch and of the validation set, and the instances.
    """
    itemsize = np.dtype(settings.dtype).itemsize
    n_genes, smooths = architecture.n_genes, isinstance(settings.strategy, Smoothing)
    size = 1 if smooths else int(settings.population_size)
    n_batch = len(problem.training)
    if settings.limited_evaluation:
        n_batch = min(n_batch, int(settings.batch_size))
    n_neurons = sum(architecture.hidden_layer_sizes) + architecture.n_outputs
    # With smoothing: X, the best, the means and Adam's two moments, these three twice more.
    n_copies = 11 if smooths else 2 * size
    n_numbers = n_copies * n_genes + n_neurons * (n_batch + len(problem.validation))
    n_inputs = problem.training.inputs.nbytes + problem.validation.inputs.nbytes
    needed = n_numbers * itemsize + n_inputs
    available = memory.find_size()
    if available is not None and needed > available:
        raise MemoryError(
            f"hidden_layer_sizes={settings.hidden_layer_sizes} makes networks of {n_genes:,} "
            f"weights and biases; {'' if smooths else f'with population_size={size} '}the search "
            "needs at least "
            f"{needed / 1e9:,.1f} GB of memory, and there are {available / 1e9:,.1f} GB"
        )


def _check_initial_network(problem: Problem, architecture: Architecture) -> Array | None:
    """Return the genotype to begin around, if there is one and it has the right shape."""
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


# -------------------------------------------------------------------------------------- going on


def _check_previous(
    previous: Ongoing, architecture: Architecture, decomposition: Decomposition, settings: Settings
) -> SearchState:
    """Refuse to go on with networks of another shape; subpopulations may have shrunk meanwhile."""
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
    """Return settings that grant the search its budget once more."""
    spent: dict[str, Any] = {
        "max_evaluations": state.evaluations,
        "max_generations": state.generation,
        "max_seconds": state.seconds,
    }
    limits = {name: getattr(settings, name) for name in spent}
    return replace(settings, **{n: v + spent[n] for n, v in limits.items() if v is not None})
