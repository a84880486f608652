"""Figures of a run's learning curve and of a model's weights."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coevo._plotting import LOOK
from coevo._typing import Array
from coevo.core.network import Network
from coevo.persistence.atomic import write_atomically
from coevo.runtime.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _GREEN, _GREY = "#0072B2", "#009E73", "#999999"


def draw_learning_curve(
    path: Path, history: Mapping[str, Array], metric: str, chosen_on: str, title: str = ""
) -> None:
    """Draw a history.

    Parameters
    ----------
    path
        The PNG file.
    history
        A column for each field of `coevo.core.history.Generation`.
    metric
        What was maximised.
    chosen_on
        What the network was chosen on: validation or training.
    title
        The figure's title; a dollar sign is one, not the start of a formula.
    """
    with _drawing(path, 1) as (axes,):
        _plot_history(axes, history, metric, chosen_on)
        axes.set_title(printable(title), loc="left", parse_math=False)


def draw_model(
    path: Path,
    network: Network,
    history: Mapping[str, Array] | None,
    metric: str,
    chosen_on: str,
) -> None:
    """Draw a network's weights, a histogram a layer, and its history.

    Parameters
    ----------
    path
        The PNG file.
    network
        The network.
    history
        As for `draw_learning_curve`; None if there is none.
    metric, chosen_on
        As for `draw_learning_curve`.
    """
    n_layers = len(network.weights)
    with _drawing(path, n_layers + (history is not None)) as panels:
        if history is not None:
            _plot_history(panels.pop(0), history, metric, chosen_on)
        for number, (axes, weights) in enumerate(zip(panels, network.weights, strict=True), 1):
            is_output = number == n_layers
            axes.hist(weights.ravel(), bins=40, color=_GREEN if is_output else _BLUE)
            name = "output layer" if is_output else f"hidden layer {number}"
            axes.set(xlabel=f"weights, {name}", ylabel="number of weights")


def _plot_history(axes: Axes, history: Mapping[str, Array], metric: str, chosen_on: str) -> None:
    evaluations = history["evaluations"]
    axes.plot(evaluations, history["batch_fitness"], color=_GREY, lw=0.8, label="training batch")
    axes.plot(evaluations, history["validation_fitness"], color=_GREEN, lw=0.9, label=chosen_on)
    axes.step(
        evaluations,
        history["best_validation"],
        where="post",
        color=_BLUE,
        lw=1.8,
        label=f"best on {chosen_on}",
    )
    axes.set_xlabel("evaluations")
    axes.set_ylabel(f"{metric}, higher is better", parse_math=False)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="lower right")


@contextmanager
def _drawing(path: Path, n_panels: int) -> Iterator[list[Axes]]:
    """Yield panels to draw on, and write them to a PNG file."""
    import matplotlib  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    width = 7.0 if n_panels == 1 else 4.6 * n_columns
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(width, 3.8 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
        for empty in panels[n_panels:]:
            empty.set_visible(False)
        yield panels[:n_panels]
        content = io.BytesIO()
        with warnings.catch_warnings():
            # A title may hold characters that the font lacks; it then shows boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(content, format="png", dpi=150)
    write_atomically(path, [content.getvalue()])
