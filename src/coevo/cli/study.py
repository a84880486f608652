"""The commands coevo study run, status, report, list, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from coevo.study.plan import Plan

study_app = typer.Typer(
    no_args_is_help=True, help="Run many experiments, resumably and in parallel, and report them."
)

PlanArgument = Annotated[
    str, typer.Argument(metavar="PLAN", help="quick, paper, or the path of a TOML file.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Where results are; default: PLAN.sqlite here."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="EXPERIMENT", help="Only this experiment; may be repeated."),
]
RowOption = Annotated[
    list[str] | None,
    typer.Option("--row", metavar="VARIANT", help="Only this row of tables; may be repeated."),
]
SeedsOption = Annotated[
    int | None, typer.Option("--seeds", metavar="N", help="Only the first N seeds of each row.")
]


@study_app.command(epilog="Example: coevo study run quick --workers 2")
def run(
    plan: PlanArgument,
    store: StoreOption = None,
    only: OnlyOption = None,
    row: RowOption = None,
    seeds: SeedsOption = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes; default: one for each core.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Cores for each run; default: an equal share.")
    ] = None,
    backend: Annotated[str, typer.Option(help="processes, or dask.")] = "processes",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, as tcp://host:8786.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Do failed runs again.")
    ] = False,
) -> None:
    """Do the runs of a study that are missing. It can be stopped and started again at any time."""
    from coevo.cli.study_progress import StudyDisplay  # noqa: PLC0415 - keeps --help fast
    from coevo.study.runner import fetch_datasets, run_study  # noqa: PLC0415
    from coevo.study.store import Store  # noqa: PLC0415

    chosen = _read(plan, only, seeds, row)
    try:
        with Store(_path(store, chosen)) as results, StudyDisplay(chosen.name) as display:
            if backend != "dask":  # there only the workers need the data
                fetch_datasets(chosen, results)
            progress = run_study(
                chosen,
                results,
                backend=backend,
                workers=workers,
                threads=threads,
                scheduler=scheduler,
                retry_failed=retry_failed,
                on_progress=display.update,
            )
    except KeyboardInterrupt:
        typer.echo("coevo: interrupted; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{progress.done} of {progress.total} runs done, {progress.failed} failed")
    if progress.failed:
        typer.echo(
            "coevo: some runs failed; `coevo study status` says why, --retry-failed does them "
            "again",
            err=True,
        )
        raise typer.Exit(1)


@study_app.command(epilog="Example: coevo study status quick")
def status(
    plan: PlanArgument,
    store: StoreOption = None,
    only: OnlyOption = None,
    row: RowOption = None,
    seeds: SeedsOption = None,
) -> None:
    """Say how far a study is, row by row, and why runs failed."""
    from coevo.cli.study_progress import name_run  # noqa: PLC0415 - keeps --help fast
    from coevo.runtime.terminal import printable  # noqa: PLC0415
    from coevo.study.exchange import open_results  # noqa: PLC0415

    chosen = _read(plan, only, seeds, row)
    with open_results(_path(store, chosen)) as results:
        keys = [run.key for run in chosen.runs]
        states, records = results.states(keys), results.records(keys)
    lines = []
    for experiment in chosen.experiments:
        for one in experiment.rows:
            found = [states.get(run.key, "waiting") for run in one.runs]
            counts = [found.count(s) for s in ("done", "failed", "running", "waiting")]
            lines.append([experiment.name, one.label, *(str(n) if n else "" for n in counts)])
    _print_table(["experiment", "row", "done", "failed", "running", "waiting"], lines)
    for record in records.values():
        if record.state == "failed":
            typer.echo(printable(f"{name_run(record.run)}: {record.error}"))


@study_app.command(epilog="Example: coevo study report quick --output report")
def report(
    plan: PlanArgument,
    store: StoreOption = None,
    only: OnlyOption = None,
    row: RowOption = None,
    seeds: SeedsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write; default: PLAN-report here."),
    ] = None,
) -> None:
    """Make tables, figures and one HTML page of a store, or of what `export` wrote."""
    from coevo.study.exchange import open_results  # noqa: PLC0415 - keeps --help fast
    from coevo.study.report import write_report  # noqa: PLC0415

    chosen = _read(plan, only, seeds, row)
    with open_results(_path(store, chosen)) as results:
        records = results.records([run.key for run in chosen.runs])
    page = write_report(chosen, records, output or Path(f"{chosen.name}-report"), plan)
    typer.echo(f"wrote {page}, with tables and figures beside it")


@study_app.command("list", epilog="Example: coevo study list")
def list_plans() -> None:
    """Show the plans that come with coevo."""
    from coevo.study.plan import SHIPPED, read_plan  # noqa: PLC0415 - keeps --help fast

    lines = []
    for name in SHIPPED:
        plan = read_plan(name)
        names = ", ".join(experiment.name for experiment in plan.experiments)
        lines.append([name, str(len(plan.runs)), names, " ".join(plan.about.split())])
    _print_table(["plan", "runs", "experiments", "about"], lines)


@study_app.command("export", epilog="Example: coevo study export quick quick.json")
def export_results(
    plan: PlanArgument,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The text file to write.")],
    store: StoreOption = None,
    points: Annotated[int, typer.Option(metavar="N", help="Points kept of each history.")] = 40,
) -> None:
    """Write a study's results to a small text file that can be committed and reported."""
    from coevo.study.exchange import export_runs, open_results  # noqa: PLC0415

    chosen = _read(plan)
    with open_results(_path(store, chosen)) as results:
        records = results.records()
    keys = [run.key for run in chosen.runs]
    n = export_runs([records[key] for key in keys if key in records], target, points)
    typer.echo(f"wrote {n} runs to {target}")


@study_app.command("import", epilog="Example: coevo study import quick.json --store quick.sqlite")
def import_results(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.")],
    store: Annotated[Path, typer.Option("--store", metavar="FILE", help="Where they go.")],
) -> None:
    """Put exported results into a store; runs that it has done itself stay."""
    from coevo.study.exchange import import_runs  # noqa: PLC0415
    from coevo.study.store import Store  # noqa: PLC0415

    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    with Store(store) as results:
        n = import_runs(results, source)
    typer.echo(f"{n} runs were new to {store}")


def _print_table(header: list[str], lines: list[list[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from coevo.runtime.terminal import printable  # noqa: PLC0415

    table = Table(*header)
    for line in lines:  # as Text: labels of a plan are no markup
        table.add_row(*(Text(printable(cell)) for cell in line))
    Console().print(table)


def _path(store: Path | None, plan: Plan) -> Path:
    return store or Path(f"{plan.name}.sqlite")


def _read(
    plan: str,
    only: list[str] | None = None,
    seeds: int | None = None,
    rows: list[str] | None = None,
) -> Plan:
    from coevo.study.plan import read_plan  # noqa: PLC0415 - keeps --help fast

    return read_plan(plan).only(only or (), seeds, rows or ())
