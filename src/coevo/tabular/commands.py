"""The command line of tables and models: coevo train, predict, export and inspect."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.tabular.options import with_settings
from coevo.variants import VARIANTS

if TYPE_CHECKING:
    from coevo.tabular.display import Display
    from coevo.tabular.job import Job
    from coevo.tabular.run_folder import RunFolder
    from coevo.tabular.training import Examples, Report

DataArgument = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="A CSV file, also gzipped, or a Parquet file."),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A run folder, or the model file in it.")
]
EncodingOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a CSV file; found out if not given."),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(metavar="C", help="Of a CSV file; found out if not given."),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text that stands for a missing value, besides the empty one, NA, ? and so on; "
        "may be repeated.",
    ),
]


def _complete_variant(incomplete: str) -> list[str]:
    return [name for name in VARIANTS if name.startswith(incomplete.upper())]


def _complete_task(incomplete: str) -> list[str]:
    return [name for name in ("classification", "regression") if name.startswith(incomplete)]


@with_settings
def train(
    *,
    data: DataArgument = None,
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
            metavar="X", show_default=False, help="Rows held out for the test. Default: 0.2."
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            show_default=False,
            help="Training rows that choose the network, if that makes 100 or more. Default: 0.2.",
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
            help="A column of numbers that stand for categories; may be repeated.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated."),
    ] = None,
    max_categories: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="How many categories of a column are told apart. Default: 20.",
        ),
    ] = None,
    missing: MissingOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    settings: dict[str, Any],
) -> None:
    """Train a network on a table and leave model, metrics and a learning curve in a run folder.

    Columns of numbers and of texts and missing values are taken care of. Ctrl-C once stops after
    the generation, saves the best network and says how to go on.
    """
    from coevo.tabular import training  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.display import Display  # noqa: PLC0415
    from coevo.tabular.job import Job, read_job  # noqa: PLC0415

    changes = {
        "data": None if data is None else str(data), "target": target, "task": task,
        "variant": variant, "test_fraction": test_fraction,
        "validation_fraction": validation_fraction, "class_weight": class_weight,
        "categorical": categorical or None, "drop": drop or None,
        "max_categories": max_categories, "missing": missing or None, "encoding": encoding,
        "delimiter": delimiter,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None} | settings
    say = _Teller(as_json)
    try:
        with Display() as display:
            display.say("reading")
            say.display = display
            callbacks = (display,)
            if resume is not None:
                if config is not None or output is not None:
                    raise ValueError("--resume goes without --config and --output")
                report = training.resume(resume, changes, callbacks, say.beginning)
            else:
                job = (Job() if config is None else read_job(config)).with_changes(changes)
                report = training.train(job, output, callbacks, say.beginning)
    except KeyboardInterrupt:
        if say.folder is not None and say.folder.checkpoint.exists():
            typer.echo(f"coevo: interrupted; {_how_to_resume(say.folder)}", err=True)
            raise typer.Exit(130) from None
        raise
    say.outcome(report)
    if report.was_interrupted:
        typer.echo(f"coevo: stopped by Ctrl-C; {_how_to_resume(report.folder)}", err=True)
        raise typer.Exit(130)


def predict(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A CSV file, also gzipped, or a Parquet file.")
    ],
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
    missing: MissingOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
) -> None:
    """Predict a row for each row of DATA, as CSV. Tables of any length take the same memory."""
    from coevo.files import write_atomically  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.reading import open_table  # noqa: PLC0415
    from coevo.tabular.using import Strangers, TableModel, csv_parts  # noqa: PLC0415

    loaded = TableModel.load(model)
    table = open_table(data, encoding=encoding, delimiter=delimiter, missing=missing or ())
    loaded.check(table)
    table.check_columns(keep or (), "named by --keep")
    strangers = Strangers()
    parts = csv_parts(loaded.answers(table, keep or (), proba, strangers))
    if output is not None:
        write_atomically(output, parts)
        typer.echo(f"wrote {output}")
    else:
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    for note in strangers:
        typer.echo(f"note: {note}", err=True)


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
    from coevo.tabular.exporting import export as export_table  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.using import TableModel  # noqa: PLC0415

    if not onnx:
        raise ValueError("say which format: --onnx")
    loaded = TableModel.load(model)
    path = output or loaded.path.with_suffix(".onnx")
    lines = export_table(loaded, path)
    typer.echo("\n".join([f"wrote {path}", *(f"  {line}" for line in lines)]))


def inspect(
    model: ModelArgument,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the history and the weights to this PNG file."),
    ] = None,
) -> None:
    """Say what a model is: settings, columns, layers, sparsity and how its weights are spread."""
    from coevo import model as files  # noqa: PLC0415 - keeps --help fast
    from coevo.tabular.inspecting import comparable, describe, read_history  # noqa: PLC0415
    from coevo.tabular.run_folder import find_model  # noqa: PLC0415

    path = find_model(model)
    loaded = files.load(path)
    for line in describe(path, loaded):
        typer.echo(line)
    if plot is not None:
        from coevo.tabular.figures import draw_model  # noqa: PLC0415 - matplotlib is slow

        fitness = str((loaded.settings or {}).get("fitness", "fitness"))
        draw_model(plot, comparable(loaded), read_history(model), fitness)
        typer.echo(f"\nwrote {plot}")


def _how_to_resume(folder: RunFolder) -> str:
    return f"`coevo train --resume {shlex.quote(str(folder.path))}` goes on from here"


class _Teller:
    """Tells people how a training begins and ends; machines get one JSON object at the end."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.folder: RunFolder | None = None
        self.display: Display | None = None

    def beginning(self, job: Job, examples: Examples, folder: RunFolder) -> None:
        """Say what is about to be learned from what."""
        from coevo.tabular.columns import shorten  # noqa: PLC0415 - keeps --help fast

        self.folder = folder
        assert self.display is not None
        self.display.say("evolving")
        if self._as_json:
            return
        texts = [name for name in examples.inputs if examples.inputs[name].dtype == object]
        n_numbers = examples.inputs.shape[1] - len(texts)
        which = f" ({shorten(texts)})" if texts else ""
        lines = [
            f"{Path(job.data or '').name}: {len(examples.training)} rows to train on, "
            f"{len(examples.test)} to test on, {n_numbers} columns of numbers, {len(texts)} of "
            f"texts{which}",
            f"{examples.task}, because {examples.reason}",
            *(f"note: {note}" for note in examples.notes),
        ]
        with self.display.pause():
            for line in lines:
                typer.echo(line)

    def outcome(self, report: Report) -> None:
        """Say what came of it."""
        if self._as_json:
            typer.echo(json.dumps({"folder": str(report.folder.path), **report.metrics}))
            return
        for line in _summary(report):
            typer.echo(line)


