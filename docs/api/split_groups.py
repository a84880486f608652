"""Lets the reference show every name of a group with its own type and default.

In our docstrings names that mean the same share an entry, as in numpydoc: `train, validation`.
Griffe would give all of them the type and default of the first. mkdocs.yml names this file as an
extension of Griffe.
"""

from __future__ import annotations

import re
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
