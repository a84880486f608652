"""Numbers as people write them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.tabular.notation import Notation


@pytest.mark.parametrize(
    ("texts", "notation", "numbers"),
    [
        (["1,234", "999"], Notation(), [1234, 999]),
        (["1.234,5", "7"], Notation(","), [1234.5, 7]),
        (["1.234.567", "1.000"], Notation(","), [1234567, 1000]),
        (["12%", "-3.5 %"], Notation(".", "%"), [12, -3.5]),
        (["12%", "3"], Notation(".", "%"), [12, None]),
        (["$1,234.50", "-$5", "$-6", "(7)", "8"], Notation(".", "$"), [1234.5, -5, -6, -7, 8]),
        (["$5", "€5", "$6"], Notation(".", "$"), [5, None, 6]),
        (["1.234,00 €", "5 €"], Notation(",", "€"), [1234, 5]),
        (["EUR 5", "6 EUR"], Notation(".", "EUR"), [5, 6]),
        (["−3", "+4", "1e3", ".5"], Notation(), [-3, 4, 1000, 0.5]),
        (["1\u00a0234", "1'234", "12 345 678"], Notation(), [1234, 1234, 12345678]),
        (["1,23", "c1", "12,34", "--5", "", "%5", "1,5"], Notation(","),
         [1.23, None, 12.34, None, None, None, 1.5]),
    ],
)  # fmt: skip
def test_numbers_are_read(texts, notation, numbers):
    assert Notation.find(texts, ".") == notation
    read, is_wrong = notation.read(pd.Series([*texts, None], dtype=object))
    assert [None if np.isnan(x) else x for x in read] == [*numbers, None]
    assert is_wrong.tolist() == [*(x is None for x in numbers), False]


def test_texts_without_numbers_have_no_notation():
    assert Notation.find(["Rome", "c1"], ".") is None


def test_if_in_doubt_the_mark_of_the_table_decides():
    assert Notation.find(["1,234", "5,678"], ".") == Notation(".")
    assert Notation.find(["1,234", "5,678"], ",") == Notation(",")


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "$"]))
def test_what_python_writes_with_commas_is_read_back(number, unit):
    read, _ = Notation(".", unit).read(pd.Series([f"{unit}{number / 100:,.2f}"], dtype=object))
    assert read[0] == number / 100
