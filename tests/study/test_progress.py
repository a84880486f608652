"""The time left is estimated row by row."""

import pytest

from coevo.study import read_plan
from coevo.study.progress import Forecast


def test_forecast_weighs_rows_by_what_they_take(tmp_path, monkeypatch, write_plan):
    plan = read_plan(write_plan(tmp_path))
    clock = iter([0.0, 11.0])
    monkeypatch.setattr("coevo.study.progress.time.monotonic", lambda: next(clock))
    slow, fast = (row.runs for row in plan.experiments[0].rows[:2])
    forecast = Forecast(plan)
    assert forecast.seconds_left([slow[1].key], {}) is None
    forecast.note(slow[0].key)
    forecast.note(fast[0].key)
    seconds = {slow[0].key: 10.0, fast[0].key: 1.0}
    # 11 seconds for runs that took 11 in all; one of each is left twice.
    left = [run.key for run in (*slow[1:], *fast[1:])]
    assert forecast.seconds_left(left, seconds) == pytest.approx(22)
