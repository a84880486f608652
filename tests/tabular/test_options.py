"""Settings as options of the command line."""

import dataclasses
import inspect

import pytest

from coevo import CoevoClassifier, CoevoRegressor, Settings
from coevo.tabular import options


def test_every_setting_is_described():
    texts = options.describe()
    assert list(texts) == [field.name for field in dataclasses.fields(Settings)]
    assert all(len(text) > 10 for text in texts.values())
    assert "coevo.core.metrics" not in texts["fitness"]
    assert "arrays" not in texts["decomposition"]


def test_the_defaults_that_help_tells_are_the_estimators():
    for field in dataclasses.fields(Settings):
        if field.name != "seed":
            for kind in (CoevoClassifier, CoevoRegressor):
                default = inspect.signature(kind).parameters[field.name].default
                assert options._show(default) == options._show(field.default), field.name


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
        ("initial_range", "auto", "auto"),
        ("scale_factor", "auto", "auto"),
        ("validate_every", "replacement", "replacement"),
        ("validate_every", "20", 20),
        ("extensions", "a(x=1,y=2),b", ("a(x=1,y=2)", "b")),
        ("limited_evaluation", "no", False),
        ("strategy", "best/1", "best/1"),
        ("initial_range", [2.0, 1.0], (2.0, 1.0)),
        ("limited_evaluation", True, True),
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
