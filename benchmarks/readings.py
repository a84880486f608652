"""What could explain the paper's MNIST result, one reading of the paper at a time.

Run it with `make readings`. Each reading changes one thing of LECCDE at the paper's settings;
changes that no setting expresses are made here, by replacing a function for the time of the run.
Readings that bring MNIST at least 0.3 points nearer to the paper, in training and in test accuracy,
are also run on the paper's other sets. What is in results/readings.json is not run again. Rewrites
benchmarks/results/readings.json, and readings.md from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from coevo import PAPER, Network, evolve
from coevo.core import operators
from coevo.core.search import Search
from coevo.datasets import Dataset, Part, Split, load, split
from coevo.persistence.atomic import write_atomically
from coevo.study.statistics import Reported

STORED = Path(__file__).parent / "results" / "readings.json"
Runs = dict[str, dict[str, dict[str, list[float]]]]  # reading, cell, seed: accuracies
MNIST = ("MNIST", "LECCDE")
SEEDS = range(1, 4)
FURTHER_SEEDS = {"LECCDE": range(1, 21), "CCDE": range(1, 6)}  # CCDE is slower
FURTHER = [(name, variant) for name in ("WBC", "ESR", "ESR-NP100", "HAR")
           for variant in ("LECCDE", "CCDE")]  # fmt: skip
NEARER = 0.3
MARKS = {"within": "✓", "above": "▲", "below": "▼"}


@contextmanager
def validate_once_a_generation() -> Iterator[None]:
    original = Search._remember

    def remember(self, replaced, validations, before):
        last = np.full_like(validations, -np.inf)
        last[-1:] = validations[-1:]
        original(self, replaced, last, before)

    with mock.patch.object(Search, "_remember", remember):
        yield


@contextmanager
def share_the_mask() -> Iterator[None]:
    """Let all trials of a subpopulation take the same genes from their mutants."""
    original = operators.draw_lanes

    def draw(rng, shape):
        k, n_targets, n_genes = shape
        return np.repeat(original(rng, (k, 1, n_genes)), n_targets, axis=1)

    with mock.patch.object(operators, "draw_lanes", draw):
        yield


def test_on_official(data: Dataset, seed: int) -> Split:
    return split(data, seed, official_test=True)


def train_on_all_60000(data: Dataset, seed: int) -> Split:
    order = 60_000 + np.random.default_rng(seed).permutation(10_000)
    rows = (np.arange(60_000), order[:5000], order[5000:])
    pixels = [data.inputs[part] / np.float32(255) for part in rows]
    return Split(*map(Part, pixels, [data.labels[part] for part in rows], rows), scaler=None)


def leave_pixels(data: Dataset, seed: int) -> Split:
    return rescale(data, seed, lambda pixels, _: pixels)


def centre_pixels(data: Dataset, seed: int) -> Split:
    return rescale(data, seed, lambda pixels, _: pixels / np.float32(127.5) - 1)


def standardise_pixels(data: Dataset, seed: int) -> Split:
    return rescale(
        data, seed, lambda pixels, train: (pixels - train.mean(0)) / np.maximum(train.std(0), 1e-6)
    )


def rescale(data: Dataset, seed: int, scale: Callable[[Any, Any], Any]) -> Split:
    """Split the data, and scale all pixels by a function of them and of the training images'."""
    parts = split(data, seed)
    train = data.inputs[parts.train.rows].astype(np.float32)
    scaled = (
        replace(part, inputs=scale(data.inputs[part.rows].astype(np.float32), train))
        for part in (parts.train, parts.validation, parts.test)
    )
    return Split(*scaled, scaler=None)


