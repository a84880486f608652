"""Tables as they are found: read, sorted into columns, preprocessed; options and jobs."""

import dataclasses
import gzip
import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo import CoevoClassifier, CoevoRegressor, Settings
from coevo.model import ModelError
from coevo.tabular import options
from coevo.tabular.columns import (
    as_labels,
    choose_inputs,
    infer_task,
    note_scattered,
    read_contents,
)
from coevo.tabular.job import Job, read_job, write_job
from coevo.tabular.preprocessing import Preprocessing, inputs_of, make_transformer, most_frequent
from coevo.tabular.reading import open_table
from coevo.tabular.splitting import hold_out
from coevo.tabular.table import TableError
from coevo.tabular.training import prepare

PLAIN = "age,town,y\n1.5,Rome,a\n2.5,Oslo,b\n"


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write_file(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def read(path, **how):
    table = open_table(path, **how)
    return table, next(table.frames())


# ------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.encode("utf-16"),
        gzip.compress(PLAIN.encode()),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.rstrip("\n").encode(),
        ("\n\n" + PLAIN).encode(),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", ";").replace(".", ",").encode(),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace(",", "|").encode(),
        PLAIN.replace(",", ", ").encode(),
        re.sub(r"[^,\n]+", r'"\g<0>"', PLAIN).encode(),
    ],
    ids=["plain", "bom", "utf-16", "gz", "crlf", "no end", "blank lines", "semicolons",
         "decimal commas", "tabs", "bars", "spaces", "quotes"],
)  # fmt: skip
def test_all_ways_to_write_a_csv_file_read_the_same(write, content):
    _, frame = read(write(content))
    assert list(frame) == ["age", "town", "y"]
    assert frame["age"].tolist() == [1.5, 2.5]
    assert frame["town"].tolist() == ["Rome", "Oslo"]


def test_content_that_is_not_utf8_is_read_and_said(write):
    table, frame = read(write("town,y\nKöln’s,1\n".encode("cp1252")))
    assert frame["town"].tolist() == ["Köln’s"]
    assert "not UTF-8" in table.notes[0]
    far = b"x,y\n" + b"1,2\n" * 10**6 + "Köln,3\n".encode("latin-1")  # far behind any sample
    assert read(write(far))[1]["x"].iloc[-1] == "Köln"
    with pytest.raises(TableError, match="not written in utf-8"):
        read(write("town,y\nKöln,1\n".encode("cp1252")), encoding="utf-8")


def test_quoted_commas_newlines_and_quotes(write):
    _, frame = read(write('a,"b, c"\n"1,5","x\ny"\n"2","say ""hi"""\n'))
    assert list(frame) == ["a", "b, c"]
    assert frame["a"].tolist() == ["1,5", "2"]
    assert frame["b, c"].tolist() == ["x\ny", 'say "hi"']


def test_names_are_made_distinct(write):
    table, frame = read(write("a,a,,a.2,a\n1,2,3,4,5\n"))
    assert table.names == ("a", "a.3", "column 3", "a.2", "a.4")
    assert frame.iloc[0].tolist() == [1, 2, 3, 4, 5]
    assert (table.unnamed, table.repeated) == ({"column 3"}, {"a"})
    assert "several columns called 'a'" in table.notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n1,2,3\n", "more fields than its first line"),
        (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        (b'a,b\n1,"2\n', "cannot be read as a table"),
        (b"a,b\n\0\0\1\0", "not a text file"),
        (b"\x1f\x8b\x08\x00broken", "damaged gzip"),
        (gzip.compress(PLAIN.encode())[:-12], "damaged gzip"),
        (b"PAR1 and then nothing", "not a good Parquet file"),
    ],
    # Without names the contents would name the tests, and gzip's holds the time of day: two test
    # processes would collect different tests.
    ids=["nothing", "blank lines", "wide row", "wide row later", "open quote", "zeros", "no gzip",
         "cut gzip", "no parquet"],
)  # fmt: skip
def test_what_is_no_table_is_refused(write, content, message):
    with pytest.raises(TableError, match=message) as caught:
        read(write(content))
    assert "t.csv" in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    (tmp_path / "t.csv").write_text(PLAIN)
    with pytest.raises(TableError, match="unknown"):
        open_table(tmp_path / "t.csv", encoding="klingon")


def test_parquet_reads_like_csv(tmp_path):
    frame = pd.DataFrame(
        {
            "n": [1, 2, None], "flag": [True, None, False], "town": ["a", None, "?"],
            "kind": pd.Categorical(["u", "v", "u"]), "whole": [7, 8, 9],
        }
    )  # fmt: skip
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=2)
    table = open_table(tmp_path / "t.parquet")
    (whole,) = table.frames(texts={"whole"})
    assert whole["n"].tolist()[:2] == [1.0, 2.0]
    assert whole["flag"].tolist()[0] == "True"
    assert whole["town"].isna().tolist() == [False, True, True]
    assert whole["kind"].tolist() == ["u", "v", "u"]
    assert whole["whole"].tolist() == ["7", "8", "9"]
    chunks = list(table.frames(["n"], n_rows=2))
    assert [len(chunk) for chunk in chunks] == [2, 1]


