"""Templates of HTML and LaTeX pages; all values are escaped."""

from __future__ import annotations

import base64
from typing import Any


def make_environment(package: str, **options: Any) -> Any:
    """Return the Jinja environment of a package with a folder `templates`, and of common templates.

    Further options are those of `jinja2.Environment`, such as how values are escaped.
    """
    from jinja2 import (  # noqa: PLC0415 - slow to import
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("coevo")]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )


def data_uri(content: bytes, kind: str) -> str:
    """Return a figure (kind: png or svg+xml) as the source of an image element."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
