"""Keeps every run of a study in one SQLite file: what it is, who is doing it, what it gave."""

from __future__ import annotations

import io
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from coevo.network import Array
from coevo.study.run import Failure, Outcome, Run

MAX_ATTEMPTS = 3
"""How often a run is begun again after whoever did it vanished, before it counts as failed."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL, variant TEXT NOT NULL, seed INTEGER NOT NULL,
    run TEXT NOT NULL,                      -- JSON: all that decides the result
    state TEXT NOT NULL DEFAULT 'waiting',  -- waiting, running, done or failed
    owner TEXT, lease REAL,                 -- who is doing it, and until when that is believed
    attempts INTEGER NOT NULL DEFAULT 0,
    train REAL, validation REAL, test REAL, -- accuracy, between 0 and 1
    evaluations INTEGER, generations INTEGER, seconds REAL, stop_reason TEXT,
    versions TEXT, machine TEXT,            -- JSON
    history BLOB, trace BLOB,               -- zlib over the npy format
    error TEXT, traceback TEXT, ended TEXT
) STRICT
"""
_FORMAT = 1  # in the file's user_version, so that later versions know what they open


@dataclass(frozen=True)
class Record:
    """A run as the store has it.

    Parameters
    ----------
    run
        What it is.
    state
        waiting, running, done or failed.
    attempts
        How often it was begun.
    outcome
        What it gave, if it is done.
    error, traceback
        Why not, if it failed.
    ended
        When it was done or failed, in UTC.
    """

    run: Run
    state: str
    attempts: int = 0
    outcome: Outcome | None = None
    error: str | None = None
    traceback: str | None = field(default=None, repr=False)
    ended: str | None = None


class StoreError(ValueError):
    """A file is not a store of runs."""