# ------------------------------------------------------------------------------------------ columns


def test_columns_are_sorted_into_numbers_and_texts(write):
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


def test_a_workbook_is_recognised(tmp_path):
    path = tmp_path / "table.xlsx"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(TableError, match=r"table\.xlsx is a zip archive, as Excel's files are"):
        open_table(path)


def test_texts_of_which_few_rows_keep_theirs_are_pointed_out():
    days = pd.Series(pd.date_range("2020-01-01", periods=100).strftime("%Y-%m-%d"), dtype=object)
    inputs = pd.DataFrame({"first day": days, "x": range(100)})
    inputs["town"] = np.array(["Rome", "Oslo"] * 50, dtype=object)
    (note,) = note_scattered(inputs, list(inputs), 20)
    assert note == (
        "'first day' holds 100 different texts, and the 20 most frequent, which are kept, cover "
        "20% of the rows; --drop 'first day' leaves it out"
    )
    assert note_scattered(inputs, ["x", "town"], 20) == []


def test_rows_are_held_out_by_class():
    target = np.array(["a"] * 70 + ["b"] * 30 + ["c"] * 2)
    training, test = hold_out(target, 0.2, 5, stratify=True)
    assert sorted([*training, *test]) == list(range(102))
    labels, counts = np.unique(target[test], return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {"a": 14, "b": 6}
    again = hold_out(target, 0.2, 5, stratify=True)[1]
    other = hold_out(target, 0.2, 6, stratify=True)[1]
    assert test.tolist() == again.tolist() != other.tolist()
    for fraction in (0.0, 0.9):
        training, _ = hold_out(target, fraction, 1, stratify=True)
        assert set(target[training]) == {"a", "b", "c"}


def test_a_class_of_which_nothing_is_tested_is_pointed_out(write):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40))
    path = write(("x,y\n" + rows + "7,rare\n").encode())
    job = Job(data=str(path), target="y", settings={"seed": 1})
    said = " ".join(prepare(job)[1].notes)
    assert "too few rows of 'rare' to keep one for the test" in said
    assert "for the test" not in " ".join(
        prepare(dataclasses.replace(job, test_fraction=0.0))[1].notes
    )


# ------------------------------------------------------------------------------------ preprocessing

TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["a", "b", "Köln", ""]), st.none())
NUMBERS = st.one_of(st.floats(allow_infinity=False), st.sampled_from([0.0, 1e300, -1e-300]))


@st.composite
def tables(draw):
    """Training rows and other rows with the same columns, some missing."""
    kinds = draw(st.lists(st.sampled_from(["number", "text"]), min_size=1, max_size=4))
    sizes = draw(st.tuples(st.integers(2, 8), st.integers(1, 5)))
    frames = []
    for n in sizes:
        columns = {}
        for k, kind in enumerate(kinds):
            values = draw(st.lists(NUMBERS if kind == "number" else TEXTS, min_size=n, max_size=n))
            if kind == "number":
                values[0] = 1.5  # a column that is all missing never comes this far
                columns[f"{kind} {k}"] = pd.Series(values, dtype=np.float64)
            else:
                filled = [np.nan if value is None else value for value in values]
                columns[f"{kind} {k}"] = pd.Series(filled, dtype=object)
        frames.append(pd.DataFrame(columns))
    return *frames, draw(st.integers(1, 4))


@settings(max_examples=30)
@given(tables())
def test_a_rebuilt_transformer_does_what_the_fitted_one_does(given_tables):
    training, other, max_categories = given_tables
    numbers = [name for name in training if name.startswith("number")]
    categories = {
        name: most_frequent(training[name], max_categories)
        for name in training
        if name.startswith("text")
    }
    fitted = make_transformer(numbers, categories).fit(training)
    saved = json.loads(json.dumps(Preprocessing.of(fitted, "y", training).as_json()))
    rebuilt = Preprocessing.from_json(saved)
    assert rebuilt.target == "y"
    transformer = rebuilt.transformer()
    for frame in (training, other):
        inputs = inputs_of(transformer, frame)
        assert inputs.tobytes() == inputs_of(fitted, frame).tobytes()
        assert inputs.shape[1] == len(rebuilt.feature_names)
        assert not np.isnan(inputs).any()


def test_categories_are_the_most_frequent_and_the_rest_is_none_of_them():
    column = pd.Series(["b", "a", "b", "c", np.nan, np.nan, np.nan], dtype=object)
    assert most_frequent(column, 3) == ["", "a", "b"]
    preprocessing = Preprocessing({}, {"t": ("", "a", "b")})
    frame = pd.DataFrame({"t": pd.Series(["b", "new", np.nan], dtype=object)})
    expected = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert inputs_of(preprocessing.transformer(), frame).tolist() == expected


