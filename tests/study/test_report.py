"""The report says what the results say, needs nothing else, and a browser shows it."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from coevo.study import Record, Store, read_plan
from coevo.study.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.fixture(scope="module")
def paper_report(tmp_path_factory, make_curves):
    plan = read_plan("paper").only(seeds=6)
    records = make_curves(plan)
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


def test_study_without_results_has_a_report(tmp_path):
    page = write_report(read_plan("quick"), {}, tmp_path / "empty")
    assert "0 of 50" in page.read_text(encoding="utf-8")


def test_one_run_is_enough_for_a_report(tmp_path, make_curves):
    plan = read_plan("quick").only(["WBC"], seeds=1)
    key = plan.runs[3].key
    page = write_report(plan, {key: make_curves(plan)[key]}, tmp_path)
    assert "1 of 5" in page.read_text(encoding="utf-8")


HOSTILE = """
name = "hostile"
title = "<script>alert('title')</script>"
about = "<script>alert('about')</script>"
seeds = 3
[[experiment]]
name = "a & b"
title = '<script>x</script> \\input{/etc/passwd} | $\\undefined$'
dataset = "WBC"
settings = { max_evaluations = 3000 }
[experiment.rows."<img src=x> \\\\input{a} | `b` $\\\\frac$ _"]
variant = "LECCDE"
[experiment.rows."_hidden %"]
variant = "CCDE"
[experiment.rows.LECCDE]
"""


@pytest.fixture
def hostile(tmp_path, write_plan, make_curves, recwarn):
    """The report of a plan and a store that try to run code wherever the report is shown."""
    plan = read_plan(write_plan(tmp_path, HOSTILE))
    records = make_curves(plan)
    with Store(tmp_path / "hostile.sqlite") as store:
        for record in records.values():
            store.insert(record)
        failed = plan.runs[-1].key
        store._write(
            "UPDATE runs SET state = 'failed', error = '<script>error</script>', run ="
            " json_set(run, '$.seed', '<script>seed</script>', '$.dataset', '<b>') WHERE key = ?",
            failed,
        )
        store._write("""UPDATE runs SET versions = '{"<script>": "<script>version</script>"}'""")
        page = write_report(plan, store.records(), tmp_path / "out", "$(rm -rf ~) <script>")
    assert [str(warning.message) for warning in recwarn] == []
    return page


def test_nothing_reaches_the_page_unescaped(hostile):
    text = hostile.read_text(encoding="utf-8")
    Page(text)
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "<b>\n" not in text
    for shown in ("title", "about", "error", "seed", "version"):
        assert re.search(f"&lt;script&gt;[^<]*{shown}", text), shown
    assert "coevo study run &#39;$(rm -rf ~) &lt;script&gt;&#39;" in text


def test_nothing_reaches_the_tables_unescaped(hostile):
    markdown = (hostile.parent / "tables.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert "<img" not in markdown
    assert r"\| \`b\` $" in markdown
    for table in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    latex = (hostile.parent / "tables.tex").read_text(encoding="utf-8")
    assert r"\input" not in latex
    assert r"\textbackslash{}input\{/etc/passwd\}" in latex
    assert r"\label{tab:a-b}" in latex
    assert r"\_hidden \%" in latex


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
