"""Progress of a study in words, repeated while nothing changes."""

import time

from coevo.cli import study_progress
from coevo.cli.study_progress import StudyDisplay, describe_progress
from coevo.runtime import progress as runtime_progress
from coevo.study.progress import Progress
from coevo.study.run import Failure, Run

RUN = Run("WBC", "DE", {}, 7)


def test_words():
    progress = Progress(3, 1, 2, 4, seconds_left=3725.0, active=(RUN, RUN))
    assert describe_progress(progress, "LECCDE on WBC, seed 1: 90.0% on test") == (
        "3 of 10 runs done; 1 failed; 1:02:05 left; "
        "running DE on WBC, seed 7 and DE on WBC, seed 7;"
        " latest LECCDE on WBC, seed 1: 90.0% on test"
    )
    assert describe_progress(Progress(0, 0, 0, 4)) == "0 of 4 runs done"


def test_log_is_not_silent_during_a_long_run(capsys, monkeypatch):
    monkeypatch.setattr(study_progress, "_TICK", 0.01)
    monkeypatch.setattr(runtime_progress, "_FIRST_LINE", 0.02)
    with StudyDisplay("long") as display:
        display.update(Progress(0, 1, 1, 0, latest=(RUN, Failure("no")), active=(RUN,)))
        time.sleep(0.5)  # no news
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert set(lines) == {
        "long 50%: 0 of 2 runs done; 1 failed; running DE on WBC, seed 7;"
        " latest DE on WBC, seed 7: failed"
    }