class Store:
    """A SQLite file in WAL mode that several threads and processes may use at once.

    Whoever does a run claims it first: for a while, the lease, it is nobody else's. Leases are
    renewed as long as their owner lives; the runs of an owner that was killed become free when
    they expire. The file must be on a local disk, as SQLite's locks are not safe on a network.

    Parameters
    ----------
    path
        The file; it is made if it does not exist. ":memory:" for one that vanishes.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        # Our own lock serves the threads; the 60 s are for other processes.
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=60, isolation_level=None, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from None
        self._connection.row_factory = sqlite3.Row
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreError(f"{self.path} is no store of runs: {error}") from None

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self._transaction() as connection:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found > _FORMAT:
                raise sqlite3.DatabaseError(f"it has format {found}, newer than {_FORMAT}")
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def close(self) -> None:
        """Close the file; SQLite then folds its WAL back into it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and nobody else writes meanwhile."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def enrol(self, runs: Iterable[Run]) -> None:
        """Enter the runs that are not there yet."""
        rows = [(run.key, run.dataset, run.variant, run.seed, run.to_json()) for run in runs]
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO runs (key, dataset, variant, seed, run)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )

    def claim(self, keys: Sequence[str], owner: str, lease: float) -> Run | None:
        """Return the first of the runs that is free and make it the owner's, None if none is.

        Parameters
        ----------
        keys
            The runs that matter, in the order in which they should be done.
        owner
            Who claims it.
        lease
            For how many seconds, unless it is renewed.
        """
        wanted, now = json.dumps(list(keys)), time.time()
        with self._transaction() as connection:
            # A run that kills its process would otherwise be begun again for ever.
            connection.execute(
                "UPDATE runs SET state = 'failed', owner = NULL, lease = NULL, ended = ?, error ="
                " 'abandoned: whoever did it vanished ' || attempts || ' times (out of memory?)'"
                " WHERE state = 'running' AND lease < ? AND attempts >= ?"
                " AND key IN (SELECT value FROM json_each(?))",
                (_now(), now, MAX_ATTEMPTS, wanted),
            )
            row = connection.execute(
                "SELECT runs.key, run FROM json_each(?) AS wanted"
                " JOIN runs ON runs.key = wanted.value"
                " WHERE state = 'waiting' OR (state = 'running' AND lease < ?)"
                " ORDER BY wanted.key LIMIT 1",
                (wanted, now),
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE runs SET state = 'running', owner = ?, lease = ?, attempts = attempts + 1"
                " WHERE key = ?",
                (owner, now + lease, row["key"]),
            )
        return Run.from_json(row["run"])

    def renew(self, owner: str, lease: float) -> None:
        """Extend the leases of all that an owner is doing."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE runs SET lease = ? WHERE state = 'running' AND owner = ?",
                (time.time() + lease, owner),
            )

    def release(self, owner: str, keys: Iterable[str] | None = None) -> None:
        """Give back what an owner has not finished: some runs, or all of them."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE runs SET state = 'waiting', owner = NULL, lease = NULL,"
                " attempts = attempts - 1 WHERE state = 'running' AND owner = ?"
                " AND (?2 IS NULL OR key IN (SELECT value FROM json_each(?2)))",
                (owner, None if keys is None else json.dumps(list(keys))),
            )

    def abandon(self, owner: str) -> None:
        """Let all that an owner is doing expire at once, as if it had been killed."""
        with self._transaction() as connection:
            # Nobody's, so that the owner's heartbeat does not bring the claim back to life.
            connection.execute(
                "UPDATE runs SET owner = NULL, lease = 0 WHERE state = 'running' AND owner = ?",
                (owner,),
            )

    def finish(self, run: Run, result: Outcome | Failure, owner: str) -> bool:
        """Enter what a run gave.

        Returns
        -------
        False if the run is not the owner's any more, in which case nothing is entered
        """
        with self._transaction() as connection:
            found = connection.execute(
                "SELECT 1 FROM runs WHERE key = ? AND state = 'running' AND owner = ?",
                (run.key, owner),
            ).fetchone()
            if found is not None:
                self._write(connection, run.key, result, _now())
        return found is not None

    def insert(self, record: Record) -> bool:
        """Enter a run that was done elsewhere, unless it is done here already; say whether."""
        self.enrol([record.run])
        result = record.outcome or Failure(record.error or "unknown")
        with self._transaction() as connection:
            found = connection.execute(
                "SELECT 1 FROM runs WHERE key = ? AND state IN ('waiting', 'failed')",
                (record.run.key,),
            ).fetchone()
            if found is not None:
                self._write(connection, record.run.key, result, record.ended or _now())
        return found is not None

    @staticmethod
    def _write(
        connection: sqlite3.Connection, key: str, result: Outcome | Failure, ended: str
    ) -> None:
        values: dict[str, Any] = {"owner": None, "lease": None, "ended": ended}
        if isinstance(result, Failure):
            values |= {"state": "failed", "error": result.error, "traceback": result.traceback}
        else:
            values |= {"state": "done", "error": None, "traceback": None}
            for name in _PLAIN_COLUMNS:
                values[name] = getattr(result, name)
            values |= {name: json.dumps(getattr(result, name)) for name in ("versions", "machine")}
            values |= {name: pack(getattr(result, name)) for name in ("history", "trace")}
        columns = ", ".join(f"{name} = :{name}" for name in values)
        connection.execute(f"UPDATE runs SET {columns} WHERE key = :key", {**values, "key": key})

    def retry_failed(self, keys: Iterable[str]) -> int:
        """Make failed runs free again, and return how many there were."""
        with self._transaction() as connection:
            return connection.execute(
                "UPDATE runs SET state = 'waiting', attempts = 0 WHERE state = 'failed'"
                " AND key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            ).rowcount

    def states(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the state of each run that is there, by key.

        A run whose owner's lease has expired counts as waiting.
        """
        with self._lock:
            rows = self._connection.execute(
                "SELECT key, CASE WHEN state = 'running' AND lease < ? THEN 'waiting' ELSE state"
                " END AS state FROM runs WHERE key IN (SELECT value FROM json_each(?))",
                (time.time(), json.dumps(list(keys))),
            ).fetchall()
        return {row["key"]: row["state"] for row in rows}

    def seconds(self, keys: Iterable[str]) -> dict[str, float]:
        """Return how long each of the runs that are done took, by key."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT key, seconds FROM runs WHERE state = 'done'"
                " AND key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            ).fetchall()
        return {row["key"]: row["seconds"] for row in rows}

    def records(self, keys: Iterable[str] | None = None) -> dict[str, Record]:
        """Return runs by key: those asked for as far as they are there, or all."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT * FROM runs WHERE ?1 IS NULL OR key IN (SELECT value FROM json_each(?1))"
                " ORDER BY rowid",
                (None if keys is None else json.dumps(list(keys)),),
            ).fetchall()
        return {row["key"]: _record(row) for row in rows}


_PLAIN_COLUMNS = (
    "train", "validation", "test", "evaluations", "generations", "seconds", "stop_reason",
)  # fmt: skip


def _record(row: sqlite3.Row) -> Record:
    outcome = None
    if row["state"] == "done":
        history = unpack(row["history"])
        assert history is not None
        outcome = Outcome(
            **{name: row[name] for name in _PLAIN_COLUMNS},
            versions=json.loads(row["versions"]),
            machine=json.loads(row["machine"]),
            history=history,
            trace=unpack(row["trace"]),
        )
    return Record(
        Run.from_json(row["run"]),
        row["state"],
        row["attempts"],
        outcome,
        row["error"],
        row["traceback"],
        row["ended"],
    )


def pack(array: Array | None) -> bytes | None:
    """Return an array as compressed bytes that need no pickle to read."""
    if array is None:
        return None
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), 6)


def unpack(content: bytes | None) -> Array | None:
    """Return the array that `pack` was given."""
    if content is None:
        return None
    loaded: Array = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return loaded


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
