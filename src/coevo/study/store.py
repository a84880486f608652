"""Keeps every run of a study in one SQLite file: its state, its owner, its result."""

from __future__ import annotations

import io
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.study.run import Failure, Outcome, Run

MAX_CRASHES = 3
"""How often the process of a run may die before the run counts as failed."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL, variant TEXT NOT NULL, seed INTEGER NOT NULL,
    run TEXT NOT NULL,                      -- JSON: all that decides the result
    state TEXT NOT NULL DEFAULT 'waiting',  -- waiting, running, done or failed
    owner TEXT, lease REAL,                 -- the process that does it, and until when it may
    attempts INTEGER NOT NULL DEFAULT 0,    -- how often it was begun
    train REAL, validation REAL, test REAL, -- accuracy, between 0 and 1
    evaluations INTEGER, generations INTEGER, seconds REAL, stop_reason TEXT,
    versions TEXT, machine TEXT,            -- JSON
    history BLOB, trace BLOB,               -- zlib over the npy format
    error TEXT, traceback TEXT, ended TEXT,
    crashes INTEGER NOT NULL DEFAULT 0      -- how often its process died while its owner lived
) STRICT
"""
_FORMAT = 2  # the file's user_version; 1 had no column crashes and other names of settings
_PLAIN_COLUMNS = (
    "train", "validation", "test", "evaluations", "generations", "seconds", "stop_reason",
)  # fmt: skip
_FORMAT_1_COLUMNS = {
    "key", "dataset", "variant", "seed", "run", "state", "owner", "lease", "attempts", "versions",
    "machine", "history", "trace", "error", "traceback", "ended", *_PLAIN_COLUMNS,
}  # fmt: skip
_MAX_ARRAY_BYTES = 2**26
_REASONS = {
    "SQLITE_NOTADB": "is no store of runs",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_FULL": "cannot be written to",
    "SQLITE_IOERR": "cannot be written to",
    "SQLITE_READONLY": "cannot be written to",
    "SQLITE_BUSY": "is in use by another process",
}


