"""The group of all commands, and how errors are reported.

A command's module is imported when the command is asked for, so that help, version and typing
errors answer at once. Commands raise errors in plain words; this module turns them into one line on
stderr and an exit code: 2 for errors of the user, 1 for unexpected ones.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coevo._version import __version__
from coevo.runtime.terminal import printable

COMMANDS = {
    "train": ("train", "Train a network on a table and leave model and metrics in a run folder."),
    "predict": ("predict", "Predict the target of each row of a table, as CSV."),
    "export": ("export", "Export a model, preprocessing included, as an ONNX graph."),
    "inspect": ("inspect", "Describe a model: settings, columns, layers, weights."),
    "bench": ("diagnostics", "Measure evaluations a second on this machine, beside NumPy."),
    "doctor": ("diagnostics", "Describe this machine: versions, BLAS, threads, cached kernels."),
    "policy": ("policy", "Evolve a policy in a simulator, and watch it act."),
    "study": ("study", "Run many experiments, resumably and in parallel, and report them."),
    "data": ("data", "See, download and verify the paper's data sets."),
}
"""The module of each command, and what the list of commands says about it."""

# What typer raises for wrong options; which module keeps its parent class depends on the version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Group(TyperGroup):
    """The group of all commands; loads the one that is asked for and reports its errors."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options, of which flags take no value."""
        return _without_values(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the entry of the list of commands by the command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(command.name)), rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code; with --debug, raise its errors instead."""
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                words, prog_name or "coevo", complete_var, standalone_mode=False, **extra
            )
        except _UsageError as error:
            suggestion = _suggest_options(error)
            if suggestion and getattr(error, "possibilities", None):
                error.possibilities = None  # type: ignore[attr-defined] # less near ones
            message = str(error.format_message())  # type: ignore[attr-defined]
            # Without a message the help has been shown already.
            code = _complain(message + suggestion, "see --help") if message else 2
        except BrokenPipeError:
            code = 1  # the reader of our output has gone, as `head` does
        except (Exception, KeyboardInterrupt) as error:
            code = _report(error, is_debugged="--debug" in words)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def load_command(name: str) -> Any:
    """Import the module of a command and return the command."""
    module = import_module(f"coevo.cli.{COMMANDS[name][0]}")
    loaded = typer.Typer(rich_markup_mode="rich", add_completion=False)
    if hasattr(module, "add_to"):
        module.add_to(loaded)
    else:
        loaded.add_typer(getattr(module, f"{name}_app"), name=name)
    command = typer.main.get_group(loaded).commands[name]
    _show_flags(command)
    return command


def _show_flags(command: Any) -> None:
    """Let the help of a command and its subcommands show flags without a value."""
    for subcommand in getattr(command, "commands", {}).values():
        _show_flags(subcommand)
    get_params = command.get_params
    command.get_params = lambda ctx: _without_values(get_params(ctx))


def _without_values(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""  # typer would show <bool>, as if a value had to follow
    return parameters


def _report(error: BaseException, is_debugged: bool) -> int:
    """Print the error as one line and return the exit code."""
    cause = error.__cause__ or error.__context__
    if isinstance(error, typer.Abort) and isinstance(cause, EOFError):
        error = cause  # typer takes any EOFError for the end of the user's input
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _complain("interrupted", code=130)
    if is_debugged:
        raise error
    if isinstance(error, _USER_ERRORS) or _is_checkpoint_in_use(error):
        return _complain(str(error) or type(error).__name__)
    message = f"unexpected {type(error).__name__}: {error}"
    return _complain(message, "--debug shows where", code=1)


def _is_checkpoint_in_use(error: BaseException) -> bool:
    from coevo.persistence.checkpoint import CheckpointInUseError  # noqa: PLC0415 - slow to import

    return isinstance(error, CheckpointInUseError)


def _suggest_options(error: Exception) -> str:
    """Return a question after the options that begin like the unknown one, if that is the error."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    given = str(getattr(error, "option_name", ""))
    options = [name for parameter in getattr(command, "params", ()) for name in parameter.opts]
    longer = [name for name in options if given.startswith("--") and name.startswith(given)]
    return f"; did you mean {' or '.join(longer)}?" if longer else ""


def _complain(message: str, advice: str = "", code: int = 2) -> int:
    line = printable(" ".join(message.split())).rstrip(".")
    typer.echo(f"coevo: {line}" + (f" ({advice})" if advice else ""), err=True)
    return code


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"coevo {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Group,
    name="coevo",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error arose.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train neural networks without gradients, by cooperative co-evolution.

    Example: coevo train iris.csv --target species
    """
    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        # The libraries below log a lot, and none of it about coevo.
        for library in ("numba", "matplotlib", "PIL"):
            logging.getLogger(library).setLevel(logging.WARNING)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"coevo: {printable(' '.join(str(message).split()))}", err=True)


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)
