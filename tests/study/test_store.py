"""The store gives each run to one owner, keeps all that a run gave and nothing that it did not."""

import sqlite3
import threading
from dataclasses import fields, replace

import numpy as np
import pytest

from coevo.study import Store, read_plan
from coevo.study.run import Failure, Outcome
from coevo.study.store import MAX_CRASHES, Record, StoreError, pack

RUNS = read_plan("quick").only(["WBC"], seeds=2).runs
KEYS = [run.key for run in RUNS]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        store.enrol(RUNS)
        yield store


def assert_same(found, expected):
    for field in fields(Outcome):
        np.testing.assert_equal(getattr(found, field.name), getattr(expected, field.name))


def test_outcome_comes_back_as_it_was(store, tmp_path, outcome):
    run = store.claim(KEYS, "me", 60)
    assert run == replace(RUNS[0], settings=run.settings)
    assert run.key == RUNS[0].key
    assert store.finish(run, outcome, "me")
    with Store(tmp_path / "runs.sqlite") as other:
        record = other.records([run.key])[run.key]
    assert record.state == "done"
    assert_same(record.outcome, outcome)


def test_file_is_in_wal_mode_and_readable_with_sql(store, tmp_path, outcome):
    store.finish(store.claim(KEYS, "me", 60), outcome, "me")
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    rows = connection.execute("SELECT variant, seed, test FROM runs WHERE state = 'done'")
    assert rows.fetchall() == [("DE", 1, 0.9)]
    connection.close()


def test_renewed_leases_hold(store):
    run = store.claim(KEYS, "me", -1)
    store.renew("me", 60)
    assert store.claim([run.key], "you", 60) is None


def test_released_runs_are_free_and_not_counted_as_attempts(store):
    run = store.claim(KEYS, "me", 60)
    store.release("me")
    record = store.records([run.key])[run.key]
    assert (record.state, record.attempts) == ("waiting", 0)


def test_failures_are_kept_and_can_be_retried(store, outcome):
    run = store.claim(KEYS, "me", 60)
    store.finish(run, Failure("ValueError: no", "Traceback"), "me")
    record = store.records()[run.key]
    assert (record.state, record.error, record.traceback) == (
        "failed",
        "ValueError: no",
        "Traceback",
    )
    assert store.claim([run.key], "me", 60) is None
    assert store.retry_failed(KEYS) == 1
    assert store.claim([run.key], "me", 60).key == run.key
    store.finish(run, outcome, "me")
    assert store.records()[run.key].error is None


