"""The library with nothing set but a budget, on sixteen sets, beside scikit-learn's models.

Run it as `python benchmarks/defaults.py` (`make defaults` does, after the study of the same name).
Sets of the choosing half were looked at while the rules of docs/tuning.md were chosen. Those of the
other half were not; nothing was changed for them. An earlier form of the search, without rounds,
had been tried once on sets of the same seven kinds. Each set is split once, three quarters to
train; everybody gets the same split. The MLP has coevo's architecture and activation; for
regression its targets are standardised, as coevo does for itself. Seconds are those that a fit
took: coevo ends when it no longer improves. Rewrites benchmarks/results/sets.md and sets.json.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from machine import describe_machine
from sklearn.base import is_classifier
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
from coevo.datasets import DatasetError, load

RESULTS = Path(__file__).parent / "results"
HIDDEN = (50,)
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


def measure(make: Callable[[], Set], budgets: list[float | None]) -> dict[str, dict[str, float]]:
    X, y = make()
    regression = is_numeric(y)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, random_state=0, stratify=None if regression else y
    )
    own = CoevoRegressor if regression else CoevoClassifier
    models: dict[str, object] = {
        "coevo" if seconds is None else f"coevo, {seconds:g} s": own(
            hidden_layer_sizes=HIDDEN, max_seconds=seconds, random_state=1
        )
        for seconds in budgets
    }
    own().set_params(max_generations=5).fit(X_train[:200], y_train[:200])  # compiles
    found = {}
    for name, model in (models | make_others(regression, len(X))).items():
        began = time.perf_counter()
        model.fit(X_train, y_train)
        found[name] = {
            "score": 100 * float(model.score(X_test, y_test)),
            "seconds": time.perf_counter() - began,
        }
        assert is_classifier(model) != regression
    return found


def format_row(name: str, found: dict[str, dict[str, float]], columns: list[str]) -> str:
    cells = [
        f"{found[c]['score']:.1f} ({found[c]['seconds']:.0f} s)" if c in found else ""
        for c in columns
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, nargs="*", default=[60.0, 180.0])
    parser.add_argument("--only", nargs="*", help="names of sets; the others are kept as they are")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    path = RESULTS / "sets.json"
    results = json.loads(path.read_text()) if options.only and path.exists() else {}
    budgets: list[float | None] = [None, *options.seconds]
    for half, sets in (("choosing", CHOOSING), ("unseen", UNSEEN)):
        for name, make in sets.items():
            if options.only and name not in options.only:
                continue
            try:
                results.setdefault(half, {})[name] = measure(make, budgets)
            except DatasetError as error:
                print(f"{name}: left out, {error}")
                continue
            print(name, results[half][name], flush=True)
    results["machine"] = describe_machine()
    path.write_text(json.dumps(results, indent=1) + "\n")
    own = list(dict.fromkeys(c for half in ("choosing", "unseen") for r in results[half].values()
                             for c in r if c.startswith("coevo")))  # fmt: skip
    columns = [*own, "MLP", "linear", "boosting"]
    lines = ["# Nothing set but a budget", "", *__doc__.splitlines()[2:10], ""]
    lines += ["Accuracy in %, or 100 R² where the targets are numbers.", ""]
    for half, title in (("choosing", "Looked at while choosing"), ("unseen", "Looked at once")):
        rows = results[half]
        lines += [f"## {title}", "", f"| set | {' | '.join(columns)} |", "|---" * 7 + "|"]
        lines[-1] = "|---" * (len(columns) + 1) + "|"
        lines += [format_row(name, found, columns) for name, found in rows.items()]
        for column in own:
            gaps = [f["MLP"]["score"] - f[column]["score"] for f in rows.values() if column in f]
            lines += ["", f"Behind the MLP, {column}: median {np.median(gaps):.2f} points, "
                          f"at most {np.max(gaps):.2f}."]  # fmt: skip
        lines.append("")
    lines += [f"Measured with `python benchmarks/defaults.py`. {results['machine']}", ""]
    (RESULTS / "sets.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
