"""coevo train."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from coevo.cli.arguments import DATA_HELP, DelimiterOption, EncodingOption, MissingOption
from coevo.runtime.progress import Progress
from coevo.runtime.terminal import printable
from coevo.tabular.options import with_settings
from coevo.training.variants import VARIANTS

if TYPE_CHECKING:
    from coevo.core.settings import Settings
    from coevo.tabular.examples import Examples
    from coevo.tabular.job import Job
    from coevo.tabular.run_folder import RunFolder


USUAL = {
    "data", "target", "task", "output", "resume", "categorical", "drop", "date", "missing",
    "hidden_layer_sizes", "fitness", "max_evaluations", "max_seconds", "seed", "help", "help_all",
}  # fmt: skip
"""The options that `--help` shows; `--help-all` shows all of them."""


class TrainCommand(TyperCommand):
    """A command whose help leaves out what few people use."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        left_out = [p for p in self.params if p.name not in USUAL and not ctx.meta.get("help_all")]
        for parameter in left_out:  # hidden for good, they would not be completed in the shell
            parameter.hidden = True  # type: ignore[attr-defined]
        try:
            super().format_help(ctx, formatter)
        finally:
            for parameter in left_out:
                parameter.hidden = False  # type: ignore[attr-defined]


def _show_all_help(ctx: typer.Context, is_asked: bool) -> None:
    if is_asked:
        ctx.meta["help_all"] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def _complete_variant(incomplete: str) -> list[str]:
    return [name for name in VARIANTS if name.startswith(incomplete.upper())]


def _complete_task(incomplete: str) -> list[str]:
    return [name for name in ("classification", "regression") if name.startswith(incomplete)]


@with_settings
def train(
    *,
    data: Annotated[Path | None, typer.Argument(metavar="DATA", help=DATA_HELP)] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="classification or regression; inferred from the target if not given.",
            autocompletion=_complete_task,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The run folder; default: runs/NAME-DATE-TIME."),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="DE, LEDE, CCDE or LECCDE: short for decomposition and limited evaluation.",
            autocompletion=_complete_variant,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A TOML file with any of these options; the command line wins."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Go on with the run in this folder, exactly."),
    ] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="X", show_default=False, help="Fraction of rows to test on. Default: 0.2."
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            show_default=False,
            help="Fraction of the training rows that choose the network, if these are 100 or more. "
            "Default: 0.2.",
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="balanced: rare classes count as much as frequent ones."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column to take as categorical though it holds numbers; may be repeated.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
    ] = None,
    date: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column to take as dates, or COLUMN=FORMAT such as when=%d/%m/%y; most are "
            "recognised; may be repeated.",
        ),
    ] = None,
    max_categories: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Categories of a column that get an input of their own. Default: 20.",
        ),
    ] = None,
    missing: MissingOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    help_all: Annotated[
        bool,
        typer.Option(
            "--help-all",
            callback=_show_all_help,
            is_eager=True,
            help="Show all options, also those that few people use.",
        ),
    ] = False,
    settings: dict[str, Any],
) -> None:
    """Train a network on a table and leave model, metrics and a report in a run folder.

    Numbers, categories, dates and missing values are taken care of. Ctrl-C once
    stops after the generation, saves the best network and says how to go on.
    """
    from coevo.tabular.summary import (  # noqa: PLC0415 - keeps --help fast
        describe_examples,
        describe_report,
        how_to_resume,
    )

    changes = {
        "data": None if data is None else str(data), "target": target, "task": task,
        "variant": variant, "test_fraction": test_fraction,
        "validation_fraction": validation_fraction, "class_weight": class_weight,
        "categorical": categorical or None, "drop": drop or None,
        "date": date or None,
        "max_categories": max_categories, "missing": missing or None, "encoding": encoding,
        "delimiter": delimiter,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None} | settings
    if resume is not None and (config is not None or output is not None):
        raise ValueError("--resume goes without --config and --output")
    started: list[RunFolder] = []
    warnings.filterwarnings("ignore", message="interrupted in generation")  # is said below
    # A program that reads JSON gets nothing else; a person at a terminal still gets the bar.
    is_shown = not as_json or sys.stderr.isatty()
    try:
        with Progress("reading", total=1, is_shown=is_shown) as progress:
            from coevo.tabular import training  # noqa: PLC0415 - slow to import
            from coevo.tabular.job import Job, read_job  # noqa: PLC0415
            from coevo.training.progress import (  # noqa: PLC0415
                SearchProgress,
                describe_choices,
            )

            def begin(job: Job, examples: Examples, folder: RunFolder, chosen: Settings) -> None:
                started.append(folder)
                if not as_json:
                    with progress.pause():
                        _echo([*describe_examples(job, examples), describe_choices(chosen)])
                progress.say("evolving")

            callbacks = (SearchProgress(progress),)
            if resume is not None:
                report = training.resume(resume, changes, callbacks, begin)
            else:
                job = (Job() if config is None else read_job(config)).with_changes(changes)
                report = training.train(job, output, callbacks, begin)
    except KeyboardInterrupt:
        if started and started[0].checkpoint.exists():
            typer.echo(f"coevo: interrupted; {how_to_resume(started[0])}", err=True)
            raise typer.Exit(130) from None
        raise
    if as_json:
        typer.echo(json.dumps({"folder": str(report.folder.path), **report.metrics}))
    else:
        _echo(describe_report(report))
    if report.was_interrupted:
        typer.echo(f"coevo: stopped by Ctrl-C; {how_to_resume(report.folder)}", err=True)
        raise typer.Exit(130)


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(printable(line))


def add_to(app: typer.Typer) -> None:
    """Add the command to a group."""
    epilog = "Example: coevo train iris.csv --target species --max-seconds 10"
    app.command(cls=TrainCommand, epilog=epilog)(train)
