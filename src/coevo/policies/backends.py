"""Where networks are measured: in this process, in processes of this machine, on a Dask cluster.

A backend runs tasks and returns their results in the order of the tasks. Tasks must be
deterministic: then neither the number of workers nor the loss of one changes a result.
"""

from __future__ import annotations

import importlib
import math
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self

from coevo._validation import check_integer, check_name
from coevo.diagnostics.environment import available_cores
from coevo.policies.episodes import Parcel
from coevo.runtime.processes import sigint_blocked, start_pool

NAMES = ("serial", "processes", "dask")
"""The backends by name."""

_SECONDS_PER_TASK = 0.05  # long enough for the cost of sending it not to count
_MOST_LOSSES = 3  # of workers in a row, with no task done in between

Task = tuple[Any, ...]


class Backend(Protocol):
    """Runs tasks, several at a time, while it is entered."""

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""
        ...

    def pack(self, argument: str, thing: Any) -> Any:
        """Return something in the form in which tasks should carry it."""
        ...

    def run(self, function: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        """Return the function's result for each tuple of arguments, in order."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...


class Serial:
    """Runs one task after the other in this process."""

    n_workers = 1

    def pack(self, argument: str, thing: Any) -> Any:
        """Return the thing itself."""
        return thing

    def run(self, function: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        """Call the function."""
        return [function(*task) for task in tasks]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class Processes:
    """Runs tasks in processes of this machine.

    When a process dies, the tasks that are not done go to new processes.

    Parameters
    ----------
    n_workers
        Number of processes.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool: Any = None

    def pack(self, argument: str, thing: Any) -> Parcel:
        """Pickle the thing once."""
        return pack(argument, thing)

    def run(self, function: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        """Submit all tasks, and those of a broken pool again."""
        from joblib.externals.loky import BrokenProcessPool  # noqa: PLC0415 - slow to import

        results: dict[int, Any] = {}
        n_losses = 0
        while len(results) < len(tasks):
            n_before = len(results)
            futures: dict[int, Future[Any]] = {}
            try:
                if self._pool is None:
                    self._pool = start_pool(self.n_workers)
                with sigint_blocked():  # new processes inherit the signal mask
                    for k, task in enumerate(tasks):
                        if k not in results:
                            futures[k] = self._pool.submit(function, *task)
                for k, future in futures.items():
                    results[k] = future.result()
            except BrokenProcessPool as error:
                done = {k: f for k, f in futures.items() if f.done() and not f.exception()}
                results |= {k: future.result() for k, future in done.items()}
                self._stop()
                n_losses = 1 if len(results) > n_before else n_losses + 1
                if n_losses == _MOST_LOSSES:
                    raise RuntimeError(
                        f"{n_losses} times in a row a worker process died, and no task got done: "
                        "it may run out of memory or crash"
                    ) from error
            except BaseException:
                self._stop()  # what has been submitted is of no use any more
                raise
        return [results[k] for k in range(len(tasks))]

    def _stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stop()


class Dask:
    """Sends tasks to a Dask cluster, whose workers need coevo and the environment.

    Dask runs the tasks of a lost worker elsewhere, and gives one up when several workers have died
    with it.

    Parameters
    ----------
    cluster
        A `distributed.Client`, or the address of a scheduler, such as tcp://host:8786; None for
        the client of this process.
    timeout
        Seconds to wait for a scheduler to answer.
    """

    def __init__(self, cluster: Any = None, timeout: float = 20) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise ImportError(
                "backend='dask' needs distributed: pip install 'coevo[dask]'"
            ) from None
        self._is_own = isinstance(cluster, str)
        if cluster is None:
            try:
                cluster = distributed.default_client()
            except ValueError:
                raise ValueError(
                    "backend='dask' needs cluster: a distributed.Client, or the address of a "
                    "scheduler, such as tcp://host:8786"
                ) from None
        elif isinstance(cluster, str):
            try:
                cluster = distributed.Client(cluster, timeout=timeout, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ValueError(f"cluster: no Dask scheduler answers at {cluster}") from error
        elif not isinstance(cluster, distributed.Client):
            raise TypeError(
                "cluster must be a distributed.Client, or the address of a scheduler, got "
                f"{cluster!r}"
            )
        self._client = cluster

    @property
    def n_workers(self) -> int:
        """The cluster's threads, of which there may be more or fewer at another time."""
        return max(1, sum(map(int, self._client.nthreads().values())))

    def pack(self, argument: str, thing: Any) -> Parcel:
        """Pickle the thing once."""
        return pack(argument, thing)

    def run(self, function: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        """Submit all tasks and gather the results."""
        futures = [self._client.submit(function, *task, pure=False) for task in tasks]
        try:
            results: list[Any] = self._client.gather(futures)
        except BaseException:
            self._client.cancel(futures, force=True)
            raise
        return results

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_own:
            self._client.close()


def choose_backend(name: str, n_workers: int | None = None, cluster: Any = None) -> Backend:
    """Return a backend; the arguments are those of `evolve_policy`."""
    check_name("backend", name, NAMES)
    if n_workers is not None:
        check_integer("n_workers", n_workers, 1)
        if name != "processes":
            raise ValueError(f"n_workers is for backend='processes', not for backend={name!r}")
    if name == "dask":
        return Dask(cluster)
    if cluster is not None:
        raise ValueError(f"cluster is for backend='dask', not for backend={name!r}")
    return Processes(n_workers or available_cores()) if name == "processes" else Serial()


def pack(argument: str, thing: Any) -> Parcel:
    """Pickle something for workers, or say which argument cannot be pickled.

    Functions and classes of the user's script go by value, as the script is not imported there.
    """
    import cloudpickle  # noqa: PLC0415 - slow to import

    try:
        content = cloudpickle.dumps(thing)
    except Exception as error:
        raise TypeError(
            f"{argument} cannot be sent to workers: {type(error).__name__}: {error}; have it made "
            "of what can be pickled, or take backend='serial'"
        ) from error
    return Parcel(uuid.uuid4().hex, content)


class Shares:
    """Cuts work into tasks that take long enough to be worth sending, by the time it has taken.

    How work is cut has no effect on results.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._n_units = 0.0

    def cut(self, n_units: int, n_workers: int) -> list[slice]:
        """Return the units of each task."""
        size = n_units if n_workers == 1 else math.ceil(n_units / n_workers)
        if self._n_units and n_workers > 1:
            seconds = max(self._seconds / self._n_units, 1e-9)
            size = min(size, max(1, round(_SECONDS_PER_TASK / seconds)))
        return [slice(k, min(k + size, n_units)) for k in range(0, n_units, size)]

    def note(self, n_units: int, seconds: float) -> None:
        """Take note of how long work took; the past counts less and less."""
        self._seconds = 0.9 * self._seconds + seconds
        self._n_units = 0.9 * self._n_units + n_units
