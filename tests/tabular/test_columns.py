"""Numeric and categorical columns, inputs and target."""

import numpy as np
import pandas as pd
import pytest

from coevo.tabular.columns import (
    as_labels,
    choose_inputs,
    infer_task,
    note_scattered,
    read_contents,
)
from coevo.tabular.reading import open_table
from coevo.tabular.table import TableError


def test_columns_are_numeric_or_categorical(write):
    rows = ["1,true,1,u", ",false,2,v", "3,,?,", "4,true,oops,u", "5,true,5,v", "6,,6,u"]
    path = write("\n".join(["x,flag,mixed,y", *rows, ""]))
    contents = read_contents(open_table(path), "y")
    assert contents.inputs["x"].dtype == np.float64
    assert np.isnan(contents.inputs["x"].iloc[1])
    assert contents.inputs["flag"].tolist()[:2] == ["true", "false"]  # as it is in the file
    assert contents.inputs["mixed"].dtype == object
    assert contents.target.tolist() == ["u", "v", "u", "v", "u"]
    assert "1 rows without a value of 'y'" in contents.notes[0]
    assert "because of 'oops' in row 4" in contents.notes[1]
    mended = read_contents(open_table(path, missing=["oops"]), "y")
    assert mended.inputs["mixed"].dtype == np.float64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "no column 'y', the target"),
        ("a,y\n", "no rows"),
        ("y\n1\n2\n", "no column but the target"),
        ("a,y\n1,\n2,\n", "is missing in every row"),
        ("a,y,y\n1,2,3\n", "several columns called 'y', the target"),
        ("a,y\n1,2\ninf,3\n", "column 'a' of .* infinite number in row 2"),
        ("a,y\n1,2\n3,-inf\n", "column 'y' of .* infinite number in row 2"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(write, content, message):
    with pytest.raises(TableError, match=message):
        read_contents(open_table(write(content)), "y")


@pytest.mark.parametrize(
    ("target", "task", "labels"),
    [
        (["b", "a", "b"], "classification", ["b", "a", "b"]),
        ([0.0, 1.0, 1.0], "classification", [0, 1, 1]),
        ([1.0, 2.0, 3.0, 4.0] * 10, "classification", [1, 2, 3, 4] * 10),
        ([1.0, 2.0, 3.0, 4.0], "regression", None),
        (list(np.arange(30.0)) * 9, "regression", None),
        ([0.5, 1.5] * 20, "regression", ["0.5", "1.5"] * 20),
    ],
)
def test_the_task_follows_from_the_target(target, task, labels):
    values = np.array(target, dtype=object if isinstance(target[0], str) else float)
    assert infer_task(values, "y")[0] == task
    if labels is not None:
        assert as_labels(values).tolist() == labels


def test_columns_that_tell_nothing_are_left_out():
    frame = pd.DataFrame(
        {
            "id": pd.Series([f"p{i}" for i in range(9)], dtype=object), "same": 1.0,
            "none": np.nan, "flag": pd.Series(["x", np.nan, "x"] * 3, dtype=object),
            "number": np.arange(9.0),
        }
    )  # fmt: skip
    kept, notes = choose_inputs(frame)
    assert kept == ["flag", "number"]
    assert len(notes) == 3
    assert choose_inputs(frame, ["id"])[0] == ["id", "flag", "number"]
    with pytest.raises(TableError, match="no column is left"):
        choose_inputs(frame[["same", "none"]])


def test_columns_whose_categories_cover_few_rows_are_pointed_out():
    days = pd.Series(pd.date_range("2020-01-01", periods=100).strftime("%Y-%m-%d"), dtype=object)
    inputs = pd.DataFrame({"first day": days, "x": range(100)})
    inputs["town"] = np.array(["Rome", "Oslo"] * 50, dtype=object)
    (note,) = note_scattered(inputs, list(inputs), 20)
    assert note == (
        "'first day' holds 100 different texts, and the 20 most frequent, which are kept, cover "
        "20% of the rows; --drop 'first day' leaves it out"
    )
    assert note_scattered(inputs, ["x", "town"], 20) == []
