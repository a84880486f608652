"""Numbers as readers want them, and texts that nothing executes."""

import pytest

from coevo.study import read_plan
from coevo.study.statistics import summarise
from coevo.study.tables import (
    escape_latex,
    escape_markdown,
    format_p,
    format_seconds,
    to_markdown,
)


def test_numbers_for_readers():
    assert [format_seconds(s) for s in (0.0312, 75, 600, 7200)] == [
        "0.0312 s", "75 s", "10.0 min", "2.0 h",
    ]  # fmt: skip
    assert [format_p(p) for p in (1e-7, 0.0012, 0.2)] == ["< 0.0001", "0.0012", "0.20"]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("best/1, NP_20 < 0.05 & more", "best/1, NP_20 < 0.05 & more"),
        ("a\n|b|", r"a \|b\|"),
        ("<b>&lt;<!-- -->", "&lt;b>&amp;lt;&lt;!-- -->"),
        ("![x](y) *z* \\", r"!\[x\](y) \*z\* \\"),
    ],
)
def test_markdown(text, escaped):
    assert escape_markdown(text) == escaped


def test_latex():
    assert escape_latex("\\a{b}") == r"\textbackslash{}a\{b\}"
    assert escape_latex("50 % & #1_~^ $x$ ± ×\n\n2") == (
        r"50 \% \& \#1\_\textasciitilde{}\textasciicircum{} \$x\$ $\pm$ $\times$ 2"
    )


def test_means_stand_apart_from_intervals(make_records):
    """They are given where the paper reports averages."""
    plan = read_plan("paper").only(["WBC", "HAR-900k", "MNIST"], seeds=2, rows=["LECCDE"])
    markdown = to_markdown(summarise(plan, make_records(plan, lambda label, seed: 0.8)))
    rows = [line for line in markdown.splitlines() if line.startswith("| LECCDE |")]
    median = "| 80.00 ± 0.0 [80.00, 80.00]"
    for row, cell in zip(rows, (" ▼ |", " mean 80.00 |", " mean 80.00 ▼ |"), strict=True):
        assert median + cell in row
