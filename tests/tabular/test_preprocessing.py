"""From columns to inputs, and back from a model file."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.persistence.model import ModelError
from coevo.tabular.preprocessing import Preprocessing, inputs_of, make_transformer, most_frequent

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
    saved = json.loads(json.dumps(Preprocessing.of(fitted, "y", training, {}, {}).as_json()))
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
        {"numbers": [["", 1.0]]},
        {"numbers": [["\ud800", 1.0]]},
        {"ranges": [[0.0, 1.0], [0.0, 1.0]]},
        {"ranges": [[1.0, 0.0]]},
        {"ranges": [["a", "b"]]},
        {"texts": [["t", []]]},
        {"texts": [["t", ["b", "a"]]]},
        {"texts": [["t", ["a", "a"]]]},
        {"texts": [["t", [1]]]},
        {"texts": [["t", "ab"]]},
        {"texts": {"t": ["a"]}},
        {"notations": [["x", {"decimal": ";", "unit": ""}]]},
        {"notations": [["x", "$"]]},
        {"notations": [["t", {"decimal": ".", "unit": ""}]]},
        {"dates": [["d", {"format": "%Y", "origin": "2020-01-01", "parts": ["year"]}]]},
        {"dates": [["d", 5]]},
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