@pytest.mark.parametrize(
    "change",
    [
        {"target": 5},
        {"numbers": None},
        {"numbers": []},
        {"numbers": [["x", "1"]]},
        {"numbers": [["x", float("nan")]]},
        {"numbers": [["x", None], ["z", 1.0]]},
        {"numbers": [["x", 1.0], ["x", 1.0]], "ranges": [[0.0, 1.0], [0.0, 1.0]]},
        {"numbers": [["t", 1.0]]},
        {"numbers": [[1, 1.0]]},
        {"ranges": [[0.0, 1.0], [0.0, 1.0]]},
        {"ranges": [[1.0, 0.0]]},
        {"ranges": [["a", "b"]]},
        {"texts": [["t", []]]},
        {"texts": [["t", ["b", "a"]]]},
        {"texts": [["t", ["a", "a"]]]},
        {"texts": [["t", [1]]]},
        {"texts": [["t", "ab"]]},
        {"texts": {"t": ["a"]}},
        {"more": 1},
    ],
    ids=str,
)
def test_preprocessing_that_makes_no_sense_is_refused(change):
    good = {
        "target": "y", "numbers": [["x", 1.0]], "ranges": [[0.0, 2.0]], "texts": [["t", ["a"]]],
    }  # fmt: skip
    assert Preprocessing.from_json(good).feature_names == ["x", "t=a"]
    bad = good | change
    if change == {"numbers": []}:
        bad |= {"texts": [], "ranges": []}
    with pytest.raises(ModelError, match="preprocessing"):
        Preprocessing.from_json(bad)


# ------------------------------------------------------------------------------- options and jobs


def test_every_setting_is_described():
    texts = options.describe()
    assert list(texts) == [field.name for field in dataclasses.fields(Settings)]
    assert all(len(text) > 10 for text in texts.values())
    assert "coevo.fitness" not in texts["fitness"]
    assert "arrays" not in texts["decomposition"]


def test_the_defaults_that_help_tells_are_the_estimators():
    told = options.ESTIMATOR_DEFAULTS
    for field in dataclasses.fields(Settings):
        if field.name == "seed":
            continue
        defaults = [
            inspect.signature(kind).parameters[field.name].default
            for kind in (CoevoClassifier, CoevoRegressor)
        ]
        shown = told.get(field.name, options._show(field.default)).split("; regression: ")
        assert [options._show(value) for value in dict.fromkeys(defaults)] == shown


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hidden_layer_sizes", "20,10", (20, 10)),
        ("hidden_layer_sizes", "none", ()),
        ("batch_size", "1e3", 1000),
        ("decay", "0.5", 0.5),
        ("max_evaluations", "none", None),
        ("max_seconds", "10", 10.0),
        ("initial_range", "2", 2.0),
        ("initial_range", "2,1", (2.0, 1.0)),
        ("scale_factor_range", "0.1,0.5", (0.1, 0.5)),
        ("limited_evaluation", "no", False),
        ("strategy", "best/1", "best/1"),
        ("initial_range", [2.0, 1.0], (2.0, 1.0)),
        ("synchronous", True, True),
    ],
)
def test_options_are_read(name, text, value):
    assert options.parse(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("batch_size", "many"), ("batch_size", "1.5"), ("batch_size", "none"), ("decay", ""),
        ("hidden_layer_sizes", "5,x"), ("hidden_layer_sizes", "5,,5"), ("batch_size", "inf"),
        ("limited_evaluation", "perhaps"), ("initial_range", "1,b"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(name, text):
    with pytest.raises(ValueError, match=f"--{name.replace('_', '-')} must be"):
        options.parse(name, text)


def test_a_job_comes_back_from_its_file(tmp_path):
    job = Job(data='a "b"\\ü\n\x7f.csv', target="y").with_changes(
        {
            "variant": "CCDE", "drop": ["é"], "task": "regression", "max_evaluations": "none",
            "max_seconds": 2.5, "hidden_layer_sizes": "4,3", "initial_range": "1,2,3", "seed": 7,
        }
    )  # fmt: skip
    assert job.settings["limited_evaluation"] is False
    write_job(tmp_path / "job.toml", job)
    assert read_job(tmp_path / "job.toml") == job


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "is not a TOML file"),
        ("bogus = 1", "'bogus' is unknown"),
        ("population_size = 2", "population_size must be at least 4"),
        ("population_size = 'x'", "must be a whole number"),
        ("task = 'clustering'", "--task='clustering' is unknown"),
        ("test_fraction = 1.5", "--test-fraction must be"),
        ("drop = 'a'", "drop must be a list of texts"),
        ("target = 3", "target must be a text"),
        ("variant = 'XDE'", "variant='XDE' is unknown"),
        ("variant = 'DE'\nlimited_evaluation = true", "contradicts variant='DE'"),
    ],
)
def test_a_bad_config_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        read_job(path)
    assert "c.toml" in str(caught.value)
