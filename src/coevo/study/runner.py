"""Does the runs of a study that are missing: claims them, has them done, stores the results."""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from coevo._validation import check_name
from coevo.datasets import DatasetError, fetch
from coevo.study.backends import NAMES, Backend, Task, choose_backend
from coevo.study.checkpoints import CheckpointFolder
from coevo.study.plan import Plan
from coevo.study.progress import Forecast, Progress, count_runs
from coevo.study.run import Failure, Outcome, Run
from coevo.study.store import Store, StoreError

LEASE = 30.0
"""Seconds for which a claim is valid unless its owner renews it."""


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

    Several processes may work on the same store at once; each run is done by one of them. When
    only runs of others are left, they are waited for, and taken over if their owner dies. A run
    that was cut off goes on from its last checkpoint, in the folder `<store>.checkpoints`.

    Parameters
    ----------
    plan
        What to do.
    store
        Where the results go.
    backend
        "processes" on this machine, or "dask".
    workers
        Number of processes; one for each core if None.
    threads
        Number of cores for a run; an equal share of all if None, one on Dask.
    scheduler
        Address of the Dask scheduler.
    retry_failed
        Whether to do failed runs again.
    on_progress
        Called at the start, when a run begins and when one ends.
    lease
        Seconds for which a claim is valid unless it is renewed; the same for all processes that
        work on a store.

    Returns
    -------
    how far the study is now
    """
    check_name("backend", backend, NAMES)
    keys = [run.key for run in plan.runs]
    store.enrol(plan.runs)
    if retry_failed:
        store.retry_failed(keys)
    _remove_checkpoints(store, keys)
    if count_runs(store, keys).is_complete:
        return count_runs(store, keys)
    chosen = choose_backend(backend, workers, threads, scheduler)
    try:
        _Session(plan, store, chosen, lease, on_progress or (lambda _: None)).complete()
    finally:
        chosen.close()
    return count_runs(store, keys)


def _remove_checkpoints(store: Store, keys: Sequence[str]) -> None:
    """Remove the checkpoints of runs that are done.

    Runs that were imported leave them behind, and so do processes that lost a run to another.
    """
    folder = CheckpointFolder(store.path)
    folder.remove({key for key, state in store.states(keys).items() if state == "done"})
    folder.close()


def fetch_datasets(plan: Plan, store: Store) -> None:
    """Download the data sets that the missing runs need, or raise one clear error."""
    states = store.states(run.key for run in plan.runs)
    needed = (run.dataset for run in plan.runs if states.get(run.key) != "done")
    for dataset in dict.fromkeys(needed):
        try:
            fetch(dataset)
        except DatasetError as error:
            raise ValueError(f"{error}. To leave it out, name the others with --only") from error


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
        self._checkpoints = CheckpointFolder(store.path)
        self._owner = f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._active: dict[str, Run] = {}

    def complete(self) -> None:
        """Do all that is free, and wait for the runs of other processes."""
        with self._heartbeat():
            try:
                self._tell()
                while True:
                    with closing(self._backend.perform(self._claim)) as results:
                        for run, result in results:
                            self._enter(run, result)
                    progress = count_runs(self._store, self._keys)
                    if progress.is_complete:
                        return
                    if not progress.waiting:
                        time.sleep(min(1.0, self._lease / 4))
            finally:
                self._checkpoints.close()
                with suppress(StoreError):  # an error before this one matters more
                    self._store.release(self._owner)

    def _claim(self) -> Task | None:
        run = self._store.claim(self._keys, self._owner, self._lease)
        if run is None:
            return None
        self._active[run.key] = run
        self._tell()
        return run, self._checkpoints.path_of(run)

    def _enter(self, run: Run, result: Outcome | Failure | None) -> None:
        self._active.pop(run.key, None)
        if result is None:
            self._store.note_crash(run, self._owner)
            self._tell()
        elif self._store.finish(run, result, self._owner):
            self._checkpoints.remove([run.key])
            self._forecast.note(run.key)
            self._tell((run, result))
        else:  # another process has taken it over, or its result was imported
            _remove_checkpoints(self._store, [run.key])
            self._tell()

    def _tell(self, latest: tuple[Run, Outcome | Failure] | None = None) -> None:
        states = self._store.states(self._keys)
        left = [key for key in self._keys if states[key] in ("waiting", "running")]
        seconds_left = self._forecast.seconds_left(left, self._store.seconds(self._keys))
        self._on_progress(
            count_runs(self._store, self._keys, seconds_left, latest, self._active.values())
        )

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        """Renew the leases for as long as this process lives."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self._lease / 4):
                with suppress(StoreError):  # a full disk, say: the main thread reports it
                    self._store.renew(self._owner, self._lease)

        thread = threading.Thread(target=beat, name="coevo-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
