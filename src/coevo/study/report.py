"""Makes the report: one HTML page that needs nothing else, and tables and figures as files."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from coevo.study.figures import Drawing, draw_figures
from coevo.study.plan import Plan
from coevo.study.reported import PARTS
from coevo.study.statistics import CONFIDENCE, Cell, Table, summarise
from coevo.study.store import Record
from coevo.study.tables import (
    LEGEND,
    MARKS,
    count_text,
    label_of,
    median_text,
    p_text,
    paper_text,
    runs_text,
    seconds_text,
    times_text,
    to_latex,
    to_markdown,
)
from coevo.variants import INFERRED, PAPER

_WORDS = {"within": "within", "above": "above", "below": "below", "unknown": "not compared"}


def write_report(
    plan: Plan, records: Mapping[str, Record], folder: str | Path, source: str = ""
) -> Path:
    """Write report.html, tables.md, tables.tex and the figures to a folder.

    Parameters
    ----------
    plan
        What was planned.
    records
        The runs that there are, by key; the report says what is missing.
    folder
        Where to write; it is made if need be, and earlier files are overwritten.
    source
        How the plan is called on the command line, for the advice on how to rerun it.

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
    (folder / "tables.md").write_text(to_markdown(tables), encoding="utf-8")
    (folder / "tables.tex").write_text(to_latex(tables), encoding="utf-8")
    page = folder / "report.html"
    found = [records[run.key] for run in plan.runs if run.key in records]
    page.write_text(_page(plan, tables, drawings, found, source or plan.name), encoding="utf-8")
    return page


def _page(
    plan: Plan,
    tables: Sequence[Table],
    drawings: Sequence[Drawing],
    records: Sequence[Record],
    source: str,
) -> str:
    template = (files("coevo.study") / "report.html").read_text(encoding="utf-8")
    paper_figures = [drawing for drawing in drawings if drawing.experiment is None]
    return Template(template).substitute(
        title=_text(plan.title),
        about=_text(" ".join(plan.about.split())),
        summary=_summary(plan, tables, records),
        legend=_text(LEGEND),
        contents=_contents(tables),
        tables="\n".join(_section(table, drawings) for table in tables),
        figures="\n".join(map(_figure, paper_figures)) or "<p>No runs yet.</p>",
        settings="\n".join(map(_settings, tables)),
        environment=_environment(records),
        failures=_failures(records),
        source=_text(source),
    )


def _text(value: Any) -> str:
    return html.escape(str(value))


def _summary(plan: Plan, tables: Sequence[Table], records: Sequence[Record]) -> str:
    """Return the few numbers that a hurried reader wants."""
    done = sum(record.state == "done" for record in records)
    failed = sum(record.state == "failed" for record in records)
    verdicts = [
        cell.verdict
        for table in tables
        for summary in table.summaries
        for cell in summary.cells.values()
        if cell.verdict != "unknown"
    ]
    seconds = sum(record.outcome.seconds for record in records if record.outcome)
    facts = [
        (f"{done} of {len(plan.runs)}", "runs done"),
        (str(failed), "runs failed"),
        (seconds_text(seconds), "of searching in all"),
    ]
    if verdicts:
        within = verdicts.count("within")
        facts.insert(0, (f"{within} of {len(verdicts)}", "medians within the paper's ± spread"))
    ended = max((record.ended for record in records if record.ended), default=None)
    if ended:
        facts.append((ended[:10], "last run"))
    return "".join(f"<div><b>{_text(a)}</b><span>{_text(b)}</span></div>" for a, b in facts)


def _contents(tables: Sequence[Table]) -> str:
    return "".join(
        f'<li><a href="#{_text(t.experiment.name)}">{_text(t.experiment.title)}</a></li>'
        for t in tables
    )


def _section(table: Table, drawings: Sequence[Drawing]) -> str:
    own = [drawing for drawing in drawings if drawing.experiment == table.experiment.name]
    return "\n".join(
        [
            f'<section id="{_text(table.experiment.name)}">',
            f"<h3>{_text(table.experiment.title)}</h3>",
            _results(table),
            _notes(table),
            _comparisons(table),
            f'<div class="pair">{"".join(map(_figure, own))}</div>',
            "</section>",
        ]
    )


def _results(table: Table) -> str:
    # Without anything of the paper's to show, its columns are left out.
    paper = '<th scope="col">paper</th>' if table.has_paper else ""
    span = 2 if table.has_paper else 1
    head = (
        '<tr><th rowspan="2" scope="col">Algorithm</th><th rowspan="2" scope="col">Runs</th>'
        + "".join(f'<th colspan="{span}" scope="colgroup">{part.title()}</th>' for part in PARTS)
        + '<th rowspan="2" scope="col">Evaluations</th>'
        + f'<th colspan="{span + 1}" scope="colgroup">Runtime</th></tr>'
        + "<tr>"
        + f'<th scope="col">ours</th>{paper}' * len(PARTS)
        + f'<th scope="col">median</th><th scope="col">relative</th>{paper}</tr>'
    )
    rows = []
    for summary in table.summaries:
        cells = "".join(_cell(summary.cells.get(part), table.has_paper) for part in PARTS)
        times = f'<td class="paper">{_text(times_text(summary.paper_runtime))}</td>'
        rows.append(
            f'<tr><th scope="row">{_text(label_of(summary))}</th>'
            f"<td>{_text(runs_text(summary))}</td>{cells}"
            f"<td>{_text(count_text(summary.evaluations))}</td>"
            f"<td>{_text(seconds_text(summary.seconds))}</td>"
            f"<td>{_text(times_text(summary.relative_runtime))}</td>"
            f"{times if table.has_paper else ''}</tr>"
        )
    body = "".join(rows)
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _cell(cell: Cell | None, has_paper: bool) -> str:
    paper = f'<td class="paper">{_text(paper_text(cell)) if cell else ""}</td>' if has_paper else ""
    if cell is None:
        return f"<td>–</td>{paper}"
    low, high = cell.interval
    word = _WORDS[cell.verdict]
    mark = MARKS[cell.verdict]
    shown = f'<span class="mark" title="{word}">{mark}</span>' if mark else ""
    return (
        f'<td class="{cell.verdict}">{shown}{_text(median_text(cell))}'
        f"<small>[{low:.2f}, {high:.2f}]</small></td>{paper}"
    )


