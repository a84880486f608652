"""Finds the metric for `fitness`, which may also be scikit-learn's or a user's function.

A scikit-learn scorer asks an estimator for labels or probabilities, but the search has outputs of
networks. The scorer therefore gets an estimator whose inputs are these outputs. scikit-learn is
imported only if one of its metrics or scorers may be meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar

from coevo._typing import Array
from coevo.core.label_metrics import LABEL_METRICS
from coevo.core.metrics import METRICS, AbsoluteError, FunctionMetric, Metric, SquaredError
from coevo.core.responses import ClassResponses, LabelResponses, Responses

_LOSSES = ("_error", "_loss", "_deviance")  # scikit-learn's names for what should be small

_SAME = {
    "accuracy_score": "accuracy",
    # With one label for each instance, a false positive is also a false negative.
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
"""scikit-learn's names of metrics that coevo has too; coevo's are compiled, and accept batches in
which a class does not occur."""
_SAME_FOR_LABELS = {
    "accuracy_score": "accuracy",
    "roc_auc_score": "roc_auc",
    "roc_auc_ovr": "roc_auc",
}
"""The same for multilabel targets."""
_SAME_ERRORS: dict[str, type[SquaredError] | type[AbsoluteError]] = {
    "neg_mean_squared_error": SquaredError,
    "mean_squared_error": SquaredError,
    "neg_mean_absolute_error": AbsoluteError,
    "mean_absolute_error": AbsoluteError,
}
"""The same for regression; these are in the units of y."""
_SAME_FUNCTIONS = (
    "accuracy_score", "balanced_accuracy_score", "matthews_corrcoef", "mean_squared_error",
    "mean_absolute_error",
)  # fmt: skip
"""The functions among these that need labels only, as a user's functions do."""


@dataclass(frozen=True)
class ScorerMetric(FunctionMetric):
    """A scikit-learn scorer, called as (estimator, X, y_true)."""

    name: ClassVar[str] = "scorer"

    @property
    def _needs_labels_only(self) -> bool:
        return getattr(self.function, "_response_method", None) == "predict"

    def _measure(
        self, responses: Responses, truth: Array, network: Array, further: dict[str, Array]
    ) -> Any:
        return self.function(_make_estimator(responses), network, truth, **further)


def _make_estimator(responses: Responses) -> Any:
    """Return an estimator whose inputs are the outputs of a network."""
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: PLC0415

    is_classifier = isinstance(responses, ClassResponses | LabelResponses)
    bases = (ClassifierMixin if is_classifier else RegressorMixin, BaseEstimator)
    estimator = type("Responses", bases, {})()
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(responses, method):
            setattr(estimator, method, getattr(responses, method))
    if isinstance(responses, ClassResponses | LabelResponses):
        estimator.classes_ = responses.classes
    return estimator


def resolve_metric(
    fitness: Any, responses: Responses, has_weights: bool, argument: str = "fitness"
) -> Metric:
    """Return the metric that a user's `fitness` stands for.

    Parameters
    ----------
    fitness
        The name of a metric of coevo's or scikit-learn's, a metric, a scorer, or a function of
        (y_true, y_pred) in the user's labels or units.
    responses
        Turns outputs into the user's labels or units.
    has_weights
        Whether the instances have weights, which a function must then accept.
    argument
        Name of the argument, for errors.
    """
    task = responses.task
    known = METRICS | LABEL_METRICS if task == "multilabel" else METRICS
    found = fitness
    if isinstance(fitness, str):
        found = (
            _find_same(fitness, responses)
            or known.get(fitness)
            or _find_by_name(fitness, task, argument)
        )
    elif not isinstance(fitness, Metric):
        if not callable(fitness):
            raise TypeError(f"{argument} must be a name, a metric or a function, got {fitness!r}")
        name = getattr(fitness, "__name__", "")
        if name in _SAME_FUNCTIONS and _is_metric(fitness):
            found = _find_same(name, responses) or fitness
    if not isinstance(found, Metric):
        found = _wrap(found, task)
    if isinstance(found, FunctionMetric) and (found.task, task) == ("classification", "multilabel"):
        found = replace(found, task=task)
    if found.task != task:
        given = fitness if isinstance(fitness, str) else found.name
        raise ValueError(
            f"{argument}={given!r} is a metric for {found.task}; choose one of "
            f"{', '.join(_list_ours(task))} for {task}"
        )
    if (
        found is METRICS["f1"]
        and isinstance(responses, ClassResponses)
        and len(responses.classes) > 2
    ):
        raise ValueError(
            f"{argument}='f1' is for two classes and there are {len(responses.classes)}; choose "
            "f1_macro, f1_weighted or coevo.metrics.FBeta(positive=...)"
        )
    if isinstance(found, FunctionMetric):
        if not hasattr(responses, found.response_method):
            raise ValueError(
                f"response_method={found.response_method!r} is for classification; a metric for "
                "regression has predict or outputs"
            )
        if has_weights and not _takes_weights(found):
            raise ValueError(f"the {argument} {found.function!r} does not take sample_weight")
        return replace(found, responses=responses)
    metric: Metric = found
    return metric


