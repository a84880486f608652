"""Every field of `Settings` as an option of the command line, help text from its docstring."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from coevo.core.component import AUTO
from coevo.core.decomposition import NAMES as DECOMPOSITIONS
from coevo.core.extensions.adaptation import CONTROLS
from coevo.core.metrics import METRICS
from coevo.core.network import ACTIVATIONS
from coevo.core.selection import REPRESENTATIVES
from coevo.core.settings import DTYPES, REPLACEMENT, Settings, describe_settings
from coevo.core.strategy import STRATEGIES

FIELDS: dict[str, Field[Any]] = {field.name: field for field in fields(Settings)}
"""The settings by name."""

NO_LIMIT = "none"
"""What the command line and TOML files call None."""

CHOICES = {
    "activation": list(ACTIVATIONS),
    "fitness": list(METRICS),
    "decomposition": list(DECOMPOSITIONS),
    "control": list(CONTROLS),
    "strategy": list(STRATEGIES),
    "dtype": list(DTYPES),
    "limited_evaluation": ["yes", "no"],
    "reshuffle_batches": ["yes", "no"],
    "representative": list(REPRESENTATIVES),
    "scale_initial_range": [AUTO, "yes", "no"],
    "validate_every": [AUTO, REPLACEMENT],
}
"""The names that a setting may have, for completion in the shell."""

_METAVARS = {
    "bool": "yes|no", "bool | str": "auto|yes|no", "int": "N", "int | str": "N", "float": "X",
    "tuple[int, ...]": "N,N…", "float | str": "X", "float | tuple[float, ...] | str": "X,X…",
    "Sequence[Any] | str": "NAME,NAME…",
}  # fmt: skip
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}
_PYTHON_ONLY = (
    ", a metric from `coevo.metrics`, or a function of (y_true, y_pred)",
    ", or a list of arrays of gene indices",
    "; or a `Strategy` object, which also says whether replacement is synchronous and ties go to "
    "the trial",
    " or objects, your own included",
)  # what a command line cannot hold


def describe() -> dict[str, str]:
    """Return what is said about each setting, without what a command line cannot hold."""
    texts = describe_settings()
    for part in _PYTHON_ONLY:
        texts = {name: text.replace(part, "") for name, text in texts.items()}
    return texts


def with_settings(
    command: Callable[..., Any],
    defaults: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
) -> Callable[..., Any]:
    """Give a command an option for each setting; it gets those that were used as `settings`.

    Parameters
    ----------
    command
        Has a parameter `settings`.
    defaults
        What the help calls a default instead of that of `Settings`.
    left_out
        Settings without an option.
    """
    offered = {name: field for name, field in FIELDS.items() if name not in left_out}

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        chosen = {name: given.pop(name) for name in offered}
        return command(
            **given,
            settings={
                name: parse(name, value) for name, value in chosen.items() if value is not None
            },
        )

    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "settings"]
    texts = describe()
    shown = {name: field.default for name, field in offered.items()} | dict(defaults or {})
    further = [_parameter(field, texts[n], shown[n]) for n, field in offered.items()]
    wrapped.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in (*own, *further)}
    return wrapped


def _parameter(field: Field[Any], text: str, value: Any) -> inspect.Parameter:
    """Return the parameter that typer makes an option of, with a value as its default."""
    dashed = field.name.replace("_", "-")
    default = _show(value)
    common: dict[str, Any] = {
        "help": f"{text} Default: {default}.".replace("[", "\\["),
        "rich_help_panel": "Settings of the search",
        "show_default": False,
    }
    metavar = _METAVARS.get(str(field.type).removesuffix(" | None"), "NAME")
    choices = CHOICES.get(field.name)

    def complete(incomplete: str) -> list[str]:
        return [name for name in choices or () if name.startswith(incomplete)]

    option = typer.Option(
        f"--{dashed}", metavar=metavar, autocompletion=complete if choices else None, **common
    )
    annotation: Any = Annotated[str | None, option]
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _show(value: Any) -> str:
    if value is None:
        return NO_LIMIT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (",".join(map(str, value)) or NO_LIMIT) if isinstance(value, tuple) else str(value)


# ----------------------------------------------------------------------------------- reading values


def parse(name: str, value: Any) -> Any:
    """Return a setting from a text of the command line, or from a number, flag or list of TOML."""
    kind = str(FIELDS[name].type)
    argument = f"--{name.replace('_', '-')}"
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, list) else value
    if kind.endswith("| None"):
        if value.lower() == NO_LIMIT:
            return None
        kind = kind.removesuffix(" | None")
    return _READERS[kind](argument, value) if kind in _READERS else value


def _flag(argument: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(f"{argument} must be yes or no, got {text!r}")
    return _FLAGS[text.lower()]


def _sizes(argument: str, text: str) -> tuple[int, ...]:
    parts = [] if text.lower() == NO_LIMIT else text.split(",")
    return tuple(int(_number(argument, part, "int")) for part in parts)


def _range(argument: str, text: str) -> float | tuple[float, ...] | str:
    if text == AUTO:
        return text
    numbers = tuple(_number(argument, part, "float") for part in text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers


def _names(text: str) -> tuple[str, ...]:
    """Cut at commas that are not within parentheses."""
    return () if text.lower() == NO_LIMIT else tuple(re.findall(r"[^,(]+(?:\([^)]*\))?", text))


def _number(argument: str, text: str, kind: str) -> int | float:
    try:
        number = float(text)
        if kind == "float":
            return number
        # 2e5 is a whole number too.
        return int(number) if number.is_integer() and abs(number) < 2**53 else int(text)
    except (ValueError, OverflowError):
        what = "a whole number" if kind == "int" else "a number"
        raise ValueError(f"{argument} must be {what}, got {text!r}") from None


_READERS: dict[str, Callable[[str, str], Any]] = {
    "bool": _flag,
    "bool | str": lambda argument, text: text if text == AUTO else _flag(argument, text),
    "int": lambda argument, text: _number(argument, text, "int"),
    "int | str": lambda argument, text: (
        text if text in (AUTO, REPLACEMENT) else _number(argument, text, "int")
    ),
    "float": lambda argument, text: _number(argument, text, "float"),
    "tuple[int, ...]": _sizes,
    "float | str": lambda argument, text: (
        text if text == AUTO else _number(argument, text, "float")
    ),
    "float | tuple[float, ...] | str": _range,
    "Sequence[Any] | str": lambda argument, text: text if text == AUTO else _names(text),
}
"""How the text of an option is read, by the type of its field; other texts are names."""


def check(settings: dict[str, Any]) -> None:
    """Raise if a setting is out of its range, before any work is done."""
    # The metric may be one of scikit-learn's, which only the estimator knows.
    Settings(**{name: value for name, value in settings.items() if name != "fitness"})
