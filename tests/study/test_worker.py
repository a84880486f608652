"""One run: the same result each time, traced or not, whatever its checkpoint file holds."""

import errno
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coevo.persistence.container import pack
from coevo.study import read_plan
from coevo.study.checkpoints import CheckpointFolder
from coevo.study.trace import Trace
from coevo.study.worker import attempt, perform


def test_trace_changes_nothing_and_ends_where_the_run_does(tmp_path, write_plan):
    run = read_plan(write_plan(tmp_path)).runs[0]
    run = replace(run, settings=run.settings | {"fitness": "accuracy"})  # as a trace tells
    traced = perform(run)
    plain = perform(type(run)(run.dataset, run.variant, run.settings, run.seed))
    assert plain.trace is None
    assert (traced.train, traced.validation, traced.test) == (
        plain.train,
        plain.validation,
        plain.test,
    )
    # Both tell of the global solution: columns evaluations and validation.
    np.testing.assert_allclose(traced.trace[:, [0, 2]], traced.history[1:, [1, 4]], rtol=1e-6)


def test_backprop_is_a_function_of_its_seed(tmp_path, write_plan):
    run = next(r for r in read_plan(write_plan(tmp_path)).runs if r.variant == "backprop")
    first, second = perform(run), perform(run)
    assert (first.train, first.test) == (second.train, second.test)
    assert first.evaluations is None
    assert first.generations == 5
    assert first.stop_reason == "max_epochs"
    assert first.validation == first.history[:, 5].max()
    assert first.test > 0.5


@pytest.fixture
def run(tmp_path, write_plan):
    return read_plan(write_plan(tmp_path)).runs[1]


def is_same(first, second):
    return (first.train, first.validation, first.test) == (
        second.train, second.validation, second.test,
    )  # fmt: skip


def test_damaged_checkpoint_is_replaced(tmp_path, run):
    path = CheckpointFolder(str(tmp_path / "runs.sqlite")).path_of(run)
    path.parent.mkdir()
    path.write_bytes(b"half a checkpoint")
    assert is_same(perform(run, 1, path), perform(run))
    assert path.read_bytes() != b"half a checkpoint"


@pytest.fixture
def begun(monkeypatch):
    """Save a checkpoint after each generation, and note the first generation of each search."""
    import coevo.study.worker as module

    real, first = module.evolve, []

    def note_first(*arguments, **options):
        generations = []

        def note(search):
            generations.append(search.state.generation)
            first.extend(generations if len(generations) == 1 else [])

        if options["checkpoint"] is not None:
            options["checkpoint"].every_generations = 1
        return real(*arguments, **options | {"callbacks": [*options["callbacks"], note]})

    monkeypatch.setattr(module, "evolve", note_first)
    return first


@pytest.mark.parametrize("traces", [False, True])
def test_run_goes_on_from_the_previous_checkpoint_if_the_last_is_damaged(
    tmp_path, run, begun, traces
):
    run = replace(run, traces=traces)
    path = tmp_path / "run.checkpoint"
    whole = perform(run, 1, path)
    assert begun == [1]
    path.write_bytes(path.read_bytes()[:-5])
    resumed = perform(run, 1, path)
    assert begun == [1, whole.generations]  # only the last generation is done again
    assert is_same(resumed, whole)
    np.testing.assert_array_equal(resumed.trace, whole.trace)
    path.unlink()
    assert is_same(perform(run, 1, path), whole)
    assert begun == [1, whole.generations, whole.generations]


@pytest.mark.parametrize("is_linked", [False, True])
def test_run_begins_anew_if_both_checkpoints_are_damaged(tmp_path, run, begun, is_linked):
    path, previous = tmp_path / "run.checkpoint", tmp_path / "run.checkpoint.previous"
    path.write_bytes(b"half a checkpoint")
    if is_linked:  # a process killed while it saves leaves one file with both names
        os.link(path, previous)
    else:
        previous.write_bytes(b"half a checkpoint")
    assert is_same(perform(run, 1, path), perform(run))
    assert begun == [1, 1]


def test_checkpoint_of_another_run_is_replaced(tmp_path, run):
    path = tmp_path / "other.checkpoint"
    perform(replace(run, seed=7), 1, path)
    assert is_same(perform(run, 1, path), perform(run))


def test_run_that_another_process_still_does_is_done_without_a_checkpoint(tmp_path, run):
    import coevo.study.worker as module

    path = tmp_path / "held.checkpoint"
    real, calls = module.evolve, []

    def inner(*arguments, **options):
        calls.append(options["checkpoint"] is not None)
        if len(calls) == 1:  # while it holds the lock, another process takes the run over

            def take_over(search):
                if search.state.generation == 1:
                    assert is_same(perform(run, 1, path), perform(run))

            options = {**options, "callbacks": [take_over]}
        return real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "evolve", inner)
        perform(run, 1, path)
    assert calls == [True, True, False, False]


def test_folder_that_another_process_removes_is_made_again(tmp_path, run, monkeypatch):
    """It does so when it has found it empty: after the folder was made, before it was used."""
    import coevo.study.worker as module

    real, path = module.evolve, tmp_path / "runs.sqlite.checkpoints" / "run.checkpoint"
    removals = iter([path.parent.rmdir])

    def evolve_later(*arguments, **options):
        for remove in removals:
            remove()
        return real(*arguments, **options)

    monkeypatch.setattr(module, "evolve", evolve_later)
    assert is_same(perform(run, 1, path), perform(run))


