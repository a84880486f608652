"""Options with settings of their own: a name is short for an object with its defaults.

`control="shade"`, `control="shade(memory_size=10)"` and `control=SHADE(memory_size=10)` are three
ways to write the same; the second is how files and the command line write it. Components have
`get_params` and `set_params` in scikit-learn's manner, so that nested names such as
`control__memory_size` work in `set_params` and in grid searches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from coevo._validation import check_name

AUTO = "auto"
"""Leaves a setting to the library; see `coevo.core.defaults`."""
_SPELLING = re.compile(r"\s*([\w/-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def is_auto(value: Any) -> bool:
    """Return whether a setting is left to the library."""
    return isinstance(value, str) and value == AUTO


@dataclass
class Component:
    """A dataclass whose fields are settings."""

    name: ClassVar[str]
    """Its name in files, on the command line and in a search's state."""
    in_name: ClassVar[tuple[str, ...]] = ()
    """Settings that are part of the name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; `deep` is there for scikit-learn."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def set_params(self, **params: Any) -> Self:
        """Change settings in place, as scikit-learn does; all are checked first."""
        for name in params:
            check_name(f"the setting of {self.name}", name, self.get_params())
        replace(self, **params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __str__(self) -> str:
        """Return the text that `find_component` reads: the name, and what is not at its default."""
        changed = [
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
            and field.name not in self.in_name
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


def find_component(
    argument: str, given: Any, known: Mapping[str, Callable[..., Component]], kind: type[Component]
) -> Component:
    """Return the component that is given, as an object of the class `kind` or as a text.

    A text is a name of `known`, or a name with settings such as "shade(memory_size=10)".
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, str):
        raise TypeError(
            f"{argument} must be one of {', '.join(known)}, or a {kind.__name__} object, got "
            f"{given!r}"
        )
    match = _SPELLING.fullmatch(given)
    name, settings = match.groups() if match else (given, None)
    check_name(argument, name, known)
    if not settings:
        return known[name]()
    try:
        call = ast.parse(f"f({settings})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("there is more than one call")
        positional = [ast.literal_eval(node) for node in call.args]
        named = {str(node.arg): ast.literal_eval(node.value) for node in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(
            f"{argument}={given!r} cannot be read; write it as {name}(setting=value, ...)"
        ) from None
    try:
        return known[name](*positional, **named)
    except TypeError as error:
        raise TypeError(f"{argument}={given!r}: {error}") from None


def nest(
    settings: Mapping[str, Any],
    find: Mapping[str, Callable[..., Any]],
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    """Return settings with nested names applied to the components they belong to.

    Parameters
    ----------
    settings
        By name; `control__memory_size` changes the setting `memory_size` of `control`.
    find
        By name of a setting: turns its value into a component, given the nested name too.
    defaults
        Values of settings that are not given.
    """
    plain = {name: value for name, value in settings.items() if "__" not in name}
    for name, value in settings.items():
        owner, _, inner = name.partition("__")
        if inner:
            check_name("the setting before __", owner, find)
            given = plain.get(owner, defaults[owner])
            component = find[owner](given, inner)
            if not isinstance(component, Component):
                raise ValueError(f"{owner}={given!r} has no setting {inner!r}")
            check_name(f"the setting of {owner}={component.name}", inner, component.get_params())
            plain[owner] = replace(component, **{inner: value})
    return plain
