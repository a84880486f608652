"""Names, labels and texts that try to run where they are shown."""

from __future__ import annotations

import json
import os
import random
import re
import string
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from attack.tally import Tally, rounds
from coevo.cli.app import app
from coevo.study import Record, Store, read_plan
from coevo.study.report import write_report
from coevo.study.run import Outcome

PAYLOADS = [
    "<script>attack()</script>", "<img src=x onerror=attack()>", "</td><svg onload=attack()>",
    '" onmouseover="attack()', "' onclick='attack()", "javascript:attack()", "<!-- attack",
    "{{ 7 * 191 }}", "{% include '/etc/passwd' %}", "\\input{/etc/passwd}", "\\write18{attack}",
    "^^5cinput attack", "%\n\\input attack", "$\\frac{$", "$a$b$", "| `x` | [a](javascript:b)",
    "\x1b[31mred", "\x1b]0;title\x07", "[red]x[/red]", "[link=file:///etc]x[/link]",
    "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "../../attack", "a\nb", "名前", "\u202eabc",
]  # fmt: skip


def make_text(generator: random.Random) -> str:
    """Return some payloads in a row, between letters."""
    parts = generator.choices(PAYLOADS, k=generator.randint(1, 3))
    return "".join(p + generator.choice(string.ascii_letters) for p in parts)


class Elements(HTMLParser):
    """Notes what a browser would take for elements and event handlers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.tags.add(tag)
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        links = [str(v) for name, v in attributes if name in ("href", "src", "action")]
        self.handlers += [link for link in links if link.strip().startswith("javascript:")]


def attack_reports(seconds: float, seed: int, folder: Path) -> Tally:
    """Report a plan and a store full of payloads; no page or table may hold them as code."""
    tally, generator = Tally(), random.Random(seed)
    rng = np.random.default_rng(seed)
    plain = _write_report(folder / "plain", rng, lambda: "".join(generator.choices("abcdef", k=8)))
    expected = Elements(plain.read_text(encoding="utf-8")).tags
    warnings.simplefilter("ignore")  # of characters that the figures' font does not have
    for number in rounds(seconds):
        page = _write_report(folder / f"{number}", rng, lambda: make_text(generator))
        tally.counts["reports"] += 1
        found = Elements(page.read_text(encoding="utf-8"))
        tally.expect(found.tags <= expected, f"page: {found.tags - expected}")
        tally.expect(not found.handlers, f"page: {found.handlers[:3]}")
        markdown = (page.parent / "tables.md").read_text(encoding="utf-8")
        tally.expect(not re.search(r"(?<!\\)<\w", markdown), "tables.md: an element")
        latex = (page.parent / "tables.tex").read_text(encoding="utf-8")
        commands = re.findall(r"\\(?:input|write|include)|\^\^", latex)
        tally.expect(not commands, f"tables.tex: {commands[:3]}")
        written = {path.name for path in folder.iterdir()} - {"plain", *map(str, range(number + 1))}
        tally.expect(not written, f"written outside: {written}")
    return tally


def _write_report(folder: Path, rng: Any, text: Any) -> Path:
    """Write the report of a plan whose every text comes from `text`."""
    folder.mkdir()
    quoted = [json.dumps(text()) for _ in range(6)]
    harmless = re.sub(r'[/\\:*?"<>|\x00-\x1f]', "", text())  # it names files
    quoted[2] = json.dumps(f"x{harmless}")
    plan_file = folder / "plan.toml"
    plan_file.write_text(
        f"name = 'plan'\ntitle = {quoted[0]}\nabout = {quoted[1]}\nseeds = 2\n[[experiment]]\n"
        f"name = {quoted[2]}\ntitle = {quoted[3]}\ndataset = 'WBC'\n"
        "settings = { max_evaluations = 500 }\n"
        f"[experiment.rows.{quoted[4]}]\nvariant = 'LECCDE'\n"
        f"[experiment.rows.{quoted[5]}]\nvariant = 'CCDE'\n",
        encoding="utf-8",
    )
    plan = read_plan(plan_file)
    with Store(folder / "runs.sqlite") as store:
        for run in plan.runs:
            rows = np.sort(rng.random((20, 6)), axis=0)
            outcome = Outcome(
                *rng.random(3), 500, 9, 0.5, text(), rows, None, {text(): text()}, {text(): text()}
            )
            store.insert(Record(run, "done", outcome=outcome, ended="2018-07-15T12:00:00+00:00"))
        store._write(
            "UPDATE runs SET state = 'failed', error = ?, "
            "run = json_set(run, '$.seed', ?, '$.dataset', ?) WHERE key = ?",
            text(), text(), text(), plan.runs[-1].key,
        )  # fmt: skip
        return write_report(plan, store.records(), folder / "out", text())


def attack_tables(seconds: float, seed: int, folder: Path) -> Tally:
    """Train on, inspect and predict tables whose names and labels are payloads."""
    tally, generator = Tally(), random.Random(seed)
    rng = np.random.default_rng(seed)
    where, folder = os.getcwd(), folder / "apart" / "inside"
    folder.mkdir(parents=True)
    os.chdir(folder)
    try:
        for number in rounds(seconds):
            names = [f"{k}{make_text(generator)}" for k in range(2)]
            target, labels = f"t{make_text(generator)}", [make_text(generator) for _ in range(2)]
            if labels[0] == labels[1]:
                continue
            numbers = rng.normal(size=(80, 2)).round(3)
            table = _as_csv([*names, target], numbers, [labels[int(a > 0)] for a, _ in numbers])
            Path("table.csv").write_text(table, encoding="utf-8")
            run = f"run{number}"
            brief = ["--hidden-layer-sizes", "3", "--max-generations", "3", "--seed", "1"]
            comma = ["--delimiter", ","]  # which such names leave in doubt
            commands = (
                ["train", "table.csv", "--target", target, "--output", run, *brief, *comma],
                ["inspect", run, "--plot", "plots"],
                [
                    "predict",
                    run,
                    "table.csv",
                    "--escape-formulas",
                    "--output",
                    "predicted.csv",
                    *comma,
                ],
                ["train", "table.csv", "--target", make_text(generator), "--output", "none"],
            )
            for words in commands:
                _command(tally, words, is_refused=words[-1] == "none")
            written = Path("predicted.csv")
            if written.exists():
                cells = re.findall(r'(?:^|,)"?([^",\n]*)', written.read_text(encoding="utf-8"))
                formulas = [c for c in cells if re.match(r"[=+@\t\r]|-(?!\d)", c)]
                tally.expect(not formulas, f"predicted.csv: {formulas[:2]}")
                written.unlink()
            beside = {p.name for p in folder.parent.iterdir()} - {folder.name}
            tally.expect(not beside, f"written outside: {beside}")
    finally:
        os.chdir(where)
    return tally


def _as_csv(names: list[str], numbers: Any, labels: list[str]) -> str:
    def quote(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    rows = [f"{a},{b},{quote(label)}" for (a, b), label in zip(numbers, labels, strict=True)]
    return "\n".join([",".join(map(quote, names)), *rows]) + "\n"


def _command(tally: Tally, words: list[str], is_refused: bool) -> None:
    done = CliRunner().invoke(app, words)
    tally.counts[f"coevo {words[0]}"] += 1
    shown = done.stdout + done.stderr
    expected = 2 if is_refused else 0
    tally.expect(done.exit_code == expected, f"{words}: {done.exit_code} {done.stderr[-200:]}")
    controls = {c for c in shown if not c.isprintable() and c not in "\n"}
    tally.expect(not controls, f"{words[0]}: {controls} on the terminal")
