"""Front desk: the command line, its sub-commands and how it tells users what went wrong.

Commands live where their subject does, and are put on the desk here. They raise errors in plain
words; this module turns them into one line on stderr and an exit code: 2 for what the user can
mend, 1 for what should not have happened.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coevo.checkpoint import CheckpointInUseError
from coevo.machine import commands as machine_commands
from coevo.study.commands import study_app
from coevo.study.data_commands import data_app
from coevo.tabular import commands as tabular_commands

# What typer raises for wrong options; which module keeps its parent class depends on the version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_USERS_TO_MEND = (ValueError, TypeError, OSError, ImportError, CheckpointInUseError)


class Desk(TyperGroup):
    """The group of all commands; it alone speaks to the user about errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code; raise instead if the user debugs."""
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                words, prog_name or "coevo", complete_var, standalone_mode=False, **extra
            )
        except _UsageError as error:
            message = str(error.format_message())  # type: ignore[attr-defined]
            # Without a message the help has been shown already.
            code = _complain(message + _longer_options(error), "see --help") if message else 2
        except (typer.Abort, KeyboardInterrupt):
            code = _complain("interrupted", code=130)
        except BrokenPipeError:
            code = 1  # whoever read our output has gone, as `head` does
        except _USERS_TO_MEND as error:
            if "--debug" in words:
                raise
            code = _complain(str(error) or type(error).__name__)
        except Exception as error:
            if "--debug" in words:
                raise
            code = _complain(
                f"unexpected {type(error).__name__}: {error}", "--debug shows where", code=1
            )
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _longer_options(error: Exception) -> str:
    """Return a question after the options that begin like the unknown one, if that is the error."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    given = str(getattr(error, "option_name", ""))
    options = [name for parameter in getattr(command, "params", ()) for name in parameter.opts]
    longer = [name for name in options if given.startswith("--") and name.startswith(given)]
    return f"; did you mean {' or '.join(longer)}?" if longer else ""


def _complain(message: str, advice: str = "", code: int = 2) -> int:
    line = " ".join(message.split()).rstrip(".")
    typer.echo(f"coevo: {line}" + (f" ({advice})" if advice else ""), err=True)
    return code


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - rarely asked

        typer.echo(f"coevo {version('coevo')}")
        raise typer.Exit


app = typer.Typer(
    cls=Desk,
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
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which."),
    ] = False,
) -> None:
    """Train neural networks without gradients, by cooperative co-evolution.

    Example: coevo train iris.csv --target species
    """
    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        # The libraries below have much to say, and none of it about us.
        for library in ("numba", "matplotlib", "PIL"):
            logging.getLogger(library).setLevel(logging.WARNING)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"coevo: {' '.join(str(message).split())}", err=True)


tabular_commands.add_to(app)
machine_commands.add_to(app)
app.add_typer(study_app, name="study")
app.add_typer(data_app, name="data")
