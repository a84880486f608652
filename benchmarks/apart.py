"""Runs each measurement in a process of its own, so that thread pools and failures do not meet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence


def run_apart(
    script: str, arguments: Sequence[object], timeout: float, environment: dict[str, str]
) -> dict:
    """Run a script that ends with `print_outcome`, and return that outcome."""
    try:
        ended = subprocess.run(
            [sys.executable, script, *map(str, arguments)], capture_output=True, text=True,
            timeout=timeout, check=False, env=os.environ | environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"not_run": f"took longer than {timeout:g} seconds"}
    try:
        outcome = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        outcome = {"not_run": f"the process ended with code {ended.returncode}"}
    if "not_run" in outcome:
        print(ended.stderr, file=sys.stderr)
    return outcome


def print_outcome(measure: Callable[[], dict]) -> None:
    """Measure, and print what came out. What goes wrong, as a missing library, is told too."""
    try:
        outcome = measure()
    except Exception as error:
        traceback.print_exc()
        outcome = {"not_run": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(outcome), flush=True)
