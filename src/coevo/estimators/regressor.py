"""A regressor in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from coevo import model
from coevo.estimators.base import Callbacks, CoevoEstimator, Measure
from coevo.estimators.scaling import TargetScaling
from coevo.estimators.scoring import NumberAnswers
from coevo.files import StrPath
from coevo.network import Array


class CoevoRegressor(RegressorMixin, CoevoEstimator):  # type: ignore[misc]
    """A feed-forward network that is evolved to predict one number or several, by any measure.

    Parameters
    ----------
    fitness
        What the search maximises and validation uses. A name: squared_error or absolute_error, both
        negated; or that of a scorer or metric of scikit-learn's, such as "r2" or
        "mean_pinball_loss", negated if it is a loss. A function of (y_true, y_pred), both in the
        units of y, to be made large. A scorer, as `sklearn.metrics.make_scorer` makes them. Or a
        measure from `coevo.fitness`. Names of ours and measures are the quick ones.
    validation_fitness
        Another measure by which the validation set chooses the network that is kept; None for the
        same.
    scale_inputs
        Map the range of each feature in the training instances to [−1, 1]. The scaling becomes part
        of the first layer's weights, so that `network_`, a saved model and an exported one all take
        unscaled inputs. On a stream, the first batch decides.
    batch_size
        As in `coevo.Settings`, but no more than there are training instances.
    validation_fraction
        The part of the instances that is split off for validation, unless `fit` is given a
        validation set. If that is fewer than 100 instances, too few to tell good networks apart,
        none are split off and the network that is kept is the best on the training instances.
    random_state
        A whole number for the same result each time, a NumPy generator, or None. NumPy's global
        random state is never used.
    warm_start
        Let `fit` go on from the previous fit's search, with the budget granted anew. With full
        evaluation all individuals are measured again first, as the instances may be others.
    generations_per_batch
        Generations in each call of `partial_fit`.
    callbacks
        Called with the `coevo.Search` after each generation; a true answer ends the fit.
    checkpoint
        A file to which `fit` freezes its search, now and then and at the end, also after Ctrl-C.
        The checkpoint before is kept beside it as `<checkpoint>.previous`. None for no checkpoint.
    checkpoint_every_seconds, checkpoint_every_generations
        How often: after this many seconds, after this many generations, or whichever comes first;
        None for not by that.
    resume
        Let `fit` go on from the checkpoint, if there is one, and end with the network, history and
        counts it would have had if it had never stopped, with `random_state=None` too; without a
        checkpoint it begins. Data and arguments must be the same, but for `max_evaluations`,
        `max_generations`, `max_seconds`, `target_fitness`, `patience` and `n_threads`: with a
        larger budget a fit that had ended goes on, otherwise its result is there at once. If
        False, there must be no checkpoint yet.
    verbose
        Show progress: as a bar if the standard error is a terminal, in the log `coevo` otherwise.
    hidden_layer_sizes, activation, decomposition, group_size, redraw_groups_every, \
    limited_evaluation, decay, reshuffle_batches, final_batch_size, population_size, \
    final_population_size, scale_factor, crossover_rate, control, scale_factor_range, \
    redraw_probability, memory_size, strategy, pbest_share, archive_rate, crossover, synchronous, \
    accept_ties, representative, sampling_rounds, initial_range, scale_initial_range, \
    weight_decay, max_evaluations, max_generations, max_seconds, target_fitness, patience, dtype, \
    n_threads
        The settings of the search; see `coevo.Settings`.

    Attributes
    ----------
    network_
        The network: unscaled inputs in, numbers in the units of y out.
    n_features_in_, feature_names_in_
        How many features there are, and their names if X was a data frame.
    history_
        A row for each generation as a dictionary of columns, ready for `pandas.DataFrame`. Fitness
        in it is `fitness` on the batch, and `validation_fitness` on the validation set.
        squared_error and absolute_error are those of targets standardised by the training
        instances: −0.1 by squared_error is a tenth of the variance, and several outputs count
        alike. All other measures are in the units of y.
    train_fitness_, validation_fitness_
        The network's fitness on the training and on the validation instances.
    n_evaluations_, n_iter_, stop_reason_
        Networks evaluated, generations, and why the search ended.
    engine_
        Which engine measured fitness: "delta", or "batched" full passes for a decomposition that
        delta evaluation does not serve.

    Notes
    -----
    Some defaults differ from the classifier's: outputs that begin far from the targets have to be
    unlearned first.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coevo import CoevoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = CoevoRegressor((5,), max_evaluations=20_000, random_state=1).fit(X, y)
    >>> bool(regressor.score(X, y) > 0.3)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (50,),
        *,
        activation: str = "tanh",
        fitness: Measure = "squared_error",
        validation_fitness: Measure | None = None,
        scale_inputs: bool = True,
        decomposition: str | Sequence[Sequence[int] | Array] = "neuron",
        group_size: int = 100,
        redraw_groups_every: int = 10,
        limited_evaluation: bool = True,
        batch_size: int = 500,
        decay: float = 0.2,
        reshuffle_batches: bool = True,
        final_batch_size: int | None = None,
        population_size: int = 20,
        final_population_size: int | None = None,
        scale_factor: float = 0.5,
        crossover_rate: float = 0.3,
        control: str = "fixed",
        scale_factor_range: tuple[float, float] = (0.04, 0.4),
        redraw_probability: float = 0.1,
        memory_size: int = 5,
        strategy: str = "rand/1",
        pbest_share: float = 0.1,
        archive_rate: float = 1.0,
        crossover: str = "binomial",
        synchronous: bool = True,
        accept_ties: bool = True,
        representative: str = "auto",
        sampling_rounds: int = 5,
        initial_range: float | Sequence[float] = 0.3,
        scale_initial_range: bool = False,
        weight_decay: float = 0.0,
        max_evaluations: int | None = 200_000,
        max_generations: int | None = None,
        max_seconds: float | None = None,
        target_fitness: float | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        generations_per_batch: int = 1,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        callbacks: Callbacks = None,
        checkpoint: StrPath | None = None,
        checkpoint_every_seconds: float | None = 60.0,
        checkpoint_every_generations: int | None = None,
        resume: bool = False,
        dtype: str = "float32",
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.fitness = fitness
        self.validation_fitness = validation_fitness
        self.scale_inputs = scale_inputs
        self.decomposition = decomposition
        self.group_size = group_size
        self.redraw_groups_every = redraw_groups_every
        self.limited_evaluation = limited_evaluation
        self.batch_size = batch_size
        self.decay = decay
        self.reshuffle_batches = reshuffle_batches
        self.final_batch_size = final_batch_size
        self.population_size = population_size
        self.final_population_size = final_population_size
        self.scale_factor = scale_factor
        self.crossover_rate = crossover_rate
        self.control = control
        self.scale_factor_range = scale_factor_range
        self.redraw_probability = redraw_probability
        self.memory_size = memory_size
        self.strategy = strategy
        self.pbest_share = pbest_share
        self.archive_rate = archive_rate
        self.crossover = crossover
        self.synchronous = synchronous
        self.accept_ties = accept_ties
        self.representative = representative
        self.sampling_rounds = sampling_rounds
        self.initial_range = initial_range
        self.scale_initial_range = scale_initial_range
        self.weight_decay = weight_decay
        self.max_evaluations = max_evaluations
        self.max_generations = max_generations
        self.max_seconds = max_seconds
        self.target_fitness = target_fitness
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.generations_per_batch = generations_per_batch
        self.warm_start = warm_start
        self.random_state = random_state
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.checkpoint_every_seconds = checkpoint_every_seconds
        self.checkpoint_every_generations = checkpoint_every_generations
        self.resume = resume
        self.dtype = dtype
        self.n_threads = n_threads
        self.verbose = verbose

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Take `generations_per_batch` generations on this batch, as limited evaluation does.

        The individuals inherit fitness from the batches before, and nothing of those is kept, so
        that the data need never be in memory at once. The limits `max_evaluations` and so on, and
        `limited_evaluation`, do not apply. The first batch decides how targets are standardised.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; a few hundred instances do well.
        X_val, y_val : as X and y, optional
            A validation set, kept until another one is given. With one, `network_` is the network
            that has done best on it. Without, it is the global solution as the last batch left it.
        """
        return self._partial_fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> Array:
        """Return the numbers predicted for each instance.

        Parameters
        ----------
        X : array or data frame of shape (n_instances, n_features)

        Returns
        -------
        array of shape (n_instances,), or (n_instances, n_outputs) if y had two dimensions
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self._is_flat else outputs

    # -------------------------------------------------------------------------------------- targets

    def _check_targets(self, y: Array, *, reset: bool) -> Array:
        try:
            numbers = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers: {error}") from None
        if not np.isfinite(numbers).all():
            raise ValueError("y must not hold NaN or infinity")
        columns = numbers[:, np.newaxis] if numbers.ndim == 1 else numbers
        if reset:
            self._is_flat, self._n_targets = numbers.ndim == 1, columns.shape[1]
        elif columns.shape[1] != self._n_targets:
            raise ValueError(f"y has {columns.shape[1]} columns, there were {self._n_targets}")
        return columns

    def _weigh(self, targets: Array, weights: Array, *, reset: bool) -> Array:
        return weights

    def _answers(self, scaling: TargetScaling | None) -> NumberAnswers:
        assert scaling is not None
        return NumberAnswers(scaling)

    @property
    def _n_outputs(self) -> int:
        return int(self._n_targets)

    def _take(self, content: model.Model) -> None:
        if content.classes is not None:
            raise ValueError("this is the model of a classifier")
        self._n_targets = content.network.architecture.n_outputs
        self._is_flat = self._n_targets == 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