@dataclass(frozen=True)
class Reading:
    """What differs from docs/fidelity.md.

    Parameters
    ----------
    settings
        Changed settings.
    patch
        Entered for the time of the run.
    selection, divide
        Which images, how they are divided and scaled.
    budget
        Multiple of the evaluations.
    takes_last
        Whether the last global solution is the result, not the one that validated best.
    limited_only
        Whether it changes nothing under full evaluation (CCDE).
    mnist_only
        Whether it says nothing of other sets.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    patch: Callable[[], Any] = ExitStack
    selection: str = "paper"
    divide: Callable[[Dataset, int], Split] = split
    budget: int = 1
    takes_last: bool = False
    limited_only: bool = False
    mnist_only: bool = False


H50 = {"hidden_layer_sizes": (50,)}
BASE = "as in docs/fidelity.md, 60 hidden neurons"
PER_CONTEST = "evaluations counted per contest: twice the generations"
READINGS: dict[str, Reading] = {
    BASE: Reading(),
    "50 hidden neurons, as the text says": Reading(H50, mnist_only=True),
    "100 hidden neurons": Reading({"hidden_layer_sizes": (100,)}, mnist_only=True),
    PER_CONTEST: Reading(budget=2, limited_only=True),
    "batches redrawn each epoch": Reading({"reshuffle_batches": True}, limited_only=True),
    "70/15 of the 60,000, the official 10,000 as test": Reading(
        selection="all", divide=test_on_official, mnist_only=True
    ),
    "all 60,000 to train, the official 10,000 halved to validate and test": Reading(
        selection="all", divide=train_on_all_60000, mnist_only=True
    ),
    "validation after each generation only": Reading(patch=validate_once_a_generation),
    "a trial must be fitter than its target": Reading({"strategy__accept_ties": False}),
    "decay 0": Reading({"decay": 0.0}, limited_only=True),
    "decay 0.5": Reading({"decay": 0.5}, limited_only=True),
    "one crossover mask for all trials of a subpopulation": Reading(patch=share_the_mask),
    "F 0.3 and CR 0.1, exchanged": Reading({"scale_factor": 0.3, "crossover_rate": 0.1}),
    "F 0.5, CR 0.9, usual for DE": Reading({"scale_factor": 0.5, "crossover_rate": 0.9}),
    "F 0.5": Reading({"scale_factor": 0.5}),
    "CR 0.9": Reading({"crossover_rate": 0.9}),
    "the last global solution, not the best validated": Reading(takes_last=True),
    "70/15/15 of all 70,000": Reading(selection="all", mnist_only=True),
    "pixels as they are, 0 to 255": Reading(divide=leave_pixels, mnist_only=True),
    "pixels from −1 to 1": Reading(divide=centre_pixels, mnist_only=True),
    "each pixel standardised": Reading(divide=standardise_pixels, mnist_only=True),
    "first weights within ±0.5": Reading({"initial_range": 0.5}),
    "first weights within ±1": Reading({"initial_range": 1.0}),
    "first weights within ±2": Reading({"initial_range": 2.0}),
    "individuals replaced at once (asynchronous)": Reading({"strategy__synchronous": False}),
    "exponential crossover": Reading({"strategy__crossover": "exponential"}),
    "50 hidden neurons, evaluations counted per contest": Reading(H50, budget=2, mnist_only=True),
    "50 hidden neurons, the official 10,000 as test": Reading(
        H50, selection="all", divide=test_on_official, mnist_only=True
    ),
}


def run(experiment: str, variant: str, reading: Reading, seed: int) -> list[float]:
    """Return the accuracies on the three parts in per cent."""
    paper = PAPER[experiment]
    parts = reading.divide(load_once(paper.dataset, reading.selection), seed)
    settings = paper.settings(
        variant, max_evaluations=reading.budget * paper.max_evaluations, seed=seed, n_threads=1
    )
    searches: list[Any] = []
    with reading.patch():
        result = evolve(
            parts.train.inputs, parts.train.labels, parts.validation.inputs,
            parts.validation.labels, settings, callbacks=[searches.append], **reading.settings,
        )  # fmt: skip
    network = result.network
    if reading.takes_last:
        network = Network(network.architecture, searches[-1].state.global_solution)
    return [
        round(100 * float((network.predict(part.inputs) == part.labels).mean()), 3)
        for part in (parts.train, parts.validation, parts.test)
    ]


@lru_cache(maxsize=1)
def load_once(dataset: str, selection: str) -> Dataset:
    return load(dataset, selection)


def complete(runs: Runs, name: str, cell: tuple[str, str], seeds: range) -> None:
    """Do the runs of a reading on one experiment that are missing, and save after each."""
    found = runs.setdefault(name, {}).setdefault(" ".join(cell), {})
    for seed in seeds:
        if str(seed) not in found:
            found[str(seed)] = run(*cell, READINGS[name], seed)
            print(name, *cell, seed, found[str(seed)], flush=True)
            write_atomically(STORED, [(json.dumps(runs, indent=1) + "\n").encode()])


def average(runs: Runs, name: str, cell: tuple[str, str] = MNIST) -> np.ndarray:
    """Return the mean accuracies of a reading's runs on an experiment."""
    return np.mean(list(runs[name][" ".join(cell)].values()), axis=0)


