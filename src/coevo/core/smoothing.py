"""Smoothing: a strategy that moves each neuron's mean along the slope of its smoothed fitness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coevo._validation import check_flag, check_integer, check_name, check_real
from coevo.core.component import AUTO, Component, is_auto
from coevo.core.metrics import (
    AbsoluteError,
    Accuracy,
    ClippedMargin,
    CountMetric,
    CrossEntropy,
    LabelCrossEntropy,
    Metric,
    SquaredError,
)

SCHEDULES = ("rounds", "root", "constant")
"""How the rate falls: to 0 in each round, with the root of the generations, not at all."""

SERVED = (
    "accuracy, balanced_accuracy, f1, f1_macro, matthews, cross_entropy, margin, squared_error, "
    "absolute_error, profit"
)
"""The metrics that smoothing can be used with, for messages."""
_LEAST_RATE = 0.006
_OWN_MEANS = (
    Accuracy, CrossEntropy, LabelCrossEntropy, ClippedMargin, SquaredError, AbsoluteError,
)  # fmt: skip


@dataclass
class Smoothing(Component):
    """A neuron-wise search along the slope of the smoothed fitness, in place of trials.

    Each subpopulation is a distribution around its mean, and the means are the global solution. An
    individual acts on an instance only through the neuron's pre-activation s. If that is uniform in
    s ± width, the fitness f of the instance, in the context of the other neurons' means, has an
    expectation whose slope along s is exactly

        (f(s + width) − f(s − width)) / (2 width)

    so that two evaluations of a neuron on a batch say how the expected fitness depends on all of
    its weights: by the slope times the neuron's inputs, added up over the instances. The means move
    along this with step sizes by Adam. Nothing is differentiated and nothing is propagated
    backwards: f may have steps, as it has with sign activations or accuracy as fitness.

    It is not differential evolution and not in the paper. It is related to methods that perturb
    nodes rather than weights, and to evolution strategies with mirrored samples, of which it takes
    the expectation instead of a sample. For smooth functions and a width near 0 it is the gradient
    by central differences.

    The fitness must be a mean over instances (accuracy, cross_entropy, margin, squared_error,
    absolute_error) or a function of the confusion matrix (profit, balanced_accuracy, f1, f1_macro,
    matthews), which is taken to first order at the predictions of the batch. If predicting one
    class for all instances is nearly as good as the first network, as with f1, the search may stay
    there; differential evolution escapes more often.

    It works on the decomposition "neuron". Settings that belong to differential evolution are not
    used: population_size, scale_factor, crossover_rate, control, decay, representative,
    sampling_rounds and extensions.

    Parameters
    ----------
    width
        Half the width of the distribution of a pre-activation; one number, or one for each layer.
        "auto" is 1 where a step must be smoothed (all layers if the metric counts predictions,
        hidden layers if their activation is sign), otherwise 0.5.
    rate
        Largest change of a weight in a generation, about, at the start; one number, or one for each
        layer. "auto" is 0.006 for hidden layers and twice that for the output layer. If the budget
        has fewer than 2000 generations, weights must come as far with fewer steps: 12 / generations
        in place of 0.006, but at most 0.05 and 0.35 / √(number of inputs). In networks with a
        hidden layer of H > 50 neurons times ∛(50 / H).
    adapt_rate
        Whether to measure on the first generations how many the granted seconds are enough for, and
        to raise the rate by the same rule. "auto" is yes if there is a limit of seconds and no rate
        is given. `rate` itself keeps the value for a run without that limit.
    weight_decay
        How strongly weights are drawn towards 0, biases not: a layer with n inputs by
        weight_decay × n / (number of training instances), as if each weight had a normal prior of
        variance 1 / (weight_decay × n). "auto" is 1/8 at first; each round then tries twice and
        half as much and keeps what validates better, if there are validation instances.
    adapt_decay
        Whether rounds try other weight decays. "auto" is yes unless weight_decay is given.
    schedule
        How the rate falls: "rounds", in each of which it falls linearly to 0, each twice as long as
        the one before, the last to the end of the budget (a run that is limited by seconds cannot
        be reproduced exactly); "root", as 1 / √(1 + generation / 1000); or "constant". "auto" is
        rounds, and root for streams.
    first_budget
        Generations that are granted at first of those that the limits allow, None for all. When
        only the last round is left of them, and the round before has gained more than a hundredth
        of all that was gained, they double. "auto" is 20,000 and 20 passes over the instances if no
        limit is given.
    standardise
        Search in coordinates in which each input has mean 0 and deviation 1 over the training
        instances. The global solution takes inputs as they are.
    """

    name: ClassVar[str] = "smoothing"
    minimum_population_size: ClassVar[int] = 1

    width: float | Sequence[float] | str = AUTO
    rate: float | Sequence[float] | str = AUTO
    adapt_rate: bool | str = AUTO
    weight_decay: float | str = AUTO
    adapt_decay: bool | str = AUTO
    schedule: str = AUTO
    first_budget: int | str | None = AUTO
    standardise: bool = True

    def __post_init__(self) -> None:
        for name in ("width", "rate"):
            for number in self.list_by_layer(name):
                check_real(name, number, 0, above=True)
        if not is_auto(self.weight_decay):
            check_real("weight_decay", self.weight_decay, 0)
        for name in ("adapt_rate", "adapt_decay"):
            if not is_auto(getattr(self, name)):
                check_flag(name, getattr(self, name))
        if not (self.first_budget is None or is_auto(self.first_budget)):
            check_integer("first_budget", self.first_budget, 1)
        check_name("schedule", self.schedule, (AUTO, *SCHEDULES))
        check_flag("standardise", self.standardise)

    def list_by_layer(self, name: str) -> tuple[Any, ...]:
        """Return widths or rates: one, one for each layer, or none if they are "auto"."""
        given = getattr(self, name)
        if is_auto(given):
            return ()
        is_list = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
        return tuple(given) if is_list else (given,)

    @staticmethod
    def serves(metric: Metric) -> bool:
        """Say whether the metric is one that smoothing can be used with."""
        return metric.is_mean or isinstance(metric, CountMetric)

    @staticmethod
    def is_compiled_for(metric: Metric) -> bool:
        """Say whether there are compiled loops for it, as there are for all metrics of coevo's."""
        return isinstance(metric, CountMetric) or type(metric) in _OWN_MEANS


def find_rate(n_generations: float, n_inputs: int) -> float:
    """Return the rate for a budget: weights must come as far with fewer moves."""
    fastest = max(_LEAST_RATE, min(0.05, 0.35 / math.sqrt(n_inputs)))
    return max(_LEAST_RATE, min(fastest, 12 / n_generations))


def check_served(metric: Metric) -> None:
    """Raise if smoothing cannot be used with a metric."""
    if not Smoothing.serves(metric):
        raise ValueError(
            'strategy="smoothing" needs a fitness that is a mean over instances or a function of '
            f"the confusion matrix, and {metric.name} is neither; it serves {SERVED}. For any "
            'other metric use strategy="rand/1"'
        )
