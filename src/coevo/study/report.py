"""Writes the report: one self-contained HTML page, and tables and figures as files."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coevo.core.history import Generation
from coevo.persistence.atomic import write_atomically
from coevo.study.figures import draw_figures
from coevo.study.plan import Plan
from coevo.study.run import Outcome
from coevo.study.statistics import Table, summarise
from coevo.study.store import Record
from coevo.study.tables import format_seconds, label_of, render, to_latex, to_markdown
from coevo.training.paper import INFERRED, PAPER

Labelled = tuple[str, Mapping[str, Any]]


def write_report(
    plan: Plan, records: Mapping[str, Record], folder: str | Path, source: str = ""
) -> Path:
    """Write report.html, tables.md, tables.tex and the figures to a folder.

    Parameters
    ----------
    plan
        The study.
    records
        The runs that there are, by key; the report says what is missing.
    folder
        Where to write; it is made if need be, and earlier files are overwritten.
    source
        The plan's name on the command line, for the commands that rerun it.

    Returns
    -------
    the path of the HTML page
    """
    folder = Path(folder)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    tables = summarise(plan, records)
    drawings = draw_figures(tables)
    for drawing in drawings:
        drawing.save(folder / "figures")
    found = [records[run.key] for run in plan.runs if run.key in records]
    page = render(
        "report.html",
        plan=plan,
        tables=tables,
        drawings=drawings,
        facts=_facts(plan, tables, found),
        notes=list(map(_notes, tables)),
        settings=list(map(_settings, tables)),
        inferred=list(map(_inferred, tables)),
        environments=_environments(found),
        failures=[record for record in found if record.state == "failed"],
        source=shlex.quote(source or plan.name),
    )
    contents = {"tables.md": to_markdown(tables), "tables.tex": to_latex(tables)}
    for name, content in {**contents, "report.html": page}.items():
        write_atomically(folder / name, [content.encode()])
    return folder / "report.html"


def _facts(plan: Plan, tables: Sequence[Table], records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the few numbers at the top of the page."""
    states = Counter(record.state for record in records)
    cells = (cell for table in tables for row in table.summaries for cell in row.cells.values())
    verdicts = [cell.verdict for cell in cells if cell.verdict != "unknown"]
    facts = []
    if verdicts:
        within = f"{verdicts.count('within')} of {len(verdicts)}"
        facts.append((within, "medians within the paper's ± spread"))
    seconds = sum(record.outcome.seconds for record in records if record.outcome)
    facts += [
        (f"{states['done']} of {len(plan.runs)}", "runs done"),
        (str(states["failed"]), "runs failed"),
        (format_seconds(seconds), "of searching in all"),
    ]
    ended = max((record.ended for record in records if record.ended), default=None)
    return [*facts, (ended[:10], "last run")] if ended else facts


def _notes(table: Table) -> list[str]:
    remarks = [f"{s.row.label} {s.remark}" for s in table.summaries if s.remark]
    notes = [f"The paper's {'; '.join(remarks)}."] if remarks else []
    notes += [
        f"Our {s.row.label} stops at {s.row.share:.0%} of its budget; its runtime is extrapolated."
        for s in table.summaries
        if s.row.share < 1
    ]
    still = [(s, sum(map(_never_moved, s.outcomes))) for s in table.summaries]
    notes += [
        f"{count} of {len(s.outcomes)} runs of {s.row.label} never found a better network than "
        "their first one."
        for s, count in still
        if count
    ]
    return [" ".join(notes)] if notes else []


def _never_moved(outcome: Outcome) -> bool:
    best = outcome.history[:, Generation._fields.index("best_validation")]
    return len(best) > 1 and not best[-1] > best[0]


def _settings(table: Table) -> list[Labelled]:
    """Return the settings that all evolved rows share, and those of each row."""
    evolved = [s for s in table.summaries if "max_evaluations" in s.row.runs[0].settings]
    others = [s for s in table.summaries if s not in evolved]
    groups: list[Labelled] = []
    if evolved:
        first, *rest = (s.row.runs[0].settings for s in evolved)
        common = {
            name: value
            for name, value in first.items()
            if value is not None and all(other.get(name) == value for other in rest)
        }
        groups.append((f"All but {others[0].row.label}" if others else "All", common))
        for summary in evolved:
            settings = summary.row.runs[0].settings
            own = {name: value for name, value in settings.items() if name not in common}
            if own:
                groups.append((label_of(summary), own))
    return groups + [(label_of(s), s.row.runs[0].settings) for s in others]


def _inferred(table: Table) -> list[str]:
    """Return the settings that the paper does not state, if the table is the paper's."""
    paper = next((s.row.paper for s in table.summaries if s.row.paper), None)
    return sorted(INFERRED | PAPER[paper].inferred) if paper else []


def _environments(records: Iterable[Record]) -> list[Labelled]:
    """Return each combination of versions and machine, with the number of its runs."""
    counts = Counter(
        json.dumps({**record.outcome.versions, **record.outcome.machine})
        for record in records
        if record.outcome is not None
    )
    return [
        (f"{n} run{'s' if n > 1 else ''}", json.loads(both)) for both, n in counts.most_common()
    ]