def gap(runs: Runs, name: str) -> np.ndarray:
    """Return how far a reading is from the paper on MNIST, in points, on each part."""
    paper = PAPER[MNIST[0]].results[MNIST[1]]
    return average(runs, name) - [paper.train, paper.validation, paper.test]


def is_nearer(runs: Runs, name: str) -> bool:
    """Whether a reading is nearer to the paper than ours in training and in test accuracy."""
    gains = np.abs(gap(runs, BASE)) - np.abs(gap(runs, name))
    return bool(gains[0] >= NEARER and gains[2] >= NEARER)


def affects(reading: Reading, variant: str) -> bool:
    """Whether a reading changes the runs of a variant on other sets."""
    return not reading.mnist_only and not (reading.limited_only and variant == "CCDE")


def describe(experiment: str, variant: str, found: dict[str, list[float]]) -> str:
    """Return the medians on the three parts, each with its mark beside the paper's."""
    paper = PAPER[experiment].results[variant]
    medians = np.median(list(found.values()), axis=0)
    values = (paper.train, paper.validation, paper.test)
    return " / ".join(
        f"{median:.1f} {MARKS[Reported(value, spread).judge(median)]}"
        for median, value, spread in zip(medians, values, paper.spreads, strict=True)
    )


def write_page(runs: Runs) -> str:
    """Return readings.md."""
    lines = ["# MNIST: other readings of the paper", "", *__doc__.splitlines()[2:], ""]
    paper = PAPER[MNIST[0]].results[MNIST[1]]
    lines += [
        "LECCDE on MNIST, mean of three seeds: ✓ within the paper's mean ± spread, ▲ above, ▼ "
        f"below; in brackets the median. Nearer: by at least {NEARER} points than the first row, "
        "in training and in test accuracy.", "",
        "| reading | train | validation | test | nearer |", "|---|---|---|---|---|",
        "| the paper | "
        + " | ".join(
            f"{getattr(paper, part):.2f} ± {spread:g}"
            for part, spread in zip(("train", "validation", "test"), paper.spreads, strict=True)
        )
        + " | |",
    ]  # fmt: skip
    done = [name for name in READINGS if len(runs.get(name, {}).get(" ".join(MNIST), ())) >= 3]
    theirs = (paper.train, paper.validation, paper.test)
    for name in done:
        values = list(runs[name][" ".join(MNIST)].values())
        cells = [
            f"{mean:.2f} {MARKS[Reported(value, spread).judge(mean)]} ({median:.2f})"
            for mean, median, value, spread in zip(
                np.mean(values, axis=0), np.median(values, axis=0), theirs, paper.spreads,
                strict=True,
            )
        ]  # fmt: skip
        nearer = "yes" if is_nearer(runs, name) else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {nearer} |")
    movers = [name for name in done if name != BASE and is_nearer(runs, name)
              and not READINGS[name].mnist_only]  # fmt: skip
    lines += [
        "", "## What the nearer ones do to the other sets", "",
        "Median of 20 seeds, of CCDE five, train / validation / test: ✓ within the paper's "
        "median ± spread, ▲ above, ▼ below. A reading of MNIST's images or network says nothing "
        "of other sets; one of limited evaluation does not change CCDE.", "",
        "| | | the paper | ours |" + "".join(f" {name} |" for name in movers),
        "|---|---|---|---|" + "---|" * len(movers),
    ]  # fmt: skip
    for cell in FURTHER:
        result = PAPER[cell[0]].results[cell[1]]
        shown = [f"{result.train:.1f} / {result.validation:.1f} / {result.test:.1f}"]
        for name in (BASE, *movers):
            found = runs[name].get(" ".join(cell))
            shown.append(describe(*cell, found) if found else "as ours")
        lines.append(f"| {cell[0]} | {cell[1]} | {' | '.join(shown)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""], help="readings whose name has this")
    options = parser.parse_args()
    runs: Runs = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    chosen = [name for name in READINGS if any(part in name for part in options.only)]
    for name in chosen:
        complete(runs, name, MNIST, SEEDS)
    for name in chosen:
        if name == BASE or is_nearer(runs, name):
            for cell in FURTHER:
                if affects(READINGS[name], cell[1]):
                    complete(runs, name, cell, FURTHER_SEEDS[cell[1]])
    write_atomically(STORED.with_suffix(".md"), [write_page(runs).encode()])


if __name__ == "__main__":
    main()
