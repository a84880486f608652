"""Problems: what a network is evolved for, and who measures its fitness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name
from coevo.core.batches import Batches
from coevo.core.decomposition import Decomposition
from coevo.core.defaults import ProblemSize, choose_fitness
from coevo.core.evaluator import BaseEvaluator, Data, Evaluator
from coevo.core.metrics import Metric
from coevo.core.network import Architecture, Network
from coevo.core.responses import ClassResponses, Responses
from coevo.core.settings import REPLACEMENT, Settings
from coevo.core.smoothing import Smoothing
from coevo.core.state import SearchState
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.registry import ENGINES, SMOOTHING_ENGINES, choose_engine
from coevo.engines.two_metrics import TwoMetricEvaluator
from coevo.runtime import memory
from coevo.training.scorers import resolve_metric


@dataclass(frozen=True)
class Ongoing:
    """A search that has ended and can be continued, for warm starts and streams."""

    state: SearchState
    architecture: Architecture
    decomposition: Decomposition


@dataclass(frozen=True, kw_only=True)
class Problem(ABC):
    """What a network is evolved for; subclasses define the fitness and the architecture.

    Parameters
    ----------
    initial_network
        A network to begin around.
    previous
        A search to continue on these instances, with its full budget again.
    arguments
        The arguments that decide the result, under the names the user knows, for the fingerprint in
        checkpoints; the settings if None.
    """

    initial_network: Network | None = None
    previous: Ongoing | None = None
    arguments: Mapping[str, Any] | None = None

    @property
    @abstractmethod
    def task(self) -> str:
        """The kind of problem, on which choices for "auto" depend; see `core.defaults.resolve`."""

    @property
    def classes(self) -> Array | None:
        """The label of each output; None if the outputs are not classes."""
        return None

    @abstractmethod
    def find_metric(self, settings: Settings) -> Metric:
        """Return the metric that is maximised."""

    @abstractmethod
    def architecture(self, settings: Settings) -> Architecture:
        """Return the architecture of the networks that are evolved."""

    def check(self, settings: Settings, architecture: Architecture) -> None:  # noqa: B027
        """Raise if the search cannot work, before anything is allocated; optional."""

    @property
    @abstractmethod
    def n_instances(self) -> int:
        """Number of training instances."""

    def measure_size(self, architecture: Architecture) -> ProblemSize:
        """Return the sizes that the choices for "auto" depend on."""
        return ProblemSize(self.n_instances, architecture.n_inputs, architecture.n_neurons)

    @abstractmethod
    def make_evaluator(
        self,
        engine: str,
        settings: Settings,
        architecture: Architecture,
        decomposition: Decomposition,
    ) -> tuple[str, Evaluator]:
        """Return the engine's name, with "auto" resolved, and the engine."""

    def measure_training(self, evaluator: Evaluator, network: Array, batches: Batches) -> float:
        """Return the training fitness of the final network (n_genes,), on all instances."""
        everything = slice(0, evaluator.n_instances)
        return float(evaluator.evaluate_networks(network[np.newaxis], everything)[0])

    def named_arrays(self) -> dict[str, Array | None]:
        """Return the arrays that decide the result, by name."""
        network = self.initial_network
        return {"initial network": None if network is None else network.genotype}


