"""The commands coevo bench and doctor."""

from __future__ import annotations

import json
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def bench(
    shape: Annotated[
        str, typer.Option(metavar="N-N-N", help="Inputs, hidden neurons, outputs.")
    ] = "30-50-2",
    variant: Annotated[
        str, typer.Option(metavar="NAME", help="DE, LEDE, CCDE or LECCDE.")
    ] = "LECCDE",
    batch_size: Annotated[int, typer.Option(metavar="N", help="Instances in a batch.")] = 100,
    population_size: Annotated[
        int, typer.Option(metavar="N", help="Individuals in each subpopulation.")
    ] = 20,
    seconds: Annotated[float, typer.Option(metavar="X", help="How long to measure.")] = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Measure evaluations a second on this machine, beside batched NumPy on the same shape."""
    from coevo._validation import check_integer, check_real  # noqa: PLC0415 - keeps --help fast
    from coevo.diagnostics.bench import measure, parse_shape  # noqa: PLC0415
    from coevo.runtime.progress import Progress  # noqa: PLC0415

    check_real("--seconds", seconds, 0, 3600, above=True)
    check_integer("--batch-size", batch_size, 2)
    sizes = parse_shape(shape)
    with Progress("measuring"):
        speed = measure(
            sizes,
            variant=variant,
            batch_size=batch_size,
            population_size=population_size,
            seconds=seconds,
        )
    found = speed.as_json()
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(
        f"{speed.variant} on {speed.shape}, batches of {speed.batch_size}, NP {population_size}\n"
        f"  coevo, complete runs       {speed.evaluations_per_second:>12,.0f} evaluations/s\n"
        f"  NumPy, forward passes only {speed.numpy_evaluations_per_second:>12,.0f} evaluations/s\n"
        f"  ratio                      {found['ratio']:>12.1f}\n"
        f"  SGEMM of this machine      {speed.sgemm_flops / 1e9:>12,.0f} GFLOP/s"
    )
    if busy := found["busy"]:
        typer.echo(f"note: {busy}")


def doctor(as_json: JsonOption = False) -> None:
    """Say what coevo finds on this machine: versions, BLAS, threads, speed, cached kernels."""
    from coevo.diagnostics.doctor import describe, examine  # noqa: PLC0415 - keeps --help fast
    from coevo.runtime.progress import Progress  # noqa: PLC0415

    with Progress("examining"):
        findings = examine()
    typer.echo(json.dumps(findings) if as_json else "\n".join(describe(findings)))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Example: coevo bench --shape 561-50-6 --batch-size 500")(bench)
    app.command(epilog="Example: coevo doctor")(doctor)
