"""Studies that are killed, and stores that are none any more."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from attack.files import mutate
from attack.tally import Tally, rounds
from coevo.cli.app import app
from coevo.study import Store, read_plan, run_study

PLAN = """
seeds = 2
[[experiment]]
name = "short"
dataset = "digits"
variants = ["LECCDE", "CCDE"]
trace = ["LECCDE"]
[experiment.settings]
hidden_layer_sizes = [20]
batch_size = 250
[experiment.rows.LECCDE]
max_evaluations = 60_000
[experiment.rows.CCDE]
max_evaluations = 12_000
"""

STUDY = """
import sys
import coevo.study.worker
from coevo.study import Store, read_plan, run_study
coevo.study.worker.CHECKPOINT_SECONDS = 0.1
with Store(sys.argv[2]) as store:
    run_study(read_plan(sys.argv[1]), store, workers=2, threads=1, lease=1.0)
"""


def read_results(store: Store) -> dict[str, Any]:
    """Return all of each run's result but its times."""
    return {
        key: (
            record.state,
            record.outcome
            and (
                record.outcome.train, record.outcome.validation, record.outcome.test,
                record.outcome.history[:, [0, 1, 3, 4, 5]].tobytes(),
                None if record.outcome.trace is None else record.outcome.trace.tobytes(),
            ),
        )
        for key, record in store.records().items()
    }  # fmt: skip


def find_group(group: int) -> list[int]:
    """Return the living processes of a process group, where /proc tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, number = entry.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(number) == group and state != "Z":
            found.append(int(entry.parent.name))
    return found


def attack_by_kills(seconds: float, seed: int, folder: Path) -> Tally:
    """Kill a study's process, one of its workers, or all at once, until the study is done."""
    tally, generator = Tally(), random.Random(seed)
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    plan = read_plan(folder / "plan.toml")
    with Store(folder / "alone.sqlite") as store:
        run_study(plan, store, workers=1, threads=1)
        expected = read_results(store)
    for number in rounds(seconds):
        path = folder / f"{number}.sqlite"
        patience = 4.0
        while True:
            process = subprocess.Popen(
                [sys.executable, "-c", STUDY, str(folder / "plan.toml"), str(path)],
                start_new_session=True, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                _, errors = process.communicate(timeout=generator.uniform(0.5, patience))
            except subprocess.TimeoutExpired:
                tally.counts["kills"] += 1
                patience *= 1.3
                _kill_some(process, generator, tally)
                continue
            tally.expect(process.returncode == 0, f"study: ended with {errors[-300:]}")
            break
        with Store(path) as store:
            tally.expect(read_results(store) == expected, "study: the results differ")
        left = Path(f"{path}.checkpoints")
        tally.expect(not left.exists(), "study: checkpoints are left")
        tally.counts["studies completed"] += 1
    return tally


def _kill_some(process: subprocess.Popen[str], generator: random.Random, tally: Tally) -> None:
    """Kill the parent, or all at once as a power cut does; nothing of it may live on."""
    if generator.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate(timeout=60)  # until its workers have let go of the pipe, too
    until = time.monotonic() + 30
    while (orphans := find_group(process.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    tally.expect(not orphans, f"study: {len(orphans)} orphans")
    for orphan in orphans:
        os.kill(orphan, signal.SIGKILL)


def attack_by_damage(seconds: float, seed: int, folder: Path) -> Tally:
    """Ask for the status and the report of damaged stores, and run studies on them."""
    tally, generator = Tally(), random.Random(seed)
    (folder / "plan.toml").write_text(
        PLAN.replace("60_000", "500").replace("12_000", "500"), encoding="utf-8"
    )
    plan, good = read_plan(folder / "plan.toml"), folder / "good.sqlite"
    with Store(good) as store:
        run_study(plan, store, workers=1, threads=1)
    content, path = good.read_bytes(), folder / "bad.sqlite"
    for _ in rounds(seconds):
        damaged = mutate(content, generator)
        path.write_bytes(damaged)
        command = generator.choice(("status",) * 8 + ("run",) * 3 + ("report",))
        words = ["study", command, str(folder / "plan.toml"), "--store", str(path)]
        words += ["--workers", "1"] if command == "run" else []
        words += ["--output", str(folder / "out")] if command == "report" else []
        done = CliRunner().invoke(app, words)
        tally.counts[f"times {command} of a damaged store"] += 1
        said = done.stderr.strip().splitlines()
        is_plain = not any(line.startswith(("coevo: unexpected", "Traceback")) for line in said)
        tally.expect(
            done.exit_code in (0, 1, 2) and is_plain, f"{command}: {done.exit_code} {said[-1:]}"
        )
        if done.exit_code == 2:
            tally.counts["refused"] += 1
            tally.expect(bool(said), f"{command}: refused without a word")
            if command != "run":
                tally.expect(path.read_bytes() == damaged, f"{command}: the file was changed")
        for left in folder.glob("bad.sqlite*"):
            if left.is_file():
                left.unlink()
    return tally
