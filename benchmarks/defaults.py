"""The library with nothing set but a budget, on sixteen sets, beside scikit-learn's models.

Run it as `python benchmarks/defaults.py`, hours, or part by part: `python benchmarks/defaults.py
iris digits --budgets 60 180`; sets.json keeps what has been run, and `--report` runs nothing.
Sets of the choosing half were looked at while the rules of docs/tuning.md were chosen. Those of the
other half were measured three times: sets of the same kinds with an earlier form of the search,
these with the search once it had rounds, and with the search as it is. Corrections came between,
none of them for what these sets showed but one: that the default budget was short. The budget that
took its place was chosen by the choosing half (ceiling.md), and the column coevo measured anew.
Breast cancer is the paper's WBC, on which the defaults were measured at the paper's budget all
along; it and wine are also in standstill.md. Each set is split several times, three
quarters to train; everybody gets the same splits. The MLP has coevo's architecture and activation;
for regression its targets are standardised, as coevo does for itself. coevo ends by itself when it
no longer improves. Rewrites benchmarks/results/sets.md and sets.json, and a table of README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np
from apart import print_outcome, run_apart
from machine import describe_machine
from readme import rewrite_table
from scipy import stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman3,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_regression,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coevo import CoevoClassifier, CoevoRegressor
from coevo.datasets import load

RESULTS = Path(__file__).parent / "results"
HIDDEN = (50,)
SPARE_SECONDS = 900  # for the others' models, and for fits without a limit of seconds
BUDGETS = (0.0, 60.0, 180.0, 600.0)  # seconds; 0: nothing set at all
OTHERS = ("MLP", "linear", "boosting")
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
Set = tuple[np.ndarray, np.ndarray]


def load_paper_set(name: str) -> Callable[[], Set]:
    def read() -> Set:
        data = load(name, "all")
        return np.asarray(data.inputs, dtype=np.float32), data.labels

    return read


def make_lognormal() -> Set:
    rng = np.random.default_rng(5)
    X = rng.lognormal(size=(6000, 8))
    y = np.log(X[:, 0] * X[:, 1]) + np.sqrt(X[:, 2]) + 0.3 * rng.normal(size=6000)
    return X, y


def make_classes(n: int, n_inputs: int, n_classes: int, seed: int, **further) -> Callable[[], Set]:
    return lambda: make_classification(
        n, n_inputs, n_classes=n_classes, random_state=seed, **further
    )


CHOOSING: dict[str, Callable[[], Set]] = {
    "MNIST": load_paper_set("MNIST"),
    "HAR": load_paper_set("HAR"),
    "digits": lambda: load_digits(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "10 classes, 200 inputs": make_classes(
        28_000, 200, 10, 1, n_informative=40, n_redundant=20, n_clusters_per_class=3, class_sep=1.5
    ),
    "56 classes": make_classes(
        18_000, 16, 56, 2, n_informative=12, n_redundant=2, n_clusters_per_class=1, class_sep=1.2
    ),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "Friedman 1": lambda: make_friedman1(5000, noise=1.0, random_state=3),
    "log-normal": make_lognormal,
}
UNSEEN: dict[str, Callable[[], Set]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "Hastie": lambda: make_hastie_10_2(12_000, random_state=11),
    "Gaussian quantiles": lambda: make_gaussian_quantiles(
        n_samples=8000, n_features=8, n_classes=6, random_state=12
    ),
    "30 classes": make_classes(
        15_000, 40, 30, 13, n_informative=20, n_clusters_per_class=2, class_sep=1.3
    ),
    "Friedman 3": lambda: make_friedman3(6000, noise=0.1, random_state=14),
    "linear": lambda: make_regression(3000, 60, n_informative=20, noise=20, random_state=15),
}


def is_numeric(y: np.ndarray) -> bool:
    return y.dtype.kind == "f" and len(np.unique(y)) > 100


def make_others(regression: bool, n_rows: int) -> dict[str, object]:
    mlp = {"hidden_layer_sizes": HIDDEN, "activation": "tanh", "random_state": 1}
    if regression:
        network = TransformedTargetRegressor(MLPRegressor(**mlp), transformer=StandardScaler())
        return {
            "MLP": make_pipeline(StandardScaler(), network),
            "linear": make_pipeline(StandardScaler(), RidgeCV()),
            "boosting": HistGradientBoostingRegressor(random_state=1),
        }
    others = {
        "MLP": make_pipeline(StandardScaler(), MLPClassifier(**mlp)),
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    }
    if n_rows < 20_000:  # minutes with ten classes and hundreds of columns
        others["boosting"] = HistGradientBoostingClassifier(random_state=1)
    return others


HALVES = {"choosing": CHOOSING, "unseen": UNSEEN}
TITLES = {"choosing": "Looked at while choosing", "unseen": "By which no rule was chosen"}
N_SPLITS = {"MNIST": 1, "10 classes, 200 inputs": 2, "HAR": 3, "56 classes": 3, "30 classes": 3}
"""How often large sets are split; all others five times."""


def column(seconds: float) -> str:
    return f"coevo, {seconds:g} s" if seconds else "coevo"


def measure(
    name: str, split: int, columns: list[str], n_threads: int | None = None
) -> dict[str, dict]:
    """Return score and seconds of some models on one split of a set."""
    X, y = (CHOOSING | UNSEEN)[name]()
    regression = is_numeric(y)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, random_state=split, stratify=None if regression else y
    )
    own = CoevoRegressor if regression else CoevoClassifier
    models = make_others(regression, len(X)) | {
        column(seconds): own(
            HIDDEN, max_seconds=seconds or None, random_state=split, n_threads=n_threads
        )
        for seconds in BUDGETS
    }
    if any(c.startswith("coevo") for c in columns):
        own(HIDDEN, max_generations=5).fit(X_train[:200], y_train[:200])  # compiles
    found: dict[str, dict] = {}
    for c in columns:
        if c not in models:
            continue  # boosting, where it takes minutes
        model, began = models[c], time.perf_counter()
        model.fit(X_train, y_train)
        taken = time.perf_counter() - began
        found[c] = {"score": 100 * float(model.score(X_test, y_test)), "seconds": taken}
        if c.startswith("coevo"):
            found[c]["ended by"] = model.stop_reason_
    return found


# --------------------------------------------------------------------------- what is run, and kept


class Store:
    """sets.json: scores by half, set, split and model."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self.content: dict = json.loads(path.read_text()) if path.exists() else {}

    def found(self, half: str, name: str, split: int) -> dict[str, dict]:
        """Return what the models came to on one split, empty if there is none."""
        return self.content.get(half, {}).get(name, {}).get(str(split), {})

    def add(self, half: str, name: str, split: int, outcome: dict[str, dict]) -> None:
        """Keep what models came to, and write the file."""
        with self._lock:
            sets = self.content.setdefault(half, {}).setdefault(name, {})
            sets[str(split)] = sets.get(str(split), {}) | outcome
            can_tell = hasattr(os, "sched_getaffinity")  # Linux only
            n_cores = len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1
            self.content.setdefault("how", {})[half] = (
                f"`python {' '.join(['benchmarks/defaults.py', *sys.argv[1:]])}`, "
                f"{n_cores} core{'s' if n_cores > 1 else ''}. {describe_machine()}"
            )
            beside = self._path.with_suffix(".part")
            beside.write_text(json.dumps(self.content, indent=1) + "\n")
            beside.replace(self._path)


