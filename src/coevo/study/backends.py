"""Where runs are done: in this process, in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

from coevo.errors import check_integer
from coevo.study.environment import available_cores
from coevo.study.performing import attempt
from coevo.study.run import Failure, Outcome, Run

Result = tuple[Run, Outcome | Failure]

NAMES = ("processes", "dask")
"""The backends by name."""


class WorkersLostError(Exception):
    """Processes that did runs have died, and it is not known whose fault that was."""


class Backend(Protocol):
    """Does runs as they come, several at a time."""

    @property
    def n_workers(self) -> int:
        """How many runs are done at once."""

    def perform(self, runs: Iterator[Run]) -> Iterator[Result]:
        """Give each run's result when it is there.

        Runs are taken from the iterator only when there is room for them, because taking one
        means claiming it. May raise `WorkersLostError`; the runs taken and not given back are lost.
        """


class Here:
    """Does one run after the other in this process.

    Parameters
    ----------
    n_threads
        How many cores a run uses.
    """

    n_workers = 1

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads

    def perform(self, runs: Iterator[Run]) -> Iterator[Result]:
        """Give each run's result when it is there."""
        for run in runs:
            yield run, attempt(run, self._n_threads)


class Processes:
    """Does runs in processes of this machine, with joblib.

    Parameters
    ----------
    n_workers
        How many processes.
    n_threads
        How many cores a run uses.
    """

    def __init__(self, n_workers: int, n_threads: int = 1) -> None:
        self.n_workers = n_workers
        self._n_threads = n_threads

    def perform(self, runs: Iterator[Run]) -> Iterator[Result]:
        """Give each run's result when it is there."""
        import joblib  # noqa: PLC0415 - the command line should start fast
        from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

        parallel = joblib.Parallel(
            n_jobs=self.n_workers,
            batch_size=1,
            pre_dispatch=self.n_workers,
            return_as="generator_unordered",
        )
        calls = (joblib.delayed(_attempt_and_name)(run, self._n_threads) for run in runs)
        try:
            yield from parallel(calls)
        except BrokenProcessPool as error:
            raise WorkersLostError(str(error).splitlines()[0]) from error


class Dask:
    """Sends runs to a Dask cluster; its workers need coevo and the data sets, not the store.

    A run whose worker dies is done again by another; Dask gives it up when it has brought down
    several workers.

    Parameters
    ----------
    scheduler
        The scheduler's address, such as tcp://host:8786.
    n_threads
        How many cores a run uses.
    timeout
        For how many seconds to try to reach the scheduler.
    """

    def __init__(self, scheduler: str, n_threads: int = 1, timeout: float = 20) -> None:
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise ImportError(
                "the Dask backend needs distributed: install it with `pip install coevo[dask]`"
            ) from None
        self._n_threads = n_threads
        try:
            self._client = self._distributed.Client(scheduler, timeout=timeout)
        except (OSError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {scheduler}: {error}") from error

    @property
    def n_workers(self) -> int:
        """How many runs the cluster does at once, as things stand."""
        return sum(self._client.nthreads().values())

    def perform(self, runs: Iterator[Run]) -> Iterator[Result]:
        """Give each run's result when it is there."""
        names: dict[str, Run] = {}
        completed = self._distributed.as_completed()
        try:
            self._top_up(runs, names, completed)
            # as_completed ends when it runs empty, so the next run is sent before the next wait.
            for future in completed:
                run = names.pop(future.key)
                yield run, self._result_of(future)
                self._top_up(runs, names, completed)
        finally:
            self._client.cancel(list(names), force=True)

    def _top_up(self, runs: Iterator[Run], names: dict[str, Run], completed: Any) -> None:
        """Send as many runs as the cluster can do, and one more so that nobody has to wait."""
        while len(names) <= self.n_workers:
            run = next(runs, None)
            if run is None:
                return
            key = f"coevo-{run.key}"
            future = self._client.submit(attempt, run, self._n_threads, key=key, pure=False)
            names[key] = run
            completed.add(future)

    @staticmethod
    def _result_of(future: Any) -> Outcome | Failure:
        try:
            result: Outcome | Failure = future.result()
        except Exception as error:  # the workers died, or lack something: not the run's own error
            return Failure(f"{type(error).__name__}: {error}".splitlines()[0])
        return result

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def choose_backend(
    name: str, workers: int | None, threads: int | None, scheduler: str | None
) -> Backend:
    """Return the backend that was asked for.

    Parameters
    ----------
    name
        "processes" or "dask".
    workers
        How many runs at once on this machine; one for each core if None.
    threads
        How many cores a run uses; on this machine, an equal share of all if None.
    scheduler
        Address of the Dask scheduler.
    """
    for argument, value in (("workers", workers), ("threads", threads)):
        if value is not None:
            check_integer(argument, value, 1)
    if name == "dask":
        if scheduler is None:
            raise ValueError(
                "backend dask needs the address of a scheduler, such as tcp://host:8786"
            )
        return Dask(scheduler, threads or 1)
    if scheduler is not None:
        raise ValueError("a scheduler is for the backend dask; add --backend dask")
    n_workers = workers or available_cores()
    n_threads = threads or max(1, available_cores() // n_workers)
    return Here(n_threads) if n_workers == 1 else Processes(n_workers, n_threads)


def _attempt_and_name(run: Run, n_threads: int) -> Result:
    _die_with(os.getppid())
    # Results come in any order, so each says whose it is.
    return run, attempt(run, n_threads)


@cache
def _die_with(parent: int) -> None:
    """End this process soon after its parent, which may be killed before it can say good-bye."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="coevo-watch-parent", daemon=True).start()
