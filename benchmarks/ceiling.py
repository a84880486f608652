"""How many generations the default budget should have, on the sets of the choosing half.

Run it as `python benchmarks/ceiling.py --jobs 2`, an hour on two cores; ceiling.json keeps what has
been run, and `--report` runs nothing. Everything is at its default but the budget: generations,
to which 20 passes over the training instances are added. A run may end before, by itself: then it
stands for the larger budgets too. The last column is the default: the smallest budget, doubled as
long as a round gains a hundredth of all that was gained. Sets and splits are those of
benchmarks/defaults.py, and no set of its other half is used. Each fit has one core. Rewrites
benchmarks/results/ceiling.md and ceiling.json.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np
from apart import print_outcome, run_apart
from defaults import CHOOSING, HIDDEN, N_SPLITS, POOLS, is_numeric
from machine import describe_machine
from sklearn.model_selection import train_test_split

from coevo import CoevoClassifier, CoevoRegressor

RESULTS = Path(__file__).parent / "results"
CEILINGS = (20_000, 40_000, 80_000, 160_000)
DEFAULT = 0
PASSES = 20
MOST_SPLITS = 5


def measure(name: str, split: int, ceiling: int) -> dict:
    """Return what a fit with a budget comes to on one split of a set."""
    X, y = CHOOSING[name]()
    regression = is_numeric(y)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, random_state=split, stratify=None if regression else y
    )
    own = CoevoRegressor if regression else CoevoClassifier
    first = own(HIDDEN, max_generations=5).fit(X_train, y_train)  # compiles, and says the batch
    n_batches = len(X_train) / int(first.settings_.batch_size)
    budget = round(ceiling + PASSES * n_batches) if ceiling != DEFAULT else None
    model = own(HIDDEN, max_generations=budget, random_state=split, n_threads=1)
    began = time.perf_counter()
    model.fit(X_train, y_train)
    return {
        "score": 100 * float(model.score(X_test, y_test)),
        "seconds": time.perf_counter() - began,
        "validation": float(model.history_["best_validation"][-1]),
        "generations": model.n_iter_,
        "ended by": model.stop_reason_,
    }


def run(options: argparse.Namespace, content: dict, path: Path) -> None:
    """Fit what is missing."""
    lock = Lock()
    environment = dict.fromkeys(POOLS, "1")

    def fit(job: tuple[str, int, int]) -> None:
        name, split, ceiling = job
        found = content.setdefault(name, {}).setdefault(str(split), {})
        shorter = [found[str(c)] for c in CEILINGS if c <= ceiling and str(c) in found]
        if str(ceiling) in found or any(f["ended by"] == "stagnation" for f in shorter):
            return
        outcome = run_apart(__file__, ["--measure", name, split, ceiling], 3600, environment)
        if "not_run" in outcome:
            print(f"{name}: left out, {outcome['not_run']}", flush=True)
            return
        with lock:
            found[str(ceiling)] = outcome
            content["how"] = f"`python benchmarks/ceiling.py --jobs 2`. {describe_machine()}"
            beside = path.with_suffix(".part")
            beside.write_text(json.dumps(content, indent=1) + "\n")
            beside.replace(path)
            print(name, split, ceiling, outcome, flush=True)

    jobs = [
        (name, split, ceiling)
        for ceiling in options.ceilings
        for name in options.sets or CHOOSING
        for split in range(min(MOST_SPLITS, N_SPLITS.get(name, MOST_SPLITS)))
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(fit, jobs))


def find_outcome(found: dict[str, dict], ceiling: int) -> dict | None:
    """Return what a budget comes to; a run that has ended by itself stands for larger ones."""
    tried = [c for c in CEILINGS if c <= ceiling and str(c) in found] or [ceiling]
    outcome = found.get(str(tried[-1]))
    ended = outcome is not None and outcome["ended by"] == "stagnation"
    return outcome if ended or tried[-1] == ceiling else None


def report(content: dict) -> str:
    """Return the table of all sets and budgets."""
    heads = [f"{c:,}" for c in CEILINGS] + ["the default"]
    lines = ["# How long the default budget should be", "", *__doc__.splitlines()[2:], ""]
    lines += [
        "Accuracy in %, or 100 R² where the targets are numbers, and thousands of generations: "
        "means over the splits.",
        "",
        f"| set | splits | {' | '.join(heads)} |",
        "|---" * (len(heads) + 2) + "|",
    ]
    gains = []
    for name in CHOOSING:
        splits = content.get(name, {})
        columns = [
            [find_outcome(found, ceiling) for found in splits.values()]
            for ceiling in (*CEILINGS, DEFAULT)
        ]
        cells, scores = zip(*map(format_column, columns), strict=True)
        lines.append(f"| {name} | {len(splits)} | {' | '.join(cells)} |")
        gains.append([score - scores[0] for score in scores])
    means = " | ".join(f"{gain:+.2f}" for gain in np.mean(gains, axis=0))
    lines += [f"| mean gain over the first column | | {means} |"]
    return "\n".join([*lines, "", f"Measured with {content['how']}", ""])


def format_column(outcomes: list[dict | None]) -> tuple[str, float]:
    """Return a cell of the table and its score, NaN if a split has not been run."""
    done = [outcome for outcome in outcomes if outcome is not None]
    if not done or len(done) < len(outcomes):
        return "", np.nan
    score, length = (
        np.mean([outcome[key] for outcome in done]) for key in ("score", "generations")
    )
    return f"{score:.1f} ({length / 1000:.0f})", float(score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help="names of sets; all if none is named")
    parser.add_argument("--ceilings", type=int, nargs="*", default=(*CEILINGS, DEFAULT))
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, on a core each")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, split, ceiling = options.measure
        print_outcome(lambda: measure(name, int(split), int(ceiling)))
        return
    path = RESULTS / "ceiling.json"
    content = json.loads(path.read_text()) if path.exists() else {}
    if not options.report:
        run(options, content, path)
    (RESULTS / "ceiling.md").write_text(report(content))


if __name__ == "__main__":
    main()
