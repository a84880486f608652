"""Speed of the paper's LECCDE here and in another commit, in turn within one run.

Run it as `python benchmarks/against.py COMMIT`, two minutes and the compiling. Each side is three
processes, each the best of some runs; what counts is the ratio. Rewrites results/against.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from machine import describe_machine

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "against.md"
RUNS = {"WBC": (6, 200_000), "ESR": (4, 300_000), "HAR": (3, 500_000), "MNIST": (2, 500_000)}
BURST = """
import sys
from coevo import PAPER, evolve
from coevo.datasets import load, split
name, n_runs, n_evaluations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
parts = split(load(name), 1)
arrays = (parts.train.inputs, parts.train.labels)
arrays += (parts.validation.inputs, parts.validation.labels)
settings = PAPER[name].settings("LECCDE", seed=1)
runs = [evolve(*arrays, settings, max_evaluations=n_evaluations) for _ in range(n_runs + 1)]
print(max(run.evaluations / run.seconds for run in runs[1:]))
"""


def run_burst(source: Path, cache: str, name: str) -> float:
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", BURST, name, *map(str, RUNS[name])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    commit = parser.parse_args().commit
    lines = ["# Against an older commit", "", *__doc__.splitlines()[2:4], "",
             f"| set | evaluations/s at {commit} | now | ratio |", "|---|---|---|---|"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "-f", str(old), commit], check=True)
        try:
            for name in RUNS:
                rates = np.array([
                    [run_burst(side / "src", f"{folder}/{k}", name)
                     for k, side in enumerate((old, ROOT))]
                    for _ in range(3)
                ])  # fmt: skip
                before, now = np.median(rates, axis=0)
                lines.append(f"| {name} | {before:,.0f} | {now:,.0f} | {now / before:.2f} |")
                print(lines[-1], flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    lines += [
        "",
        f"Measured with `python benchmarks/against.py {commit}`. {describe_machine()}",
        "",
    ]
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
