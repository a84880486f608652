"""Figures of a run and of a model, as the bytes of PNG files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from coevo._plotting import BLUE, GREEN, GREY, LOOK
from coevo._typing import Array
from coevo.core.network import Network
from coevo.estimators.display import HistoryDisplay
from coevo.runtime.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_COLUMNS = 12


def draw_learning_curve(
    history: Mapping[str, Array], metric: str, chosen_on: str, title: str = ""
) -> bytes:
    """Draw a history.

    Parameters
    ----------
    history
        A column for each field of `coevo.core.history.Generation`.
    chosen_on
        What the network was chosen on: validation or training.
    title
        The figure's title; a dollar sign is one, not the start of a formula.
    """
    with _drawing(1) as ((axes,), content):
        HistoryDisplay(history, metric=metric, chosen_on=chosen_on).plot(ax=axes)
        axes.set_title(printable(title), loc="left", parse_math=False)
    return content.getvalue()


def draw_model(
    network: Network,
    history: Mapping[str, Array] | None,
    importance: Mapping[str, Any] | None,
    metric: str,
    chosen_on: str,
) -> bytes:
    """Draw a network's history, the importance of columns, and its weights, a histogram a layer."""
    n_layers = len(network.weights)
    n_panels = n_layers + (history is not None) + (importance is not None)
    with _drawing(n_panels) as (panels, content):
        if history is not None:
            display = HistoryDisplay(history, metric=metric, chosen_on=chosen_on)
            display.plot(ax=panels.pop(0))
        if importance is not None:
            _plot_importance(panels.pop(0), importance)
        for number, (axes, weights) in enumerate(zip(panels, network.weights, strict=True), 1):
            is_output = number == n_layers
            axes.hist(weights.ravel(), bins=40, color=GREEN if is_output else BLUE)
            name = "output layer" if is_output else f"hidden layer {number}"
            axes.set(xlabel=f"weights, {name}", ylabel="number of weights")
    return content.getvalue()


def draw_residuals(truth: Array, predicted: Array, target: str) -> bytes:
    """Draw predicted against true numbers, and a histogram of their differences."""
    with _drawing(2) as ((axes, differences), content):
        ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
        axes.plot(ends, ends, color=GREY, lw=1)
        axes.plot(truth, predicted, "o", color=BLUE, ms=3, alpha=0.5, mew=0)
        axes.set_xlabel(printable(f"true {target}"), parse_math=False)
        axes.set_ylabel(printable(f"predicted {target}"), parse_math=False)
        differences.hist(predicted - truth, bins=40, color=BLUE)
        differences.set(xlabel="predicted − true", ylabel="number of test rows")
        for each in (axes, differences):  # the labels of large numbers would touch
            each.locator_params(axis="x", nbins=5)
    return content.getvalue()


def _plot_importance(axes: Axes, importance: Mapping[str, Any]) -> None:
    columns = list(importance["columns"].items())[:_MOST_COLUMNS][::-1]
    places = range(len(columns))
    means = [loss["mean"] for _, loss in columns]
    axes.barh(places, means, xerr=[loss["sd"] for _, loss in columns], color=BLUE, ecolor=GREY)
    labels = [printable(name if len(name) <= 24 else name[:23] + "…") for name, _ in columns]
    axes.set_yticks(places, labels, parse_math=False)
    axes.set_xlabel(f"loss of {importance['metric']} if shuffled", parse_math=False)


@contextmanager
def _drawing(n_panels: int) -> Iterator[tuple[list[Axes], io.BytesIO]]:
    """Yield panels to draw on, and where the PNG file will be."""
    import matplotlib  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    n_columns = 2 if n_panels == 4 else min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    width = 7.0 if n_panels == 1 else 4.6 * n_columns
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(width, 3.8 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
        for empty in panels[n_panels:]:
            empty.set_visible(False)
        content = io.BytesIO()
        yield panels[:n_panels], content
        with warnings.catch_warnings():
            # A title may hold characters that the font lacks; it then shows boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(content, format="png", dpi=150)