def _wrap(function: Callable[..., Any], task: str) -> FunctionMetric:
    """Return a function or a scorer as a metric."""
    if hasattr(function, "_response_method") or _first_parameter(function) == "estimator":
        return ScorerMetric(function, task=task)
    is_loss = _is_metric(function) and function.__name__.endswith(_LOSSES)
    return FunctionMetric(function, sign=-1 if is_loss else 1, task=task)


def _first_parameter(function: Callable[..., Any]) -> str:
    return next(iter(inspect.signature(function).parameters), "")


def _takes_weights(metric: FunctionMetric) -> bool:
    if isinstance(metric, ScorerMetric):
        return True
    parameters = inspect.signature(metric.function).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def _is_metric(function: Any) -> bool:
    """Whether this is a metric of scikit-learn's, whose name tells whether larger is better."""
    if not getattr(function, "__module__", "").startswith("sklearn."):
        return False
    from sklearn import metrics  # noqa: PLC0415

    return getattr(metrics, getattr(function, "__name__", ""), None) is function


def _find_same(name: str, responses: Responses) -> Metric | None:
    """Return coevo's metric for a name of scikit-learn's, None if there is none."""
    if isinstance(responses, ClassResponses):
        return METRICS.get(_SAME.get(name, ""))
    if isinstance(responses, LabelResponses):
        return LABEL_METRICS.get(_SAME_FOR_LABELS.get(name, ""))
    if name in _SAME_ERRORS:
        scale = responses.scale
        units = tuple(scale.tolist()) if hasattr(scale, "tolist") else None
        return _SAME_ERRORS[name](units)
    return None


def _find_by_name(name: str, task: str, argument: str) -> Callable[..., Any]:
    """Return scikit-learn's scorer of this name, or else its metric."""
    from sklearn import metrics  # noqa: PLC0415

    scorers = metrics.get_scorer_names()
    if name in scorers:
        scorer: Callable[..., Any] = metrics.get_scorer(name)
        return scorer
    if name in metrics.__all__ and name.endswith(("_score", "_corrcoef", *_LOSSES)):
        # A scorer made from the metric is preferred: it has the response method the metric needs.
        for known in scorers:
            scorer = metrics.get_scorer(known)
            if getattr(scorer, "_score_func", None) is getattr(metrics, name):
                return scorer
        metric: Callable[..., Any] = getattr(metrics, name)
        return metric
    ours = _list_ours(task)
    near = get_close_matches(name, [*ours, *scorers], n=1)
    asked = f"did you mean {near[0]}? " if near else ""
    raise ValueError(
        f"{argument}={name!r} is unknown; {asked}choose one of {', '.join(ours)}, a metric of "
        "sklearn.metrics, or one of its scorers, which sklearn.metrics.get_scorer_names() lists"
    )


def _list_ours(task: str) -> list[str]:
    """Return the names of coevo's own metrics for a task."""
    return [n for n, m in [*METRICS.items(), *LABEL_METRICS.items()] if m.task == task]
