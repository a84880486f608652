"""Every setting of a run, in one documented and checked dataclass."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

from coevo._validation import check_flag, check_integer, check_name, check_real
from coevo.core.component import find_component, nest
from coevo.core.control import Control
from coevo.core.decomposition import find_decomposition
from coevo.core.extensions.adaptation import CONTROLS
from coevo.core.extensions.base import Extension
from coevo.core.extensions.batch_growth import BatchGrowth
from coevo.core.extensions.population_reduction import PopulationReduction
from coevo.core.extensions.registry import EXTENSIONS
from coevo.core.metrics import Metric, find_metric
from coevo.core.network import ACTIVATIONS
from coevo.core.selection import REPRESENTATIVES
from coevo.core.smoothing import Smoothing, find_batch_size
from coevo.core.strategy import find_strategy

LARGEST = {"float32": 3.4e38, "float64": 1.7e308}
"""The dtypes, and about the largest number that each represents."""
DTYPES = tuple(LARGEST)
AUTO = "auto"
"""What a setting is called that the library chooses."""
_BATCH_SIZE = 500

MOVED = {
    "group_size": "decomposition__size",
    "redraw_groups_every": "decomposition__redraw_every",
    "redraw_probability": "control__redraw_probability",
    "memory_size": "control__memory_size",
    "pbest_share": "strategy__share",
    "archive_rate": "strategy__archive_rate",
    "crossover": "strategy__crossover",
    "synchronous": "strategy__synchronous",
    "accept_ties": "strategy__accept_ties",
    "scale_factor_range": "control__low and control__high",
    "weight_decay": "extensions=[WeightDecay(rate)]",
    "final_population_size": "extensions=[PopulationReduction(final_size)]",
    "final_batch_size": "extensions=[BatchGrowth(final_size)]",
}
"""Where settings of version 0.1 are now."""


class ProblemSize(NamedTuple):
    """What the choice of some settings depends on."""

    n_instances: int
    n_inputs: int
    n_neurons: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does and when it ends.

    "auto" leaves a choice to the library, by the rules of docs/tuning.md; `coevo.PAPER` has the
    paper's settings. A name such as `control="shade"` is short for an object with its defaults,
    `control=SHADE()`; `control="shade(memory_size=10)"` is a text for files.

    Parameters
    ----------
    hidden_layer_sizes
        Number of neurons of each hidden layer.
    activation
        Activation of the hidden neurons: tanh (the paper's ψ), sigmoid, relu, sign or identity.
    fitness
        What is maximised: a name (accuracy, balanced_accuracy, f1, f1_macro, matthews,
        cross_entropy, margin, roc_auc, squared_error, absolute_error), a metric from
        `coevo.metrics`, or a function of (y_true, y_pred). "auto" is cross_entropy for
        classification and squared_error for regression.
    decomposition
        One subpopulation for each "neuron" (CC), one for each "layer", one population of "whole"
        networks (no CC), "neuron_outgoing" (a neuron with its outgoing weights, as in ESP),
        "synapse" (one for each weight and bias, as in CoSyNE), "random" groups of genes
        (`RandomGroups`), or a list of arrays of gene indices.
    limited_evaluation
        Evaluate on batches, with fitness inherited from the parents (LE); otherwise on all
        training instances.
    batch_size
        Instances in a batch, if evaluation is limited. "auto" is 500; with the strategy smoothing
        a twentieth of the instances, at least 16 and at most 200, or 400 for metrics that count
        predictions. Never more than there are.
    decay
        Share of the parents' fitness that is not inherited, if evaluation is limited.
    reshuffle_batches
        Draw new batches each time all have been visited.
    population_size
        Individuals in each subpopulation (NP).
    scale_factor
        Weight of the differences in a mutant (F), at the start if it is learnt.
    crossover_rate
        Probability that a gene of a trial comes from the mutant (CR), at the start if it is learnt.
    control
        How F and CR are chosen for each trial: "fixed", "dither" (F drawn from a range), "jde"
        (individuals carry their own), "shade" (drawn around those that have succeeded).
    strategy
        Mutation and crossover: rand/1 (or rand/1/bin), rand/1/exp, best/1, rand/2,
        current-to-best/1, current-to-pbest/1; or a `Strategy` object, which also says whether
        replacement is synchronous and ties go to the trial. "smoothing" is no differential
        evolution: it moves each neuron along the slope of its smoothed fitness (`Smoothing`).
    representative
        What represents a subpopulation in the global solution: its "best" individual, as in the
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
        Divide each layer's initial range by the square root of its number of inputs, and the first
        layer's by the inputs' root mean square too, so that the first pre-activations are about
        equally large in all layers and for all data.
    extensions
        Further changes to the search, as names with settings ("weight_decay(rate=0.001)",
        "population_reduction(final_size=10)", "batch_growth(final_size=2000)") or objects, your own
        included.
    max_evaluations
        End after the first generation with which this many networks have been evaluated for
        fitness, initial sampling included, validation not. None for no limit, here and below.
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
        float32 or float64, for data, weights and pre-activations.
    n_threads
        Number of threads; None for as many as NumPy's matrix products use.
    seed
        Seed of all random numbers; None for a different run each time.
    """

    hidden_layer_sizes: tuple[int, ...] = (50,)
    activation: str = "tanh"
    fitness: str | Metric | Callable[..., Any] = AUTO
    decomposition: Any = "neuron"
    limited_evaluation: bool = True
    batch_size: int | str = AUTO
    decay: float = 0.2
    reshuffle_batches: bool = True
    population_size: int = 20
    scale_factor: float | str = AUTO
    crossover_rate: float | str = AUTO
    control: Any = "fixed"
    strategy: Any = "rand/1"
    representative: str = AUTO
    sampling_rounds: int = 5
    initial_range: float | tuple[float, ...] | str = AUTO
    scale_initial_range: bool | str = AUTO
    extensions: Sequence[Any] = ()
    max_evaluations: int | None = 200_000
    max_generations: int | None = None
    max_seconds: float | None = None
    target_fitness: float | None = None
    patience: int | None = None
    dtype: str = "float32"
    n_threads: int | None = None
    seed: int | None = None

    BUDGETS: ClassVar[tuple[str, ...]] = (
        "max_evaluations", "max_generations", "max_seconds", "target_fitness", "patience",
    )  # fmt: skip

    def __post_init__(self) -> None:
        self._set("hidden_layer_sizes", _find_sizes(self.hidden_layer_sizes))
        for name, find in COMPONENTS.items():
            self._set(name, find(getattr(self, name)))
        check_name("activation", self.activation, ACTIVATIONS)
        if not (isinstance(self.fitness, str) and self.fitness == AUTO):
            find_metric(self.fitness)
        check_name("representative", self.representative, REPRESENTATIVES)
        check_name("dtype", self.dtype, DTYPES)
        for flag in ("limited_evaluation", "reshuffle_batches"):
            check_flag(flag, getattr(self, flag))
        if self.scale_initial_range != AUTO:
            check_flag("scale_initial_range", self.scale_initial_range)
        self._check_numbers()
        self._check_initial_range()
        self._check_smoothing()
        self._check_extensions()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_numbers(self) -> None:
        if self.batch_size != AUTO:
            check_integer("batch_size", self.batch_size, 1)
        self._check_population_size("population_size", self.population_size)
        check_integer("sampling_rounds", self.sampling_rounds, 1)
        check_real("decay", self.decay, 0, 1)
        if self.scale_factor != AUTO:
            check_real("scale_factor", self.scale_factor, 0, above=True)
        if self.crossover_rate != AUTO:
            check_real("crossover_rate", self.crossover_rate, 0, 1)
        for count in ("max_evaluations", "max_generations", "patience", "n_threads"):
            if getattr(self, count) is not None:
                check_integer(count, getattr(self, count), 1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, 0, above=True)
        if self.target_fitness is not None:
            check_real("target_fitness", self.target_fitness)
        if self.seed is not None:
            check_integer("seed", self.seed, 0, maximum=None)

    def _check_population_size(self, argument: str, size: Any) -> None:
        check_integer(
            argument,
            size,
            self.strategy.minimum_population_size,
            why=f" for strategy {self.strategy.name}, whose parents must be different individuals",
        )

    def _check_initial_range(self) -> None:
        given = self.initial_range
        if isinstance(given, str) and given == AUTO:
            return
        widest = LARGEST[self.dtype]
        if not isinstance(given, Sequence) or isinstance(given, str):
            check_real("initial_range", given, 0, widest, above=True)
            return
        self._set("initial_range", tuple(given))
        n_layers = len(self.hidden_layer_sizes) + 1
        if len(given) != n_layers:
            raise ValueError(
                f"initial_range must be one number or {n_layers}, one for each layer, got "
                f"{len(given)}"
            )
        for layer, width in enumerate(given):
            check_real(f"initial_range[{layer}]", width, 0, widest, above=True)

    def _check_smoothing(self) -> None:
        """Check what the strategy smoothing asks of the other settings."""
        if not isinstance(self.strategy, Smoothing):
            return
        if not (isinstance(self.decomposition, str) and self.decomposition == "neuron"):
            raise ValueError(
                'strategy="smoothing" moves neurons: decomposition must be "neuron", got '
                f"{self.decomposition!r}"
            )
        n_layers = len(self.hidden_layer_sizes) + 1
        for name in ("width", "rate"):
            given = self.strategy.list_by_layer(name)
            if len(given) not in (0, 1, n_layers):
                raise ValueError(
                    f"strategy__{name} must be one number or {n_layers}, one for each layer, got "
                    f"{len(given)}"
                )

    def _check_extensions(self) -> None:
        """Check what changes along the budget."""
        for extension in self.extensions:
            follows_budget = isinstance(extension, PopulationReduction | BatchGrowth)
            if follows_budget and self.max_evaluations is None and self.max_generations is None:
                raise ValueError(
                    f"{extension.name} needs a budget to follow: set max_evaluations or "
                    "max_generations"
                )
            if isinstance(extension, PopulationReduction):
                self._check_population_size("final_size", extension.final_size)
                if extension.final_size > self.population_size:
                    raise ValueError(
                        f"final_size={extension.final_size} must be at most "
                        f"population_size={self.population_size}: subpopulations can only shrink"
                    )
            if isinstance(extension, BatchGrowth):
                batch_size = _BATCH_SIZE if self.batch_size == AUTO else self.batch_size
                if extension.final_size < int(batch_size):
                    raise ValueError(
                        f"final_size={extension.final_size} must be at least "
                        f"batch_size={batch_size}: batches can only grow"
                    )
                if not (self.limited_evaluation and self.reshuffle_batches):
                    raise ValueError(
                        "batch_growth needs limited_evaluation=True and reshuffle_batches=True: "
                        "batches grow when they are drawn anew"
                    )

    @classmethod
    def from_names(cls, settings: Mapping[str, Any]) -> Settings:
        """Return settings from a mapping in which nested names may occur."""
        return cls(**resolve_names(settings))

    def resolved(self, task: str = "classification", size: ProblemSize | None = None) -> Settings:
        """Return the settings with every "auto" replaced by what it stands for.

        Parameters
        ----------
        task
            classification or regression.
        size
            How large the problem is; if it is not given, what depends on it stays "auto".
        """
        is_regression, smooths = task == "regression", isinstance(self.strategy, Smoothing)
        changes: dict[str, Any] = {}
        if isinstance(self.fitness, str) and self.fitness == AUTO:
            changes["fitness"] = "squared_error" if is_regression else "cross_entropy"
        if self.scale_factor == AUTO:
            changes["scale_factor"] = 0.5 if is_regression else 0.2
        if self.crossover_rate == AUTO:
            changes["crossover_rate"] = 0.3 if is_regression else 0.5
        if isinstance(self.initial_range, str):
            changes["initial_range"] = 0.3 if is_regression else 4.0
            if smooths:  # pre-activations of deviation 1, outputs less
                n_hidden, width = len(self.hidden_layer_sizes), math.sqrt(3)
                changes["initial_range"] = (width,) * n_hidden + (0.3 * width,)
        if self.scale_initial_range == AUTO:
            changes["scale_initial_range"] = smooths or not is_regression
        resolved = replace(self, **changes) if changes else self
        metric = find_metric(resolved.fitness)
        if size is not None and self.batch_size == AUTO:
            n_instances = min(_BATCH_SIZE, size.n_instances)
            if smooths:
                n_instances = find_batch_size(size.n_instances, metric)
            resolved = replace(resolved, batch_size=n_instances)
        if resolved.representative == AUTO:
            takes_means = (
                resolved.decomposition == "neuron"
                and resolved.limited_evaluation
                and metric.is_graded
            )
            resolved = replace(resolved, representative="mean" if takes_means else "best")
        if size is not None and isinstance(resolved.strategy, Smoothing):
            strategy = resolved.strategy.resolved(
                metric, self.activation, self.hidden_layer_sizes, size.n_inputs,
                self._count_generations(2 * size.n_neurons),
            )  # fmt: skip
            resolved = replace(resolved, strategy=strategy)
        return resolved

    def _count_generations(self, evaluations: int) -> float | None:
        """Return how many generations of so many evaluations the budget has, None without one."""
        if not self.has_budget:
            return None
        generations = self.max_generations or math.inf
        return min(generations, (self.max_evaluations or math.inf) / evaluations)

    @property
    def takes_means(self) -> bool:
        """Whether subpopulations are represented by their mean."""
        return self.representative == "mean"

    @property
    def population_sizes(self) -> tuple[int, int]:
        """The fewest and the most individuals that a subpopulation can have during the run."""
        if isinstance(self.strategy, Smoothing):
            return 1, 1  # the mean
        final = [e.final_size for e in self.extensions if isinstance(e, PopulationReduction)]
        return min([self.population_size, *final]), self.population_size

    @property
    def has_budget(self) -> bool:
        """Whether evaluations, generations or seconds are limited."""
        return any(getattr(self, name) is not None for name in self.BUDGETS[:3])

    def check_end(self) -> None:
        """Raise unless a stopping criterion is set."""
        if all(getattr(self, name) is None for name in self.BUDGETS):
            raise ValueError(
                "the run would never end: set max_evaluations, max_generations, max_seconds, "
                "target_fitness or patience, or give a callback that says stop"
            )


