"""Every figure in docs/reproduction.md and README's table follows from committed results."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def reproduction():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import reproduction
    finally:
        sys.path.remove(str(BENCHMARKS))
    return reproduction


@pytest.fixture(scope="module")
def results(reproduction):
    return reproduction.Results()


def test_pages_are_what_the_results_make_of_them(reproduction, results):
    for path, text in reproduction.make_pages(results).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make reproduction`"


def test_figures_of_the_templates_are_computed():
    for path in (BENCHMARKS / "templates").iterdir():
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"\{\{\s*[\"']?[\d.]+[\"']?\s*[|}]", text) == [], (
            f"{path.name}: a figure in braces"
        )
        text = re.sub(r"\{[{%].*?[%}]\}", "", text)
        # ±0.5 to ±4 are settings.
        assert re.findall(r"(?<!±)\b\d+\.\d+", text) == [], path.name


def test_page_changes_with_the_data(reproduction, results, monkeypatch):
    page = reproduction.render(results, "reproduction.md")
    base = results.readings[reproduction.BASE]
    changed = {seed: [value + 0.5 for value in found]
               for seed, found in base["MNIST LECCDE"].items()}  # fmt: skip
    readings = results.readings | {reproduction.BASE: base | {"MNIST LECCDE": changed}}
    monkeypatch.setattr(results, "readings", readings)
    assert reproduction.render(results, "reproduction.md") != page


def test_figures_are_drawn_from_the_results(reproduction):
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(measured/(paper-[\w-]+\.svg)\)", page))
    assert named == {"paper-runtime.svg", *reproduction.FIGURES.values()}
    for name in named:
        drawn = (BENCHMARKS / "results" / name).read_text(encoding="utf-8")
        assert reproduction.digest_results() in drawn, f"{name}: run `make reproduction`"


def test_verdicts_follow_the_data(reproduction):
    from claims import Contrast, Contrasts, judge

    def contrast(p, a12):
        return Contrast("x", 1.0, None, p, a12)

    assert judge([True, True]) == "true"
    assert judge([True, False]) == "partly"
    assert judge([False]) == "not here"
    higher, level, lower = contrast(0.01, 0.9), contrast(0.3, 0.9), contrast(0.01, 0.1)
    assert Contrasts([higher, level]).judge(lambda c: c.is_higher) == "partly"
    assert Contrasts([lower]).judge(lambda c: c.is_higher) == "not here"
    assert Contrasts([lower]).judge(lambda c: c.is_lower) == "true"
    assert Contrasts([contrast(None, 0.9)]).judge(lambda c: c.is_higher) == "open"
