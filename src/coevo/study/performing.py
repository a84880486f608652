"""Does one run, as a pure function of what the run is."""

from __future__ import annotations

import traceback
from functools import lru_cache

from coevo import threads
from coevo.datasets import Dataset, Part, Split, load, split
from coevo.settings import Settings
from coevo.stopping import StopReason
from coevo.study.backprop import train_by_backprop
from coevo.study.environment import machine, versions
from coevo.study.run import BACKPROP, Failure, Outcome, Run
from coevo.study.trace import Trace
from coevo.training import evolve


def perform(run: Run, n_threads: int = 1) -> Outcome:
    """Do a run.

    Parameters
    ----------
    run
        What to do.
    n_threads
        How many cores to use. The result depends on it only as far as the BLAS library's rounding
        does.
    """
    parts = _split(run)
    if run.variant == BACKPROP:
        return train_by_backprop(run, parts, n_threads)
    settings = Settings(**{**run.settings, "seed": run.seed, "n_threads": n_threads})
    trace = Trace(parts) if run.traces else None
    result = evolve(
        parts.train.inputs,
        parts.train.labels,
        parts.validation.inputs,
        parts.validation.labels,
        settings,
        callbacks=[trace] if trace else [],
    )
    if result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt  # what it has so far is not its result

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
        trace=trace.rows if trace else None,
        versions=versions(),
        machine=machine(n_threads),
    )


def attempt(run: Run, n_threads: int = 1) -> Outcome | Failure:
    """Do a run; an error in it is an answer too, so that it does not stop the study."""
    try:
        return perform(run, n_threads)
    except Exception as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        return Failure(message, traceback.format_exc())


def _split(run: Run) -> Split:
    dataset = _load(run.dataset, run.selection)
    return split(dataset, run.seed, run.by_group, official_test=run.official_test)


@lru_cache(maxsize=1)
def _load(name: str, selection: str) -> Dataset:
    # Runs come experiment by experiment, so remembering one data set saves nearly all the reading.
    return load(name, selection)
