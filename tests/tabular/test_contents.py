"""Numeric and categorical columns and dates, inputs and target."""

import numpy as np
import pandas as pd
import pytest

from coevo.tabular.contents import as_labels, choose_inputs, infer_task, read_contents
from coevo.tabular.dates import ISO
from coevo.tabular.notation import Notation
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
    assert contents.notes[0] == "1 row without a value of 'y' is left out"
    assert "because of 'oops' in row 4" in contents.notes[1]
    mended = read_contents(open_table(path, missing=["oops"]), "y")
    assert mended.inputs["mixed"].dtype == np.float64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "no column 'y', the target"),
        ("a:y\n1:2\n", r"its columns are 'a:y' \(names must be in the first line; --delimiter"),
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


def test_a_footer_does_not_decide_what_a_column_holds(write):
    rows = "".join(f"{k},{k / 2},{'uv'[k % 2]}\n" for k in range(10))
    contents = read_contents(open_table(write(f"x,z,y\n{rows}Total,all of them,\n")), "y")
    assert contents.inputs.dtypes.tolist() == [np.float64, np.float64]
    assert "1 row without a value of 'y' is left out" in contents.notes
    # Rows keep their number in the file.
    with pytest.raises(TableError, match="infinite number in row 3"):
        read_contents(open_table(write("x,y\nTotal,\n1,2\ninf,3\n")), "y")


def test_numbers_in_disguise_are_read_and_said(write):
    rows = "".join(f'"1,{k:03}",{k}%,{k} €,−{k},{k},"$2,{k:03}.50"\n' for k in range(30))
    table = open_table(write("n,rate,price,depth,plain,y\n" + rows))
    contents = read_contents(table, "y")
    assert contents.inputs["n"].tolist() == [1000.0 + k for k in range(30)]
    assert contents.inputs["depth"].tolist() == [-float(k) for k in range(30)]
    assert contents.target.tolist() == [2000.5 + k for k in range(30)]
    assert set(contents.notations) == {"n", "rate", "price", "depth", "y"}
    assert contents.notations["rate"] == Notation(unit="%")
    said = " ".join(contents.notes)
    assert "'n' is read as numbers: '1,000' is 1000; --categorical n takes it as text" in said
    assert "'y' is read as numbers: '$2,000.50' is 2000.5" in said
    as_text = read_contents(table, "y", categorical=["n", "y"])
    assert as_text.inputs["n"].iloc[0] == "1,000"
    assert as_text.target[0] == "$2,000.50"


def test_numbers_of_a_table_with_decimal_commas(write):
    rows = "".join(f"1.0{k:02},5;{k},5;{k}\n" for k in range(30))
    contents = read_contents(open_table(write(f"big;small;y\n{rows}Summe;zu viel;\n")), "y")
    assert contents.inputs["big"].tolist() == [1000.5 + k for k in range(30)]
    assert contents.inputs["small"].tolist() == [k + 0.5 for k in range(30)]


def test_dates_are_recognised_and_said(write):
    rows = "".join(f"2020-01-{k:02},{k}/12/2019,2020{k % 12 + 1:02}01,{k}\n" for k in range(1, 31))
    table = open_table(write("day,other,code,y\n" + rows))
    contents = read_contents(table, "y")
    assert contents.formats == {"day": ISO, "other": "%d/%m/%Y"}
    assert contents.inputs["other"].iloc[0] == pd.Timestamp("2019-12-01")
    assert "'day' is read as dates: '2020-01-01' is 2020-01-01" in contents.notes
    assert "'other' is read as dates: '1/12/2019' is 2019-12-01" in contents.notes
    assert contents.inputs["code"].dtype == np.float64
    forced = read_contents(table, "y", dates={"code": None}, categorical=["day"])
    assert forced.inputs["code"].iloc[0] == pd.Timestamp("2020-02-01")
    assert forced.inputs["day"].iloc[0] == "2020-01-01"
    with pytest.raises(
        TableError, match=r"'y' of .* holds no dates that are recognised, such as '1'"
    ):
        read_contents(table, "code", dates={"y": None})
    with pytest.raises(
        TableError, match=r"must hold dates written as %d.%m.%Y and holds '2020-01-01'"
    ):
        read_contents(table, "y", dates={"day": "%d.%m.%Y"})


def test_the_target_is_no_date(write):
    table = open_table(write("x,y\n1,2020-01-31\n2,2020-02-01\n"))
    with pytest.raises(TableError, match="--date names 'y', the target"):
        read_contents(table, "y", dates={"y": None})


def test_day_and_month_that_could_be_either_are_pointed_out(write):
    rows = "".join(f"0{k % 9 + 1}/0{k % 7 + 1}/2020,{k}\n" for k in range(30))
    contents = read_contents(open_table(write("when,y\n" + rows)), "y")
    assert contents.formats == {"when": "%m/%d/%Y"}
    (note,) = contents.notes
    assert "'01/01/2020' is 2020-01-01 (--date when=%d/%m/%Y says otherwise)" in note


def test_one_word_among_dates_is_named(write):
    rows = "".join(f"2020-01-{k:02},{k}\n" for k in range(1, 31))
    contents = read_contents(open_table(write(f"when,y\n{rows}soon,31\n")), "y")
    assert contents.inputs["when"].dtype == object
    (note,) = contents.notes
    assert "because of 'soon' in row 31, though most of it is dates" in note
    assert note.endswith("if that means a missing value, --missing=soon says so")


def test_one_word_in_a_numeric_target_names_the_row(write):
    rows = "".join(f"{k},{k / 3}\n" for k in range(40))
    table = open_table(write(f"x,y\n{rows}40,to come\n"))
    with pytest.raises(TableError, match=r"'to come' in row 41.*--missing='to come' leaves out"):
        read_contents(table, "y")
    assert read_contents(table, "y", task="classification").target[-1] == "to come"
    # Where all is text, to leave some of it out does not help.
    with pytest.raises(TableError, match=r"regression needs numbers$"):
        read_contents(open_table(write("x,y\n1,a\n2,b\n")), "y", task="regression")
    # Words among a few numbers are labels.
    few = open_table(write("x,y\n" + "1,1\n2,2\n3,3\n" * 10 + "4,4+\n"))
    assert read_contents(few, "y").target[-1] == "4+"