@dataclass(frozen=True)
class Record:
    """A run as the store has it.

    Parameters
    ----------
    run
        The run.
    state
        waiting, running, done or failed.
    attempts
        How often it was begun.
    outcome
        Its result, if it is done.
    error, traceback
        Why it failed, if it did.
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
    """A file is no store of runs, is damaged, or cannot be written to."""


class Store:
    """A SQLite file in WAL mode that several threads and processes may use at once.

    A process claims a run before it does it. The claim is valid for a time, the lease, and is
    renewed as long as the process lives; the runs of a killed process become free when their
    leases expire. The file must be on a local disk, as SQLite's locks are not safe on a network.

    Parameters
    ----------
    path
        The file; it is made if it does not exist. ":memory:" for a store in memory.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        with self._explaining():
            # Our own lock serves the threads; the timeout is for other processes.
            self._connection = sqlite3.connect(
                self.path, timeout=60, isolation_level=None, check_same_thread=False
            )
        self._connection.row_factory = sqlite3.Row
        try:
            with self._explaining():
                self._prepare()
        except StoreError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        # Before anything is written: the file may be another program's, or damaged.
        found = self._check_format()
        (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StoreError(f"{self.path} is damaged: {verdict}")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if found == _FORMAT:
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._transaction() as connection:
            if self._check_format() == 1:
                self._update_format()
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def _check_format(self) -> int:
        """Return the file's format, 0 for a new file; raise if it is no store."""
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found > _FORMAT:
            raise StoreError(
                f"{self.path} is no store of runs for this version of coevo: it has format "
                f"{found}, newer than {_FORMAT}"
            )
        tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        columns = {row["name"] for row in self._connection.execute("PRAGMA table_info(runs)")}
        needed = _FORMAT_1_COLUMNS | ({"crashes"} if found == _FORMAT else set())
        if tables and not columns >= needed:
            raise StoreError(f"{self.path} is no store of runs: it has tables of another program")
        return int(found)

    def _update_format(self) -> None:
        """Write the runs of format 1 with today's names of settings, and so with other keys."""
        execute = self._connection.execute
        execute("ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0")
        for row in execute("SELECT key, run FROM runs").fetchall():
            run = self._run(row)
            execute(
                "UPDATE OR IGNORE runs SET key = ?, run = ? WHERE key = ?",
                (run.key, run.to_json(), row["key"]),
            )

    def close(self) -> None:
        """Close the file; SQLite then merges its WAL into it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Name the file and the problem in errors of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            found = (reason for start, reason in _REASONS.items() if name.startswith(start))
            raise StoreError(f"{self.path} {next(found, 'cannot be used')}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, while nobody else writes."""
        with self._lock, self._explaining():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back already
                    self._connection.execute("ROLLBACK")
                raise

    def _write(self, statement: str, *values: Any) -> int:
        """Execute one statement and return the number of rows it changed."""
        with self._transaction() as connection:
            return connection.execute(statement, values).rowcount

    def _read(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock, self._explaining():
            return self._connection.execute(statement, values).fetchall()

    def enrol(self, runs: Iterable[Run]) -> int:
        """Add the runs that are not in the store yet, and return how many there were."""
        rows = [(run.key, run.dataset, run.variant, run.seed, run.to_json()) for run in runs]
        with self._transaction() as connection:
            added = connection.executemany(
                "INSERT OR IGNORE INTO runs (key, dataset, variant, seed, run)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )
        return added.rowcount

    def claim(self, keys: Sequence[str], owner: str, lease: float) -> Run | None:
        """Return the first free run in the order of the keys, None if there is none.

        It is the owner's for `lease` seconds, unless that is renewed.
        """
        now = time.time()
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT runs.key, run FROM json_each(?) AS wanted"
                " JOIN runs ON runs.key = wanted.value"
                " WHERE state = 'waiting' OR (state = 'running' AND lease < ?)"
                " ORDER BY wanted.key LIMIT 1",
                (_json(keys), now),
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE runs SET state = 'running', owner = ?, lease = ?, attempts = attempts + 1"
                " WHERE key = ?",
                (owner, now + lease, row["key"]),
            )
        return self._run(row)

    def renew(self, owner: str, lease: float) -> None:
        """Extend the leases of all runs of an owner."""
        self._write(
            "UPDATE runs SET lease = ? WHERE state = 'running' AND owner = ?",
            time.time() + lease,
            owner,
        )

    def release(self, owner: str) -> None:
        """Give back the runs that an owner has not finished."""
        self._write(
            "UPDATE runs SET state = 'waiting', owner = NULL, lease = NULL,"
            " attempts = attempts - 1 WHERE state = 'running' AND owner = ?",
            owner,
        )

    def note_crash(self, run: Run, owner: str) -> None:
        """Give back a run whose process died, or count it as failed if that happens too often.

        Only the process that did the run is meant. If the owner itself is killed, its leases
        expire and nothing is counted.
        """
        self._write(
            "UPDATE runs SET owner = NULL, lease = NULL, crashes = crashes + 1,"
            " state = CASE WHEN crashes + 1 < ?1 THEN 'waiting' ELSE 'failed' END,"
            " error = CASE WHEN crashes + 1 < ?1 THEN NULL ELSE"
            " 'its process died ' || ?1 || ' times (out of memory?)' END, ended = ?2"
            " WHERE key = ?3 AND state = 'running' AND owner = ?4",
            MAX_CRASHES,
            _now(),
            run.key,
            owner,
        )

    def finish(self, run: Run, result: Outcome | Failure, owner: str) -> bool:
        """Store the result of a run.

        Returns
        -------
        False if the run is not the owner's any more, in which case nothing is stored
        """
        return self._store_result(
            run.key, result, _now(), "state = 'running' AND owner = :claimant", claimant=owner
        )

    def insert(self, record: Record) -> bool:
        """Add a run that ended elsewhere, and return whether it was taken.

        A result is taken unless the run is done here, also while somebody does it: `finish` then
        refuses the second result. A failure is taken only if the run is unknown or failed here
        too: others are done, or will be.
        """
        is_unknown = self.enrol([record.run]) > 0
        ended = record.ended or _now()
        if record.outcome is not None:
            return self._store_result(record.run.key, record.outcome, ended, "state != 'done'")
        failure = Failure(record.error or "unknown")
        replaced = "state IN ('waiting', 'failed')" if is_unknown else "state = 'failed'"
        return self._store_result(record.run.key, failure, ended, replaced)

    def _store_result(
        self, key: str, result: Outcome | Failure, ended: str, condition: str, **names: str
    ) -> bool:
        values: dict[str, Any] = {"owner": None, "lease": None, "ended": ended}
        if isinstance(result, Failure):
            values |= {"state": "failed", "error": result.error, "traceback": result.traceback}
        else:
            values |= {"state": "done", "error": None, "traceback": None}
            values |= {name: getattr(result, name) for name in _PLAIN_COLUMNS}
            values |= {name: json.dumps(getattr(result, name)) for name in ("versions", "machine")}
            values |= {name: pack(getattr(result, name)) for name in ("history", "trace")}
        columns = ", ".join(f"{name} = :{name}" for name in values)
        with self._transaction() as connection:
            changed = connection.execute(
                f"UPDATE runs SET {columns} WHERE key = :key AND {condition}",
                {**values, "key": key, **names},
            )
        return changed.rowcount > 0

    def retry_failed(self, keys: Iterable[str]) -> int:
        """Make failed runs free again, and return how many there were."""
        return self._write(
            "UPDATE runs SET state = 'waiting', attempts = 0, crashes = 0 WHERE state = 'failed'"
            " AND key IN (SELECT value FROM json_each(?))",
            _json(keys),
        )

    def states(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the state of each run that is there, by key.

        A run whose lease has expired counts as waiting.
        """
        rows = self._read(
            "SELECT key, CASE WHEN state = 'running' AND lease < ? THEN 'waiting' ELSE state"
            " END AS state FROM runs WHERE key IN (SELECT value FROM json_each(?))",
            time.time(),
            _json(keys),
        )
        return {row["key"]: row["state"] for row in rows}

    def seconds(self, keys: Iterable[str]) -> dict[str, float]:
        """Return how long each of the finished runs took, by key."""
        rows = self._read(
            "SELECT key, seconds FROM runs WHERE state = 'done'"
            " AND key IN (SELECT value FROM json_each(?))",
            _json(keys),
        )
        return {row["key"]: row["seconds"] for row in rows}

    def records(self, keys: Iterable[str] | None = None) -> dict[str, Record]:
        """Return runs by key: those asked for as far as they are there, or all."""
        rows = self._read(
            "SELECT * FROM runs WHERE ?1 IS NULL OR key IN (SELECT value FROM json_each(?1))"
            " ORDER BY rowid",
            None if keys is None else _json(keys),
        )
        return {row["key"]: self._record(row) for row in rows}

    def _run(self, row: sqlite3.Row) -> Run:
        with self._refusing(row["key"]):
            return Run.from_json(row["run"])

    def _record(self, row: sqlite3.Row) -> Record:
        outcome = None
        if row["state"] == "done":
            with self._refusing(row["key"]):
                outcome = Outcome(
                    **{name: row[name] for name in _PLAIN_COLUMNS},
                    versions=json.loads(row["versions"]),
                    machine=json.loads(row["machine"]),
                    history=unpack(row["history"]),
                    trace=None if row["trace"] is None else unpack(row["trace"]),
                )
        return Record(
            self._run(row),
            row["state"],
            row["attempts"],
            outcome,
            row["error"],
            row["traceback"],
            row["ended"],
        )

    @contextmanager
    def _refusing(self, key: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, EOFError, zlib.error) as error:
            raise StoreError(f"{self.path} is damaged: run {key}: {error}") from error


def pack(array: Array | None) -> bytes | None:
    """Return an array as compressed bytes that need no pickle to read."""
    if array is None:
        return None
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), 6)


def unpack(content: bytes) -> Array:
    """Return the array that `pack` was given."""
    raw = zlib.decompressobj().decompress(content, _MAX_ARRAY_BYTES)
    loaded: Array = np.load(io.BytesIO(raw), allow_pickle=False)
    return loaded


def _json(keys: Iterable[str]) -> str:
    return json.dumps(list(keys))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
