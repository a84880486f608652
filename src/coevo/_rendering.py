"""Templates of pages, with every value escaped."""

from __future__ import annotations

import base64
from typing import Any


def make_environment(package: str, **options: Any) -> Any:
    """Return Jinja's environment for the templates of a package and those that all share.

    Parameters
    ----------
    package
        The package with a folder `templates`.
    options
        How values are escaped: further arguments of `jinja2.Environment`.
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
    """Return a figure, kind png or svg+xml, as the source of an image element."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
