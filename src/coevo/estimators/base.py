"""The base class of both estimators: from arrays through `run_search` to a fitted network."""

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
from coevo.core.metrics import Metric
from coevo.core.network import Architecture, Network
from coevo.core.responses import Responses
from coevo.core.settings import COMPONENTS, DTYPES, MOVED, Settings
from coevo.core.stopping import StopReason
from coevo.estimators.callbacks import (
    CallbackSupportMixin,
    FitTask,
    ProgressHook,
    with_callbacks,
)
from coevo.estimators.columns import check_memory
from coevo.estimators.data import CheckingEstimator
from coevo.estimators.fingerprint import describe_arguments, describe_arrays
from coevo.estimators.fit_state import FitState
from coevo.estimators.inputs import Inputs
from coevo.estimators.range_check import warn_if_far
from coevo.estimators.scaling import TargetScaling, run
from coevo.persistence import model
from coevo.persistence.checkpoint_hook import Checkpoint, find_checkpoint
from coevo.persistence.encoding import read_encoding
from coevo.training.problem import DataProblem
from coevo.training.result import Result
from coevo.training.run import run_search

Fitness = str | Metric | Callable[..., Any]
"""What the argument `fitness` may be."""


class _KeepSearch(Hook):
    """Keeps the search, so that a warm start can continue it."""

    search: SearchLoop

    def begin(self, search: SearchLoop) -> None:
        self.search = search

    def take(self) -> SearchLoop:
        """Return the search and forget it, which avoids a reference cycle: it holds its hooks."""
        search = self.search
        del self.search
        return search


