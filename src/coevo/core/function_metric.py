"""A user's function as a metric."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name
from coevo.core.metric import Metric
from coevo.core.responses import (
    RESPONSE_METHODS,
    ClassResponses,
    LabelResponses,
    NumberResponses,
    Responses,
)

_MOST_KNOWN = 2**16  # cached values of a metric of labels: a few megabytes


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """A user's function of (y_true, response), called for one network at a time.

    Parameters
    ----------
    function
        Called as function(y_true, response), with the keyword `sample_weight` if instances have
        weights. y_true holds the user's labels or numbers.
    response_method
        What the function takes: "predict" (labels, or numbers in the user's units),
        "predict_proba" (softmax of the outputs), "decision_function", or "outputs".
    sign
        −1 for a loss.
    task
        classification, multilabel or regression.
    responses
        Turns outputs into what the function takes; set by the run.
    """

    function: Callable[..., Any]
    response_method: str = "predict"
    sign: int = 1
    task: str = "classification"  # type: ignore[misc]
    responses: Responses | None = field(default=None, compare=False)
    name: ClassVar[str] = "function"
    _known: dict[bytes, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"the metric's function must be callable, got {self.function!r}")
        check_name("response_method", self.response_method, RESPONSE_METHODS)
        check_name("task", self.task, ("classification", "multilabel", "regression"))

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Call the function for each network, with read-only arrays."""
        responses = self.responses or _default_responses(outputs, targets)
        truth = _read_only(responses.truth(targets))
        further = {} if weights is None else {"sample_weight": _read_only(weights)}
        needs_labels_only = targets.ndim == 1 and self._needs_labels_only
        start = targets.tobytes() + (b"" if weights is None else weights.tobytes())
        values = []
        for network in outputs.reshape(-1, *outputs.shape[-2:]):
            key = b""
            if needs_labels_only:
                # Many candidates change no label, and a metric may take a millisecond.
                key = blake2b(start + network.argmax(axis=1).tobytes(), digest_size=16).digest()
                if key in self._known:
                    values.append(self._known[key])
                    continue
            value = self.sign * float(self._measure(responses, truth, network, further))
            if np.isnan(value):
                raise ValueError(
                    "the fitness function returned NaN; if it needs every class to occur, try a "
                    "larger batch_size or limited_evaluation=False"
                )
            values.append(value)
            if key:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = value
        return np.array(values).reshape(outputs.shape[:-2])

    @property
    def ignored_warnings(self) -> tuple[type[Warning], ...]:
        """The warning of scikit-learn's metrics when a class is missing from a batch."""
        exceptions = sys.modules.get("sklearn.exceptions")
        return (exceptions.UndefinedMetricWarning,) if exceptions else ()

    @property
    def _needs_labels_only(self) -> bool:
        return self.response_method == "predict"

    def _measure(
        self, responses: Responses, truth: Array, network: Array, further: dict[str, Array]
    ) -> Any:
        response = getattr(responses, self.response_method)(network)
        return self.function(truth, _read_only(response), **further)

    def __getstate__(self) -> dict[str, Any]:
        """Leave cached values out of pickles."""
        return self.__dict__ | {"_known": {}}


def make_metric(
    function: Callable[..., Any],
    *,
    response_method: str = "predict",
    greater_is_better: bool = True,
    task: str = "classification",
) -> FunctionMetric:
    """Make a metric from a function, as `sklearn.metrics.make_scorer` makes a scorer.

    Parameters
    ----------
    function
        Called as function(y_true, response), with the keyword `sample_weight` if there are weights.
    response_method
        "predict", "predict_proba", "decision_function" or "outputs"; see `FunctionMetric`.
    greater_is_better
        False for a loss.
    task
        classification, multilabel or regression.

    Examples
    --------
    >>> import numpy as np
    >>> from coevo.core.metrics import make_metric
    >>> brier = make_metric(
    ...     lambda y, p: ((p[:, 1] - (y == 1)) ** 2).mean(),
    ...     response_method="predict_proba", greater_is_better=False,
    ... )
    >>> float(brier(np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([0, 1])))
    -0.25
    """
    return FunctionMetric(function, response_method, 1 if greater_is_better else -1, task)


def _default_responses(outputs: Array, targets: Array) -> Responses:
    """Return responses for targets that have no labels of the user's: class indices are labels."""
    if targets.ndim == 1:
        return ClassResponses(np.arange(outputs.shape[-1]))
    return LabelResponses(outputs.shape[-1]) if targets.dtype.kind in "biu" else NumberResponses()


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
