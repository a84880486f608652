"""coevo predict."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from coevo.cli.arguments import (
    DATA_HELP,
    DelimiterOption,
    EncodingOption,
    MissingOption,
    ModelArgument,
)
from coevo.runtime.terminal import printable


def predict(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=DATA_HELP)],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The CSV file to write; default: stdout.")
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column with the probability of each class.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column of DATA to copy to the output; may be repeated."
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put ' before texts that a spreadsheet would run as a formula (= + - @).",
        ),
    ] = False,
    check_range: Annotated[
        bool,
        typer.Option(help="Note columns with numbers far outside the range they had in training."),
    ] = True,
    missing: MissingOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
) -> None:
    """Predict the target of each row of DATA, as CSV. The table may be longer than memory."""
    from coevo.estimators.range_check import RangeCheck  # noqa: PLC0415 - keeps --help fast
    from coevo.persistence.atomic import write_atomically  # noqa: PLC0415
    from coevo.tabular.prediction import TableModel, UnknownCategories, csv_chunks  # noqa: PLC0415
    from coevo.tabular.reading import open_table  # noqa: PLC0415
    from coevo.tabular.run_folder import is_model  # noqa: PLC0415

    if is_model(data) and not is_model(model):
        words = shlex.join(["coevo", "predict", str(data), str(model)])
        raise ValueError(f"MODEL stands before DATA: {words}")
    loaded = TableModel.load(model)
    table = open_table(data, encoding=encoding, delimiter=delimiter, missing=missing or ())
    loaded.check(table)
    table.check_columns(keep or (), "named by --keep")
    unknown = UnknownCategories()
    far = RangeCheck(loaded.preprocessing.encoding) if check_range else None
    frames = loaded.predict(table, keep or (), proba, unknown, far)
    chunks = csv_chunks(frames, escape_formulas)
    if output is not None:
        write_atomically(output, chunks)
        typer.echo(f"wrote {output}")
    elif sys.stdout.isatty():
        for chunk in chunks:
            for line in chunk.decode().splitlines():
                typer.echo(printable(line))
    else:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    for note in (*unknown.notes(), *(far.notes() if far is not None else ())):
        typer.echo(f"note: {printable(note)}", err=True)


def add_to(app: typer.Typer) -> None:
    """Add the command to a group."""
    app.command(epilog="Example: coevo predict runs/iris-1 new.csv --output answers.csv")(predict)
