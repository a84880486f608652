"""What looks wrong in a table and may be right."""

import numpy as np
import pandas as pd

from coevo.tabular.remarks import note_columns, note_row_numbers, note_sentinels, note_similar


def test_columns_whose_categories_cover_few_rows_are_pointed_out():
    codes = pd.Series([f"code {k}" for k in range(100)], dtype=object)
    inputs = pd.DataFrame({"first code": codes, "x": np.linspace(0, 1, 100)})
    inputs["town"] = np.array(["Rome", "Oslo"] * 50, dtype=object)
    (note,) = note_columns(inputs, 20)
    assert note == (
        "'first code' holds 100 different texts, and the 20 most frequent, which are kept, cover "
        "20% of the rows; --max-categories keeps more, --drop 'first code' leaves it out"
    )


def test_numbers_that_stand_for_missing_values_are_pointed_out():
    usual = np.linspace(-3, 41, 50)
    (note,) = note_sentinels("degrees", np.r_[usual, -9999.0, -9999.0])
    assert note == (
        "'degrees' holds -9999 in 2 rows, far from the other numbers (-3 to 41); if that means a "
        "missing value, --missing=-9999 says so"
    )
    assert list(note_sentinels("age", np.r_[np.arange(18.0, 90), 99.0])) == []
    assert list(note_sentinels("degrees", np.r_[usual, -1000.0])) == []
    assert len(list(note_sentinels("code", np.array([1.0, 2.0, 999.0])))) == 1


def test_dates_that_stand_for_missing_values_are_pointed_out():
    days = pd.DataFrame({"until": np.array(["2020-01-31", "9999-12-31"], dtype="datetime64[us]")})
    (note,) = note_columns(days, 20)
    assert "'until' holds dates in the year 9999 in 1 row; if that means a missing value" in note
    assert list(note_columns(days[:1], 20)) == []


def test_numbers_of_rows_are_pointed_out():
    rows = np.arange(100.0, 130.0)
    assert "--drop number leaves it out" in next(note_row_numbers("number", rows[::-1]))
    assert len(list(note_row_numbers("customerId", rows**2))) == 1
    assert len(list(note_row_numbers("customer_id", rows**2))) == 1
    for name, numbers in (("area", rows**2), ("id", rows / 2), ("id", np.r_[rows, rows]),
                          ("paid", rows**2), ("id", rows[:5])):  # fmt: skip
        assert list(note_row_numbers(name, numbers)) == [], name


def test_texts_that_differ_in_case_or_spaces_are_pointed_out():
    (note,) = note_similar("town", ["New York", "Oslo", "new york", "NewYork", "Rome", "rome"])
    assert note == (
        "'town' holds texts that differ in case or spaces only and count as different: "
        "'New York' and 'NewYork' and 'new york'; 'Rome' and 'rome'; if they mean the same, "
        "write them alike in the table"
    )
    assert list(note_similar("town", ["Rome", "Roma"])) == []
