"""Plots of a search's history, like scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from coevo._plotting import BLUE, GREEN, GREY, LOOK
from coevo._validation import check_name
from coevo.core.history import Generation, History
from coevo.training.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = ("batch_fitness", "validation_fitness", "best_validation")
_POSITIONS = ("evaluations", "generation", "seconds")


class HistoryDisplay:
    """A plot of the fitness over the course of a search.

    It is made by `HistoryDisplay.from_estimator` or `coevo.plot_history`.

    Parameters
    ----------
    history
        A column for each field of the history, such as an estimator's `history_`.
    metric
        Name of the metric, for the axis.
    chosen_on
        The instances on which the network was chosen: "validation" or "training".

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    lines_
        The lines by the name of their column: batch_fitness, validation_fitness, best_validation.
    """

    def __init__(
        self,
        history: Mapping[str, Any],
        *,
        metric: str = "fitness",
        chosen_on: str = "validation",
    ) -> None:
        missing = [name for name in (*_CURVES, "evaluations") if name not in history]
        if missing:
            raise ValueError(
                f"history lacks the column {missing[0]!r}; its columns are "
                f"{', '.join(Generation._fields)}"
            )
        self.history = history
        self.metric = metric
        self.chosen_on = chosen_on

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, x: str = "evaluations", ax: Axes | None = None
    ) -> Self:
        """Plot the history of a fitted estimator.

        Parameters
        ----------
        estimator
            A `CoevoClassifier` or `CoevoRegressor`, or a pipeline that ends in one.
        x, ax
            As for `plot`.
        """
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        check_is_fitted(estimator, "history_")
        fitness = estimator.settings_.fitness
        display = cls(
            estimator.history_,
            metric=str(getattr(fitness, "name", fitness)),
            chosen_on=estimator.chosen_on_,
        )
        return display.plot(x=x, ax=ax)

    def plot(self, *, x: str = "evaluations", ax: Axes | None = None) -> Self:
        """Plot the history.

        Parameters
        ----------
        x
            The horizontal axis: evaluations, generation or seconds.
        ax
            The axes; those of a new figure if None.
        """
        check_name("x", x, _POSITIONS)
        if ax is None:
            import matplotlib.pyplot as plt  # noqa: PLC0415 - slow to import

            with plt.rc_context(LOOK):
                _, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
        styles: dict[str, dict[str, Any]] = {
            "batch_fitness": {"color": GREY, "lw": 0.8, "label": "training batch"},
            "validation_fitness": {"color": GREEN, "lw": 0.9, "label": self.chosen_on},
            "best_validation": {
                "color": BLUE, "lw": 1.8, "label": f"best on {self.chosen_on}",
                "drawstyle": "steps-post",
            },
        }  # fmt: skip
        self.lines_ = {
            name: ax.plot(self.history[x], self.history[name], **style)[0]
            for name, style in styles.items()
        }
        ax.set_xlabel(x)
        ax.set_ylabel(f"{self.metric}, higher is better", parse_math=False)
        ax.locator_params(axis="x", nbins=5)
        if x != "seconds":
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_history(source: Any, *, x: str = "evaluations", ax: Axes | None = None) -> HistoryDisplay:
    """Plot the fitness over the course of a fit or a run.

    Parameters
    ----------
    source
        A fitted estimator, a pipeline that ends in one, a result of `coevo.evolve`, a
        `coevo.Search`'s history, or a history's columns as a dictionary or data frame.
    x
        The horizontal axis: evaluations, generation or seconds.
    ax
        The axes; those of a new figure if None.

    Returns
    -------
    a display, whose `ax_`, `figure_` and `lines_` can be changed further

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coevo import CoevoClassifier, plot_history
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = CoevoClassifier((5,), max_evaluations=2_000, random_state=1).fit(X, y)
    >>> display = plot_history(classifier)
    >>> display.ax_.get_ylabel()
    'cross_entropy, higher is better'
    """
    if isinstance(source, Result):
        fitness = source.settings.fitness
        metric = str(getattr(fitness, "name", fitness))
        return HistoryDisplay(source.history.columns(), metric=metric).plot(x=x, ax=ax)
    if isinstance(source, History):
        source = source.columns()
    if hasattr(source, "keys"):  # a dictionary, or a data frame of pandas
        return HistoryDisplay(source).plot(x=x, ax=ax)
    return HistoryDisplay.from_estimator(source, x=x, ax=ax)
