"""What the two estimators share: from checked arrays through a search to a fitted network."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coevo import model, threads
from coevo.batches import Batches
from coevo.checkpoint import Checkpoint
from coevo.checkpointer import Checkpointer
from coevo.errors import check_flag, check_integer, check_real
from coevo.estimators.checking import CheckingEstimator
from coevo.estimators.following import (
    CallbackSupportMixin,
    FitTask,
    following,
    most_generations,
    with_callbacks,
)
from coevo.estimators.going_on import Training, find_shape
from coevo.estimators.resuming import make_checkpointer
from coevo.estimators.scaling import TargetScaling, run
from coevo.estimators.scoring import ClassAnswers, NumberAnswers, resolve_fitness
from coevo.estimators.validating import TwoMeasureEvaluator
from coevo.evaluation import Data, Evaluator
from coevo.evaluation.batched import BatchedEvaluator
from coevo.files import StrPath
from coevo.fitness import Fitness
from coevo.network import Array, Network
from coevo.search import Callback, Search
from coevo.settings import Settings
from coevo.training import ENGINES, check_network, choose_engine

# Settings that an estimator does not hand on as they are.
_OWN = ("fitness", "batch_size", "final_batch_size", "seed")


class CoevoEstimator(CallbackSupportMixin, CheckingEstimator):  # type: ignore[misc]
    """The part of the estimators that does not care what the targets are."""

    # -------------------------------------------------------------------------- what subclasses say

    @abstractmethod
    def _answers(self, scaling: TargetScaling | None) -> ClassAnswers | NumberAnswers:
        """Return what turns outputs into answers."""

    @property
    @abstractmethod
    def _n_outputs(self) -> int: ...

    # -------------------------------------------------------------------------------------- fitting

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        initial_network: Network | None = None,
    ) -> Self:
        """Evolve a network.

        Parameters
        ----------
        X : array or data frame of shape (n_instances, n_features)
            The inputs.
        y : array of shape (n_instances,), or (n_instances, n_outputs) for regression
            Labels of any type, or numbers.
        sample_weight : array of shape (n_instances,), optional
            How much each instance counts, in training and in the validation set split off.
        X_val, y_val : as X and y, optional
            The validation set, which chooses the network that is kept. Without it,
            `validation_fraction` of the instances are split off if these are enough.
        initial_network
            A network to begin around, such as another estimator's `network_`: with the inputs as
            they are in X and the outputs in the order of the classes, or in the units of y. See
            `coevo.evolve`.

        Returns
        -------
        self
        """
        self._check_own()
        training: Training | None = getattr(self, "_training", None) if self.warm_start else None
        data = self._check_data(X, y, sample_weight, reset=training is None)
        seed = self._draw_seed()
        validation = self._check_validation(X_val, y_val)
        if initial_network is not None and training is not None:
            raise ValueError(
                "initial_network begins a search, and warm_start=True goes on with the previous one"
            )
        checkpointer = make_checkpointer(
            self, data, validation, self._find_engine(data), seed, initial_network
        )
        with checkpointer or nullcontext():
            frozen = None if checkpointer is None else checkpointer.find(self.resume)
            if frozen is not None and frozen.purpose.seed is not None:
                seed = frozen.purpose.seed  # another one than drawn if random_state is None
            if validation is None:
                data, validation = self._split(data, seed)
            training = self._prepare(training, data)
            if initial_network is not None:
                check_network(initial_network, training.architecture)
                training.initial_network = training.scaled(initial_network)
            settings = self._settings(training, data, seed)
            if not (settings.has_end or self.callbacks):
                raise ValueError(
                    "the fit would never end: set max_evaluations, max_generations, max_seconds, "
                    "target_fitness or patience, or give a callback that says stop"
                )
            metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
            told = {"X": X, "y": y, "metadata": metadata}
            self._run(training, data, validation, settings, told, checkpointer, frozen)
        return self

    def _run(
        self,
        training: Training,
        data: Data,
        validation: Data,
        settings: Settings,
        told: dict[str, Any],
        checkpointer: Checkpointer | None,
        frozen: Checkpoint | None,
    ) -> None:
        """Search until a stopping criterion is met."""
        evaluator = self._evaluator(training, settings, data, validation)
        fewest = settings.final_population_size or settings.population_size
        candidates = len(training.decomposition) * fewest
        per_generation = candidates * (2 if settings.limited_evaluation else 1)
        total = most_generations(settings, per_generation)
        if training.state is not None:
            with _quietly(settings, evaluator):
                training.turn_to(evaluator, settings)
            settings = training.extend(settings)
        if checkpointer is not None and frozen is not None:
            training.state = checkpointer.thaw(frozen, evaluator)
            total = None if total is None else max(0, total - training.state.generation)
        task = FitTask(self, total, told, lambda search: self._attributes(training, search))
        with following(self.verbose, total) as watchers, _quietly(settings, evaluator):
            callbacks = [*(self.callbacks or ()), *watchers, task.after_generation]
            if checkpointer is not None:
                callbacks.append(checkpointer)
            search = Search(
                evaluator, training.decomposition, settings, callbacks, training.state,
                training.initial_network,
            )  # fmt: skip
            training.state = search.state
            self.stop_reason_ = str(search.run())
            if checkpointer is not None:
                checkpointer.save(search)
            best = search.state.best_network[np.newaxis]
            everything = slice(0, len(data))
            self.train_fitness_ = float(evaluator.evaluate_networks(best, everything)[0])
        self.__dict__.update(self._attributes(training, search))
        task.end()

    def _attributes(self, training: Training, search: Search) -> dict[str, Any]:
        """Return the fitted attributes as of now."""
        state = search.state
        return {
            "network_": training.unscaled(state.best_network),
            "history_": state.history.columns(),
            "validation_fitness_": state.best_validation,
            "n_evaluations_": state.evaluations,
            "n_iter_": state.generation,
            "_training": training,
            "_settings_of_fit": search.settings,
        }

    # ---------------------------------------------------------------------------------- on a stream

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, X_val: Any, y_val: Any
    ) -> Self:
        """Take some generations on these instances alone."""
        self._check_own()
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is for fit: a stream's batches are not known to a file; pickle the "
                "estimator between two calls of partial_fit to be able to go on"
            )
        for name in ("final_population_size", "final_batch_size"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} follows the budget, and a stream has none: leave it out of partial_fit"
                )
        training: Training | None = getattr(self, "_training", None)
        # The first call learns the features and the scaling; all later ones must agree.
        data = self._check_data(X, y, sample_weight, reset=training is None, stream=True)
        validation = self._check_validation(X_val, y_val)
        training = self._prepare(training, data)
        if validation is not None:
            training.validation = training.scale(validation, self.dtype)
        state = training.state
        settings = replace(
            self._settings(training, data, self._draw_seed() if state is None else 0),
            limited_evaluation=True,
            batch_size=len(data),
            max_generations=(0 if state is None else state.generation) + self.generations_per_batch,
            max_evaluations=None,
            max_seconds=None,
            patience=None,
            target_fitness=None,
        )
        evaluator = self._evaluator(training, settings, data, training.validation or data)
        if state is not None:
            if validation is not None or training.validation is None:
                training.turn_to(evaluator, settings)
            state.batches = Batches.all_instances(len(data))
        with _quietly(settings, evaluator):
            search = Search(
                evaluator, training.decomposition, settings, tuple(self.callbacks or ()), state
            )
            training.state = state = search.state
            self.stop_reason_ = str(search.run())
        if training.validation is None:
            # No two batches are alike, so nothing says that an older network is better: what the
            # stream has led to is the answer.
            state.best_network[:] = state.global_solution
            state.best_validation = state.history.latest.validation_fitness
        self.__dict__.update(self._attributes(training, search))
        self.train_fitness_ = state.history.latest.batch_fitness
        return self

    # ------------------------------------------------------------------------------------ the parts

    def _check_own(self) -> None:
        """Check the arguments that are no settings; those check themselves."""
        for flag in ("scale_inputs", "warm_start", "resume"):
            check_flag(flag, getattr(self, flag))
        check_integer("generations_per_batch", self.generations_per_batch, 1)
        check_real("validation_fraction", self.validation_fraction, 0, 1)
        if self.validation_fraction == 1:
            raise ValueError("validation_fraction=1 leaves nothing to train on")

    def _draw_seed(self) -> int:
        state = self.random_state
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31 - 1))
        check_integer("random_state", state, 0)
        return int(state)

    def _settings(self, training: Training, data: Data, seed: int) -> Settings:
        """Return the arguments as settings of a search over these instances."""
        batch_size = self.batch_size
        if isinstance(batch_size, Integral) and not isinstance(batch_size, bool):
            batch_size = min(batch_size, len(data))  # a small data set is a single batch
        final = self.final_batch_size
        if isinstance(final, Integral) and not isinstance(final, bool):
            final = min(final, len(data))
        same = {f.name: getattr(self, f.name) for f in fields(Settings) if f.name not in _OWN}
        fitness = self._find_fitness(self.fitness, training, data)
        own = {"fitness": fitness, "batch_size": batch_size, "final_batch_size": final}
        return Settings(**same, **own, seed=seed)

    def _find_fitness(self, fitness: Any, training: Training, data: Data) -> Fitness:
        answers = self._answers(training.targets)
        return resolve_fitness(fitness, answers, data.weights is not None)

    def _prepare(self, training: Training | None, data: Data) -> Training:
        """Begin a training, or make sure that the one there is can go on."""
        settings = self._settings_of_shape()
        if training is None:
            return Training.begin(data, self._n_outputs, settings, self.scale_inputs)
        training.check_same(self._n_outputs, settings, self.final_population_size)
        return training

    def _settings_of_shape(self) -> Settings:
        """Return the arguments that say what the networks and subpopulations look like."""
        names = (
            "hidden_layer_sizes", "activation", "decomposition", "group_size", "population_size",
            "strategy", "dtype",
        )  # fmt: skip
        return Settings(**{name: getattr(self, name) for name in names})

    def _find_engine(self, data: Data) -> str:
        """Return the name of the engine that will measure fitness."""
        shape = find_shape(data.inputs.shape[1], self._n_outputs, self._settings_of_shape())
        return choose_engine("auto", *shape)

    def _evaluator(
        self, training: Training, settings: Settings, data: Data, validation: Data
    ) -> Evaluator:
        decomposition = training.decomposition
        is_same = validation is data
        if data.weights is None and validation.weights is not None:
            # An engine that sees no weights in training does not look for any in validation.
            data = replace(data, weights=np.ones(len(data)))
        data = training.scale(data, self.dtype)
        validation = data if is_same else training.scale(validation, self.dtype)
        parts = (training.architecture, decomposition)
        self.engine_ = choose_engine("auto", *parts)
        evaluator = ENGINES[self.engine_](*parts, settings.fitness, data, validation)
        if self.validation_fitness is None:
            return evaluator
        measure = self._find_fitness(self.validation_fitness, training, validation)
        other = BatchedEvaluator(*parts, measure, validation, validation)
        return TwoMeasureEvaluator(evaluator, other, decomposition)

    # ----------------------------------------------------------------------------------- fitted use

    def _outputs(self, X: Any) -> Array:
        """Return the network's outputs for instances as the user has them."""
        check_is_fitted(self, "network_")
        inputs = validate_data(self, X, reset=False, dtype="numeric")
        return run(self.network_, inputs)

    def save(self, path: StrPath) -> None:
        """Write the network to a model file; see `coevo.model.save`.

        Parameters
        ----------
        path
            The file, by custom ending in .safetensors. It holds the network, which takes unscaled
            inputs, and its classes, not the search: what `load` returns predicts the same but
            cannot go on.
        """
        check_is_fitted(self, "network_")
        names = getattr(self, "feature_names_in_", None)
        measured = {"train": "train_fitness_", "validation": "validation_fitness_"}
        model.save(
            path,
            self.network_,
            classes=getattr(self, "classes_", None),
            feature_names=None if names is None else names.tolist(),
            settings=getattr(self, "_settings_of_fit", None),
            fitness={k: getattr(self, v) for k, v in measured.items() if hasattr(self, v)},
        )

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """Return an estimator that predicts as the one that was saved.

        Parameters
        ----------
        path
            A file that `save` or `coevo.model.save` wrote.

        Raises
        ------
        coevo.model.ModelError
            If the file is damaged, foreign or newer.
        """
        content = model.load(path)
        architecture = content.network.architecture
        estimator = cls(
            hidden_layer_sizes=architecture.hidden_layer_sizes, activation=architecture.activation
        )
        estimator.network_ = content.network
        estimator.n_features_in_ = architecture.n_inputs
        if content.feature_names is not None:
            estimator.feature_names_in_ = np.array(content.feature_names, dtype=object)
        estimator._take(content)
        return estimator

    @abstractmethod
    def _take(self, content: model.Model) -> None:
        """Take over from a model file what only this kind of estimator has."""


@contextmanager
def _quietly(settings: Settings, evaluator: Evaluator) -> Iterator[None]:
    """Use the cores that the settings grant, and let no metric warn thousands of times over."""
    with threads.limit(settings.n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        yield


Measure = str | Fitness | Callable[..., Any]
"""What may say which networks are good."""
Callbacks = Sequence[Callback] | None
"""What may follow a search."""
