"""Every setting of a run, in one documented and checked dataclass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coevo.control import CONTROLS
from coevo.decomposition import check_decomposition
from coevo.errors import check_flag, check_integer, check_name, check_real
from coevo.fitness import Fitness, find_fitness
from coevo.network import ACTIVATIONS, Array
from coevo.operators import CROSSOVERS, STRATEGIES
from coevo.selection import REPRESENTATIVES

DTYPES = ("float32", "float64")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does and when it ends.

    The defaults are those that docs/tuning.md finds good; `coevo.PAPER` has the paper's.

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
        After how many generations new groups are drawn, if the decomposition is random. Archives
        and what a control has learnt begin afresh with them.
    limited_evaluation
        Evaluate on batches, with fitness inherited from the parents (LE); otherwise on all
        training instances.
    batch_size
        Instances in a batch, if evaluation is limited.
    decay
        The part of the parents' fitness that is not inherited, if evaluation is limited.
    reshuffle_batches
        Draw new batches each time all have been visited.
    final_batch_size
        Let batches grow from `batch_size` to this along the budget, at the end of each epoch; needs
        `reshuffle_batches`. None for batches that do not grow.
    population_size
        Individuals in each subpopulation (NP).
    final_population_size
        Let NP fall from `population_size` to this along the budget; the least fit individuals go.
        None for subpopulations that do not shrink. The budget, here and above, is `max_evaluations`
        or `max_generations`, whichever is nearer to its end.
    scale_factor
        Weight of the differences in a mutant (F), to begin with if it is learnt.
    crossover_rate
        Probability that a gene of a trial comes from the mutant (CR), likewise.
    control
        How F and CR are chosen for each trial: "fixed" as they are, "dither" draws F from
        `scale_factor_range`, "jde" lets individuals carry and hand on their own, "shade" draws
        both around those that have succeeded before; see `coevo.control`.
    scale_factor_range
        The lowest and the highest F that "dither" and "jde" draw.
    redraw_probability
        How often "jde" redraws an individual's F, and its CR.
    memory_size
        How many pairs of F and CR "shade" remembers for each subpopulation.
    strategy
        Mutation: rand/1, best/1, rand/2, current-to-best/1 or current-to-pbest/1.
    pbest_share
        The part of a subpopulation that current-to-pbest/1 draws its pbest from; one individual at
        least.
    archive_rate
        How many replaced individuals current-to-pbest/1 keeps, as a multiple of NP; 0 for none.
    crossover
        binomial or exponential.
    synchronous
        Replace a subpopulation's individuals together after its last one, not one by one.
    accept_ties
        Let a trial that is exactly as fit as its target take its place; differential evolution then
        drifts along plateaus, which accuracy has many of.
    representative
        What stands for a subpopulation in the global solution: its "best" individual, as in the
        paper, or the "mean" of its individuals, which depends less on the luck of a batch. "auto"
        takes means where they were found to be better (docs/tuning.md): for neurons, under limited
        evaluation, by a fitness that grades outputs (cross-entropy, margin, errors).
    sampling_rounds
        How many random networks, as a multiple of NP, the initial fitness is averaged over (the
        paper's `trial`); not used if there is only one subpopulation.
    initial_range
        Initial weights and biases are uniform in [−initial_range, initial_range]. One number, or
        one for each layer, the output layer included.
    scale_initial_range
        Divide each layer's initial range by the square root of how many inputs its neurons have,
        and the first layer's by the inputs' root mean square too, so that the first weighted sums
        are about equally large in all layers and for all data.
    weight_decay
        What is taken off the measured fitness of a candidate, a guard against overfitting: this
        times the mean square of its genes, those that its subpopulation owns. Validation does
        without. With full evaluation a fitness is measured once, and what is taken off it too.
    max_evaluations
        End after the first generation with which this many networks have been evaluated for
        fitness, initial sampling included, validation not. None for no limit; so for those below.
    max_generations
        End after this many generations.
    max_seconds
        End after the first generation with which the search has taken this long; compiling kernels
        does not count.
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
    fitness: str | Fitness | Callable[..., Any] = "cross_entropy"
    decomposition: str | Sequence[Sequence[int] | Array] = "neuron"
    group_size: int = 100
    redraw_groups_every: int = 10
    limited_evaluation: bool = True
    batch_size: int = 500
    decay: float = 0.2
    reshuffle_batches: bool = True
    final_batch_size: int | None = None
    population_size: int = 20
    final_population_size: int | None = None
    scale_factor: float = 0.2
    crossover_rate: float = 0.5
    control: str = "fixed"
    scale_factor_range: tuple[float, float] = (0.04, 0.4)
    redraw_probability: float = 0.1
    memory_size: int = 5
    strategy: str = "rand/1"
    pbest_share: float = 0.1
    archive_rate: float = 1.0
    crossover: str = "binomial"
    synchronous: bool = True
    accept_ties: bool = True
    representative: str = "auto"
    sampling_rounds: int = 5
    initial_range: float | tuple[float, ...] = 4.0
    scale_initial_range: bool = True
    weight_decay: float = 0.0
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
        check_decomposition(self.decomposition)
        check_name("control", self.control, CONTROLS)
        check_name("strategy", self.strategy, STRATEGIES)
        check_name("crossover", self.crossover, CROSSOVERS)
        check_name("representative", self.representative, REPRESENTATIVES)
        check_name("dtype", self.dtype, DTYPES)
        flags = ("limited_evaluation", "reshuffle_batches", "synchronous", "accept_ties")
        for flag in (*flags, "scale_initial_range"):
            check_flag(flag, getattr(self, flag))
        self._check_numbers()
        self._check_control()
        self._check_schedules()

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
        check_real("weight_decay", self.weight_decay, 0)
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

    def _check_control(self) -> None:
        given = self.scale_factor_range
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise TypeError(f"scale_factor_range must be two numbers, got {given!r}")
        low, high = given
        check_real("scale_factor_range[0]", low, 0, above=True)
        check_real("scale_factor_range[1]", high, low)
        object.__setattr__(self, "scale_factor_range", (low, high))
        check_real("redraw_probability", self.redraw_probability, 0, 1)
        check_integer("memory_size", self.memory_size, 1)
        check_real("pbest_share", self.pbest_share, 0, 1)
        check_real("archive_rate", self.archive_rate, 0)

    def _check_schedules(self) -> None:
        """Check what changes along the budget."""
        for name in ("final_population_size", "final_batch_size"):
            if getattr(self, name) is None:
                continue
            check_integer(name, getattr(self, name), 1)
            if self.max_evaluations is None and self.max_generations is None:
                raise ValueError(
                    f"{name} needs a budget along which it is approached: set max_evaluations or "
                    "max_generations"
                )
        if self.final_population_size is not None:
            check_integer(
                "final_population_size",
                self.final_population_size,
                STRATEGIES[self.strategy].minimum_population_size,
                why=f" for strategy {self.strategy}, whose parents must be different individuals",
            )
            if self.final_population_size > self.population_size:
                raise ValueError(
                    f"final_population_size={self.final_population_size} must be at most "
                    f"population_size={self.population_size}: subpopulations can only shrink"
                )
        if self.final_batch_size is not None:
            if self.final_batch_size < self.batch_size:
                raise ValueError(
                    f"final_batch_size={self.final_batch_size} must be at least "
                    f"batch_size={self.batch_size}: batches can only grow"
                )
            if not (self.limited_evaluation and self.reshuffle_batches):
                raise ValueError(
                    "final_batch_size needs limited_evaluation=True and reshuffle_batches=True: "
                    "batches grow when they are drawn anew"
                )

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
    def takes_means(self) -> bool:
        """Whether subpopulations are represented by their mean."""
        if self.representative != "auto":
            return self.representative == "mean"
        is_by_neuron = isinstance(self.decomposition, str) and self.decomposition == "neuron"
        return is_by_neuron and self.limited_evaluation and find_fitness(self.fitness).is_graded

    @property
    def has_end(self) -> bool:
        """Whether any of the stopping criteria is set."""
        limits = (self.max_evaluations, self.max_generations, self.max_seconds)
        return any(limit is not None for limit in (*limits, self.target_fitness, self.patience))