def _summary(report: Report) -> Iterator[str]:
    from coevo.tabular import measuring  # noqa: PLC0415 - keeps --help fast

    metrics, folder = report.metrics, report.folder
    fitness = metrics["fitness"]
    end = "Ctrl-C" if report.was_interrupted else metrics["stop_reason"]
    yield (
        f"{metrics['evaluations']:,} evaluations in {metrics['generations']:,} generations and "
        f"{metrics['seconds']:.1f} s, ended by {end}; best {fitness['measure']} "
        f"on the {fitness['chosen_on']} part {fitness['validation']:.4g}"
    )
    is_improving = fitness["improved_at"] > 0.9 * metrics["evaluations"]
    if is_improving and fitness["chosen_on"] == "validation" and not report.was_interrupted:
        more = f"coevo train --resume {shlex.quote(str(folder.path))}"
        yield f"it was still improving: `{more}` with a larger budget goes on"
    yield ""
    yield from measuring.table_of(metrics["parts"])
    if "test" in metrics["parts"]:
        yield ""
        test = metrics["parts"]["test"]
        if metrics["task"] == "classification":
            yield from measuring.matrix_of(test["confusion_matrix"], metrics["classes"])
        else:
            yield from measuring.quantiles_of(test["residual_quantiles"])
    yield ""
    yield f"wrote {folder.path}: {', '.join(file.name for file in sorted(folder.path.iterdir()))}"
    yield f"next: coevo predict {shlex.quote(str(folder.path))} NEW.csv"


def add_to(app: typer.Typer) -> None:
    """Put the commands on the desk."""
    app.command(epilog="Example: coevo train iris.csv --target species --max-seconds 10")(train)
    app.command(epilog="Example: coevo predict runs/iris-1 new.csv --output answers.csv")(predict)
    app.command(epilog="Example: coevo export runs/iris-1 --onnx --output iris.onnx")(export)
    app.command(epilog="Example: coevo inspect runs/iris-1 --plot iris.png")(inspect)