@dataclass(frozen=True)
class DataProblem(Problem):
    """Outputs that should match targets. The arrays must have been checked.

    Parameters
    ----------
    training, validation
        Inputs of the settings' dtype, with class indices or numbers as targets.
    responses
        Turns outputs into labels, probabilities or numbers, for metrics that need them.
    fitness
        The metric in place of `Settings.fitness`: also a name or a scorer of scikit-learn's.
    validation_fitness
        The metric on the validation set; None for the same.
    arrays
        The arrays that decide the result, under the names the user knows; the data if None.
    is_stream
        Whether the training instances are one batch of a stream.
    initial_network, previous, arguments
        As for `Problem`.
    """

    training: Data
    validation: Data
    responses: Responses
    fitness: Any = None
    validation_fitness: Any = None
    arrays: Mapping[str, Array | None] | None = None
    is_stream: bool = False

    @property
    def task(self) -> str:
        """classification, multilabel or regression."""
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
        """Return the metric that is maximised."""
        fitness = settings.fitness if self.fitness is None else self.fitness
        has_weights = self.training.weights is not None
        return resolve_metric(choose_fitness(fitness, self.task), self.responses, has_weights)

    def architecture(self, settings: Settings) -> Architecture:
        """Return the architecture of the networks that are evolved."""
        n_inputs = self.training.inputs.shape[1]
        sizes, activation = settings.hidden_layer_sizes, settings.activation
        return Architecture(n_inputs, sizes, self.n_outputs, activation)

    def measure_size(self, architecture: Architecture) -> ProblemSize:
        """Return the sizes; with another metric each replacement is validated by a full pass."""
        passes = 1 if self.validation_fitness is None else architecture.n_neurons
        size = super().measure_size(architecture)
        return size._replace(
            n_validation=len(self.validation), replacement_passes=passes, is_stream=self.is_stream
        )

    def check(self, settings: Settings, architecture: Architecture) -> None:
        """Raise if the search cannot fit into memory, before anything is allocated.

        The estimate covers the subpopulations with their trials and random draws, the networks of
        the initial sampling, the activations of a batch and of the validation set, and the data.
        """
        itemsize = np.dtype(settings.dtype).itemsize
        n_genes, smooths = architecture.n_genes, isinstance(settings.strategy, Smoothing)
        size = 1 if smooths else int(settings.population_size)
        n_batch = len(self.training)
        if settings.limited_evaluation:
            n_batch = min(n_batch, int(settings.batch_size))
        # With smoothing: X, the best, the means and Adam's two moments, these three twice more.
        n_copies = 11 if smooths else 2 * size
        n_activations = architecture.n_neurons * (n_batch + len(self.validation))
        n_input_bytes = self.training.inputs.nbytes + self.validation.inputs.nbytes
        needed = (n_copies * n_genes + n_activations) * itemsize + n_input_bytes
        available = memory.find_size()
        if available is not None and needed > available:
            with_population = "" if smooths else f"with population_size={size} "
            raise MemoryError(
                f"hidden_layer_sizes={settings.hidden_layer_sizes} makes networks of {n_genes:,} "
                f"weights and biases; {with_population}the search needs at least "
                f"{needed / 1e9:,.1f} GB of memory, and there are {available / 1e9:,.1f} GB"
            )

    def make_evaluator(
        self,
        engine: str,
        settings: Settings,
        architecture: Architecture,
        decomposition: Decomposition,
    ) -> tuple[str, Evaluator]:
        """Return one of `ENGINES` or, for the strategy smoothing, of `SMOOTHING_ENGINES`."""
        engine = choose_engine(engine, architecture, decomposition)
        engines = SMOOTHING_ENGINES if isinstance(settings.strategy, Smoothing) else ENGINES
        check_name("engine", engine, engines)
        training, validation = self.training, self.validation
        if training.weights is None and validation.weights is not None:
            # Engines ignore validation weights if the training instances have none.
            training = replace(training, weights=np.ones(len(training)))
        parts = (architecture, decomposition)
        evaluator = engines[engine](*parts, settings.fitness, training, validation)
        if isinstance(evaluator, BaseEvaluator):
            validates = settings.validate_every == REPLACEMENT
            evaluator.follows_validation = validates and self.validation_fitness is None
        if self.validation_fitness is None:
            return engine, evaluator
        has_weights = validation.weights is not None
        metric = resolve_metric(
            self.validation_fitness, self.responses, has_weights, "validation_fitness"
        )
        validator = BatchedEvaluator(*parts, metric, validation, validation)
        return engine, TwoMetricEvaluator(evaluator, validator, decomposition)

    def named_arrays(self) -> dict[str, Array | None]:
        """Return the arrays that decide the result, by name."""
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