def _notes(table: Table) -> str:
    remarks = [f"{s.row.label} {s.remark}" for s in table.summaries if s.remark]
    notes = [f"The paper's {'; '.join(remarks)}."] if remarks else []
    notes += [
        f"Our {s.row.label} stops at {s.row.share:.0%} of its budget; its runtime is extrapolated."
        for s in table.summaries
        if s.row.share < 1
    ]
    return f'<p class="note">{_text(" ".join(notes))}</p>' if notes else ""


def _comparisons(table: Table) -> str:
    if not table.comparisons:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{_text(pair.first)} – {_text(pair.second)}</th>'
        f"<td>{'<b>' if pair.is_significant else ''}{_text(p_text(pair.p))}"
        f"{'</b> *' if pair.is_significant else ''}</td>"
        f"<td>{pair.a12:.2f}</td><td>{_text(pair.size)}</td></tr>"
        for pair in table.comparisons
    )
    level = f"{1 - CONFIDENCE:.2f}"
    return (
        "<details><summary>Which differences in test accuracy are more than chance?</summary>"
        '<table class="narrow"><thead><tr><th scope="col">Pair</th><th scope="col">p (Holm)</th>'
        '<th scope="col">A12</th><th scope="col">Effect</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f'<p class="note">Two-sided Wilcoxon rank-sum test, corrected after Holm within the table; '
        f"* p &lt; {level}. A12: how likely a run of the first does better than one of the second."
        "</p></details>"
    )


def _figure(drawing: Drawing) -> str:
    content = base64.b64encode(drawing.svg).decode("ascii")
    caption = _text(drawing.caption)
    kind = ' class="wide"' if drawing.is_wide else ""
    return (
        f'<figure{kind}><img src="data:image/svg+xml;base64,{content}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _settings(table: Table) -> str:
    """Return the settings of an experiment: those all rows share, and what is each row's own."""
    evolved = [s for s in table.summaries if "max_evaluations" in s.row.runs[0].settings]
    others = [s for s in table.summaries if s not in evolved]
    parts = [f"<h4>{_text(table.experiment.title)}</h4>"]
    if evolved:
        common = _common([s.row.runs[0].settings for s in evolved])
        parts.append(_definitions(common, f"All but {others[0].row.label}" if others else "All"))
        for summary in evolved:
            own = {k: v for k, v in summary.row.runs[0].settings.items() if k not in common}
            if own:
                parts.append(_definitions(own, label_of(summary)))
    parts += [_definitions(s.row.runs[0].settings, label_of(s)) for s in others]
    paper = next((s.row.paper for s in table.summaries if s.row.paper), None)
    if paper:
        inferred = sorted(INFERRED | PAPER[paper].inferred)
        parts.append(
            f'<p class="note">Not stated in the paper, our reading: {_text(", ".join(inferred))}.'
            "</p>"
        )
    return "".join(parts)


def _common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first, *rest = settings
    return {
        key: value
        for key, value in first.items()
        if value is not None and all(other.get(key) == value for other in rest)
    }


def _definitions(settings: Mapping[str, Any], label: str) -> str:
    shown = {key: value for key, value in settings.items() if value is not None}
    items = "".join(
        f"<span><i>{_text(key)}</i> {_text(_value(value))}</span>" for key, value in shown.items()
    )
    return f'<div class="settings"><b>{_text(label)}</b>{items}</div>'


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _environment(records: Iterable[Record]) -> str:
    """Return each combination of versions and machine, with how many runs it did."""
    counts: dict[str, int] = {}
    for record in records:
        if record.outcome is not None:
            both = json.dumps({**record.outcome.versions, **record.outcome.machine})
            counts[both] = counts.get(both, 0) + 1
    if not counts:
        return "<p>No runs yet.</p>"
    return "".join(
        _definitions(json.loads(both), f"{n} run{'s' if n > 1 else ''}")
        for both, n in sorted(counts.items(), key=lambda item: -item[1])
    )


def _failures(records: Iterable[Record]) -> str:
    failed = [record for record in records if record.state == "failed"]
    if not failed:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{_text(r.run.variant)} on {_text(r.run.dataset)}</th>'
        f"<td>{r.run.seed}</td><td>{_text(r.error)}</td></tr>"
        for r in failed
    )
    return (
        '<h2 id="failed">Failed runs</h2><table class="narrow"><thead><tr><th scope="col">Run</th>'
        '<th scope="col">Seed</th><th scope="col">Error</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
