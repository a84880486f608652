"""The store gives each run to one owner, keeps all that a run gave and nothing that it did not."""

import sqlite3
import threading
from dataclasses import fields, replace

import numpy as np
import pytest

from coevo.study import Store, export_runs, import_runs, open_results, read_plan
from coevo.study.run import Failure, Outcome
from coevo.study.store import MAX_ATTEMPTS, Record, StoreError

RUNS = read_plan("quick").only(["WBC"], seeds=2).runs
KEYS = [run.key for run in RUNS]
OUTCOME = Outcome(
    train=0.95,
    validation=0.9625,
    test=0.9,
    evaluations=50_000,
    generations=25,
    seconds=0.25,
    stop_reason="max_evaluations",
    history=np.arange(24.0).reshape(4, 6),
    trace=np.linspace(0, 1, 8).reshape(2, 4),
    versions={"python": "3"},
    machine={"cores": 2, "threads": 1},
)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        store.enrol(RUNS)
        yield store


def assert_same(found, expected):
    for field in fields(Outcome):
        np.testing.assert_equal(getattr(found, field.name), getattr(expected, field.name))


def test_outcome_comes_back_as_it_was(store, tmp_path):
    run = store.claim(KEYS, "me", 60)
    assert run == replace(RUNS[0], settings=run.settings)
    assert run.key == RUNS[0].key
    assert store.finish(run, OUTCOME, "me")
    with Store(tmp_path / "runs.sqlite") as other:
        record = other.records([run.key])[run.key]
    assert record.state == "done"
    assert_same(record.outcome, OUTCOME)


def test_file_is_in_wal_mode_and_readable_with_sql(store, tmp_path):
    store.finish(store.claim(KEYS, "me", 60), OUTCOME, "me")
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    rows = connection.execute("SELECT variant, seed, test FROM runs WHERE state = 'done'")
    assert rows.fetchall() == [("DE", 1, 0.9)]
    connection.close()


def test_claimed_runs_are_nobody_elses_until_the_lease_ends(store):
    first = store.claim(KEYS, "me", 60)
    assert store.claim(KEYS, "you", 60).key != first.key
    assert store.claim([first.key], "you", 60) is None
    store.abandon("me")
    store.renew("me", 60)  # comes too late
    assert store.states([first.key]) == {first.key: "waiting"}
    assert store.claim([first.key], "you", 60).key == first.key
    # Too late: the run is another's now.
    assert not store.finish(first, OUTCOME, "me")
    assert store.finish(first, OUTCOME, "you")


def test_renewed_leases_hold(store):
    run = store.claim(KEYS, "me", -1)
    store.renew("me", 60)
    assert store.claim([run.key], "you", 60) is None


def test_released_runs_are_free_and_not_counted_as_attempts(store):
    run = store.claim(KEYS, "me", 60)
    store.release("me")
    record = store.records([run.key])[run.key]
    assert (record.state, record.attempts) == ("waiting", 0)


def test_run_that_kills_its_owners_fails_in_the_end(store):
    for _ in range(MAX_ATTEMPTS):
        assert store.claim(KEYS[:1], "me", -1) is not None
    assert store.claim(KEYS[:1], "me", -1) is None
    record = store.records(KEYS[:1])[KEYS[0]]
    assert record.state == "failed"
    assert "vanished 3 times" in record.error


def test_failures_are_kept_and_can_be_retried(store):
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
    store.finish(run, OUTCOME, "me")
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


def test_enrolling_again_changes_nothing(store):
    store.finish(store.claim(KEYS, "me", 60), OUTCOME, "me")
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


def test_export_and_import(store, tmp_path):
    long = replace(OUTCOME, history=np.random.default_rng(1).random((500, 6)), trace=None)
    nan = replace(OUTCOME, evaluations=None, history=np.full((3, 6), np.nan))
    for outcome in (long, nan, Failure("ValueError: no", "secret path")):
        store.finish(store.claim(KEYS, "me", 60), outcome, "me")
    path = tmp_path / "runs.json"
    assert export_runs(store.records().values(), path) == 3
    assert "secret path" not in path.read_text()
    with open_results(path) as copy:
        first, second, third = (copy.records()[key] for key in KEYS[:3])
        assert len(first.outcome.history) == 40
        np.testing.assert_allclose(first.outcome.history[-1], long.history[-1], rtol=1e-4)
        assert np.isnan(second.outcome.history).all()
        assert (third.state, third.error) == ("failed", "ValueError: no")
        assert import_runs(copy, path) == 1  # only the failed run may be replaced
    assert import_runs(store, path) == 1


def test_import_does_not_replace_what_was_done_here(store):
    run = store.claim(KEYS, "me", 60)
    store.finish(run, OUTCOME, "me")
    assert not store.insert(Record(run, "done", outcome=replace(OUTCOME, test=0.1)))
    assert store.records()[run.key].outcome.test == 0.9


def test_what_is_no_export_is_refused(tmp_path, store):
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="no export of a study"):
        import_runs(store, path)
