"""Predictions of a saved model."""

import numpy as np
import pandas as pd
import pytest

from coevo.tabular.prediction import UnknownCategories, csv_chunks


def test_unknown_categories_are_counted_over_all_chunks():
    unknown = UnknownCategories()
    for texts in (["Rome", "Ur", "Ys"], ["Rome", np.nan], ["Ur", "Ur"]):
        unknown.count("town", np.array(texts, dtype=object), ("", "Rome"))
    unknown.count("sex", np.array(["f"], dtype=object), ("f", "m"))
    (note,) = unknown.notes()
    assert note.startswith("4 rows have an unknown category in column 'town', such as 'Ur'")
    assert note.endswith("and are predicted without it")


def test_a_csv_file_has_one_header():
    frames = [pd.DataFrame({"=a": ["=1", "x"], "n": [-1.0, 2.0]})] * 2
    assert b"".join(csv_chunks(iter(frames))) == b"=a,n\n=1,-1.0\nx,2.0\n=1,-1.0\nx,2.0\n"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("=1+1", "'=1+1"), ("+x", "'+x"), ("-x", "'-x"), ("@x", "'@x"), ("-2.5", "-2.5"), ("x", "x")],
)
def test_formulas_are_escaped(text, escaped):
    frame = pd.DataFrame({"a": [text]})
    assert b"".join(csv_chunks(iter([frame]), escape_formulas=True)) == f"a\n{escaped}\n".encode()
