"""What an estimator's `fitness` stands for: a measure of ours, of scikit-learn's, or the user's.

A metric or scorer of scikit-learn's wants labels, probabilities or an estimator, where the search
has outputs. `ClassAnswers` and `NumberAnswers` are estimators whose inputs are the outputs of a
network; a scorer asks them for what it needs and notices nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from coevo.estimators.scaling import TargetScaling
from coevo.fitness import FITNESSES, AbsoluteError, CustomFitness, Fitness, SquaredError
from coevo.network import Array

_MOST_KNOWN = 2**16  # answers remembered: a few megabytes
_LOSSES = ("_error", "_loss", "_deviance")  # scikit-learn's names for what should be small

_SAME = {
    "accuracy_score": "accuracy",
    # With one label an instance, each wrong answer misses one class and is wrong for another.
    "f1_micro": "accuracy",
    "precision_micro": "accuracy",
    "recall_micro": "accuracy",
    "balanced_accuracy_score": "balanced_accuracy",
    "f1_score": "f1",
    "matthews_corrcoef": "matthews",
    "neg_log_loss": "cross_entropy",
    "log_loss": "cross_entropy",
    "roc_auc_score": "roc_auc",
    "roc_auc_ovr": "roc_auc",
}
"""scikit-learn's other names for measures of ours, which are compiled, and do not mind if a class
is missing from a batch."""
_SAME_ERRORS: dict[str, type[SquaredError] | type[AbsoluteError]] = {
    "neg_mean_squared_error": SquaredError,
    "mean_squared_error": SquaredError,
    "neg_mean_absolute_error": AbsoluteError,
    "mean_absolute_error": AbsoluteError,
}
"""The same for numbers; these are in the units of y."""
_SAME_FUNCTIONS = (
    "accuracy_score", "balanced_accuracy_score", "matthews_corrcoef", "mean_squared_error",
    "mean_absolute_error",
)  # fmt: skip
"""The metrics among these that mean the same when they are given labels only."""


def softmax(outputs: Array) -> Array:
    """Return outputs (n_instances, n_classes) as probabilities."""
    exact = outputs.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def decide(outputs: Array) -> Array:
    """Return what a decision function gives: the outputs, or with two classes their difference."""
    return np.asarray(outputs[:, 1] - outputs[:, 0]) if outputs.shape[1] == 2 else outputs


class ClassAnswers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are a network's outputs."""

    def __init__(self, classes: Array) -> None:
        self.classes = classes
        self.classes_ = classes

    def truth(self, targets: Array) -> Array:
        """Return the labels of class indices."""
        return np.asarray(self.classes_[targets])

    def predict(self, outputs: Array) -> Array:
        """Return the label of the largest output."""
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def predict_proba(self, outputs: Array) -> Array:
        """Return the softmax."""
        return softmax(outputs)

    def decision_function(self, outputs: Array) -> Array:
        """Return the outputs, or their difference."""
        return decide(outputs)


class NumberAnswers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose inputs are a network's outputs for standardised targets."""

    def __init__(self, scaling: TargetScaling) -> None:
        self.scaling = scaling

    def truth(self, targets: Array) -> Array:
        """Return standardised targets in the user's units."""
        return self.predict(targets)

    def predict(self, outputs: Array) -> Array:
        """Return outputs in the user's units, flat if there is one for each instance."""
        numbers = self.scaling.undo(outputs)
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers


