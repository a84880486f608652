"""Warnings about inputs far outside what was trained on."""

import warnings

import numpy as np
import pandas as pd
import pytest

import coevo
from coevo import CoevoClassifier, CoevoRegressor, OutOfRangeWarning

QUICK = {
    "hidden_layer_sizes": (4,), "max_evaluations": 400, "random_state": 1, "n_threads": 1,
    "validation_fraction": 0.0,
}  # fmt: skip


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 80, 120),
            "town": pd.Categorical(rng.choice(["Bonn", "Trier"], 120)),
            "same": 1.0,
        }
    )


@pytest.fixture(scope="session")
def fitted(frame):
    return CoevoClassifier(**QUICK).fit(frame, frame["age"] > 50)


@pytest.fixture
def warned(recwarn):
    """Return the messages of the warnings that a call gives."""

    def call(function, *args):
        recwarn.clear()
        warnings.simplefilter("always")
        function(*args)
        assert all(w.category is OutOfRangeWarning for w in recwarn)
        assert all(w.filename == __file__ for w in recwarn)
        return [str(w.message) for w in recwarn]

    return call


def test_one_warning_a_call_names_columns_values_and_ranges(fitted, frame, warned):
    assert warned(fitted.predict, frame) == []
    other = frame.copy()
    other.loc[3:5, "age"] = 999.0
    (message,) = warned(fitted.predict, other)
    low, high = frame["age"].min(), frame["age"].max()
    assert f"column 'age' holds 999, and {low:g} to {high:g} in training" in message
    assert "check_range=False" in message
    for method in (fitted.predict_proba, fitted.decision_function):
        assert len(warned(method, other)) == 1


def test_far_is_further_than_three_times_the_width_of_the_range(fitted, frame, warned):
    low, high = frame["age"].min(), frame["age"].max()
    for value, is_far in (
        (high + 2.99 * (high - low), False), (high + 3.01 * (high - low), True),
        (low - 2.99 * (high - low), False), (low - 3.01 * (high - low), True),
    ):  # fmt: skip
        assert bool(warned(fitted.predict, frame.assign(age=value))) == is_far


def test_constants_are_ignored_as_the_network_ignores_them(fitted, frame, warned):
    assert warned(fitted.predict, frame.assign(same=1e9)) == []


def test_unknown_categories_and_new_gaps_are_told(fitted, frame, warned):
    (message,) = warned(fitted.predict, frame.assign(town="Mainz"))
    assert "column 'town' holds 'Mainz', which was not there in training" in message
    (message,) = warned(fitted.predict, frame.assign(town=None, age=np.nan))
    assert "column 'age' misses values, and missed none in training" in message
    assert "column 'town' misses values, and missed none in training" in message


def test_many_columns_make_a_short_message(warned, rng):
    X = rng.uniform(size=(50, 20))
    regressor = CoevoRegressor(**QUICK).fit(X, X[:, 0])
    (message,) = warned(regressor.predict, X + 9)
    assert message.count("column ") == 3
    assert "and so on for 17 more" in message


def test_it_can_be_turned_off(frame, warned):
    silent = CoevoClassifier(**QUICK, check_range=False).fit(frame, frame["age"] > 50)
    assert warned(silent.predict, frame.assign(age=999.0)) == []
    with pytest.raises(TypeError, match="check_range must be True or False"):
        CoevoClassifier(**QUICK, check_range="no").fit(frame, frame["age"] > 50)


def test_a_saved_model_remembers_its_ranges(fitted, frame, warned, tmp_path):
    fitted.save(tmp_path / "m")
    loaded = CoevoClassifier.load(tmp_path / "m")
    assert len(warned(loaded.predict, frame.assign(age=999.0))) == 1
    # A bare network has none.
    coevo.save_model(tmp_path / "n", fitted.network_, classes=[False, True])
    bare = CoevoClassifier.load(tmp_path / "n")
    assert warned(bare.predict, np.full((3, 4), 1e6)) == []


def test_a_stream_widens_the_ranges(warned, rng):
    X = rng.uniform(size=(100, 2))
    y = X[:, 0] > 0.5
    stream = CoevoClassifier(**QUICK).partial_fit(X, y, classes=[False, True])
    assert len(warned(stream.predict, X * 9)) == 1
    stream.partial_fit(X * 9, y)
    assert warned(stream.predict, X * 9) == []


def test_a_few_of_many_columns_are_not_told(rng, warned):
    X = rng.uniform(size=(60, 100))
    classifier = CoevoClassifier(**QUICK).fit(X, X[:, 0] > 0.5)
    far = X.copy()
    far[0, :2] = 9
    assert warned(classifier.predict, far) == []
    far[0, 2] = 9
    assert len(warned(classifier.predict, far)) == 1
