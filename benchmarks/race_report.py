"""The page and the pictures of the race: see benchmarks/race.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from machine import QUIET_CORES

from coevo._plotting import LOOK

COEVO = ("coevo", "leccde")
"""Rows that are not another library's."""
MARK = "backprop"
"""The row that uses gradients."""
OPTIONS = {  # how a setting that was chosen is said
    "rows": "on {:,} training rows", "batch_size": "batches of {}",
    "mutation_stdev": "steps of {} × the initial range", "stdev": "first steps of {} × the range",
    "sigma": "first steps of {} × the range",
}  # fmt: skip
SPLITS = {
    "HAR": "5,000 rows for training, 1,072 for validation and 1,072 for the test",
    "MNIST": "55,000 images for training, 5,000 for validation and the 10,000 official test images",
}


def write(content: dict, races: dict, runners: dict, folder: Path) -> None:
    """Write race.md and a picture of each race that has been run."""
    (folder / "race.md").write_text(make_report(content, races, runners), encoding="utf-8")
    for name, race in races.items():
        outcomes = content.get(name, {}).get("outcomes", {})
        if any(outcome.get("points") for outcome in outcomes.values()):
            draw(race, outcomes, runners, folder / race.picture)


def test_at(outcome: dict, seconds: float) -> float | None:
    """Return the test accuracy, in %, of what a search had found after so many seconds."""
    before = [p for p in outcome.get("points", []) if p["seconds"] <= 1.02 * seconds]
    granted = outcome.get("seconds", outcome["points"][-1]["seconds"]) if before else 0.0
    return 100 * before[-1]["test"] if before and granted >= 0.98 * seconds else None


def make_row(runner, outcome: dict, marks: tuple[float, ...]) -> str:
    first = f"| {runner.library} | {runner.algorithm} | "
    if "not_run" in outcome:
        reason = outcome["not_run"].replace("|", "\\|")
        return first + "| | not run |" + " |" * len(marks) + f" {reason} |"
    last = outcome["points"][-1]
    remarks = [runner.remark]
    remarks += [OPTIONS[name].format(value) for name, value in outcome.get("options", {}).items()]
    if outcome.get("note"):
        remarks.append(outcome["note"])
    if (outcome.get("cores_of_others") or 0) > QUIET_CORES:
        remarks.append(f"disturbed: others took {outcome['cores_of_others']:.1f} cores")
    unit = " epochs" if runner.package == "scikit-learn" else ""
    tests = [test_at(outcome, mark) for mark in marks]
    cells = [
        outcome["version"], str(outcome["population"] or ""), f"{last['evaluations']:,}{unit}",
        *("" if test is None else f"{test:.2f}" for test in tests), "; ".join(remarks),
    ]  # fmt: skip
    return first + f"{' | '.join(cells)} |"


def describe_lead(outcomes: dict, runners: dict, marks: tuple[float, ...]) -> list[str]:
    """Say how far coevo's two rows are ahead of the best other library."""
    lines = []
    for own in COEVO:
        leads = []
        for mark in marks:
            found = {n: test_at(o, mark) for n, o in outcomes.items()}
            others = {n: t for n, t in found.items() if n not in (*COEVO, MARK) and t is not None}
            if found.get(own) is None or not others:
                continue
            best = max(others, key=others.__getitem__)
            label = f"{runners[best].library} {runners[best].algorithm}"
            leads.append(f"{found[own] - others[best]:+.1f} after {mark:g} s ({label})")
        if leads:
            name = runners[own].algorithm
            lines += ["", f"coevo's {name} beside the best of the others, points: "
                          f"{', '.join(leads)}."]  # fmt: skip
    return lines


def describe_tuning(tuning: dict, runners: dict) -> list[str]:
    if not tuning:
        return []
    lines = ["", "What `--tune` found, validation accuracy in %:", ""]
    lines += ["| library | algorithm | tried | seconds | validation % |", "|---" * 5 + "|"]
    for name, trials in tuning.items():
        for trial in trials:
            tried = ", ".join(OPTIONS[n].format(v) for n, v in trial["options"].items())
            lines.append(
                f"| {runners[name].library} | {runners[name].algorithm} | {tried} | "
                f"{trial['seconds']:g} | {100 * trial['validation']:.1f} |"
            )
    return lines


def make_report(content: dict, races: dict, runners: dict) -> str:
    lines = [
        "# Accuracy against seconds: other libraries on HAR and MNIST",
        "",
        "Each searched, one run each, for the weights and biases of the same network (tanh) on the",
        "same split and machine, with all its cores.",
    ]
    for name, race in races.items():
        found = content.get(name, {})
        outcomes = found.get("outcomes")
        if not outcomes:
            continue
        tests = [f"test % after {mark:g} s" for mark in race.marks]
        headings = ["library", "algorithm", "version", "population", "evaluations", *tests, "with"]
        lines += [
            "", f"## {name}", "",
            f"A {race.shape} network, {race.shape.n_genes:,} genes; {SPLITS[name]}.",
            "", f"| {' | '.join(headings)} |", "|---" * len(headings) + "|",
            *(make_row(runners[n], outcome, race.marks) for n, outcome in outcomes.items()),
            *describe_lead(outcomes, runners, race.marks), "",
            f"![test accuracy on {name} against seconds of searching]({race.picture})",
            *describe_tuning(found.get("tuning", {}), runners), "",
            f"Measured with `python benchmarks/race.py {name}`. {found['on']}",
        ]  # fmt: skip
    return "\n".join([*lines, "", *CAVEATS]) + "\n"