def test_errors_are_one_line(tmp_path, run):
    failure = attempt(replace(run, dataset="IRIS"))
    assert failure.error.startswith("ValueError: data set='IRIS' is unknown")
    assert "Traceback" in failure.traceback


class PowerCut(BaseException):
    """Ends a run without a result, an error or a last checkpoint."""


@pytest.mark.parametrize("harm", [None, "missing", "cut", "foreign"])
def test_traced_run_goes_on_with_its_trace(tmp_path, write_plan, monkeypatch, harm):
    import coevo.study.worker as module

    monkeypatch.setattr(module, "Trace", partial(Trace, capacity=4))  # thinned out again and again
    run = read_plan(write_plan(tmp_path)).runs[0]
    run = replace(run, settings=run.settings | {"max_evaluations": 7000})
    assert run.traces
    whole = perform(run)
    real, cuts = module.evolve, [3, 7, 13]
    path = tmp_path / "run.checkpoint"

    def cut_off(*arguments, **options):
        def pull_the_plug(search):
            if cuts and search.state.generation == cuts[0]:
                del cuts[0]
                raise PowerCut

        options["checkpoint"].every_generations = 2
        return real(*arguments, **options | {"callbacks": [*options["callbacks"], pull_the_plug]})

    monkeypatch.setattr(module, "evolve", cut_off)
    while cuts:
        with pytest.raises(PowerCut):
            perform(run, 1, path)
    beside = tmp_path / "run.checkpoint.trace"
    if harm == "missing":
        beside.unlink()
    elif harm == "cut":
        beside.write_bytes(beside.read_bytes()[:-5])
    elif harm == "foreign":
        beside.write_bytes(pack({"rows": np.zeros((2, 3)), "stride": np.array(0)}, {}))
    resumed = perform(run, 1, path)
    assert is_same(resumed, whole)
    np.testing.assert_array_equal(resumed.trace, whole.trace)


@pytest.mark.parametrize(
    ("full", "first"),
    [
        ((), 13),  # the checkpoint is of generation 12
        ((10,), 13),  # no row then, but half of them are dropped
        ((12,), 11),  # the trace is behind the checkpoint, not behind the one before
        ((8, 9, 10, 11), 13),  # the next row is written with those before
        ((8, 9, 10, 11, 12), 1),
        (range(100), 1),
    ],
)
@pytest.mark.filterwarnings("ignore:the trace:RuntimeWarning")
def test_full_disk_leaves_no_hole_in_a_trace(tmp_path, write_plan, monkeypatch, full, first):
    import coevo.study.trace as files
    import coevo.study.worker as module

    run = read_plan(write_plan(tmp_path)).runs[0]
    run = replace(run, settings=run.settings | {"max_evaluations": 7000})
    write, real, generations = files.write_atomically, module.evolve, []

    class Told(Trace):
        def after_generation(self, search):
            generations.append(search.state.generation)
            super().after_generation(search)

    def write_if_there_is_room(*arguments):
        if generations[-1] in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*arguments)

    def cut_off(*arguments, **options):
        def pull_the_plug(search):
            if search.state.generation == 13 and len(generations) == 13:
                raise PowerCut

        options["checkpoint"].every_generations = 2
        return real(*arguments, **options | {"callbacks": [*options["callbacks"], pull_the_plug]})

    monkeypatch.setattr(module, "Trace", partial(Told, capacity=4))
    whole = perform(run)
    generations.clear()
    monkeypatch.setattr(files, "write_atomically", write_if_there_is_room)
    monkeypatch.setattr(module, "evolve", cut_off)
    with pytest.raises(PowerCut):
        perform(run, 1, tmp_path / "run.checkpoint")
    resumed = perform(run, 1, tmp_path / "run.checkpoint")
    assert generations[13] == first
    assert is_same(resumed, whole)
    np.testing.assert_array_equal(resumed.trace, whole.trace)


def test_run_warns_if_its_trace_cannot_be_written(tmp_path, write_plan, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    run = read_plan(write_plan(tmp_path)).runs[0]
    monkeypatch.setattr("coevo.study.trace.write_atomically", fail)
    with pytest.warns(RuntimeWarning, match=r"run.checkpoint.trace could not be written") as given:
        outcome = perform(run, 1, tmp_path / "run.checkpoint")
    np.testing.assert_array_equal(outcome.trace, perform(run).trace)
    # Python shows the same text once, so a long run on a full disk does not fill the screen.
    assert len({str(warning.message) for warning in given}) == 1


def test_only_evolved_runs_in_files_have_checkpoints(tmp_path, write_plan):
    traced, plain, backprop, *_ = read_plan(write_plan(tmp_path)).runs
    folder = CheckpointFolder(str(tmp_path / "runs.sqlite"))
    assert folder.path_of(plain).parent == tmp_path / "runs.sqlite.checkpoints"
    assert folder.path_of(traced).parent == tmp_path / "runs.sqlite.checkpoints"
    assert folder.path_of(backprop) is None
    assert CheckpointFolder(":memory:").path_of(plain) is None


def test_checkpoints_of_other_versions_are_not_found(tmp_path, run, monkeypatch):
    folder = CheckpointFolder(str(tmp_path / "runs.sqlite"))
    before = folder.path_of(run)
    monkeypatch.setattr("coevo.study.checkpoints.versions", lambda: {"numpy": "9"})
    assert folder.path_of(run) != before
    before.parent.mkdir()
    before.touch()
    folder.remove([run.key])  # also those of other versions
    folder.close()
    assert not before.parent.exists()
