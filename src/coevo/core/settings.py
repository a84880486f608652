"""Every setting of a run, in one documented and checked dataclass.

What "auto" stands for is in `coevo.core.defaults`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from coevo._validation import check_flag, check_integer, check_name, check_real
from coevo.core.component import AUTO, find_component, is_auto, nest
from coevo.core.control import Control
from coevo.core.decomposition import find_decomposition
from coevo.core.extensions.adaptation import CONTROLS
from coevo.core.extensions.base import Extension
from coevo.core.extensions.registry import EXTENSIONS
from coevo.core.metrics import Metric, find_metric
from coevo.core.network import ACTIVATIONS
from coevo.core.selection import REPRESENTATIVES
from coevo.core.smoothing import Smoothing
from coevo.core.strategy import find_strategy

LARGEST = {"float32": 3.4e38, "float64": 1.7e308}
"""The dtypes, and about the largest number that each represents."""
DTYPES = tuple(LARGEST)
REPLACEMENT = "replacement"
"""What `validate_every` is called if the global solution is validated after each replacement."""
LARGEST_SCALE_FACTOR = 100.0
"""F is usually 0.1 to 2; with an F orders of magnitude larger, weights soon overflow."""

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
"""The new names of settings of version 0.1."""


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
        Individuals in each subpopulation (NP). "auto" is 20.
    scale_factor
        Weight of the differences in a mutant (F), at the start if it is learnt. Below the critical
        √((1 − CR/2) / NP) individuals become alike whatever is selected; "auto" is 1.05 times that
        for classification and, as initial weights are small there, 2.4 times for regression.
    crossover_rate
        Probability that a gene of a trial comes from the mutant (CR), at the start if it is learnt.
        "auto" is 0.5 for classification and 0.3 for regression.
    control
        How F and CR are chosen for each trial: "fixed", "dither" (F drawn from a range), "jde"
        (individuals carry their own), "shade" (drawn around those that have succeeded).
    strategy
        Mutation and crossover of differential evolution: rand/1 (or rand/1/bin), rand/1/exp,
        best/1, rand/2, current-to-best/1, current-to-pbest/1; or a `Strategy` object, which also
        says whether replacement is synchronous and ties go to the trial. Or "smoothing", which
        moves each neuron along the slope of its smoothed fitness (`Smoothing`). "auto" is smoothing
        if the fitness is a mean over instances or a function of the confusion matrix; it is rand/1
        otherwise, or if a setting that only differential evolution has is not at its default
        (decomposition, limited_evaluation, decay, population_size, scale_factor, crossover_rate,
        control, representative, sampling_rounds, extensions).
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
        included. "auto" is "revival" for neurons, which draws new individuals when subpopulations
        have collapsed, under limited evaluation and with 1000 neurons or more in a layer
        "turnover", which evolves a part of them in each generation, and under full evaluation
        "in_place_fitness", which measures all individuals in the first global solution; () for
        none.
    max_evaluations
        End after the first generation with which this many networks have been evaluated for
        fitness, initial sampling included, validation not. None for no limit, here and below.
        "auto" is None if generations or seconds are limited. Otherwise it grows with the problem:
        with smoothing 160,000 generations and 160 passes over the instances, of which more than
        an eighth is used only while it pays; with rand/1 400 generations (800 under full
        evaluation), at least 200,000 evaluations.
    max_generations
        End after this many generations.
    max_seconds
        End after the first generation with which the search has taken this long; compiling kernels
        and callbacks do not count.
    target_fitness
        End once the validation fitness is at least this.
    patience
        End after this many generations without a better validation fitness. With smoothing it is
        checked at the end of each try and within the last round.
    validate_every
        When the global solution is measured on the validation instances, by which the network that
        is returned is chosen: after each "replacement" of a subpopulation's representative, as in
        the paper, or every so many generations and at the end. "auto" spends about a tenth of the
        time on it, counted in instances: with rand/1 after each replacement if there are few
        validation instances.
    dtype
        float32 or float64, for data, weights and pre-activations.
    n_threads
        Number of threads, on which the result does not depend. None for as many as NumPy's matrix
        products use, or for one where that is found to be faster while the search runs.
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
    population_size: int | str = AUTO
    scale_factor: float | str = AUTO
    crossover_rate: float | str = AUTO
    control: Any = "fixed"
    strategy: Any = AUTO
    representative: str = AUTO
    sampling_rounds: int = 5
    initial_range: float | tuple[float, ...] | str = AUTO
    scale_initial_range: bool | str = AUTO
    extensions: Sequence[Any] | str = AUTO
    max_evaluations: int | str | None = AUTO
    max_generations: int | None = None
    max_seconds: float | None = None
    target_fitness: float | None = None
    patience: int | None = None
    validate_every: int | str = AUTO
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
        if not is_auto(self.fitness):
            find_metric(self.fitness)
        check_name("representative", self.representative, REPRESENTATIVES)
        check_name("dtype", self.dtype, DTYPES)
        for flag in ("limited_evaluation", "reshuffle_batches"):
            check_flag(flag, getattr(self, flag))
        if not is_auto(self.scale_initial_range):
            check_flag("scale_initial_range", self.scale_initial_range)
        self._check_numbers()
        self._check_initial_range()
        self._check_smoothing()
        for extension in self.known_extensions:
            extension.check(self)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_numbers(self) -> None:
        if not is_auto(self.batch_size):
            check_integer("batch_size", self.batch_size, 1)
        if not is_auto(self.population_size):
            self.check_population_size("population_size", self.population_size)
        check_integer("sampling_rounds", self.sampling_rounds, 1)
        check_real("decay", self.decay, 0, 1)
        if not is_auto(self.scale_factor):
            check_real("scale_factor", self.scale_factor, 0, LARGEST_SCALE_FACTOR, above=True)
        if not is_auto(self.crossover_rate):
            check_real("crossover_rate", self.crossover_rate, 0, 1)
        for count in ("max_generations", "patience", "n_threads"):
            if getattr(self, count) is not None:
                check_integer(count, getattr(self, count), 1)
        if not (self.max_evaluations is None or is_auto(self.max_evaluations)):
            check_integer("max_evaluations", self.max_evaluations, 1)
        if not isinstance(self.validate_every, str):
            check_integer("validate_every", self.validate_every, 1)
        elif self.validate_every not in (AUTO, REPLACEMENT):
            raise ValueError(
                f'validate_every must be "{AUTO}", "{REPLACEMENT}" or a number of generations, '
                f"got {self.validate_every!r}"
            )
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, 0, above=True)
        if self.target_fitness is not None:
            check_real("target_fitness", self.target_fitness)
        if self.seed is not None:
            check_integer("seed", self.seed, 0, maximum=None)

    def check_population_size(self, argument: str, size: Any) -> None:
        """Raise unless the strategy finds enough parents among so many individuals."""
        strategy = find_strategy("rand/1") if is_auto(self.strategy) else self.strategy
        check_integer(
            argument,
            size,
            strategy.minimum_population_size,
            why=f" for strategy {strategy.name}, whose parents must be different individuals",
        )

    def _check_initial_range(self) -> None:
        given = self.initial_range
        if is_auto(given):
            return
        widest = LARGEST[self.dtype]
        if not isinstance(given, Sequence) or isinstance(given, str):
            check_real("initial_range", given, 0, widest, above=True)
            self._set("initial_range", float(given))
            return
        n_layers = len(self.hidden_layer_sizes) + 1
        if len(given) != n_layers:
            raise ValueError(
                f"initial_range must be one number or {n_layers}, one for each layer, got "
                f"{len(given)}"
            )
        for layer, width in enumerate(given):
            check_real(f"initial_range[{layer}]", width, 0, widest, above=True)
        self._set("initial_range", tuple(map(float, given)))

    def _check_smoothing(self) -> None:
        """Check the settings that the strategy smoothing depends on."""
        if not isinstance(self.strategy, Smoothing):
            return
        if not (isinstance(self.decomposition, str) and self.decomposition == "neuron"):
            raise ValueError(
                'strategy="smoothing" moves neurons: decomposition must be "neuron", got '
                f"{self.decomposition!r}"
            )
        if self.validate_every == REPLACEMENT:
            raise ValueError(
                'strategy="smoothing" moves all neurons at once: validate_every must be a number '
                f'of generations or "{AUTO}", got "{REPLACEMENT}"'
            )
        n_layers = len(self.hidden_layer_sizes) + 1
        for name in ("width", "rate"):
            given = self.strategy.list_by_layer(name)
            if len(given) not in (0, 1, n_layers):
                raise ValueError(
                    f"strategy__{name} must be one number or {n_layers}, one for each layer, got "
                    f"{len(given)}"
                )

    @classmethod
    def from_names(cls, settings: Mapping[str, Any]) -> Settings:
        """Return settings from a mapping in which nested names may occur."""
        return cls(**resolve_names(settings))

    @property
    def limits(self) -> tuple[float | None, float | None, float | None]:
        """The budget in evaluations, generations and seconds, once nothing is "auto"."""
        evaluations = None if self.max_evaluations is None else int(self.max_evaluations)
        return evaluations, self.max_generations, self.max_seconds

    @property
    def takes_means(self) -> bool:
        """Whether subpopulations are represented by their mean."""
        return self.representative == "mean"

    @property
    def known_extensions(self) -> tuple[Extension, ...]:
        """The extensions, none as long as they are "auto"."""
        known: Any = () if is_auto(self.extensions) else self.extensions
        return tuple(known)

    @property
    def population_sizes(self) -> tuple[int, int]:
        """The fewest and the most individuals that a subpopulation can have during the run."""
        if isinstance(self.strategy, Smoothing):
            return 1, 1  # the mean
        size = int(self.population_size)
        ranges = [(size, size), *(e.population_sizes(size) for e in self.known_extensions)]
        return min(fewest for fewest, _ in ranges), max(most for _, most in ranges)

    def check_end(self) -> None:
        """Raise unless a stopping criterion is set."""
        if all(getattr(self, name) is None for name in self.BUDGETS):
            raise ValueError(
                "the run would never end: set max_evaluations, max_generations, max_seconds, "
                "target_fitness or patience, or give a callback that says stop"
            )


def _find_sizes(given: Any) -> tuple[int, ...]:
    """Return layer sizes as a tuple; one number means one layer."""
    try:
        if isinstance(given, str | bytes):
            raise TypeError
        sizes = (given,) if isinstance(given, int) else tuple(given)
    except TypeError:
        raise TypeError(
            f"hidden_layer_sizes must be a sequence of whole numbers, got {given!r}"
        ) from None
    for position, size in enumerate(sizes):
        check_integer(f"hidden_layer_sizes[{position}]", size, 1)
    return sizes


def _find_extensions(given: Any) -> tuple[Extension, ...] | str:
    if is_auto(given):
        return AUTO
    if isinstance(given, str | Extension):
        given = (given,)
    if not isinstance(given, Sequence):
        raise TypeError(f"extensions must be a list of extensions or their names, got {given!r}")
    found = tuple(find_component("extensions", each, EXTENSIONS, Extension) for each in given)
    names = [extension.name for extension in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"extensions holds {name!r} twice")
    return found  # type: ignore[return-value]


COMPONENTS: dict[str, Callable[..., Any]] = {
    "decomposition": lambda given, _="": find_decomposition(given),
    "control": lambda given, _="": find_component("control", given, CONTROLS, Control),
    "strategy": find_strategy,
    "extensions": lambda given, _="": _find_extensions(given),
}
"""The settings that are objects, and how a name becomes one; see `coevo.core.component.nest`."""


def resolve_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with nested names applied; raise if a name is unknown or has moved."""
    known = {field.name: field.default for field in fields(Settings)}
    for name in settings:
        if name in MOVED:
            raise ValueError(f"the setting {name!r} is now {MOVED[name]}")
        if "__" not in name:
            check_name("the setting", name, known)
    return nest(settings, COMPONENTS, known)


def describe_settings() -> dict[str, str]:
    """Return the text of each field in the docstring of `Settings`, as one paragraph."""
    doc = inspect.cleandoc(Settings.__doc__ or "")
    parts = re.split(r"^(\w+)\n(?=    )", doc.partition("----------\n")[2], flags=re.MULTILINE)
    return {
        name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
