"""Puts a study's tables into Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterable

from coevo.study.reported import PARTS
from coevo.study.statistics import CONFIDENCE, Cell, Summary, Table

MARKS = {"within": "✓", "above": "▲", "below": "▼", "unknown": ""}
"""How a cell shows where it lies beside the paper's value ± its spread."""

LEGEND = (
    "Accuracy in per cent: median ± standard deviation over the runs, "
    f"[{CONFIDENCE:.0%} bootstrap interval of the median]. No mark where the paper gives no spread "
    "or the settings differ. Runtimes are of searching only; relative ones compare with LECCDE. "
    "Co-evolution gains more than in the paper, as only what a changed neuron affects is computed."
)
"""How to read the tables."""

_MARKS_LEGEND = "Against the paper's value ± its spread: ✓ within, ▲ above, ▼ below."

_LATEX_MARKS = {
    "within": r"$^{\checkmark}$", "above": r"$^{\uparrow}$", "below": r"$^{\downarrow}$",
    "unknown": "",
}  # fmt: skip
_LATEX_ESCAPES = str.maketrans(
    {"%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "$": r"\$", "±": r"$\pm$", "×": r"$\times$"}
)


def label_of(summary: Summary) -> str:
    """Return what a table calls a row."""
    row = summary.row
    return row.label if row.share == 1 else f"{row.label} at {row.share:.0%}"


def median_text(cell: Cell) -> str:
    """Return a cell's median and deviation."""
    deviation = "" if math.isnan(cell.deviation) else f" ± {cell.deviation:.1f}"
    return f"{cell.median:.2f}{deviation}"


def paper_text(cell: Cell | None) -> str:
    """Return the paper's value for a cell."""
    if cell is None or cell.paper is None:
        return ""
    spread = cell.paper.spread
    return f"{cell.paper.value:.2f}" + ("" if spread is None else f" ± {spread:g}")


def times_text(multiple: float | None) -> str:
    """Return a runtime as a multiple."""
    return "" if multiple is None else f"{multiple:.3g}×"


def seconds_text(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def count_text(count: int | None) -> str:
    """Return a number with its thousands set apart."""
    return "" if count is None else f"{count:,}".replace(",", " ")


def p_text(p: float) -> str:
    """Return a p-value with the digits that mean something."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def to_markdown(tables: Iterable[Table]) -> str:
    """Return all tables as Markdown."""
    parts = [LEGEND, _MARKS_LEGEND]
    for table in tables:
        parts.append(f"## {table.experiment.title}")
        parts.append(_markdown_results(table))
        if table.comparisons:
            parts.append(_markdown_comparisons(table))
    return "\n\n".join(parts) + "\n"


def _markdown_results(table: Table) -> str:
    paper = ["paper"] if table.has_paper else []
    header = ["", "runs"]
    for part in PARTS:
        header += [part, *paper]
    header += ["evaluations", "runtime", "relative", *paper]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for summary in table.summaries:
        line = [label_of(summary), runs_text(summary)]
        for part in PARTS:
            cell = summary.cells.get(part)
            line.append(_markdown_cell(cell))
            line += [paper_text(cell) for _ in paper]
        line += [
            count_text(summary.evaluations),
            seconds_text(summary.seconds),
            times_text(summary.relative_runtime),
        ]
        line += [times_text(summary.paper_runtime) for _ in paper]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    low, high = cell.interval
    return f"{median_text(cell)} [{low:.2f}, {high:.2f}] {MARKS[cell.verdict]}".strip()


def _markdown_comparisons(table: Table) -> str:
    lines = [["test accuracy", "p (Holm)", "A12", "effect"], ["---", "---:", "---:", "---"]]
    for pair in table.comparisons:
        p = f"**{p_text(pair.p)}**" if pair.is_significant else p_text(pair.p)
        lines.append([f"{pair.first} – {pair.second}", p, f"{pair.a12:.2f}", pair.size])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def runs_text(summary: Summary) -> str:
    """Return how many runs there are, and how many there should be."""
    n, planned = len(summary.outcomes), len(summary.row.runs)
    return str(n) if n == planned else f"{n} of {planned}"


def to_latex(tables: Iterable[Table]) -> str:
    """Return all tables as LaTeX, for booktabs and amssymb."""
    return "\n".join(
        ["% Needs \\usepackage{booktabs} and \\usepackage{amssymb}.", *map(_latex_table, tables)]
    )


def _latex_table(table: Table) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.experiment.title)}: median accuracy (\%), with the paper's in"
        " parentheses.}",
        rf"\label{{tab:{table.experiment.name.lower()}}}",
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Algorithm & Train & Validation & Test & Runtime \\",
        r"\midrule",
    ]
    for summary in table.summaries:
        cells = [_latex_cell(summary.cells.get(part)) for part in PARTS]
        runtime = "" if summary.relative_runtime is None else f"{summary.relative_runtime:.3g}"
        if runtime and summary.paper_runtime is not None:
            runtime += f" ({summary.paper_runtime:g})"
        lines.append(" & ".join([_latex(label_of(summary)), *cells, runtime]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join(lines)


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    text = _latex(median_text(cell)) + _LATEX_MARKS[cell.verdict]
    return text if cell.paper is None else f"{text} ({cell.paper.value:.2f})"


def _latex(text: str) -> str:
    return text.translate(_LATEX_ESCAPES)
