"""Does what is missing of a study: claims runs, has them done, enters the results."""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coevo.errors import check_name
from coevo.study.backends import NAMES, Backend, WorkersLostError, choose_backend
from coevo.study.plan import Plan
from coevo.study.progress import Forecast
from coevo.study.run import Failure, Outcome, Run
from coevo.study.store import Store

LEASE = 30.0
"""For how many seconds a claim is believed without a sign of life of its owner."""


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Parameters
    ----------
    done, failed, running, waiting
        How many of its runs are in each state, whoever does them.
    seconds_left
        How long the rest will take, None while there is nothing to judge by.
    latest
        The run that ended last and what it gave, None at the start.
    """

    done: int
    failed: int
    running: int
    waiting: int
    seconds_left: float | None = None
    latest: tuple[Run, Outcome | Failure] | None = None

    @property
    def total(self) -> int:
        """How many runs the study has."""
        return self.done + self.failed + self.running + self.waiting


def run_study(
    plan: Plan,
    store: Store,
    *,
    backend: str = "processes",
    workers: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    lease: float = LEASE,
) -> Progress:
    """Do the runs of a plan that the store does not have yet.

    Several processes may do so at once on the same store; each run is done by one of them. When
    only runs of others are left, they are waited for, and taken over if their owner vanishes.

    Parameters
    ----------
    plan
        What to do.
    store
        Where the results go.
    backend
        "processes" on this machine, or "dask".
    workers
        How many processes; one for each core if None.
    threads
        How many cores a run uses; an equal share of all if None, one on Dask.
    scheduler
        Address of the Dask scheduler.
    retry_failed
        Whether to do failed runs again.
    on_progress
        Told how far the study is at the start and after each run.
    lease
        For how many seconds claims are believed without a sign of life; the same for all
        processes on a store.

    Returns
    -------
    how far the study is now
    """
    check_name("backend", backend, NAMES)
    keys = [run.key for run in plan.runs]
    store.enrol(plan.runs)
    if retry_failed:
        store.retry_failed(keys)
    progress = _count(store, keys)
    if not progress.waiting + progress.running:
        return progress
    chosen = choose_backend(backend, workers, threads, scheduler)
    session = _Session(plan, store, chosen, lease, on_progress or (lambda progress: None))
    try:
        session.complete()
    finally:
        close = getattr(chosen, "close", None)
        if close is not None:
            close()
    return _count(store, keys)


class _Session:
    """One process's work on a study."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        backend: Backend,
        lease: float,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._store = store
        self._backend = backend
        self._lease = lease
        self._on_progress = on_progress
        self._keys = [run.key for run in plan.runs]
        self._forecast = Forecast(plan)
        self._owner = f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"

    def complete(self) -> None:
        """Do all that is to be done, waiting for others where that is all that is left."""
        with self._heartbeat():
            try:
                self._tell()
                while True:
                    self._work()
                    progress = _count(self._store, self._keys)
                    if not progress.waiting + progress.running:
                        return
                    if not progress.waiting:
                        time.sleep(min(1.0, self._lease / 4))
            finally:
                self._store.release(self._owner)

    def _work(self) -> None:
        """Do what is free now."""
        claims = _Claims(self._store, self._keys, self._owner, self._lease)
        try:
            for run, result in self._backend.perform(claims):
                self._store.finish(run, result, self._owner)
                self._tell((run, result))
        except WorkersLostError:
            # Joblib starts new processes with the next call. The attempts are counted, so that a
            # run that brings them down each time fails in the end.
            claims.close()
            self._store.abandon(self._owner)
        finally:
            claims.close()

    def _tell(self, latest: tuple[Run, Outcome | Failure] | None = None) -> None:
        seconds = self._store.seconds(self._keys)
        states = self._store.states(self._keys)
        left = [key for key in self._keys if states[key] in ("waiting", "running")]
        if latest is not None:
            self._forecast.note(latest[0].key)
        seconds_left = self._forecast.seconds_left(left, seconds)
        self._on_progress(_count(self._store, self._keys, seconds_left, latest))

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        """Renew our leases for as long as this process lives."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self._lease / 4):
                self._store.renew(self._owner, self._lease)

        thread = threading.Thread(target=beat, name="coevo-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


class _Claims:
    """Claims a run for each one asked for, until nothing is free or nobody would do it.

    Backends may ask from threads of their own, and a broken one may still do so after it has been
    given up: once closed, nothing is claimed any more.
    """

    def __init__(self, store: Store, keys: list[str], owner: str, lease: float) -> None:
        self._store = store
        self._claim = (keys, owner, lease)
        self._is_closed = False
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Run]:
        return self

    def __next__(self) -> Run:
        with self._lock:
            run = None if self._is_closed else self._store.claim(*self._claim)
        if run is None:
            raise StopIteration
        return run

    def close(self) -> None:
        """Claim nothing from now on."""
        with self._lock:
            self._is_closed = True


def study_progress(plan: Plan, store: Store) -> Progress:
    """Say how far a study is; runs that the store does not know are waiting."""
    return _count(store, [run.key for run in plan.runs])


def _count(
    store: Store,
    keys: list[str],
    seconds_left: float | None = None,
    latest: tuple[Run, Outcome | Failure] | None = None,
) -> Progress:
    states = store.states(keys)
    found = [states.get(key, "waiting") for key in keys]
    return Progress(
        done=found.count("done"),
        failed=found.count("failed"),
        running=found.count("running"),
        waiting=found.count("waiting"),
        seconds_left=seconds_left,
        latest=latest,
    )
