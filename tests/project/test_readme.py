"""The figures of README.md follow from committed results."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SETS = ("WBC", "ESR", "HAR", "MNIST")


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


@pytest.fixture
def words():
    """README without its line breaks."""
    return " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def read(name):
    return json.loads((BENCHMARKS / "results" / name).read_text(encoding="utf-8"))


def test_speeds_are_those_that_were_measured(words):
    page = (BENCHMARKS / "results" / "speed.md").read_text(encoding="utf-8")
    speed, peers = read("speed.json"), read("peers.json")["chosen"]
    rows = [line for line in page.splitlines() if line.startswith(tuple(f"| {s} |" for s in SETS))]
    assert len(rows) == len(SETS)
    assert all(row in words for row in rows)
    for name, found in speed["shapes"].items():
        row = next(row for row in rows if row.startswith(f"| {name} |"))
        assert f"| {found['evaluations_per_second']:,.0f} | {found['baseline']:,.0f} |" in row
        assert f"| {found['ratio']:.1f} |" in row
    costs = speed["metrics"]
    assert (
        f"cross-entropy costs {costs['cross_entropy'] / costs['accuracy']:.1f} × accuracy" in words
    )
    one, two = (next(g for g in speed["growth"] if g["hidden"] == h) for h in ("50", "50-50"))
    longer, less = two["microseconds"] / one["microseconds"], two["baseline_microseconds"]
    less /= two["microseconds"]
    assert f"it is {longer:.0f} times longer, still {less:.0f} times less than NumPy's" in words
    rates = [peers[p]["evaluations_per_second"] for p in peers.keys() - {"coevo", "numpy"}]
    ours = round(peers["coevo"]["evaluations_per_second"], -3)
    assert (
        f"the seven algorithms of the first picture do {min(rates):.0f} to "
        f"{round(max(rates), -2):.0f} evaluations a second, coevo {ours:,.0f}"
    ) in words
    assert len(rates) == 7


def test_backpropagation_on_mnist_is_what_was_measured(words):
    run = next(run for name, run in read("mnist.json")["runs"].items() if "backprop" in name)
    assert f"MLP has {100 * run['test']:.1f} % on MNIST after {run['seconds']:.0f} seconds" in words


def test_costs_are_those_that_were_measured(words):
    page = (BENCHMARKS / "results" / "costs.txt").read_text(encoding="utf-8")
    number = r": (\d\.\d{3})"
    seeds = [re.findall(number, line) for line in page.splitlines() if line.startswith("seed ")]
    cheaper = [evolved < half for evolved, half, _ in seeds]
    medians = re.findall(number + " in the median", page)
    assert len(seeds) == 20
    assert (
        f"| {medians[0]} (cheaper than 1/2 in {sum(cheaper)} of 20) | {medians[1]} | {medians[2]} |"
        in words
    )
    assert f"of the ten fresh ones it is cheaper in {sum(cheaper[10:])}" in words
    howto = (ROOT / "docs" / "howto" / "fitness.md").read_text(encoding="utf-8")
    howto = " ".join(howto.split())
    assert f"{medians[0]} for the network evolved for the costs and {medians[1]} for" in howto
    assert f"cheaper for {sum(cheaper)} of 20 seeds" in howto
    assert f"{sum(cheaper[:10])} of these, {sum(cheaper[10:])} of the ten fresh ones" in howto
    assert f"does better still: {medians[2]}." in howto
