"""The commands coevo policy train and watch."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from coevo.policies.defaults import DEFAULTS
from coevo.runtime.progress import Progress
from coevo.runtime.terminal import printable
from coevo.tabular.options import with_settings

policy_app = typer.Typer(
    no_args_is_help=True, help="Evolve a policy in a simulator, and watch it act."
)


def train(
    *,
    env: Annotated[str, typer.Argument(metavar="ENV", help="The id of a Gymnasium environment.")],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The policy; default: ENV.safetensors."),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="DE, LEDE, CCDE or LECCDE.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", help="Cut episodes off after this many steps.")
    ] = None,
    training_seeds: Annotated[
        int, typer.Option(metavar="N", help="Episode seeds that batches are drawn from.")
    ] = 10_000,
    validation_seeds: Annotated[
        int, typer.Option(metavar="N", help="Episode seeds that choose the policy.")
    ] = 20,
    bounds: Annotated[
        str, typer.Option(help="How actions are kept within a Box: squash, or clip.")
    ] = "squash",
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="Measure a whole layer at once: fills more workers."),
    ] = False,
    backend: Annotated[
        str, typer.Option(help="Where episodes are run: serial, processes or dask.")
    ] = "processes",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes; default: one for each core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, as tcp://host:8786.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the search here every minute.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    settings: dict[str, Any],
) -> None:
    """Evolve a policy and write it to a file. Ctrl-C once stops after the generation."""
    path = output or Path(f"{env.replace('/', '-')}.safetensors")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"--output: the folder {path.parent} does not exist")
    if checkpoint is not None and checkpoint.exists() and not resume:
        raise FileExistsError(
            f"the checkpoint {checkpoint} is there already; go on from it with --resume, or "
            "remove it"
        )
    with Progress("evolving", total=1, is_shown=not as_json or sys.stderr.isatty()) as progress:
        from coevo.policies.evolve import evolve_policy  # noqa: PLC0415 - slow to import
        from coevo.policies.progress import Announcement, PolicyProgress  # noqa: PLC0415

        def announce(line: str) -> None:
            if not as_json:
                with progress.pause():
                    typer.echo(line, err=True)

        result = evolve_policy(
            env, variant=variant, max_steps=max_steps, n_training_seeds=training_seeds,
            n_validation_seeds=validation_seeds, bounds=bounds, simultaneous=simultaneous,
            backend=backend, n_workers=workers, cluster=scheduler, checkpoint=checkpoint,
            resume=resume, callbacks=[Announcement(announce), PolicyProgress(progress)],
            **settings,
        )  # fmt: skip
        result.save(path)
        progress.say("measuring")
        measured = result.mean_return(100, backend=backend, n_workers=workers, cluster=scheduler)
    content = {
        "policy": str(path), "mean_return": measured.mean,
        "interval": [measured.low, measured.high], "validation_return": result.validation_return,
        "episodes": result.episodes, "steps": result.steps, "generations": result.generations,
        "seconds": result.seconds, "stop_reason": str(result.stop_reason),
        "seed": result.settings.seed,
    }  # fmt: skip
    if as_json:
        typer.echo(json.dumps(content))
        return
    typer.echo(
        f"mean return {measured.mean:.4g}, 95 % interval {measured.low:.4g} to "
        f"{measured.high:.4g}, on {measured.n_episodes} fresh seeds"
    )
    typer.echo(
        f"{result.steps:,} steps in {result.episodes:,} episodes, {result.generations:,} "
        f"generations, {result.seconds:.1f} s; seed {result.settings.seed}"
    )
    typer.echo(printable(f"The policy is in {path}; see it: coevo policy watch {path}"))


@policy_app.command(epilog="Example: coevo policy watch CartPole-v1.safetensors --output pole.gif")
def watch(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file of `policy train`.")],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a .gif or .mp4 instead of opening a window."),
    ] = None,
    env: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment with the same spaces.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the first episode.")] = 0,
    episodes: Annotated[int, typer.Option(metavar="N", min=1, help="How many, in a window.")] = 1,
) -> None:
    """Watch a policy act, in a window, or as a GIF or MP4, for which no screen is needed."""
    from coevo.policies.policy import load_policy  # noqa: PLC0415 - slow to import
    from coevo.policies.rendering import play  # noqa: PLC0415

    if not model.is_file():
        raise FileNotFoundError(f"there is no model at {model}")
    policy = load_policy(model)
    if output is not None:
        total = policy.record(output, seed=seed, env=env)
        typer.echo(printable(f"return {total:.4g}; the episode is in {output}"))
        return
    made = policy.make_environment(env, render_mode="human")
    try:
        for episode in range(episodes):
            *_, total = play(policy, made, seed + episode, policy.max_steps)
            typer.echo(f"seed {seed + episode}: return {total:.4g}")
    finally:
        made.close()


_with_options = partial(with_settings, defaults=DEFAULTS, left_out=("fitness", "n_threads"))
policy_app.command(name="train", epilog="Example: coevo policy train CartPole-v1 --max-seconds 60")(
    _with_options(train)
)
