"""Does one run of a study."""

from __future__ import annotations

import os
import traceback
from functools import lru_cache
from pathlib import Path

from coevo._typing import Array
from coevo.core.settings import Settings
from coevo.core.stopping import StopReason
from coevo.datasets import Dataset, Part, Split, load, split
from coevo.diagnostics.environment import machine, versions
from coevo.persistence.checkpoint import (
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    previous_path,
)
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.runtime import threads
from coevo.study.backprop import train_by_backprop
from coevo.study.run import BACKPROP, Failure, Outcome, Run
from coevo.study.trace import Trace
from coevo.training.evolve import evolve
from coevo.training.result import Result

CHECKPOINT_SECONDS = 30.0
"""Time between two checkpoints of a run."""


def perform(run: Run, n_threads: int = 1, checkpoint: Path | None = None) -> Outcome:
    """Do a run; the result of a search does not depend on the number of threads.

    Resumes from the checkpoint if the file exists, or from the one before if it is damaged, and
    writes checkpoints to it. The caller removes it.
    """
    parts = _split(run)
    if run.variant == BACKPROP:
        return train_by_backprop(run, parts, n_threads)
    result, trace = _evolve(run, parts, n_threads, checkpoint)
    if result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt  # an interrupted search is not the run's result

    def accuracy(part: Part) -> float:
        return float((result.predict(part.inputs) == part.labels).mean())

    with threads.limit_products(n_threads):
        train, validation, test = map(accuracy, (parts.train, parts.validation, parts.test))
    return Outcome(
        train=train,
        validation=validation,
        test=test,
        evaluations=result.evaluations,
        generations=result.generations,
        seconds=result.seconds,
        stop_reason=str(result.stop_reason),
        history=result.history.rows,
        trace=trace,
        versions=versions(),
        machine=machine(n_threads),
    )


def _evolve(
    run: Run, parts: Split, n_threads: int, checkpoint: Path | None
) -> tuple[Result, Array | None]:
    """Return the result, and the rows of the trace if the run has one."""
    settings = Settings(**{**run.settings, "seed": run.seed, "n_threads": n_threads})
    train, validation = parts.train, parts.validation

    def start(path: Path | None) -> tuple[Result, Array | None]:
        beside = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f"{path.name}.trace")
        trace = Trace(parts, beside) if run.traces else None
        result = evolve(
            train.inputs, train.labels, validation.inputs, validation.labels, settings,
            callbacks=[trace] if trace else [],
            checkpoint=None if path is None
            else Checkpoint(path, resume=True, every_seconds=CHECKPOINT_SECONDS),
        )  # fmt: skip
        return result, trace.rows if trace else None

    try:
        return start(checkpoint)
    except FileNotFoundError:
        # Another process has removed the folder, which was empty for a moment.
        return start(checkpoint)
    except CheckpointInUseError:
        # The run's former owner, which lost its lease, still does it. Only one result is stored.
        return start(None)
    except (CheckpointError, CheckpointMismatchError):
        assert checkpoint is not None
        _step_back(checkpoint)
        return _evolve(run, parts, n_threads, checkpoint)


def _step_back(checkpoint: Path) -> None:
    """Replace a checkpoint that cannot be used by the previous one; without one, remove all."""
    previous = previous_path(checkpoint)
    if previous.exists():
        os.replace(previous, checkpoint)
        # os.replace does nothing if both names are hard links to the same file.
        previous.unlink(missing_ok=True)
        return
    for path in checkpoint.parent.glob(f"{checkpoint.name}*"):
        path.unlink(missing_ok=True)


def attempt(run: Run, n_threads: int = 1, checkpoint: Path | None = None) -> Outcome | Failure:
    """Do a run and return an error as a Failure, so that it does not stop the study."""
    try:
        return perform(run, n_threads, checkpoint)
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split("\n", 1)[0].split())
        return Failure(message, traceback.format_exc())


def _split(run: Run) -> Split:
    dataset = _load(run.dataset, run.selection)
    return split(dataset, run.seed, run.by_group, official_test=run.official_test)


@lru_cache(maxsize=1)
def _load(name: str, selection: str) -> Dataset:
    # Runs come experiment by experiment, so one cached data set saves nearly all the reading.
    return load(name, selection)
