"""What starting costs: the command line, and first runs that have to compile their kernels.

Run it with `make cold`, some minutes. Each row is a process of its own; fits begin with an empty
cache of kernels and search briefly. Prints processor seconds, which other work on the machine
slows down too, and what reading a table takes, which `coevo train` does before it compiles.
Rewrites benchmarks/results/cold.md.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from machine import describe_machine

RESULT = Path(__file__).parent / "results" / "cold.md"
N_REPEATS = 3

STARTS = {
    "`import coevo`": ["-c", "import coevo"],
    "`coevo.Settings()`": ["-c", "import coevo; coevo.Settings()"],
    "`coevo --version`": ["-m", "coevo", "--version"],
    "`coevo --help`": ["-m", "coevo", "--help"],
    "`coevo --wrong`": ["-m", "coevo", "--wrong"],
    "`coevo train --help`": ["-m", "coevo", "train", "--help"],
    "`coevo train --wrong`": ["-m", "coevo", "train", "--wrong"],
}
FITS = {
    "classifier": "CoevoClassifier(strategy='{strategy}')",
    "regressor": "CoevoRegressor(strategy='{strategy}')",
    "accuracy": "CoevoClassifier(strategy='{strategy}', fitness='accuracy')",
    "F1": "CoevoClassifier(strategy='{strategy}', fitness='f1')",
}
STRATEGIES = ("smoothing", "rand/1")
FIT = """
import numpy as np
from coevo import CoevoClassifier, CoevoRegressor
from coevo.runtime.jit import watching

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 8))
y = X[:, 0] + X[:, 1] ** 2
compiled, estimator = [], {estimator}.set_params(max_generations=20, random_state=0)
if "Classifier" in type(estimator).__name__:
    y = y > np.median(y)
with watching(compiled.append):
    estimator.fit(X, y)
print(len(compiled))
"""

ROWS = (1_000, 50_000, 1_000_000)
READ = """
import sys, time
began = time.process_time()
import coevo.tabular.training
from coevo.tabular.examples import prepare
from coevo.tabular.job import Job
imported = time.process_time()
prepare(Job(data=sys.argv[1], target="y"))
print(imported - began, time.process_time() - imported)
"""


def write_table(path: Path, n_rows: int) -> None:
    """Write a table of numbers, categories, dates and a currency."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n_rows, 8)).round(4)).add_prefix("x")
    table["town"] = rng.choice(["Rome", "Oslo", "Bonn"], n_rows)
    moments = pd.date_range("2020-01-01", periods=n_rows, freq="min")
    table["when"] = moments.strftime("%Y-%m-%d %H:%M")
    table["price"] = [f"${price:.2f}" for price in rng.uniform(1, 9_999, n_rows)]
    table["y"] = np.where(table["x0"] + table["x1"] ** 2 > 1, "yes", "no")
    table.to_csv(path, index=False)


def measure_reading() -> list[str]:
    """Return a table of what `coevo train` does before it compiles."""
    lines = ["| rows | importing | reading |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in ROWS:
            path = Path(folder) / f"{n_rows}.csv"
            write_table(path, n_rows)
            importing, reading = map(float, run(["-c", READ, str(path)], folder)[1].split())
            lines.append(f"| {n_rows:,} | {importing:.1f} | {reading:.1f} |")
            print(lines[-1], flush=True)
    return lines


def run(words: list[str], cache: str) -> tuple[float, str]:
    """Run Python with an empty cache; return its processor seconds and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Traceback" not in done.stderr, done.stderr
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, done.stdout


def main() -> None:
    lines = ["# Starting", "", "| start | processor seconds |", "|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, words in STARTS.items():
            seconds = min(run(words, folder)[0] for _ in range(N_REPEATS))
            lines.append(f"| {name} | {seconds:.2f} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "| strategy | fit | first | functions compiled | second |",
        "|---|---|---|---|---|",
    ]
    for strategy, (name, estimator) in product(STRATEGIES, FITS.items()):
        words = ["-c", FIT.format(estimator=estimator.format(strategy=strategy))]
        with tempfile.TemporaryDirectory() as folder:
            (first, n_compiled), (second, _) = run(words, folder), run(words, folder)
        figures = f"{first:.1f} | {n_compiled.strip()} | {second:.1f}"
        lines.append(f"| {strategy} | {name} | {figures} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        *measure_reading(),
        "",
        "Processor seconds of whole processes, imports of scikit-learn included; the least of "
        f"{N_REPEATS} for starts, one for fits. The second fit finds its kernels in the cache. "
        "Tables of 12 columns, a date and a currency among them, are imported for and read by "
        "`coevo train` before it compiles.",
        "",
        f"Measured with `make cold`. {describe_machine()}",
        "",
    ]
    RESULT.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
