"""Every field of `Settings` as an option of the command line, help text from its docstring."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from coevo.control import CONTROLS
from coevo.decomposition import NAMES as DECOMPOSITIONS
from coevo.fitness import FITNESSES
from coevo.network import ACTIVATIONS
from coevo.operators import CROSSOVERS, STRATEGIES
from coevo.selection import REPRESENTATIVES
from coevo.settings import DTYPES, Settings

FIELDS: dict[str, Field[Any]] = {field.name: field for field in fields(Settings)}
"""The settings by name."""

NO_LIMIT = "none"
"""What the command line and TOML files call None."""

CHOICES = {
    "activation": list(ACTIVATIONS),
    "fitness": list(FITNESSES),
    "decomposition": list(DECOMPOSITIONS),
    "control": list(CONTROLS),
    "strategy": list(STRATEGIES),
    "crossover": list(CROSSOVERS),
    "dtype": list(DTYPES),
    "limited_evaluation": ["yes", "no"],
    "reshuffle_batches": ["yes", "no"],
    "synchronous": ["yes", "no"],
    "accept_ties": ["yes", "no"],
    "representative": list(REPRESENTATIVES),
    "scale_initial_range": ["yes", "no"],
}
"""The names that a setting may have, for completion in the shell."""

ESTIMATOR_DEFAULTS = {
    "fitness": "cross_entropy; regression: squared_error",
    "scale_factor": "0.2; regression: 0.5",
    "crossover_rate": "0.5; regression: 0.3",
    "initial_range": "4.0; regression: 0.3",
    "scale_initial_range": "yes; regression: no",
    "max_evaluations": "200000",
}
"""Where the defaults of the estimators are not those of `Settings`."""

_METAVARS = {
    "bool": "yes|no", "int": "N", "float": "X", "tuple[int, ...]": "N,N…",
    "float | tuple[float, ...]": "X,X…", "tuple[float, float]": "X,X",
}  # fmt: skip
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}
_PYTHON_ONLY = (
    ", a measure from `coevo.fitness`, or a function of (y_true, outputs)",
    ", or a list of arrays of gene indices",
)  # what a command line cannot hold


def describe() -> dict[str, str]:
    """Return what the docstring of `Settings` says about each field, in one paragraph each."""
    doc = inspect.cleandoc(Settings.__doc__ or "")
    parts = re.split(r"^(\w+)\n(?=    )", doc.partition("----------\n")[2], flags=re.MULTILINE)
    texts = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        texts[name] = " ".join(text.split())
        for part in _PYTHON_ONLY:
            texts[name] = texts[name].replace(part, "")
    return texts


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for each setting; it gets those that were used as `settings`."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        chosen = {name: given.pop(name) for name in FIELDS}
        return command(
            **given,
            settings={
                name: parse(name, value) for name, value in chosen.items() if value is not None
            },
        )

    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "settings"]
    texts = describe()
    further = [_parameter(field, texts[name]) for name, field in FIELDS.items()]
    wrapped.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in (*own, *further)}
    return wrapped


def _parameter(field: Field[Any], text: str) -> inspect.Parameter:
    """Return the parameter that typer makes an option of."""
    dashed = field.name.replace("_", "-")
    default = ESTIMATOR_DEFAULTS.get(field.name, _show(field.default))
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
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


# ----------------------------------------------------------------------------------- reading values


def parse(name: str, value: Any) -> Any:
    """Return a setting from what the command line or a TOML file has for it.

    Parameters
    ----------
    name
        The setting.
    value
        A text, or what TOML makes of it: a number, a flag or a list.
    """
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


def _reach(argument: str, text: str) -> float | tuple[float, ...]:
    numbers = tuple(_number(argument, part, "float") for part in text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers


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
    "int": lambda argument, text: _number(argument, text, "int"),
    "float": lambda argument, text: _number(argument, text, "float"),
    "tuple[int, ...]": _sizes,
    "float | tuple[float, ...]": _reach,
    "tuple[float, float]": _reach,
}
"""How the text of an option is read, by the type of its field; other texts are names."""


def check(settings: dict[str, Any]) -> None:
    """Raise if a setting is out of its range, before any work is done."""
    # The measure may be one of scikit-learn's, which only the estimator knows.
    Settings(**{name: value for name, value in settings.items() if name != "fitness"})
