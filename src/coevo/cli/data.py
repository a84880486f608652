"""The commands coevo data list, fetch and verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

data_app = typer.Typer(no_args_is_help=True, help="See, download and verify the paper's data sets.")

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="The data folder; default: COEVO_DATA_HOME or a cache."
    ),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="WBC, ESR, HAR, MNIST or digits; default: all."),
]


@data_app.command("list", epilog="Example: coevo data list")
def list_data(folder: FolderOption = None) -> None:
    """Say which data sets are there, and where."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    from coevo.datasets import NAMES, status  # noqa: PLC0415

    table = Table("data set", "state", "where")
    for name in NAMES:
        found = status(name, folder)
        if found.folder is None:
            table.add_row(name, "there", "comes with scikit-learn")
        elif found.is_complete:
            place = next(iter(found.places.values()))
            table.add_row(name, "there", str(place.path.parent))
        else:
            advice = "coevo data fetch gets it" if found.is_downloadable else "only by hand"
            table.add_row(name, "missing", f"{advice}; goes to {found.folder}")
    Console().print(table)


@data_app.command(epilog="Example: coevo data fetch HAR MNIST")
def fetch(names: NamesArgument = None, folder: FolderOption = None) -> None:
    """Download what is missing, verified by checksum; without names, all that can be had."""
    from coevo.datasets import NAMES, status  # noqa: PLC0415 - keeps --help fast
    from coevo.datasets import fetch as fetch_data  # noqa: PLC0415
    from coevo.runtime.progress import Progress  # noqa: PLC0415

    def can_fetch(name: str) -> bool:
        found = status(name, folder)
        return found.is_complete or found.is_downloadable

    chosen = names or [name for name in NAMES if can_fetch(name)]
    with Progress("downloading") as display:

        def show(file: str, received: int, total: int | None) -> None:
            display.update(received, f"{file}, {received / 1e6:,.1f} MB", total)

        for name in chosen:
            found = fetch_data(name, folder, progress=show)
            where = "comes with scikit-learn" if found.folder is None else f"is in {found.folder}"
            with display.pause():
                typer.echo(f"{name} {where}")


@data_app.command(epilog="Example: coevo data verify HAR")
def verify(names: NamesArgument = None, folder: FolderOption = None) -> None:
    """Compare every file with its published checksum; without names, all that are there."""
    from coevo.datasets import NAMES, status  # noqa: PLC0415 - keeps --help fast
    from coevo.datasets import verify as verify_data  # noqa: PLC0415

    is_wrong = False
    for name in names or [name for name in NAMES if status(name, folder).is_complete]:
        checks = verify_data(name, folder)
        wrong = [check.file for check in checks if not check.is_right]
        is_wrong |= bool(wrong)
        if wrong:
            state = f"missing or not as published: {', '.join(wrong)}"
        else:
            state = f"{len(checks)} files as published" if checks else "comes with scikit-learn"
        typer.echo(f"{name}: {state}")
    if is_wrong:
        raise typer.Exit(1)
