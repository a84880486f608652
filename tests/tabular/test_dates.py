"""Columns of dates."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.tabular.dates import ISO, PARTS, DateColumn, calendar, find_format, parse_dates


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["2020-01-31", "2020-02-01"], ISO),
        (["2020-01-31T10:00:00Z", "2020-02-01 10:00"], ISO),
        (["1949-01", "1949-02"], ISO),
        (["31.1.2020", "01.02.2020"], "%d.%m.%Y"),
        (["01/02/2020", "12/31/2020"], "%m/%d/%Y"),
        (["01/02/2020 7:15", "31/12/2020 17:30"], "%d/%m/%Y %H:%M"),
        (["1/2/20 3:30 PM", "1/3/20 4:30 AM"], "%m/%d/%y %I:%M %p"),
        (["31-Jan-2020", "1-Feb-2020"], "%d-%b-%Y"),
        (["January 31, 2020", "May 1, 2020"], "%B %d, %Y"),
        (["10-19", "20-29"], None),
        (["192.168.1.10", "10.0.0.1"], None),
        (["Rome", "Oslo"], None),
        (["20200131", "20200201"], None),
    ],
)
def test_usual_formats_are_recognised(texts, form):
    found = find_format(np.array(texts, dtype=object))
    assert found == form
    if form is not None:
        assert not np.isnat(parse_dates(texts, form)).any()


def test_a_month_that_is_none_is_found_outside_the_sample():
    texts = [f"{1 + k % 9:02}/{1 + k // 250:02}/{1950 + k % 60}" for k in range(1000)]
    texts[777] = "13/01/2000"
    assert find_format(np.array(texts, dtype=object)) == "%d/%m/%Y"


def test_what_is_said_to_be_a_date_is_one():
    assert find_format(np.array(["20200131", "20200201"], dtype=object), True) == "%Y%m%d"
    assert find_format(np.array(["soon"], dtype=object), True) is None


def test_zones_are_turned_to_utc_and_gaps_stay():
    found = parse_dates(["2020-01-31T10:00:00+02:00", None, "soon"], ISO)
    assert found[0] == np.datetime64("2020-01-31T08:00")
    assert np.isnat(found[1:]).all()


def test_parts_that_vary_become_numbers():
    moments = parse_dates(["2020-01-31", None, "2021-02-01"], ISO)
    date = DateColumn.of(ISO, moments)
    assert date.parts == ("year", "month", "day of week", "elapsed days")
    columns = date.expand("when", moments)
    assert list(columns) == date.names("when")
    assert [columns[name][2] for name in columns] == [2021, 2, 0, 367]
    assert all(np.isnan(values[1]) for values in columns.values())
    assert DateColumn.from_json(date.as_json()) == date


@pytest.mark.parametrize(
    "change",
    [{"format": 5}, {"format": "%Q"}, {"origin": "soon"}, {"origin": "NaT"}, {"parts": []},
     {"parts": ["month", "year"]}, {"parts": ["century"]}, {"more": 1}],
    ids=str,
)  # fmt: skip
def test_a_damaged_description_is_refused(change):
    good = DateColumn(ISO, "2020-01-31", PARTS).as_json()
    with pytest.raises((ValueError, TypeError)):
        DateColumn.from_json(good | change)


@given(st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)))
def test_the_calendar_is_the_usual_one(moment):
    seconds = float(np.datetime64(moment, "s").astype(np.int64))
    found = calendar(seconds)
    assert found == {
        "year": moment.year, "month": moment.month, "day of week": moment.weekday(),
        "hour": moment.hour,
    }  # fmt: skip
