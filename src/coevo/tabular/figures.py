"""Draws a run's learning curve and the weights of a model."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.drawing import LOOK
from coevo.files import write_atomically
from coevo.network import Array, Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _GREEN, _GREY = "#0072B2", "#009E73", "#999999"


def draw_learning_curve(
    path: Path, history: Mapping[str, Array], fitness: str, title: str = ""
) -> None:
    """Write the picture of a history.

    Parameters
    ----------
    path
        The PNG file.
    history
        A column for each field of `coevo.history.Generation`.
    fitness
        What was maximised.
    title
        What the picture is of.
    """
    with _drawing(path, 1) as (axes,):
        _plot_history(axes, history, fitness)
        axes.set_title(title, loc="left")


def draw_model(
    path: Path, network: Network, history: Mapping[str, Array] | None, fitness: str
) -> None:
    """Write the picture of a network's weights, a histogram a layer, and of its history.

    Parameters
    ----------
    path
        The PNG file.
    network
        The network.
    history
        As for `draw_learning_curve`; None if there is none.
    fitness
        What was maximised.
    """
    n_layers = len(network.weights)
    with _drawing(path, n_layers + (history is not None)) as panels:
        if history is not None:
            _plot_history(panels.pop(0), history, fitness)
        for number, (axes, weights) in enumerate(zip(panels, network.weights, strict=True), 1):
            is_output = number == n_layers
            axes.hist(weights.ravel(), bins=40, color=_GREEN if is_output else _BLUE)
            name = "output layer" if is_output else f"hidden layer {number}"
            axes.set(xlabel=f"weights, {name}", ylabel="number of weights")


def _plot_history(axes: Axes, history: Mapping[str, Array], fitness: str) -> None:
    evaluations = history["evaluations"]
    # Without limited evaluation the batch is the whole training part.
    axes.plot(evaluations, history["batch_fitness"], color=_GREY, lw=0.8, label="training batch")
    axes.plot(evaluations, history["validation_fitness"], color=_GREEN, lw=0.9, label="validation")
    axes.step(
        evaluations,
        history["best_validation"],
        where="post",
        color=_BLUE,
        lw=1.8,
        label="best on validation",
    )
    axes.set(xlabel="evaluations", ylabel=f"{fitness}, higher is better")
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="lower right")


@contextmanager
def _drawing(path: Path, n_panels: int) -> Iterator[list[Axes]]:
    """Yield so many panels to draw on, and write them to a PNG file."""
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
        figure.savefig(content, format="png", dpi=150)
    write_atomically(path, [content.getvalue()])
