"""Renders a study's tables; every value is escaped for the format it goes into."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from coevo._rendering import make_environment
from coevo.study.statistics import PARTS, Cell, Summary, Table

_MARKS = {"within": "✓", "above": "▲", "below": "▼", "unknown": ""}
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}", "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "$": r"\$",
        "±": r"$\pm$", "×": r"$\times$",
    }
)  # fmt: skip


def to_markdown(tables: Sequence[Table], runtimes: bool = True) -> str:
    """Return all tables as Markdown, with or without the columns of runtimes."""
    return render("tables.md", tables=tables, runtimes=runtimes)


def to_latex(tables: Sequence[Table]) -> str:
    """Return all tables as LaTeX, for booktabs and amssymb."""
    return render("tables.tex", tables=tables)


def render(name: str, **values: Any) -> str:
    """Fill a template of this package; its suffix decides how values are escaped."""
    return str(_environment(name.rpartition(".")[2]).get_template(name).render(values))


@cache
def _environment(suffix: str) -> Any:
    by_suffix: dict[str, dict[str, Any]] = {
        "html": {"autoescape": True},
        "md": {"finalize": escape_markdown},
        "tex": {
            "finalize": escape_latex,
            "block_start_string": "<%", "block_end_string": "%>",
            "variable_start_string": "<<", "variable_end_string": ">>",
            "comment_start_string": "<#", "comment_end_string": "#>",
        },
    }  # fmt: skip
    environment = make_environment("coevo.study", **by_suffix[suffix])
    environment.globals["PARTS"] = PARTS
    environment.filters |= {
        "label": label_of,
        "runs": count_runs,
        "accuracy": format_accuracy,
        "mean": format_mean,
        "paper": format_paper,
        "mark": lambda cell: _MARKS[cell.verdict],
        "fixed": "{:.2f}".format,
        "short": "{:.3g}".format,
        "times": lambda multiple: "" if multiple is None else f"{multiple:.3g}×",
        "seconds": format_seconds,
        "count": lambda number: "" if number is None else f"{number:,}".replace(",", " "),
        "p": format_p,
        "slug": lambda name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
    }
    return environment


def escape_markdown(value: Any) -> str:
    r"""Escape what would begin markup, HTML or the next cell of a table.

    Examples
    --------
    >>> print(escape_markdown("a|b <script> < 0.05"))
    a\|b &lt;script> < 0.05
    """
    text = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(str(value).split()))
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", re.sub(r"&(?=#?\w+;)", "&amp;", text))


def escape_latex(value: Any) -> str:
    r"""Escape what LaTeX would execute.

    Examples
    --------
    >>> print(escape_latex(r"\input{x} 5 ± 1 %"))
    \textbackslash{}input\{x\} 5 $\pm$ 1 \%
    """
    return " ".join(str(value).split()).translate(_LATEX)


def label_of(summary: Summary) -> str:
    """Return the name of a row."""
    row = summary.row
    return row.label if row.share == 1 else f"{row.label} at {row.share:.0%}"


def count_runs(summary: Summary) -> str:
    """Return the number of finished runs, and the number planned if that is another."""
    n, planned = len(summary.outcomes), len(summary.row.runs)
    return str(n) if n == planned else f"{n} of {planned}"


def format_accuracy(cell: Cell) -> str:
    """Return a cell's median and deviation."""
    deviation = "" if math.isnan(cell.deviation) else f" ± {cell.deviation:.1f}"
    return f"{cell.median:.2f}{deviation}"


def format_mean(cell: Cell) -> str:
    """Return a cell's mean if the paper's value is an average."""
    return f"mean {cell.mean:.2f}" if cell.paper and cell.paper.is_average else ""


def format_paper(cell: Cell | None) -> str:
    """Return the paper's value for a cell."""
    if not cell or cell.paper is None:
        return ""
    spread = cell.paper.spread
    return f"{cell.paper.value:.2f}" + ("" if spread is None else f" ± {spread:g}")


def format_seconds(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def format_p(p: float) -> str:
    """Return a p-value with its significant digits."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"
