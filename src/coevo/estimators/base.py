"""What the two estimators share: from checked arrays through `run_search` to a fitted network."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coevo._typing import Array, StrPath
from coevo._validation import check_flag, check_integer, check_name, check_real
from coevo.core.component import Component
from coevo.core.evaluator import Data
from coevo.core.hooks import Hook, check_callbacks
from coevo.core.loop import Callback, SearchLoop
from coevo.core.metrics import Metric, find_metric
from coevo.core.network import Architecture, Network
from coevo.core.responses import Responses
from coevo.core.settings import COMPONENTS, DTYPES, MOVED, Settings
from coevo.core.smoothing import Smoothing, is_auto
from coevo.core.stopping import StopReason
from coevo.estimators.callbacks import (
    CallbackSupportMixin,
    FitTask,
    ProgressHook,
    with_callbacks,
)
from coevo.estimators.columns import check_memory
from coevo.estimators.data import CheckingEstimator, Given
from coevo.estimators.fingerprint import describe_arguments, describe_arrays
from coevo.estimators.inputs import Inputs
from coevo.estimators.range_check import warn_if_far
from coevo.estimators.scaling import run
from coevo.estimators.warm_start import Training
from coevo.persistence import model
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.persistence.encoding import read_encoding
from coevo.training.result import Result
from coevo.training.run import DataProblem, run_search
from coevo.training.scorers import resolve_metric

Fitness = str | Metric | Callable[..., Any]
"""What may say which networks are good."""


class _KeepSearch(Hook):
    """Keeps the search, so that a warm start can go on with it."""

    search: SearchLoop

    def begin(self, search: SearchLoop) -> None:
        self.search = search

    def take(self) -> SearchLoop:
        """Return the search and forget it; as it holds its hooks, that avoids a reference cycle."""
        search = self.search
        del self.search
        return search


_STREAM_GENERATIONS = 600


@dataclass(eq=False, repr=False)
class CoevoEstimator(CallbackSupportMixin, CheckingEstimator):  # type: ignore[misc]
    """The part of the estimators that does not depend on what the targets are."""

    hidden_layer_sizes: Sequence[int] = Settings.hidden_layer_sizes
    _: KW_ONLY
    activation: str = Settings.activation
    fitness: Fitness = Settings.fitness
    validation_fitness: Fitness | None = None
    categorical_features: str | Sequence[Any] | None = "from_dtype"
    max_categories: int = 255
    scale_inputs: bool = True
    check_range: bool = True
    decomposition: Any = Settings.decomposition
    limited_evaluation: bool = Settings.limited_evaluation
    batch_size: int | str = Settings.batch_size
    decay: float = Settings.decay
    reshuffle_batches: bool = Settings.reshuffle_batches
    population_size: int | str = Settings.population_size
    scale_factor: float | str = Settings.scale_factor
    crossover_rate: float | str = Settings.crossover_rate
    control: Any = Settings.control
    strategy: Any = Settings.strategy
    representative: str = Settings.representative
    sampling_rounds: int = Settings.sampling_rounds
    initial_range: float | Sequence[float] | str = Settings.initial_range
    scale_initial_range: bool | str = Settings.scale_initial_range
    extensions: Sequence[Any] | str = Settings.extensions
    max_evaluations: int | str | None = Settings.max_evaluations
    max_generations: int | None = Settings.max_generations
    max_seconds: float | None = Settings.max_seconds
    target_fitness: float | None = Settings.target_fitness
    patience: int | None = Settings.patience
    validation_fraction: float = 0.2
    generations_per_batch: int = 1
    warm_start: bool = False
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    callbacks: Sequence[Callback] | None = None
    checkpoint: StrPath | Checkpoint | None = None
    resume: bool = False
    dtype: str = Settings.dtype
    n_threads: int | None = Settings.n_threads
    verbose: bool | int = False

    # -------------------------------------------------------------------------- what subclasses say

    @abstractmethod
    def _responses(self, training: Training) -> Responses:
        """Return what turns outputs into labels or numbers."""

    @abstractmethod
    def _describe_outputs(self) -> dict[str, Any]:
        """Return what a model file says of the outputs."""

    @abstractmethod
    def _take(self, content: model.Model) -> None:
        """Take over from a model file what only this kind of estimator has."""

    # -------------------------------------------------------------------------------------- fitting

    @with_callbacks
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
        X : array, sparse matrix or data frame of shape (n_instances, n_features)
            The inputs. NaN is a missing value: it becomes the median, and an input more says that
            it was missing. Categorical columns: see `categorical_features`.
        y : array of shape (n_instances,), or (n_instances, n_outputs)
            Labels of any type, or numbers; a classifier takes several columns of 0 and 1 for
            multilabel targets, a regressor several columns of numbers.
        sample_weight : array of shape (n_instances,), optional
            Weight of each instance, in training and in the validation set split off.
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
        checkpoint = self._make_checkpoint()
        previous: Training | None = getattr(self, "_training", None) if self.warm_start else None
        data = self._check_data(X, y, sample_weight, reset=previous is None)
        check_memory(data.columns, self.dtype)
        given = self._check_validation(X_val, y_val)
        seed = self._draw_seed()
        if checkpoint is not None and self.random_state is None:
            seed = checkpoint.choose_seed(seed)
        arguments = describe_arguments(self, seed)
        arrays = describe_arrays(self, data, given)
        split = self._split(data, seed) if given is None else None
        kept, split_off = split or (None, None)
        training = previous or self._begin(data, kept)
        scaled = training.scale(data, self.dtype, kept)
        validation = scaled
        if given is not None:
            validation = training.scale(given, self.dtype)
        elif split_off is not None:
            validation = training.scale(data, self.dtype, split_off)
        problem = self._pose(
            training,
            scaled,
            validation,
            initial_network=_scaled(training, initial_network),
            arguments=arguments,
            arrays=arrays,
        )
        settings = self._settings(problem, seed=seed)
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        told = {"X": X, "y": y, "metadata": metadata}
        attributes = partial(self._attributes, training, problem.architecture(settings))
        task = FitTask(self, told, attributes)
        hooks: list[Hook | Callback] = [*self._check_callbacks(), ProgressHook(self.verbose), task]
        if checkpoint is not None:
            hooks.append(checkpoint)
        result = self._run(training, problem, settings, hooks)
        self.train_fitness_ = result.train_fitness
        task.finish()
        return self

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
        previous: Training | None = getattr(self, "_training", None)
        # The first call learns the features and the scaling; all later ones must agree.
        data = self._check_data(X, y, sample_weight, reset=previous is None, stream=True)
        validation = self._check_validation(X_val, y_val)
        training = previous or self._begin(data)
        if previous is not None:
            training.widen_ranges(data)
        if validation is not None:
            training.validation = training.scale(validation, self.dtype)
        scaled = training.scale(data, self.dtype)
        problem = self._pose(training, scaled, training.validation or scaled)
        settings = self._settings(
            problem,
            seed=self._draw_seed() if previous is None else 0,
            limited_evaluation=True,
            batch_size=len(data),
            max_generations=self.generations_per_batch,
            max_evaluations=None,
            max_seconds=None,
            patience=None,
            target_fitness=None,
        )
        n_inputs = problem.training.inputs.shape[1]
        strategy = _for_streams(self._settings(problem), problem.task, n_inputs)
        settings = replace(settings, strategy=strategy)
        for extension in settings.known_extensions:
            if getattr(extension, "follows_budget", False):
                raise ValueError(
                    f"the extension {extension.name} follows the budget, and a stream has none: "
                    "leave it out of partial_fit"
                )
        self._run(training, problem, settings, self._check_callbacks())
        state = self._training.ongoing.state
        if training.validation is None:
            # No two batches are alike, so nothing says that an older network is better: what the
            # stream has led to is the answer.
            state.best_network[:] = state.global_solution
            self.validation_fitness_ = state.history.latest.validation_fitness
            state.best_validation = self.validation_fitness_
            self.network_ = training.unscaled(problem.architecture(settings), state.best_network)
        self.train_fitness_ = state.history.latest.batch_fitness
        return self

    def _run(
        self,
        training: Training,
        problem: DataProblem,
        settings: Settings,
        hooks: Sequence[Hook | Callback],
    ) -> Result:
        keeper = _KeepSearch()
        result = run_search(problem, settings, [*hooks, keeper])
        architecture = result.network.architecture
        self.__dict__.update(self._attributes(training, architecture, keeper.take()))
        self.stop_reason_, self.engine_ = str(result.stop_reason), result.engine
        self.settings_ = result.settings
        is_apart = problem.validation is not problem.training
        self.chosen_on_ = "validation" if is_apart else "training"
        if result.stop_reason is StopReason.INTERRUPTED:
            warnings.warn(
                f"interrupted in generation {result.generations:,}; what is kept is the best "
                f"network so far, with a fitness of {result.validation_fitness:.4g}",
                stacklevel=3,
            )
        return result

    def _attributes(
        self, training: Training, architecture: Architecture, search: SearchLoop
    ) -> dict[str, Any]:
        """Return the fitted attributes as of now."""
        state = search.state
        return {
            "network_": training.unscaled(architecture, state.best_network),
            "encoding_": training.encoding,
            "history_": state.history.columns(),
            "validation_fitness_": state.best_validation,
            "n_evaluations_": state.evaluations,
            "n_iter_": state.generation,
            "_training": training.with_search(search, architecture),
        }

    # ------------------------------------------------------------------------------------ the parts

    def _check_own(self) -> None:
        """Check the arguments that are no settings; those check themselves."""
        for flag in ("scale_inputs", "check_range", "warm_start", "resume"):
            check_flag(flag, getattr(self, flag))
        if not isinstance(self.verbose, Integral | np.bool_):
            raise TypeError(f"verbose must be True, False or a whole number, got {self.verbose!r}")
        check_name("dtype", self.dtype, DTYPES)  # the data are converted before settings are made
        check_integer("generations_per_batch", self.generations_per_batch, 1)
        check_integer("max_categories", self.max_categories, 1)
        check_real("validation_fraction", self.validation_fraction, 0, 1)
        if self.validation_fraction == 1:
            raise ValueError("validation_fraction=1 leaves nothing to train on")

    def _check_callbacks(self) -> list[Hook | Callback]:
        return check_callbacks(() if self.callbacks is None else self.callbacks)

    def _make_checkpoint(self) -> Checkpoint | None:
        given = self.checkpoint
        if given is None:
            if self.resume:
                raise ValueError("resume=True needs a checkpoint to go on from")
            return None
        if self.warm_start:
            raise ValueError(
                "warm_start=True and checkpoint do not go together: the one goes on from the fit "
                "before, the other from a file. Set warm_start=False; with resume=True a larger "
                "budget lets a fit go on as well"
            )
        if isinstance(given, Checkpoint):
            return given.with_resume(self.resume)
        return Checkpoint(given, resume=self.resume)

    def _draw_seed(self) -> int:
        state = self.random_state
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31 - 1))
        check_integer("random_state", state, 0, maximum=None)
        return int(state)

    def _settings(self, problem: DataProblem, **changes: Any) -> Settings:
        """Return the arguments as settings of a search for this problem."""
        same = {f.name: getattr(self, f.name) for f in fields(Settings) if f.name != "seed"}
        if not is_auto(self.fitness):
            # Settings know no names of scikit-learn's.
            has_weights = problem.training.weights is not None
            same["fitness"] = resolve_metric(self.fitness, problem.responses, has_weights)
        batch_size, n_instances = self.batch_size, len(problem.training)
        if isinstance(batch_size, Integral) and not isinstance(batch_size, bool):
            same["batch_size"] = min(batch_size, n_instances)  # a small data set is a single batch
        return Settings(**same | changes)

    def _begin(self, data: Given, rows: Array | None = None) -> Training:
        return Training.begin(data, self.scale_inputs, self.max_categories, rows)

    def _pose(
        self, training: Training, data: Data, validation: Data, **further: Any
    ) -> DataProblem:
        """Return the problem as the search sees it, with scaled instances."""
        return DataProblem(
            training=data,
            validation=validation,
            responses=self._responses(training),
            validation_fitness=self.validation_fitness,
            previous=training.ongoing,
            **further,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set arguments; nested names such as `control__memory_size` set those of components."""
        for name in list(params):
            owner, _, inner = name.partition("__")
            if name in MOVED:
                raise ValueError(f"the argument {name!r} is now {MOVED[name]}")
            if inner:
                check_name("the argument before __", owner, COMPONENTS)
                given = params.get(owner, getattr(self, owner))
                params[owner] = component = COMPONENTS[owner](given, inner)
                if not isinstance(component, Component):
                    raise ValueError(f"{owner}={given!r} has no setting {inner!r}")
        return super().set_params(**params)  # type: ignore[no-any-return]

    # ----------------------------------------------------------------------------------- fitted use

    def _outputs(self, X: Any) -> Array:
        """Return the network's outputs for instances as the user has them."""
        check_is_fitted(self, "network_")
        columns = self._read_columns("X", X, reset=False)
        if self.check_range:
            warn_if_far(self.encoding_, columns)
        return run(self.network_, Inputs(columns, self.encoding_))

    def encode(self, X: Any) -> Array:
        """Return the inputs that `network_` takes, (n_instances, n_inputs).

        They are X itself if it is plain numbers. See `encoding_` and `categorical_features`.
        """
        check_is_fitted(self, "network_")
        inputs = Inputs(self._read_columns("X", X, reset=False), self.encoding_)
        return inputs[slice(None)]

    def save(self, path: StrPath) -> None:
        """Write the network to a model file; see `coevo.persistence.model.save`.

        Parameters
        ----------
        path
            The file, by custom ending in .safetensors. It holds the network, which takes unscaled
            inputs, and its classes, not the search: what `load` returns predicts the same but
            cannot go on.
        """
        check_is_fitted(self, "network_")
        names = tuple(getattr(self, "feature_names_in_", ()))
        measured = {"train": "train_fitness_"}
        if getattr(self, "chosen_on_", "") == "validation":
            measured["validation"] = "validation_fitness_"
        model.save(
            path,
            self.network_,
            **self._describe_outputs(),
            feature_names=self.encoding_.input_names if names == self.encoding_.columns else None,
            settings=getattr(self, "settings_", None),
            fitness={k: getattr(self, v) for k, v in measured.items() if hasattr(self, v)},
            preprocessing={"target": None, **self.encoding_.as_json()},
        )

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """Return an estimator that predicts as the one that was saved.

        Parameters
        ----------
        path
            A file that `save` or `coevo.persistence.model.save` wrote.

        Raises
        ------
        coevo.persistence.model.ModelError
            If the file is damaged, foreign or newer.
        """
        content = model.load(path)
        architecture = content.network.architecture
        estimator = cls(architecture.hidden_layer_sizes, activation=architecture.activation)
        estimator.network_ = content.network
        try:
            estimator.encoding_ = encoding = read_encoding(content)
        except model.ModelError as error:
            raise model.ModelError(f"{path} is not a good model file: {error}") from None
        estimator.n_features_in_ = len(encoding.columns)
        if content.feature_names is not None:
            estimator.feature_names_in_ = np.array(encoding.columns, dtype=object)
        is_categorical = np.isin(encoding.columns, list(encoding.categories))
        estimator.is_categorical_ = is_categorical if is_categorical.any() else None
        estimator._take(content)
        return estimator


def _for_streams(settings: Settings, task: str, n_inputs: int) -> Any:
    """Return a strategy that knows no budget, and no number of instances to weigh decay against."""
    resolved = settings.resolved(task)
    found = resolved.strategy
    if not isinstance(found, Smoothing):
        return found
    chosen: dict[str, Any] = {"schedule": "root", "weight_decay": 0.0}
    found = replace(found, **{k: v for k, v in chosen.items() if is_auto(getattr(found, k))})
    metric, sizes = find_metric(resolved.fitness), resolved.hidden_layer_sizes
    # A stream may be short: it begins as fast as a run of some hundred generations.
    return found.resolved(metric, resolved.activation, sizes, n_inputs, _STREAM_GENERATIONS)


def _scaled(training: Training, network: Network | None) -> Network | None:
    if network is None or not isinstance(network, Network):
        return network
    return training.scaled(network)
