"""Every setting of a run, in one documented and checked dataclass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coevo import decomposition as decompositions
from coevo.errors import check_flag, check_integer, check_name, check_real
from coevo.fitness import Fitness, find_fitness
from coevo.network import ACTIVATIONS, Array
from coevo.operators import CROSSOVERS, STRATEGIES

DTYPES = ("float32", "float64")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does and when it ends; the defaults are the paper's where it states them.

    Parameters
    ----------
    hidden_layer_sizes
        Number of neurons of each hidden layer.
    activation
        Activation of the hidden neurons: tanh (the paper's ψ), sigmoid, relu, sign or identity.
    fitness
        What is maximised: a name (accuracy, balanced_accuracy, f1, f1_macro, matthews,
        cross_entropy, margin, roc_auc, squared_error, absolute_error), a measure from
        `coevo.fitness`, or a function of (y_true, outputs).
    decomposition
        One subpopulation for each "neuron" (CC), one for each "layer", one population of "whole"
        networks (no CC), "neuron_outgoing" (a neuron with its outgoing weights, as in ESP),
        "synapse" (one for each weight and bias, as in CoSyNE), "random" groups of genes, or a list
        of arrays of gene indices.
    group_size
        Genes in a group, more or less, if the decomposition is random.
    redraw_groups_every
        After how many generations new groups are drawn, if the decomposition is random.
    limited_evaluation
        Evaluate on batches, with fitness inherited from the parents (LE); otherwise on all
        training instances.
    batch_size
        Instances in a batch, if evaluation is limited.
    decay
        The part of the parents' fitness that is not inherited, if evaluation is limited.
    reshuffle_batches
        Draw new batches each time all have been visited.
    population_size
        Individuals in each subpopulation (NP).
    scale_factor
        Weight of the differences in a mutant (F).
    crossover_rate
        Probability that a gene of a trial comes from the mutant (CR).
    strategy
        Mutation: rand/1, best/1, rand/2 or current-to-best/1.
    crossover
        binomial or exponential.
    synchronous
        Replace a subpopulation's individuals together after its last one, not one by one.
    sampling_rounds
        How many random networks, as a multiple of NP, the initial fitness is averaged over (the
        paper's `trial`); not used if there is only one subpopulation.
    initial_range
        Initial weights and biases are uniform in [−initial_range, initial_range]. One number, or
        one for each layer, the output layer included.
    max_evaluations
        End after the first generation with which this many networks have been evaluated for
        fitness, initial sampling included, validation not. None for no limit; so for those below.
    max_generations
        End after this many generations.
    max_seconds
        End after the first generation with which the search has taken this long.
    target_fitness
        End once the validation fitness is at least this.
    patience
        End after this many generations without a better validation fitness.
    dtype
        float32 or float64, for data, weights and sums alike.
    n_threads
        How many cores to use; None for as many as NumPy's matrix products use.
    seed
        Seed of all random numbers; None for a different run each time.
    """

    hidden_layer_sizes: tuple[int, ...] = (50,)
    activation: str = "tanh"
    fitness: str | Fitness | Callable[..., Any] = "accuracy"
    decomposition: str | Sequence[Sequence[int] | Array] = "neuron"
    group_size: int = 100
    redraw_groups_every: int = 10
    limited_evaluation: bool = True
    batch_size: int = 500
    decay: float = 0.2
    reshuffle_batches: bool = False
    population_size: int = 20
    scale_factor: float = 0.1
    crossover_rate: float = 0.3
    strategy: str = "rand/1"
    crossover: str = "binomial"
    synchronous: bool = True
    sampling_rounds: int = 5
    initial_range: float | tuple[float, ...] = 4.0
    max_evaluations: int | None = 500_000
    max_generations: int | None = None
    max_seconds: float | None = None
    target_fitness: float | None = None
    patience: int | None = None
    dtype: str = "float32"
    n_threads: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        try:
            # A list is welcome; a single number is taken for a single layer.
            sizes = self.hidden_layer_sizes
            layers = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        except TypeError:
            raise TypeError(
                f"hidden_layer_sizes must be a sequence of whole numbers, got {sizes!r}"
            ) from None
        object.__setattr__(self, "hidden_layer_sizes", layers)
        for position, size in enumerate(layers):
            check_integer(f"hidden_layer_sizes[{position}]", size, 1)
        check_name("activation", self.activation, ACTIVATIONS)
        find_fitness(self.fitness)
        if isinstance(self.decomposition, str):
            check_name("decomposition", self.decomposition, decompositions.NAMES)
        check_name("strategy", self.strategy, STRATEGIES)
        check_name("crossover", self.crossover, CROSSOVERS)
        check_name("dtype", self.dtype, DTYPES)
        for flag in ("limited_evaluation", "reshuffle_batches", "synchronous"):
            check_flag(flag, getattr(self, flag))
        self._check_numbers()

    def _check_numbers(self) -> None:
        check_integer("group_size", self.group_size, 1)
        check_integer("redraw_groups_every", self.redraw_groups_every, 1)
        check_integer("batch_size", self.batch_size, 1)
        check_integer(
            "population_size",
            self.population_size,
            STRATEGIES[self.strategy].minimum_population_size,
            why=f" for strategy {self.strategy}, whose parents must be different individuals",
        )
        check_integer("sampling_rounds", self.sampling_rounds, 1)
        check_real("decay", self.decay, 0, 1)
        check_real("scale_factor", self.scale_factor, 0, above=True)
        check_real("crossover_rate", self.crossover_rate, 0, 1)
        self._check_initial_range()
        for count in ("max_evaluations", "max_generations", "patience", "n_threads"):
            if getattr(self, count) is not None:
                check_integer(count, getattr(self, count), 1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, 0, above=True)
        if self.target_fitness is not None:
            check_real("target_fitness", self.target_fitness)
        if self.seed is not None:
            check_integer("seed", self.seed, 0)

    def _check_initial_range(self) -> None:
        if not isinstance(self.initial_range, Sequence) or isinstance(self.initial_range, str):
            check_real("initial_range", self.initial_range, 0, above=True)
            return
        object.__setattr__(self, "initial_range", tuple(self.initial_range))
        n_layers = len(self.hidden_layer_sizes) + 1
        if len(self.initial_range) != n_layers:
            raise ValueError(
                f"initial_range must be one number or {n_layers}, one for each layer, got "
                f"{len(self.initial_range)}"
            )
        for layer, reach in enumerate(self.initial_range):
            check_real(f"initial_range[{layer}]", reach, 0, above=True)

    @property
    def has_end(self) -> bool:
        """Whether any of the stopping criteria is set."""
        limits = (self.max_evaluations, self.max_generations, self.max_seconds)
        return any(limit is not None for limit in (*limits, self.target_fitness, self.patience))