def plan(options: argparse.Namespace, store: Store) -> Iterator[tuple[str, str, int, list[str]]]:
    """Yield half, set, split and the models that are to be fitted, budget by budget."""
    for half, sets in HALVES.items():
        if options.half not in (None, half):
            continue
        for name in sets:
            if options.sets and name not in options.sets:
                continue
            n_splits = options.splits or N_SPLITS.get(name, 5)
            for split in range(n_splits):
                found = {} if options.again else store.found(half, name, split)
                if any(model not in found for model in OTHERS[:2]):
                    yield half, name, split, list(OTHERS)
                for seconds in options.budgets:
                    is_done = "ended by" in found.get(column(seconds), {})  # not so in older files
                    if not is_done and (split == 0 or seconds <= 180):
                        yield half, name, split, [column(seconds)]


def has_ended(store: Store, half: str, name: str, split: int, seconds: float) -> bool:
    """Say whether a fit with less time has ended by itself, so that more changes nothing."""
    found = store.found(half, name, split)
    return any(
        found.get(column(less), {}).get("ended by") == "stagnation"
        for less in BUDGETS
        if 0 < less < seconds
    )


def run(options: argparse.Namespace, store: Store) -> None:
    """Fit what is missing, several models at a time if there is a core for each."""
    n_threads = max(1, (os.cpu_count() or 1) // options.jobs)
    environment = {} if options.jobs == 1 else dict.fromkeys(POOLS, str(n_threads))

    def fit(job: tuple[str, str, int, list[str]]) -> None:
        half, name, split, columns = job
        seconds = max((s for s in BUDGETS if column(s) in columns), default=0.0)
        if seconds > 180 and has_ended(store, half, name, split, seconds):
            return
        told: list[object] = ["--measure", name, split, *columns]
        if options.jobs > 1:
            told += ["--threads", n_threads]
        outcome = run_apart(__file__, told, 2 * seconds + SPARE_SECONDS, environment)
        if "not_run" in outcome:
            print(f"{name}: left out, {outcome['not_run']}", flush=True)
            return
        store.add(half, name, split, outcome)
        print(half, name, split, outcome, flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(fit, list(plan(options, store))))


# ------------------------------------------------------------------------------------ what is shown

Splits = dict[str, dict[str, dict]]


def differences(splits: Splits, one: str, other: str) -> np.ndarray:
    """Return by how much one model is better than another, split by split."""
    return np.array([
        found[one]["score"] - found[other]["score"]
        for found in splits.values()
        if one in found and other in found
    ])  # fmt: skip


def interval(found: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of a mean difference by Student's t, corrected for splits.

    Splits of one set share most of their rows, so that the mean over n of them varies more than n
    independent ones would: by 1 / n + (test rows / training rows) in place of 1 / n (Nadeau and
    Bengio, 2003). With fewer than three splits nothing can be said.
    """
    if len(found) < 3:
        return -np.inf, np.inf
    half = stats.t.ppf(0.975, len(found) - 1) * found.std(ddof=1) * np.sqrt(1 / len(found) + 1 / 3)
    return found.mean() - half, found.mean() + half


def judge(found: np.ndarray) -> str:
    """Say whether the first of two models is worse or better by more than chance."""
    if not found.any():
        return "the same"
    if len(found) < 3:
        return "too few splits"
    low, high = interval(found)
    return "worse" if high < 0 else "better" if low > 0 else "within chance"


def format_row(name: str, splits: Splits, columns: list[str]) -> str:
    cells = []
    for c in columns:
        scores = [found[c]["score"] for found in splits.values() if c in found]
        seconds = [found[c]["seconds"] for found in splits.values() if c in found]
        spread = f" ± {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
        cells.append(
            f"{np.mean(scores):.1f}{spread} ({np.median(seconds):.0f} s)" if scores else ""
        )
    return f"| {name} | {len(splits)} | {' | '.join(cells)} |"


def format_difference(name: str, found: np.ndarray) -> str:
    low, high = interval(found)
    span = f"{low:+.2f} to {high:+.2f}" if np.isfinite(low) else ""
    return f"| {name} | {len(found)} | {found.mean():+.2f} | {span} | {judge(found)} |"


def compare(rows: dict[str, Splits], one: str, other: str, title: str) -> list[str]:
    """Return a table of the differences between two models, set by set."""
    found = {name: differences(splits, one, other) for name, splits in rows.items()}
    found = {name: values for name, values in found.items() if len(values)}
    if not found:
        return []
    means = [values.mean() for values in found.values()]
    return [
        "", title, "", "| set | splits | mean | 95 % interval | |", "|---" * 5 + "|",
        *(format_difference(name, values) for name, values in found.items()), "",
        f"Median over the sets {np.median(means):+.2f}, lowest {np.min(means):+.2f}.",
    ]  # fmt: skip


def report(content: dict) -> str:
    lines = ["# Nothing set but a budget", "", *__doc__.splitlines()[2:], ""]
    lines += ["Accuracy in %, or 100 R² where the targets are numbers: mean and standard deviation "
              "over the splits, and the median seconds of a fit."]  # fmt: skip
    for half, title in TITLES.items():
        rows: dict[str, Splits] = content.get(half, {})
        seen = {c for splits in rows.values() for found in splits.values() for c in found}
        own = [column(s) for s in sorted({*BUDGETS, 30.0}) if column(s) in seen]
        columns = [*own, *OTHERS]
        head = f"| set | splits | {' | '.join(columns)} |"
        lines += ["", f"## {title}", "", head, "|---" * (len(columns) + 2) + "|"]
        lines += [format_row(name, splits, columns) for name, splits in rows.items()]
        lines += compare(rows, column(180), column(60), "180 s minus 60 s, points:")
        for c in own:
            lines += compare(rows, c, "MLP", f"{c}, minus the MLP, points:")
        lines += ["", f"Measured with {content.get('how', {}).get(half, '')}"]
    lines += ["", "An interval that holds 0 is within chance; it allows for splits that share rows "
              "(Nadeau and Bengio, 2003).", ""]  # fmt: skip
    return "\n".join(lines)


def make_table(content: dict) -> str:
    """Return README's table: the sets that were not looked at, without and with a budget."""
    columns = [column(0), column(180), *OTHERS]
    lines = [
        "| | coevo | coevo, 180 s | MLP, the same network | linear model | gradient boosting |"
    ]
    lines += ["|---" * (len(columns) + 1) + "|"]
    for name, splits in content["unseen"].items():
        scores = [[found[c]["score"] for found in splits.values() if c in found] for c in columns]
        cells = [f"{np.mean(score):.1f}" if score else "" for score in scores]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help="names of sets; all if none is named")
    parser.add_argument("--half", choices=list(HALVES))
    parser.add_argument("--budgets", type=float, nargs="*", default=BUDGETS, choices=BUDGETS,
                        help="seconds; 0: nothing set; more than 180 for the first split only, and "
                             "if the fit does not end by itself before")  # fmt: skip
    parser.add_argument("--splits", type=int, help="of each set, in place of one to five")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, on a core each")
    parser.add_argument("--again", action="store_true", help="also what sets.json has already")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results go")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        warnings.simplefilter("ignore", ConvergenceWarning)
        name, split, *columns = options.measure
        print_outcome(lambda: measure(name, int(split), columns, options.threads))
        return
    unknown = set(options.sets) - set(CHOOSING | UNSEEN)
    if unknown:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    store = Store(options.folder / "sets.json")
    if not options.report:
        run(options, store)
    (options.folder / "sets.md").write_text(report(store.content))
    if options.folder == RESULTS:
        rewrite_table("defaults", make_table(store.content))


if __name__ == "__main__":
    main()
