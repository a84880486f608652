"""CSV and Parquet files as they are found."""

import gzip
import re

import pandas as pd
import pytest

from coevo.tabular.reading import open_table
from coevo.tabular.table import TableError

PLAIN = "age,town,y\n1.5,Rome,a\n2.5,Oslo,b\n"


@pytest.fixture
def read():
    """Return a table and all of its rows."""

    def read_all(path, **how):
        table = open_table(path, **how)
        return table, next(table.frames())

    return read_all


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
        ("sep=;\r\n" + PLAIN.replace(",", ";")).encode(),
        ("# from the lab, 2020\n#\n" + PLAIN + "# the end\n").encode(),
        gzip.compress(("# 1, 2, 3\n" + PLAIN).encode()),
        PLAIN.replace(",", "   ").encode(),
        ("# " + PLAIN.replace(",", " ")).encode(),
    ],
    ids=["plain", "bom", "utf-16", "gz", "crlf", "no end", "blank lines", "semicolons",
         "decimal commas", "tabs", "bars", "spaces", "quotes",
         "sep=", "comments", "comments, gz", "space-separated", "header in a comment"],
)  # fmt: skip
def test_all_ways_to_write_a_csv_file_read_the_same(write, read, content):
    _, frame = read(write(content))
    assert list(frame) == ["age", "town", "y"]
    assert frame["age"].tolist() == [1.5, 2.5]
    assert frame["town"].tolist() == ["Rome", "Oslo"]


def test_content_that_is_not_utf8_is_read_and_said(write, read):
    table, frame = read(write("town,y\nKöln’s,1\n".encode("cp1252")))
    assert frame["town"].tolist() == ["Köln’s"]
    assert "not UTF-8" in table.notes[0]
    far = b"x,y\n" + b"1,2\n" * 10**6 + "Köln,3\n".encode("latin-1")  # far behind any sample
    assert read(write(far))[1]["x"].iloc[-1] == "Köln"
    with pytest.raises(TableError, match="not written in utf-8"):
        read(write("town,y\nKöln,1\n".encode("cp1252")), encoding="utf-8")


def test_quoted_commas_newlines_and_quotes(write, read):
    _, frame = read(write('a,"b, c"\n"1,5","x\ny"\n"2","say ""hi"""\n'))
    assert list(frame) == ["a", "b, c"]
    assert frame["a"].tolist() == ["1,5", "2"]
    assert frame["b, c"].tolist() == ["x\ny", 'say "hi"']


def test_names_are_made_distinct(write, read):
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
def test_what_is_no_table_is_refused(write, read, content, message):
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
    (whole,) = table.frames(as_text={"whole"})
    assert whole["n"].tolist()[:2] == [1.0, 2.0]
    assert whole["flag"].tolist()[0] == "True"
    assert whole["town"].isna().tolist() == [False, True, True]
    assert whole["kind"].tolist() == ["u", "v", "u"]
    assert whole["whole"].tolist() == ["7", "8", "9"]
    chunks = list(table.frames(["n"], n_rows=2))
    assert [len(chunk) for chunk in chunks] == [2, 1]


def test_a_workbook_is_recognised(tmp_path):
    path = tmp_path / "table.xlsx"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(TableError, match=r"table\.xlsx is a zip archive, as Excel's files are"):
        open_table(path)


def test_a_number_sign_may_be_a_name_or_begin_a_value(write, read):
    table, frame = read(write("#,colour,y\n1,#ff0000,a\n2,#00ff00,b\n"))
    assert list(frame) == ["#", "colour", "y"]
    assert table.notes == ()
    _, frame = read(write("#colour,y\n#ff0000,a\n#00ff00,b\n"))
    assert frame["#colour"].tolist() == ["#ff0000", "#00ff00"]
    table, frame = read(write('# one\nx,y\n"a\n# b",1\nc,2\n'))
    assert frame["x"].tolist() == ["a\n# b", "c"]
    assert "begin with # are left out" in table.notes[0]


def test_comments_are_left_out_of_every_chunk(write):
    path = write("# one\nx,y\n" + "1,2\n# two, three, four\n" * 500)
    assert sum(len(frame) for frame in open_table(path).frames(n_rows=100)) == 500


def test_long_fields_are_read(write, read):
    long = "x" * 300_000
    _, frame = read(write(f"text,y\n{long},1\nshort,2\n"))
    assert frame["text"].tolist() == [long, "short"]


def test_one_column_of_several_words_is_one_column(write, read):
    assert list(read(write("first name\nAnn\nBob Lee\n"))[1]) == ["first name"]


def test_numbers_that_stand_for_missing_values(write, read, tmp_path):
    _, frame = read(write("x,y\n-9999,1\n3,2\n"), missing=["-9999"])
    assert frame["x"].isna().tolist() == [True, False]
    pd.DataFrame({"x": [-9999, 3]}).to_parquet(tmp_path / "t.parquet")
    _, frame = read(tmp_path / "t.parquet", missing=["-9999"])
    assert frame["x"].isna().tolist() == [True, False]
