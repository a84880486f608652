"""Where runs are done: in this process, in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, Protocol

from coevo._validation import check_integer
from coevo.diagnostics.environment import available_cores
from coevo.runtime.processes import sigint_blocked, start_pool
from coevo.study.run import Failure, Outcome, Run
from coevo.study.worker import attempt

Task = tuple[Run, Path | None]
"""A run and the file for its checkpoint."""

Result = tuple[Run, Outcome | Failure | None]
"""A run and what it gave; None if the process that did it died."""

Results = Generator[Result, None, None]

NAMES = ("processes", "dask")
"""The backends by name."""

_SECONDS_TO_STOP = 5.0
_SECONDS_TO_CONNECT = 20.0


class Backend(Protocol):
    """Does runs, several at a time."""

    def perform(self, claim: Callable[[], Task | None]) -> Results:
        """Yield each run's result as it arrives.

        `claim` returns the next run, or None if none is free. It is called only when a run can
        start at once, and again after each result.
        """

    def close(self) -> None:
        """Release what the backend holds."""


class Here:
    """Does one run after the other in this process."""

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads

    def perform(self, claim: Callable[[], Task | None]) -> Results:
        """Yield each run's result as it arrives."""
        while (task := claim()) is not None:
            run, checkpoint = task
            yield run, attempt(run, self._n_threads, checkpoint)

    def close(self) -> None:
        """Nothing is held."""


class Processes:
    """Does runs in processes of this machine.

    Each process is a pool of its own: when one dies, the run that it did is known and the others
    go on. Loky, unlike the standard library, does not import the caller's script again.
    """

    def __init__(self, n_workers: int, n_threads: int = 1) -> None:
        self.n_workers = n_workers
        self._n_threads = n_threads

    def perform(self, claim: Callable[[], Task | None]) -> Results:
        """Yield each run's result as it arrives."""
        # Not at the top of the module: the command line should start fast.
        from joblib.externals.loky import BrokenProcessPool  # noqa: PLC0415

        idle = [start_pool(1) for _ in range(self.n_workers)]
        busy: dict[Future[Any], tuple[Run, Any]] = {}
        try:
            while True:
                while idle and (task := claim()) is not None:
                    pool = idle.pop()
                    with sigint_blocked():  # the new process inherits the signal mask
                        future = pool.submit(_attempt, *task, self._n_threads)
                    busy[future] = task[0], pool
                if not busy:
                    return
                for future in wait(busy, return_when=FIRST_COMPLETED).done:
                    run, pool = busy.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        pool, result = start_pool(1), None
                    idle.append(pool)
                    yield run, result
        except KeyboardInterrupt:
            # Ctrl-C has reached the workers too; let them write their checkpoints.
            wait(busy, timeout=_SECONDS_TO_STOP)
            raise
        finally:
            for pool in [*idle, *(pool for _, pool in busy.values())]:
                pool.shutdown(wait=True, kill_workers=True)

    def close(self) -> None:
        """Nothing is held between calls."""


def _attempt(run: Run, checkpoint: Path | None, n_threads: int) -> Outcome | Failure:
    """Do a run in a worker process; only during it does Ctrl-C raise KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return attempt(run, n_threads, checkpoint)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class Dask:
    """Sends runs to a Dask cluster; its workers need coevo and the data sets, not the store.

    A run whose worker dies is done again by another, from its beginning; Dask gives it up when
    several workers have died with it.
    """

    def __init__(self, scheduler: str, n_threads: int = 1) -> None:
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise ImportError(
                "the Dask backend needs distributed: install it with `pip install coevo[dask]`"
            ) from None
        self._n_threads = n_threads
        try:
            self._client = self._distributed.Client(scheduler, timeout=_SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {scheduler}: {error}") from error

    def perform(self, claim: Callable[[], Task | None]) -> Results:
        """Yield each run's result as it arrives."""
        sent: dict[str, Run] = {}
        completed = self._distributed.as_completed()
        try:
            self._send(claim, sent, completed)
            # as_completed ends when it runs empty, so the next run is sent before the next wait.
            for future in completed:
                run = sent.pop(future.key)
                yield run, self._result_of(future)
                self._send(claim, sent, completed)
        finally:
            self._client.cancel(list(sent), force=True)

    def _send(self, claim: Callable[[], Task | None], sent: dict[str, Run], completed: Any) -> None:
        """Send as many runs as the cluster can do at once, and one more so that none waits."""
        while len(sent) <= sum(self._client.nthreads().values()):
            task = claim()
            if task is None:
                return
            run, _ = task  # the cluster does not see the folder of the checkpoints
            key = f"coevo-{run.key}"
            sent[key] = run
            completed.add(self._client.submit(attempt, run, self._n_threads, key=key, pure=False))

    @staticmethod
    def _result_of(future: Any) -> Outcome | Failure:
        try:
            result: Outcome | Failure = future.result()
        except Exception as error:  # workers died or lack a package: not an error of the run
            return Failure(f"{type(error).__name__}: {error}".splitlines()[0])
        return result

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def choose_backend(
    name: str, workers: int | None, threads: int | None, scheduler: str | None
) -> Backend:
    """Return the backend that was asked for; the arguments are those of `run_study`."""
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