def _find_sizes(given: Any) -> tuple[int, ...]:
    """Return layer sizes; a single number is taken for a single layer."""
    try:
        sizes = (given,) if isinstance(given, int) else tuple(given)
    except TypeError:
        raise TypeError(
            f"hidden_layer_sizes must be a sequence of whole numbers, got {given!r}"
        ) from None
    for position, size in enumerate(sizes):
        check_integer(f"hidden_layer_sizes[{position}]", size, 1)
    return sizes


def _find_extensions(given: Any) -> tuple[Extension, ...]:
    if isinstance(given, str | Extension) or not isinstance(given, Sequence):
        given = (given,) if isinstance(given, str | Extension) else given
    if not isinstance(given, Sequence):
        raise TypeError(f"extensions must be a list of extensions or their names, got {given!r}")
    found = tuple(find_component("extensions", each, EXTENSIONS, Extension) for each in given)
    names = [extension.name for extension in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"extensions holds {name!r} twice")
    return found  # type: ignore[return-value]


COMPONENTS: dict[str, Callable[[Any], Any]] = {
    "decomposition": find_decomposition,
    "control": lambda given: find_component("control", given, CONTROLS, Control),
    "strategy": find_strategy,
    "extensions": _find_extensions,
}
"""The settings that are objects, and how a name becomes one."""


def resolve_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with nested names applied, or say where an unknown one has gone."""
    known = {field.name: field.default for field in fields(Settings)}
    for name in settings:
        if name in MOVED:
            raise ValueError(f"the setting {name!r} is now {MOVED[name]}")
        if "__" not in name:
            check_name("the setting", name, known)
    return nest(settings, COMPONENTS, known)


def describe_settings() -> dict[str, str]:
    """Return what the docstring of `Settings` says about each field, in one paragraph each."""
    doc = inspect.cleandoc(Settings.__doc__ or "")
    parts = re.split(r"^(\w+)\n(?=    )", doc.partition("----------\n")[2], flags=re.MULTILINE)
    return {
        name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
