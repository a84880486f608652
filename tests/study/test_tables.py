"""Numbers as readers want them, and texts that nothing executes."""

import pytest

from coevo.study.tables import escape_latex, escape_markdown, format_p, format_seconds


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