def test_many_threads_with_their_own_connections_claim_each_run_once(tmp_path, store):
    claimed = []

    def claim_all(owner):
        with Store(tmp_path / "runs.sqlite") as own:
            while (run := own.claim(KEYS, owner, 60)) is not None:
                claimed.append(run.key)

    threads = [threading.Thread(target=claim_all, args=(f"{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(KEYS)


def test_enrolling_again_changes_nothing(store, outcome):
    store.finish(store.claim(KEYS, "me", 60), outcome, "me")
    store.enrol(RUNS)
    assert store.states(KEYS)[KEYS[0]] == "done"


def test_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.sqlite"
    path.write_text("these are my notes, and they are longer than a header " * 10)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is no store of runs"):
        Store(path)
    assert path.read_bytes() == before


def test_store_of_a_later_format_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "later.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="format 99"):
        Store(tmp_path / "later.sqlite")


def test_import_does_not_replace_what_was_done_here(store, outcome):
    run = store.claim(KEYS, "me", 60)
    store.finish(run, outcome, "me")
    assert not store.insert(Record(run, "done", outcome=replace(outcome, test=0.1)))
    assert store.records()[run.key].outcome.test == 0.9


@pytest.mark.parametrize("lease", [-1, 60])
def test_result_from_elsewhere_is_taken_though_the_run_was_begun_here(store, outcome, lease):
    """Its process was killed (-1), or still does it; what that gives is dropped."""
    run = store.claim(KEYS, "me", lease)
    assert store.insert(Record(run, "done", outcome=replace(outcome, test=0.1)))
    assert store.claim([run.key], "you", 60) is None
    store.renew("me", 60)
    store.note_crash(run, "me")
    store.release("me")
    assert not store.finish(run, outcome, "me")
    record = store.records()[run.key]
    assert (record.state, record.attempts, record.outcome.test) == ("done", 1, 0.1)


def test_failure_from_elsewhere_is_taken_only_for_unknown_and_failed_runs(store, tmp_path, outcome):
    failure = Record(RUNS[0], "failed", error="ValueError: no")
    with Store(tmp_path / "other.sqlite") as other:
        assert other.insert(failure)
        assert other.insert(replace(failure, error="ValueError: again"))
        assert other.records()[KEYS[0]].error == "ValueError: again"
        other.retry_failed(KEYS)
        assert not other.insert(failure)  # it is to be done again
        assert other.states(KEYS) == {KEYS[0]: "waiting"}
    for lease in (-1, 60):
        run = store.claim(KEYS, "me", lease)
        assert not store.insert(replace(failure, run=run))
    assert store.finish(run, outcome, "me")
    assert not store.insert(replace(failure, run=run))


def test_claimed_runs_are_nobody_elses_until_the_lease_ends(store, outcome):
    first = store.claim(KEYS, "me", -1)
    assert store.states([first.key]) == {first.key: "waiting"}
    assert store.claim(KEYS[1:], "you", 60).key != first.key
    assert store.claim([first.key], "you", 60).key == first.key
    assert store.claim([first.key], "me", 60) is None
    # Too late: the run is another's now.
    assert not store.finish(first, outcome, "me")
    assert store.finish(first, outcome, "you")


def test_power_cuts_are_not_the_runs_fault(store):
    for _ in range(5 * MAX_CRASHES):
        assert store.claim(KEYS[:1], "me", -1) is not None


def test_run_whose_process_dies_each_time_fails_in_the_end(store, outcome):
    for _ in range(MAX_CRASHES):
        run = store.claim(KEYS[:1], "me", 60)
        store.note_crash(run, "me")
    assert store.claim(KEYS[:1], "me", 60) is None
    record = store.records(KEYS[:1])[KEYS[0]]
    assert record.state == "failed"
    assert record.error == "its process died 3 times (out of memory?)"
    store.retry_failed(KEYS)
    run = store.claim(KEYS[:1], "me", 60)
    store.note_crash(run, "you")  # not yours
    store.note_crash(run, "me")
    assert store.claim(KEYS[:1], "me", 60) is not None
    assert store.finish(run, outcome, "me")


# Stores that are none, or cannot be used


def test_other_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "music.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.execute("CREATE TABLE runs (distance REAL)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"music.sqlite is no store of runs.*another program"):
        Store(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["music.sqlite"]


def test_damaged_store_is_told_as_such(tmp_path, outcome):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.enrol(read_plan("paper").runs)
        store.finish(store.claim([read_plan("paper").runs[0].key], "me", 60), outcome, "me")
    content = bytearray(path.read_bytes())
    content[8192:-4096] = bytes(len(content) - 8192 - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"runs.sqlite is damaged"), Store(path) as store:
        store.records()


def test_store_that_is_only_read_is_not_changed(tmp_path, outcome):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.enrol(RUNS)
        store.finish(store.claim(KEYS, "me", 60), outcome, "me")
    before = path.read_bytes()
    with Store(path) as store:
        store.records()
    assert path.read_bytes() == before


@pytest.mark.parametrize("column", ["crashes", "error", "versions", "stop_reason"])
def test_store_without_one_of_its_columns_is_refused(tmp_path, column):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.enrol(RUNS)
        store._write(f"ALTER TABLE runs RENAME COLUMN {column} TO other")
    with pytest.raises(StoreError, match="is no store of runs"):
        Store(path)


def test_damage_is_found_before_anything_is_written(tmp_path, outcome):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.enrol(read_plan("paper").runs)
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"runs.sqlite is damaged"):
        Store(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("column", "content"),
    [
        ("history", b"no zlib"),
        ("history", None),
        ("versions", "{"),
        ("run", "[]"),
        ("run", '{"seed": 1}'),
        ("test", None),
        ("seconds", -1.0),
    ],
)
def test_damaged_run_is_named(store, outcome, column, content):
    run = store.claim(KEYS, "me", 60)
    store.finish(run, outcome, "me")
    store._write(f"UPDATE runs SET {column} = ? WHERE key = ?", content, run.key)
    with pytest.raises(StoreError, match=f"is damaged: run {run.key}"):
        store.records()


def test_array_that_unpacks_to_gigabytes_is_refused(store, outcome):
    run = store.claim(KEYS, "me", 60)
    store.finish(run, outcome, "me")
    bomb = pack(np.zeros((2_000_000, 6)))
    assert len(bomb) < 200_000
    store._write("UPDATE runs SET history = ? WHERE key = ?", bomb, run.key)
    with pytest.raises(StoreError, match=f"is damaged: run {run.key}"):
        store.records()


def test_full_disk_loses_nothing(store, outcome):
    first, second = (store.claim(KEYS, "me", 60) for _ in range(2))
    store.finish(first, outcome, "me")
    pages = store._read("PRAGMA page_count")[0][0]
    store._read(f"PRAGMA max_page_count = {pages}")
    large = replace(outcome, history=np.random.default_rng(0).random((5000, 6)))
    with pytest.raises(StoreError, match=r"runs.sqlite cannot be written to: .*full"):
        store.finish(second, large, "me")
    assert store.states(KEYS)[first.key] == "done"
    assert store.states(KEYS)[second.key] == "running"
    store._read("PRAGMA max_page_count = 1000000")
    assert store.finish(second, large, "me")


def test_store_of_the_first_format_is_taken_over(tmp_path, outcome):
    """Its runs list settings under the names of version 0.1, which gave them other keys."""
    path = tmp_path / "runs.sqlite"
    run = RUNS[0]
    with Store(path) as store:
        store.enrol([run])
        store.finish(store.claim([run.key], "me", 60), outcome, "me")
        old = run.settings | {"strategy": "rand/1", "crossover": "binomial", "accept_ties": True}
        old = {name: value for name, value in old.items() if name != "extensions"}
        text = replace(run, settings=old).to_json()
        store._write("UPDATE runs SET key = 'old', run = ?", text)
        store._write("ALTER TABLE runs DROP COLUMN crashes")
        store._read("PRAGMA user_version = 1")
    with Store(path) as store:
        assert store.states([run.key, "old"]) == {run.key: "done"}
        assert store.records()[run.key].run.key == run.key
        store.enrol(RUNS)
        store.note_crash(store.claim(KEYS, "me", 60), "me")