@dataclass(eq=False, repr=False)
class CoevoEstimator(CallbackSupportMixin, CheckingEstimator):  # type: ignore[misc]
    """Base class of the estimators; subclasses define what depends on the kind of targets."""

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
    validate_every: int | str = Settings.validate_every
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

    # ------------------------------------------------------------------ what subclasses must define

    @abstractmethod
    def _make_responses(self, scaling: TargetScaling | None = None) -> Responses:
        """Return what turns outputs into labels or numbers."""

    @abstractmethod
    def _describe_outputs(self) -> dict[str, Any]:
        """Return the arguments of `coevo.save_model` that describe the outputs."""

    @abstractmethod
    def _restore_outputs(self, content: model.Model) -> None:
        """Set the attributes that describe the outputs from a model file."""

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
            The inputs. A missing value (NaN) is replaced by the median, and an additional input
            indicates that it was missing. Categorical columns: see `categorical_features`.
        y : array of shape (n_instances,), or (n_instances, n_outputs)
            Labels of any type, or numbers. Several columns are multilabel targets (0 and 1) for a
            classifier, and several targets for a regressor.
        sample_weight : array of shape (n_instances,), optional
            Weight of each instance, in training and in the validation set that is split off.
        X_val, y_val : as X and y, optional
            The validation set, on which the best network is chosen. Without it,
            `validation_fraction` of the instances is split off, if that is enough of them.
        initial_network
            A network to begin around, such as another estimator's `network_`: it takes the inputs
            unscaled, and its outputs are in the order of the classes, or in the units of y. See
            `coevo.evolve`.

        Returns
        -------
        self
        """
        self._check_own()
        checkpoint = self._find_checkpoint()
        previous: FitState | None = getattr(self, "_fit_state", None) if self.warm_start else None
        data = self._check_data(X, y, sample_weight, reset=previous is None)
        check_memory(data.columns, self.dtype)
        given = self._check_validation(X_val, y_val)
        seed = self._draw_seed()
        if checkpoint is not None and self.random_state is None:
            seed = checkpoint.choose_seed(seed)
        arguments, arrays = describe_arguments(self, seed), describe_arrays(self, data, given)
        kept, split_off = self._split(data, seed) if given is None else (None, None)
        fit_state = previous or FitState.begin(data, self.scale_inputs, self.max_categories, kept)
        training = validation = fit_state.scale(data, self.dtype, kept)
        if given is not None:
            validation = fit_state.scale(given, self.dtype)
        elif split_off is not None:
            validation = fit_state.scale(data, self.dtype, split_off)
        if isinstance(initial_network, Network):
            initial_network = fit_state.scale_network(initial_network)
        problem = self._make_problem(
            fit_state,
            training,
            validation,
            initial_network=initial_network,
            arguments=arguments,
            arrays=arrays,
        )
        settings = self._make_settings(problem.n_instances, seed)
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        attributes = partial(self._attributes, fit_state, problem.architecture(settings))
        task = FitTask(self, {"X": X, "y": y, "metadata": metadata}, attributes)
        hooks: list[Hook | Callback] = [*self._check_callbacks(), ProgressHook(self.verbose), task]
        if checkpoint is not None:
            hooks.append(checkpoint)
        result = self._run(fit_state, problem, settings, hooks)
        self.train_fitness_ = result.train_fitness
        task.finish()
        return self

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, X_val: Any, y_val: Any
    ) -> Self:
        """Run some generations on these instances alone."""
        self._check_own()
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is for fit: a stream's batches are not known to a file; pickle the "
                "estimator between two calls of partial_fit to be able to go on"
            )
        previous: FitState | None = getattr(self, "_fit_state", None)
        # The first call learns the features and the scaling; later ones must agree with it.
        data = self._check_data(X, y, sample_weight, reset=previous is None, stream=True)
        validation = self._check_validation(X_val, y_val)
        if previous is None:
            fit_state = FitState.begin(data, self.scale_inputs, self.max_categories)
        else:
            fit_state = previous
            fit_state.widen_ranges(data)
        if validation is not None:
            fit_state.validation = fit_state.scale(validation, self.dtype)
        training = fit_state.scale(data, self.dtype)
        problem = self._make_problem(
            fit_state, training, fit_state.validation or training, is_stream=True
        )
        seed = self._draw_seed() if previous is None else 0
        settings = self._for_stream(self._make_settings(len(data), seed), len(data))
        self._run(fit_state, problem, settings, self._check_callbacks())
        state = self._fit_state.ongoing.state
        if fit_state.validation is None:
            # The fitness of networks on different batches cannot be compared: the last one is kept.
            state.best_network[:] = state.global_solution
            self.validation_fitness_ = state.history.latest.validation_fitness
            state.best_validation = self.validation_fitness_
            architecture = problem.architecture(settings)
            self.network_ = fit_state.unscale_network(architecture, state.best_network)
        self.train_fitness_ = state.history.latest.batch_fitness
        return self

    def _run(
        self,
        fit_state: FitState,
        problem: DataProblem,
        settings: Settings,
        hooks: Sequence[Hook | Callback],
    ) -> Result:
        keeper = _KeepSearch()
        result = run_search(problem, settings, [*hooks, keeper])
        architecture = result.network.architecture
        self.__dict__.update(self._attributes(fit_state, architecture, keeper.take()))
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
        self, fit_state: FitState, architecture: Architecture, search: SearchLoop
    ) -> dict[str, Any]:
        """Return the fitted attributes as they are after this generation."""
        state = search.state
        return {
            "network_": fit_state.unscale_network(architecture, state.best_network),
            "encoding_": fit_state.encoding,
            "history_": state.history.columns(),
            "validation_fitness_": state.best_validation,
            "n_evaluations_": state.evaluations,
            "n_iter_": state.generation,
            "_fit_state": fit_state.with_search(search, architecture),
        }

    # ------------------------------------------------------------------------------------ arguments

    def _check_own(self) -> None:
        """Check the arguments that are not settings; `Settings` checks the others."""
        for flag in ("scale_inputs", "check_range", "warm_start", "resume"):
            check_flag(flag, getattr(self, flag))
        if not isinstance(self.verbose, Integral | np.bool_):
            raise TypeError(f"verbose must be True, False or a whole number, got {self.verbose!r}")
        check_name("dtype", self.dtype, DTYPES)  # data are converted before settings are checked
        check_integer("generations_per_batch", self.generations_per_batch, 1)
        check_integer("max_categories", self.max_categories, 1)
        check_real("validation_fraction", self.validation_fraction, 0, 1)
        if self.validation_fraction == 1:
            raise ValueError("validation_fraction=1 leaves nothing to train on")

    def _check_callbacks(self) -> list[Hook | Callback]:
        return check_callbacks(() if self.callbacks is None else self.callbacks)

    def _find_checkpoint(self) -> Checkpoint | None:
        if self.checkpoint is not None and self.warm_start:
            raise ValueError(
                "warm_start=True and checkpoint do not go together: the one goes on from the fit "
                "before, the other from a file. Set warm_start=False; with resume=True a larger "
                "budget lets a fit go on as well"
            )
        return find_checkpoint(self.checkpoint, self.resume)

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

    def _make_settings(self, n_instances: int, seed: int) -> Settings:
        """Return the arguments as settings, without the fitness, which the problem has."""
        names = {field.name for field in fields(Settings)} - {"fitness", "seed"}
        arguments = {name: getattr(self, name) for name in names}
        batch_size = self.batch_size
        if isinstance(batch_size, Integral) and not isinstance(batch_size, bool):
            arguments["batch_size"] = min(batch_size, n_instances)  # few instances are one batch
        return Settings(**arguments, seed=seed)

    def _for_stream(self, settings: Settings, n_instances: int) -> Settings:
        """Return settings for `generations_per_batch` generations on one batch."""
        for extension in settings.known_extensions:
            if extension.follows_budget:
                raise ValueError(
                    f"the extension {extension.name} follows the budget, and a stream has none: "
                    "leave it out of partial_fit"
                )
        return replace(
            settings,
            batch_size=n_instances,
            max_generations=self.generations_per_batch,
            max_evaluations=None,
            max_seconds=None,
            patience=None,
            target_fitness=None,
        )

    def _make_problem(
        self, fit_state: FitState, training: Data, validation: Data, **further: Any
    ) -> DataProblem:
        return DataProblem(
            training=training,
            validation=validation,
            responses=self._make_responses(fit_state.targets),
            fitness=self.fitness,
            validation_fitness=self.validation_fitness,
            previous=fit_state.ongoing,
            **further,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set arguments; nested names such as `control__memory_size` set those of a component."""
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

    # ----------------------------------------------------------------------------- after the fit

    def _outputs(self, X: Any) -> Array:
        """Return the network's outputs, (n_instances, n_outputs)."""
        check_is_fitted(self, "network_")
        columns = self._read_columns("X", X, reset=False)
        if self.check_range:
            warn_if_far(self.encoding_, columns)
        return run(self.network_, Inputs(columns, self.encoding_))

    def encode(self, X: Any) -> Array:
        """Return the inputs of `network_`, (n_instances, n_inputs).

        These are X itself if it is numeric without missing values. See `encoding_` and
        `categorical_features`.
        """
        check_is_fitted(self, "network_")
        inputs = Inputs(self._read_columns("X", X, reset=False), self.encoding_)
        return inputs[slice(None)]

    def save(self, path: StrPath) -> None:
        """Write the network to a model file; see `coevo.persistence.model.save`.

        Parameters
        ----------
        path
            The file, usually ending in .safetensors. It contains the network, which takes unscaled
            inputs, and its classes, but not the search: a loaded estimator predicts the same, and
            cannot be trained further by a warm start.
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
        """Return an estimator that makes the same predictions as the one that was saved.

        Parameters
        ----------
        path
            A file that `save` or `coevo.persistence.model.save` wrote.

        Raises
        ------
        coevo.persistence.model.ModelError
            If the file is damaged, is not a model file, or is of a newer version.
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
        estimator._restore_outputs(content)
        return estimator
