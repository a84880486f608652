"""Prepares docstrings for the reference; mkdocs.yml names this file as extensions of Griffe.

Names that mean the same share an entry in our docstrings, as in numpydoc: `train, validation`.
Griffe would give all of them the type and default of the first. And Griffe does not run the code
that writes the docstrings of the estimators, nor does it look up the defaults they take from
`Settings`.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from itertools import pairwise
from typing import Any

import griffe

GROUP = re.compile(r"(?P<names>\*{0,2}\w+(,\s+\*{0,2}\w+)+)(?P<type>\s*:.*)?")


def split_groups(text: str) -> str:
    """Return a docstring in which every parameter has an entry of its own."""
    lines = text.splitlines()
    titles = [
        n
        for n, (title, rule) in enumerate(pairwise(lines))
        if title and re.fullmatch("-+", rule.strip()) and len(title) == len(rule)
    ]
    for start, stop in reversed(list(pairwise([*titles, len(lines)]))):
        if lines[start] == "Parameters":
            lines[start + 2 : stop] = _split_entries(lines[start + 2 : stop])
    return "\n".join(lines)


def _split_entries(lines: list[str]) -> list[str]:
    entries: list[list[str]] = []
    for line in lines:
        if not entries or (line and not line[0].isspace()):
            entries.append([])
        entries[-1].append(line)
    found: list[str] = []
    for first, *description in entries:
        group = GROUP.fullmatch(first)
        names = re.split(r",\s+", group["names"]) if group else [first]
        kind = (group["type"] or "") if group else ""
        for name in names:
            found += [name + kind, *description]
    return found


class SplitGroups(griffe.Extension):
    """Splits the groups of every docstring that Griffe reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = split_groups(obj.docstring.value)


class TakeFromSettings(griffe.Extension):
    """Fills in what the estimators take from `Settings` when they are imported."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """Look the default up, before Griffe makes a signature of it."""
        owner, _, name = str(attr.value).partition(".")
        if owner == "Settings" and name.isidentifier():
            attr.value = repr(getattr(import_module("coevo.core.settings").Settings, name))

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Take the docstring that the imported class has."""
        if obj.docstring is not None and "[parameters]" in obj.docstring.value:
            found = getattr(import_module(obj.module.path), obj.name)
            obj.docstring.value = inspect.getdoc(found) or ""
