"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA_HELP = "A CSV file, also gzipped, or a Parquet file."

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A run folder, or the model file in it.")
]
EncodingOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a CSV file; detected if not given.")
]
DelimiterOption = Annotated[
    str | None, typer.Option(metavar="C", help="Of a CSV file; detected if not given.")
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text that stands for a missing value, besides the empty one, NA, ? and so on; "
        "may be repeated.",
    ),
]
