"""Results leave a store as text and come back."""

from dataclasses import replace

import numpy as np
import pytest

from coevo.study import Store, export_runs, import_runs, open_results, read_plan
from coevo.study.run import Failure

RUNS = read_plan("quick").only(["WBC"], seeds=2).runs
KEYS = [run.key for run in RUNS]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        store.enrol(RUNS)
        yield store


def test_export_and_import(store, tmp_path, outcome):
    long = replace(outcome, history=np.random.default_rng(1).random((500, 6)), trace=None)
    nan = replace(outcome, evaluations=None, history=np.full((3, 6), np.nan))
    for result in (long, nan, Failure("ValueError: no", "secret path")):
        store.finish(store.claim(KEYS, "me", 60), result, "me")
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


def test_import_leaves_failed_runs_that_are_to_be_done_again(store, tmp_path):
    """As after `--retry-failed`, which was interrupted."""
    store.finish(store.claim(KEYS, "me", 60), Failure("ValueError: no"), "me")
    export_runs(store.records().values(), tmp_path / "runs.json")
    store.retry_failed(KEYS)
    assert import_runs(store, tmp_path / "runs.json") == 0
    assert store.states(KEYS)[KEYS[0]] == "waiting"


@pytest.mark.parametrize(
    "content", [b'{"a": 1}\n', b"", b"\xff\xfe", b'{"format": "coevo-study-1"}\n{"run": {}}\n']
)
def test_what_is_no_export_is_refused(tmp_path, store, content):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.json is no export of a study"):
        import_runs(store, path)


@pytest.mark.parametrize("name", ["empty.sqlite", "empty.json"])
def test_empty_file_has_no_results_and_stays_empty(tmp_path, name):
    path = tmp_path / name
    path.touch()
    with pytest.raises(ValueError, match=f"{name} is empty"):
        open_results(path)
    assert path.stat().st_size == 0
