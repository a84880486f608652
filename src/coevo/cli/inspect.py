"""coevo inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coevo.cli.arguments import ModelArgument
from coevo.runtime.terminal import printable


def inspect(
    model: ModelArgument,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw history, importance and weights to this PNG file."),
    ] = None,
) -> None:
    """Describe a model: columns and their importance, settings, layers, weights."""
    from coevo.persistence.model import load  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.inspection import (  # noqa: PLC0415
        describe,
        plot_model,
        read_importance,
    )
    from coevo.tabular.run_folder import find_model  # noqa: PLC0415

    path = find_model(model)
    loaded = load(path)
    for line in describe(path, loaded, read_importance(path.parent)):
        typer.echo(printable(line))
    if plot is not None:
        plot_model(plot, loaded, path.parent)
        typer.echo(f"\nwrote {plot}")


def add_to(app: typer.Typer) -> None:
    """Add the command to a group."""
    app.command(epilog="Example: coevo inspect runs/iris-1 --plot iris.png")(inspect)
