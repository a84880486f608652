"""Attacks coevo with all harnesses, each in a process of its own, and writes what came of it.

    PYTHONPATH=benchmarks python -m attack

The seed is drawn anew each time, and is in the results. `--only` tries some parts anew.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from attack.tally import Tally

RESULTS = Path(__file__).parents[1] / "results"

PARTS = {
    "kills at random moments": ("kills", "attack_at_random_moments", 5),
    "kills at each step of writing": ("kills", "attack_each_step_of_writing", 2),
    "damaged files": ("files", "attack_by_damage", 3),
    "forged files with the right digest": ("files", "attack_by_forgery", 3),
    "absurd arguments and arrays": ("inputs", "attack", 4),
    "tied scores": ("company", "attack_by_ties", 3),
    "forked children": ("company", "attack_by_forks", 2),
    "fits in eight threads": ("company", "attack_by_threads", 2),
    "killed studies": ("studies", "attack_by_kills", 4),
    "damaged stores": ("studies", "attack_by_damage", 2),
    "injection into reports": ("injection", "attack_reports", 2),
    "injection by tables": ("injection", "attack_tables", 2),
    "the default number of threads": ("speed_of_threads", "attack", 4),
}
"""Module, function and share of the time, by name."""


def find_attack(part: str) -> Callable[[float, int, Path], Tally]:
    """Return the harness of a part."""
    module, function, _ = PARTS[part]
    found: Callable[[float, int, Path], Tally] = getattr(
        import_module(f"attack.{module}"), function
    )
    return found


def run_part(part: str, seconds: float, seed: int) -> dict[str, Any]:
    """Run a part in a process of its own, so that a crash is a finding and not the end."""
    words = [sys.executable, "-W", "ignore", "-m", "attack", "--part", part]
    words += ["--seconds", str(seconds), "--seed", str(seed)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, "MPLBACKEND": "Agg"}
    )
    if done.returncode:
        return {"counts": {}, "broken": [f"ended with {done.returncode}: {done.stderr[-2000:]}"]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def make_report(found: dict[str, dict[str, Any]]) -> str:
    from machine import describe_machine  # noqa: PLC0415 - slow to import

    lines = ["| attack | seconds | tried | broke |", "|---|---|---|---|"]
    for part, result in found.items():
        tried = ", ".join(f"{count:,} {name}" for name, count in result["counts"].items())
        lines.append(f"| {part} | {result['seconds']} | {tried} | {len(result['broken'])} |")
    broken = [f"- {part}: {line}" for part, result in found.items() for line in result["broken"]]
    if broken:
        lines += ["", "## What broke", "", *broken]
    lines += ["", f"`make attack`; the seeds are in attack.json. {describe_machine()}"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="for all parts together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--part", choices=list(PARTS), help="only this one, as JSON on stdout")
    parser.add_argument(
        "--only", nargs="*", choices=list(PARTS), default=list(PARTS),
        help="try only these anew and keep the rest of attack.json",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.part:
        with tempfile.TemporaryDirectory() as folder:
            attack = find_attack(arguments.part)
            tally = attack(arguments.seconds, arguments.seed, Path(folder))
        print(json.dumps({"counts": dict(tally.counts), "broken": tally.broken}))
        return 0
    total, kept = sum(share for *_, share in PARTS.values()), RESULTS / "attack.json"
    is_new = len(arguments.only) == len(PARTS)
    found = {} if is_new else json.loads(kept.read_text(encoding="utf-8"))["parts"]
    for part in arguments.only:
        share = PARTS[part][-1]
        seconds = arguments.seconds * share / total
        found[part] = run_part(part, seconds, arguments.seed)
        found[part] |= {"seconds": round(seconds), "seed": arguments.seed}
        print(f"{part}: {found[part]['counts']}, {len(found[part]['broken'])} broken", flush=True)
    content = {"parts": found}
    kept.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    report = make_report(found)
    (RESULTS / "attack.md").write_text(report, encoding="utf-8")
    print(report)
    return int(any(result["broken"] for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
