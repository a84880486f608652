"""coevo export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coevo.cli.arguments import ModelArgument
from coevo.runtime.terminal import printable


def export(
    model: ModelArgument,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As an ONNX graph, the one format so far.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write; default: model.onnx beside MODEL."),
    ] = None,
) -> None:
    """Export a model, preprocessing included, for programs that know nothing of Python."""
    from coevo.tabular.export import export_table_model  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.prediction import TableModel  # noqa: PLC0415

    if not onnx:
        raise ValueError("say which format: --onnx")
    loaded = TableModel.load(model)
    path = output or loaded.path.with_suffix(".onnx")
    lines = export_table_model(loaded, path)
    typer.echo(f"wrote {path}")
    for line in lines:
        typer.echo(f"  {printable(line)}")


def add_to(app: typer.Typer) -> None:
    """Add the command to a group."""
    app.command(epilog="Example: coevo export runs/iris-1 --onnx --output iris.onnx")(export)