CAVEATS = """\
## What is comparable

The data, the network, the seconds and cores, and what is tested: of the networks looked at,
whenever a tenth more time has passed, the one with the best validation accuracy. All evolutionary
searches maximise minus the cross-entropy. LECCDE and the other libraries begin with weights from
the same range, coevo's default for differential evolution; the genes of the other libraries are in
units of that range, so that one step size suits both layers. Their populations are 20, unless a
library has a size of its own. All that the tables do not mention is a library's default.

## What is not

**coevo's default is not a black-box search.** Smoothing asks what each instance adds to the fitness
and how that follows a neuron's pre-activation (docs/smoothing.md): it knows the network and the
data. The other libraries see one figure for each network, so that they cannot do this, and they
serve any function at all. The row LECCDE is the like-for-like one: it too sees only the fitness of
candidates, as an evolutionary algorithm does, though one candidate changes one neuron and coevo
computes no more than that neuron affects. Backpropagation uses gradients; it is there as a mark.

An evaluation of coevo is one neuron's on a batch, one of the others a whole network's on as many
rows as the table says, so that numbers of evaluations say little across rows. coevo is made for
this task, and its defaults were chosen with HAR and MNIST among other sets, partly with test
figures in view; the other libraries are made for optimisation at large, and got far less attention:
of their settings only a step size, and on how many training rows fitness is measured, were chosen
for the task, by validation accuracy in one short run each (`--tune`). The test rows were not used
for that. In longer runs other settings may do better. One run each says nothing about small
differences.

Accuracies after fewer seconds than a search was granted are those along its one run. coevo's
search is planned for the seconds granted, and granted fewer it may be better by then.

Time for imports, compilation and looking at accuracy is not counted, except that coevo validates
within its time. The evaluation of the first population is counted, except in evosax and EvoX, where
it is part of the preparation.""".splitlines()


def spread(heights: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the given heights, in the same order, at least a gap apart."""
    order = np.argsort(heights, kind="stable")
    # Neighbours that are too close are joined and stand, gap by gap, around their mean.
    groups: list[list[float]] = []

    def stand(group: list[float]) -> np.ndarray:
        places = np.mean(group) + gap * (np.arange(len(group)) - (len(group) - 1) / 2)
        return places + max(0.0, low - places[0]) - max(0.0, places[-1] - high)

    for index in order:
        groups.append([heights[index]])
        while len(groups) > 1 and stand(groups[-1])[0] - stand(groups[-2])[-1] < gap:
            last = groups.pop()
            groups[-1] += last
    places = np.empty(len(heights))
    places[order] = np.concatenate([stand(group) for group in groups])
    return places.tolist()


def darker(colour: str) -> np.ndarray:
    """Return a colour for words, which need more contrast than lines."""
    return 0.72 * np.array(mpl.colors.to_rgb(colour))


def draw(race, outcomes: dict, runners: dict, path: Path) -> None:
    outcomes = {name: o for name, o in outcomes.items() if o.get("points")}
    low, high = 0.0, 100.0
    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(figsize=(7.6, 4.4))
        figure.subplots_adjust(left=0.075, right=0.735, bottom=0.115, top=0.92)
        times = [p["seconds"] for outcome in outcomes.values() for p in outcome["points"]]
        end = max(times)
        axes.set(xscale="log", xlim=(0.9 * min(0.1, *times), 1.05 * end), ylim=(low, high))
        ends = [100 * outcome["points"][-1]["test"] for outcome in outcomes.values()]
        places = spread(ends, 0.052 * (high - low), low, high)
        for (name, outcome), height, place in zip(outcomes.items(), ends, places, strict=True):
            runner, points = runners[name], outcome["points"]
            # A search that ended by itself has its last network from then on.
            seconds = [*(point["seconds"] for point in points), end]
            tests = [*(100 * point["test"] for point in points), height]
            axes.plot(
                seconds, tests, color=runner.colour, linestyle=runner.dashes,
                linewidth={"coevo": 2.6, MARK: 1.8}.get(name, 1.5),
                marker=runner.marker, markersize=6, markevery=0.12, markeredgecolor="white",
                markeredgewidth=0.5, zorder=3 if name == "coevo" else 2,
            )  # fmt: skip
            words = f"{runner.library} {runner.algorithm}"
            words = {"coevo": "coevo", MARK: "backpropagation"}.get(name, words)
            for long in ("DifferentialEvolution", "differential_evolution"):
                words = words.replace(long, "DE")
            axes.annotate(
                f"{height:.1f}  {words}", (end, height),
                xytext=(1.06, place), textcoords=("axes fraction", "data"), va="center",
                color=darker(runner.colour), weight="bold" if name == "coevo" else "normal",
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-", "color": runner.colour, "linewidth": 0.9, "shrinkA": 1,
                    "shrinkB": 1, "relpos": (0, 0.5),
                },
            )  # fmt: skip
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set(xlabel="seconds of searching", ylabel="test accuracy, %")
        axes.set_title(f"{race.name}, {race.shape}", loc="left")
        figure.savefig(path, dpi=150)
        plt.close(figure)
