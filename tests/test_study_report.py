"""The report says what the results say, needs nothing else, and a browser shows it."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from test_study_statistics import records_of

from coevo.study import Record, read_plan
from coevo.study.figures import draw_figures
from coevo.study.report import write_report
from coevo.study.statistics import summarise
from coevo.study.tables import p_text, seconds_text

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


LEVEL = {
    "DE": 0.7, "LEDE": 0.78, "CCDE": 0.93, "LECCDE": 0.92, "backprop": 0.95, "CCDE, complete": 0.93
}  # fmt: skip


def made_up(plan, n_rows=60, level=LEVEL):
    """Results with curves that look like a search's."""
    rng = np.random.default_rng(5)
    records = records_of(plan, lambda label, seed: level[label] + 0.01 * rng.normal())
    for key, record in records.items():
        top = record.outcome.test
        seconds = np.linspace(0.01, record.outcome.seconds, n_rows)
        curve = top - (top - 0.4) * np.exp(-np.linspace(0, 6, n_rows))
        steps = np.arange(n_rows)
        history = np.column_stack([steps, 1000 * steps, seconds, curve, curve, curve])
        trace = np.column_stack([1000 * steps, curve + 0.02, curve, curve - 0.01])
        outcome = replace(
            record.outcome, history=history, trace=trace if record.run.traces else None
        )
        records[key] = Record(
            record.run, "done", outcome=outcome, ended="2018-07-15T12:00:00+00:00"
        )
    return records


@pytest.fixture(scope="module")
def paper_report(tmp_path_factory):
    plan = read_plan("paper").only(seeds=6)
    records = made_up(plan)
    failed = plan.runs[0]
    records[failed.key] = Record(failed, "failed", error="ValueError: <too> hot & cold")
    return write_report(plan, records, tmp_path_factory.mktemp("report"))


class Page(HTMLParser):
    """Checks that tags are closed, and collects what the page refers to."""

    VOID = frozenset({"meta", "img", "br", "hr", "link"})

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.ids, self.links = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.sources += [v for k, v in attrs if k == "src"]
        self.ids += [v for k, v in attrs if k == "id"]
        self.links += [v for k, v in attrs if k == "href"]
        if tag == "img":
            assert attributes["alt"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_self_contained(paper_report):
    text = paper_report.read_text(encoding="utf-8")
    page = Page(text)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert "url(" not in text
    assert "<script" not in text
    for expected in ("93.98 ± 0.6", "How to rerun it", "coevo study run paper", "✓", "▲", "▼"):
        assert expected in text
    assert "ValueError: &lt;too&gt; hot &amp; cold" in text
    assert len(page.sources) == 4 + 2 * 8  # the paper's four, and two for each experiment


def test_tables_as_markdown_and_latex(paper_report):
    markdown = (paper_report.parent / "tables.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "| LECCDE |" in markdown
    latex = (paper_report.parent / "tables.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 8
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") for row in rows} == {4}
    assert not re.search(r"(?<!\\)%(?! Needs)", latex)


def test_figures_are_the_same_each_time():
    plan = read_plan("quick").only(["WBC"], seeds=2)
    tables = summarise(plan, made_up(plan))
    first, second = draw_figures(tables), draw_figures(tables)
    assert [drawing.svg for drawing in first] == [drawing.svg for drawing in second]
    assert [drawing.name for drawing in first][:3] == [
        "figure-1-runtime",
        "figure-2-one-run",
        "figure-3-variants",
    ]


def test_a_fitness_that_is_not_accuracy_is_not_drawn_as_one(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        """
        seeds = 2
        [[experiment]]
        dataset = "WBC"
        variants = ["LECCDE", "CCDE", "backprop"]
        settings = { fitness = "cross_entropy", max_evaluations = 3000 }
        """,
        encoding="utf-8",
    )
    plan = read_plan(path)
    drawings = draw_figures(summarise(plan, made_up(plan)))
    # The paper's third figure is of accuracies; ours by time says what it shows.
    assert [drawing.name for drawing in drawings] == [
        "figure-1-runtime",
        "boxes-WBC",
        "seconds-WBC",
    ]
    assert "validation cross entropy" in drawings[-1].caption
    text = drawings[-1].svg.decode()
    assert "accuracy" not in text
    assert "backprop" not in text


def test_many_rows_fit_into_a_box_plot(tmp_path, recwarn):
    path = tmp_path / "plan.toml"
    rows = "".join(
        f'[experiment.rows."LECCDE with {k} individuals"]\n'
        f'variant = "LECCDE"\npopulation_size = {10 + k}\n'
        for k in range(24)
    )
    path.write_text(f'seeds = 2\n[[experiment]]\ndataset = "WBC"\n{rows}', encoding="utf-8")
    plan = read_plan(path)
    levels = dict.fromkeys((row.label for row in plan.experiments[0].rows), 0.9)
    boxes = draw_figures(summarise(plan, made_up(plan, level=levels)))[0]
    assert boxes.is_wide
    assert [str(warning.message) for warning in recwarn] == []


def test_study_without_results_has_a_report(tmp_path):
    page = write_report(read_plan("quick"), {}, tmp_path / "empty")
    assert "0 of 50" in page.read_text(encoding="utf-8")


def test_one_run_is_enough_for_a_report(tmp_path):
    plan = read_plan("quick").only(["WBC"], seeds=1)
    key = plan.runs[3].key
    page = write_report(plan, {key: made_up(plan)[key]}, tmp_path)
    assert "1 of 5" in page.read_text(encoding="utf-8")


def test_numbers_for_readers():
    assert [seconds_text(s) for s in (0.0312, 75, 600, 7200)] == [
        "0.0312 s", "75 s", "10.0 min", "2.0 h",
    ]  # fmt: skip
    assert [p_text(p) for p in (1e-7, 0.0012, 0.2)] == ["< 0.0001", "0.0012", "0.20"]


# Tells, in the page's title, whether all images were drawn and nothing sticks out sideways.
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  const drawn = images.filter(image => image.complete && image.naturalWidth > 100).length;
  const wide = document.documentElement.scrollWidth > innerWidth;
  document.title = `drawn ${drawn} of ${images.length}, ${wide ? "too wide" : "fits"}`;
});</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 500])
def test_browser_shows_the_report(paper_report, tmp_path, width):
    page = tmp_path / "probed.html"
    text = paper_report.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", PROBE), encoding="utf-8")
    shot = tmp_path / "shot.png"
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}",
    ]  # fmt: skip
    done = subprocess.run(
        [CHROMIUM, *options, f"--screenshot={shot}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "<title>drawn 20 of 20, fits</title>" in done.stdout
    if shot.exists():  # not every version does both at once
        assert shot.stat().st_size > 20_000