@dataclass(frozen=True)
class ScorerFitness(Fitness):
    """A scorer or a metric in scikit-learn's manner, asked about one network at a time.

    Parameters
    ----------
    function
        Called as a scorer, (estimator, X, y_true), or as a metric, (y_true, y_pred), and with
        `sample_weight` by name if there are weights.
    answers
        Turns outputs into what the function wants.
    is_scorer
        Which of the two it is.
    sign
        −1 for a metric that should be small.
    """

    function: Callable[..., Any]
    answers: ClassAnswers | NumberAnswers
    is_scorer: bool
    sign: int = 1
    name: ClassVar[str] = "scorer"
    _known: dict[bytes, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Ask about each network."""
        further = {} if weights is None else {"sample_weight": weights}
        truth = self.answers.truth(targets)
        start = targets.tobytes() + (b"" if weights is None else weights.tobytes())
        values = []
        for network in outputs.reshape(-1, *outputs.shape[-2:]):
            key = b""
            if self._needs_labels_only:
                # Many candidates change no answer at all, and a metric takes a millisecond.
                key = blake2b(start + network.argmax(axis=1).tobytes(), digest_size=16).digest()
                if key in self._known:
                    values.append(self._known[key])
                    continue
            if self.is_scorer:
                value = self.function(self.answers, network, truth, **further)
            else:
                value = self.function(truth, self.answers.predict(network), **further)
            values.append(self.sign * float(value))
            if key:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = values[-1]
        if np.isnan(values).any():
            raise ValueError(
                "the fitness is NaN on some instances; if it needs every class to occur, try a "
                "larger batch_size or limited_evaluation=False"
            )
        return np.array(values).reshape(outputs.shape[:-2])

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the answers remembered."""
        return self.__dict__ | {"_known": {}}

    @property
    def _needs_labels_only(self) -> bool:
        response = getattr(self.function, "_response_method", None)
        return isinstance(self.answers, ClassAnswers) and (
            not self.is_scorer or response == "predict"
        )


def resolve_fitness(
    fitness: str | Fitness | Callable[..., Any],
    answers: ClassAnswers | NumberAnswers,
    has_weights: bool,
) -> Fitness:
    """Return the measure that an estimator's argument stands for.

    Parameters
    ----------
    fitness
        A name of ours, a name of scikit-learn's, a measure, a scorer, or a metric of
        (y_true, y_pred) in the user's labels or units.
    answers
        The classes, or the units of the targets.
    has_weights
        Whether the instances have weights, which a metric must then take.
    """
    task = "classification" if isinstance(answers, ClassAnswers) else "regression"
    function = getattr(fitness, "__name__", "")
    if function in _SAME_FUNCTIONS and _is_metric(fitness):
        fitness = _find_same(function, answers) or fitness
    elif isinstance(fitness, str):
        fitness = _find_same(fitness, answers) or _find_by_name(fitness, task)
    if isinstance(fitness, Fitness):
        if fitness.task != task and not isinstance(fitness, CustomFitness):
            raise ValueError(f"fitness={fitness.name!r} is a measure for {fitness.task}")
        if fitness is FITNESSES["f1"] and task == "classification" and len(answers.classes_) > 2:
            raise ValueError(
                f"fitness='f1' is for two classes and there are {len(answers.classes_)}; choose "
                "f1_macro, f1_weighted or coevo.fitness.FBeta(positive=...)"
            )
        return fitness
    if not callable(fitness):
        raise TypeError(f"fitness must be a name, a measure or a function, got {fitness!r}")
    parameters = list(inspect.signature(fitness).parameters)
    is_scorer = bool(parameters) and parameters[0] == "estimator"
    if has_weights and not is_scorer and not _takes_weights(fitness):
        raise ValueError(f"the fitness {fitness!r} does not take sample_weight")
    sign = -1 if getattr(fitness, "__name__", "").endswith(_LOSSES) and _is_metric(fitness) else 1
    return ScorerFitness(fitness, answers, is_scorer, sign)


def _takes_weights(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def _is_metric(function: Any) -> bool:
    """Whether it is scikit-learn's own, whose names say whether more is better."""
    return getattr(metrics, getattr(function, "__name__", ""), None) is function


def _find_same(name: str, answers: ClassAnswers | NumberAnswers) -> Fitness | None:
    """Return our measure that a name of scikit-learn's stands for, None if there is none."""
    if isinstance(answers, ClassAnswers):
        return FITNESSES.get(_SAME.get(name, ""))
    if name in _SAME_ERRORS:
        return _SAME_ERRORS[name](tuple(answers.scaling.deviation.tolist()))
    return None


def _find_by_name(name: str, task: str) -> Fitness | Callable[..., Any]:
    """Look among our measures, then scikit-learn's scorers, then its metrics."""
    if name in FITNESSES:
        return FITNESSES[name]
    scorers = metrics.get_scorer_names()
    if name in scorers:
        scorer: Callable[..., Any] = metrics.get_scorer(name)
        return scorer
    if name in metrics.__all__ and name.endswith(("_score", "_corrcoef", *_LOSSES)):
        # Where there is a scorer made from the metric, it knows which response the metric needs.
        for known in scorers:
            scorer = metrics.get_scorer(known)
            if getattr(scorer, "_score_func", None) is getattr(metrics, name):
                return scorer
        metric: Callable[..., Any] = getattr(metrics, name)
        return metric
    ours = [known for known, measure in FITNESSES.items() if measure.task == task]
    raise ValueError(
        f"fitness={name!r} is unknown; choose one of {', '.join(ours)}, a metric "
        f"of sklearn.metrics, or one of its scorers: {', '.join(scorers)}"
    )
