"""README's tables of the defaults and of MNIST follow from committed results."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import defaults
    import mnist
    import readme

    yield {"readme": readme, "defaults": defaults, "mnist": mnist}
    for module in ("defaults", "mnist", "readme", "apart", "machine"):
        sys.modules.pop(module, None)


def test_tables_follow_from_results(scripts):
    results = BENCHMARKS / "results"
    sets = json.loads((results / "sets.json").read_text(encoding="utf-8"))
    mnist = json.loads((results / "mnist.json").read_text(encoding="utf-8"))
    text = expected = (ROOT / "README.md").read_text(encoding="utf-8")
    for script, content in [("defaults", sets), ("mnist", mnist["runs"])]:
        table = scripts[script].make_table(content)
        expected = scripts["readme"].replace_table(expected, script, table)
    assert text == expected


def test_the_first_figures_are_those_of_the_race():
    race = json.loads((BENCHMARKS / "results" / "race.json").read_text(encoding="utf-8"))
    after = {
        name: next(p["test"] for p in reversed(outcome["points"]) if p["seconds"] <= 60)
        for name, outcome in race["MNIST"]["outcomes"].items()
    }
    others = max(after[name] for name in after.keys() - {"coevo", "leccde", "backprop"})
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"after 60 seconds, coevo has {100 * after['coevo']:.1f} %, coevo LECCDE "
        f"{100 * after['leccde']:.1f} and the best of the others {100 * others:.1f}"
    ) in text


def test_another_table_takes_the_place_of_the_old(scripts):
    page = "a\n<!-- made by benchmarks/x.py -->\n\n| old |\n\n<!-- end -->\nb\n"
    replaced = scripts["readme"].replace_table(page, "x", "| new |\n")
    assert replaced == page.replace("old", "new")
    with pytest.raises(ValueError, match=r"lost the comments around the table of y\.py"):
        scripts["readme"].replace_table(page, "y", "")
