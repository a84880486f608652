"""The command line of studies: coevo study run, status, report, list, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from coevo.study.plan import Plan
    from coevo.study.running import Progress
    from coevo.study.store import Store

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
    """Do the runs of a study that are missing. May be stopped and started again at any time."""
    from coevo.study.running import run_study  # noqa: PLC0415 - keeps --help fast
    from coevo.study.store import Store  # noqa: PLC0415

    chosen = _read(plan, only, seeds, row)
    try:
        with Store(store or Path(f"{chosen.name}.sqlite")) as results, _Display() as display:
            if backend != "dask":  # there the workers need the data, not we
                _check_data(chosen, results)
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
    typer.echo(_sentence(progress))
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
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    from coevo.study.exchange import open_results  # noqa: PLC0415

    chosen = _read(plan, only, seeds, row)
    with open_results(store or Path(f"{chosen.name}.sqlite")) as results:
        keys = [run.key for run in chosen.runs]
        states, records = results.states(keys), results.records(keys)
    table = Table("experiment", "row", "done", "failed", "running", "waiting")
    for experiment in chosen.experiments:
        for one in experiment.rows:
            found = [states.get(run.key, "waiting") for run in one.runs]
            counts = [found.count(s) for s in ("done", "failed", "running", "waiting")]
            table.add_row(experiment.name, one.label, *(str(n) if n else "" for n in counts))
    Console().print(table)
    for record in records.values():
        if record.state == "failed":
            run = record.run
            typer.echo(f"{run.variant} on {run.dataset}, seed {run.seed}: {record.error}")


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
    with open_results(store or Path(f"{chosen.name}.sqlite")) as results:
        records = results.records([run.key for run in chosen.runs])
    page = write_report(chosen, records, output or Path(f"{chosen.name}-report"), plan)
    typer.echo(f"wrote {page}, with tables and figures beside it")


@study_app.command("list", epilog="Example: coevo study list")
def list_plans() -> None:
    """Show the plans that come with coevo."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415

    from coevo.study.plan import SHIPPED, read_plan  # noqa: PLC0415

    table = Table("plan", "runs", "experiments", "about")
    for name in SHIPPED:
        plan = read_plan(name)
        names = ", ".join(experiment.name for experiment in plan.experiments)
        table.add_row(name, str(len(plan.runs)), names, " ".join(plan.about.split()))
    Console().print(table)


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
    with open_results(store or Path(f"{chosen.name}.sqlite")) as results:
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


def _read(
    plan: str,
    only: list[str] | None = None,
    seeds: int | None = None,
    rows: list[str] | None = None,
) -> Plan:
    from coevo.study.plan import read_plan  # noqa: PLC0415 - keeps --help fast

    return read_plan(plan).only(only or (), seeds, rows or ())


def _check_data(plan: Plan, results: Store) -> None:
    """Fetch what is missing before any run needs it; better one clear line than many failures."""
    from coevo.datasets import DatasetError, fetch  # noqa: PLC0415 - keeps --help fast

    states = results.states(run.key for run in plan.runs)
    needed = (run.dataset for run in plan.runs if states.get(run.key) != "done")
    for dataset in dict.fromkeys(needed):
        try:
            fetch(dataset)
        except DatasetError as error:
            raise ValueError(f"{error}. To leave it out, name the others with --only") from error


def _sentence(progress: Progress) -> str:
    return f"{progress.done} of {progress.total} runs done, {progress.failed} failed"


class _Display:
    """A bar for all runs with the time left; silent unless there is a terminal to see it."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - keeps --help fast
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        console = Console(stderr=True)
        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[latest]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, left="", latest="")

    def __enter__(self) -> _Display:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, progress: Progress) -> None:
        """Show how far the study is."""
        self._bar.update(
            self._task,
            total=progress.total,
            completed=progress.done + progress.failed,
            left=_left(progress.seconds_left),
            latest=_latest(progress.latest),
        )


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "time left unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left"


def _latest(latest: tuple[Any, Any] | None) -> str:
    if latest is None:
        return ""
    run, result = latest
    test = getattr(result, "test", None)
    gave = "failed" if test is None else f"{test:.1%} on test"
    return f"{run.variant} on {run.dataset}, seed {run.seed}: {gave}"
