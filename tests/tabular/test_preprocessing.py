"""From columns to inputs, and back from a model file."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.estimators.inputs import Inputs, learn_encoding
from coevo.persistence.encoding import Encoding
from coevo.persistence.model import ModelError
from coevo.tabular.preprocessing import Preprocessing

TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["a", "b", "Köln", ""]), st.none())
NUMBERS = st.one_of(
    st.floats(-1e149, 1e149), st.just(np.nan), st.sampled_from([0.0, 1e140, -1e-300])
)


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
def test_a_rebuilt_encoding_does_what_the_fitted_one_does(given_tables):
    training, other, max_categories = given_tables
    texts = [name for name in training if name.startswith("text")]
    names = [*(name for name in training if name not in texts), *texts]
    columns = Preprocessing(
        Encoding(
            tuple(names),
            dict.fromkeys(names[: len(names) - len(texts)]),
            dict.fromkeys(texts, ("",)),
        )
    ).gather({name: training[name].to_numpy() for name in training})
    fitted = Preprocessing(learn_encoding(columns, max_categories), "y")
    rebuilt = Preprocessing.from_json(json.loads(json.dumps(fitted.as_json())))
    assert rebuilt == fitted
    for frame in (training, other):
        gathered = rebuilt.gather({name: frame[name].to_numpy() for name in frame})
        inputs = Inputs(gathered, rebuilt.encoding)[slice(None)]
        assert inputs.shape == (len(frame), len(rebuilt.encoding.input_names))
        assert not np.isnan(inputs).any()
        for k, name in enumerate(fitted.encoding.medians):
            expected = frame[name].fillna(training[name].median())
            np.testing.assert_array_equal(inputs[:, k], expected)
        for name, known in fitted.encoding.categories.items():
            filled = frame[name].fillna("").to_numpy()
            for place, text in zip(fitted.inputs_of_columns[name], known, strict=True):
                np.testing.assert_array_equal(inputs[:, place], filled == text)


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
        {"columns": ["x"]},
        {"columns": ["x", "u"]},
        {"columns": 5},
        {"indicators": ["t"]},
        {"indicators": ["x", "x"]},
        {"indicators": "x"},
        {"indicators": ["x"], "numbers": [["x", None]]},
        {"notations": [["x", {"decimal": ";", "unit": ""}]]},
        {"notations": [["x", "$"]]},
        {"notations": [["t", {"decimal": ".", "unit": ""}]]},
        {"dates": [["d", {"format": "%Y", "origin": "2020-01-01", "parts": ["year"]}]]},
        {"dates": [["d", 5]]},
        {"missing": "-"},
        {"missing": [-9999]},
        {"more": 1},
    ],
    ids=str,
)
def test_preprocessing_that_makes_no_sense_is_refused(change):
    good = {
        "target": "y", "numbers": [["x", 1.0]], "ranges": [[0.0, 2.0]], "texts": [["t", ["a"]]],
    }  # fmt: skip
    assert Preprocessing.from_json(good).encoding.input_names == ["x", "t=a"]
    bad = good | change
    if change == {"numbers": []}:
        bad |= {"texts": [], "ranges": []}
    with pytest.raises(ModelError, match="preprocessing"):
        Preprocessing.from_json(bad)
