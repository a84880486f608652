"""What `evolve` refuses, by the names of its arguments."""

import numpy as np
import pandas as pd
import pytest

from coevo import evolve
from coevo.runtime import memory

SMALL = {"hidden_layer_sizes": (3,), "batch_size": 20, "max_generations": 2, "seed": 1}


@pytest.fixture
def data(rng):
    X = rng.uniform(-1, 1, (80, 3))
    y = (X[:, 0] > 0).astype(int)
    return {"X_train": X[:40], "y_train": y[:40], "X_valid": X[40:], "y_valid": y[40:]}


def missing(values, missing_value):
    objects = values.astype(object)
    objects[0] = missing_value
    return objects


def as_dates(values):
    return (1e6 * values).astype("datetime64[s]")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("X_train", lambda X: X + 1j, "X_train must be real, not complex"),
        ("X_valid", lambda X: X + 1j, "X_valid must be real, not complex"),
        ("X_train", lambda X: np.ma.masked_array(X, X > 0), "X_train is a masked array"),
        ("y_train", lambda y: np.ma.masked_array(y, y > 0), "y_train is a masked array"),
        ("y_valid", lambda y: np.ma.masked_array(y, y > 0), "y_valid is a masked array"),
        ("X_train", as_dates, "X_train must be numbers, not dates"),
        ("X_train", lambda X: pd.DataFrame(as_dates(X)), "X_train must be numbers, not dates"),
        ("X_train", lambda X: missing(X, pd.NA), "X_train must be an array of numbers"),
        ("y_train", lambda y: missing(y, pd.NA), "y_train must not hold missing labels"),
        ("y_train", lambda y: missing(y, "a"), "y_train mixes labels of types .*: int, str; give"),
        ("X_train", lambda X: 1e300 * X, "X_train must be within ±1e"),
        ("X_train", lambda X: 1e39 * X, "X_train must be finite in float32"),
    ],
)
def test_data_are_refused_by_name(data, name, change, message):
    dtype = "float32" if "float32" in message else "float64"
    with pytest.raises(ValueError, match=message):
        evolve(**data | {name: change(data[name])}, **SMALL, dtype=dtype)


def test_targets_that_cannot_be_squared_are_refused(data):
    large = {name: 1e160 * data[name] for name in ("y_train", "y_valid")}
    with pytest.raises(ValueError, match="y_train must be within ±1e"):
        evolve(**data | large, **SMALL, fitness="squared_error", dtype="float64")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"settings": {}}, TypeError, "settings must be a coevo.Settings, got {}"),
        ({"callbacks": 3}, TypeError, "callbacks must be a list of functions of the search, got 3"),
        ({"callbacks": print}, TypeError, "callbacks must be a list of functions of the search"),
        ({"callbacks": ["x"]}, TypeError, "callbacks must be functions of the search, got 'x'"),
        ({"max_evaluations": 10**400}, ValueError, "max_evaluations must be at most"),
        ({"max_seconds": 10**400}, ValueError, "max_seconds must be above 0, got inf"),
        (
            {"initial_range": 1e39},
            ValueError,
            r"initial_range must be above 0 and at most 3.4e\+38",
        ),
        ({"initial_range": 10**400}, ValueError, "initial_range must be above 0 and at most"),
        ({"population_size": 2**31}, MemoryError, "population_size=2147483648"),
        ({"hidden_layer_sizes": "50"}, TypeError, "must be a sequence of whole numbers, got '50'"),
        ({"callbacks": np.array(2)}, TypeError, "callbacks must be a list of functions"),
        ({"activation": np.ones(2)}, ValueError, "activation=.* is unknown"),
        ({"representative": pd.NA}, ValueError, "representative=<NA> is unknown"),
        ({"scale_initial_range": np.ones(2)}, TypeError, "scale_initial_range must be True or"),
        ({"scale_factor": pd.NA}, TypeError, "scale_factor must be a number, got <NA>"),
        ({"scale_factor": 1e30}, ValueError, "scale_factor must be above 0 and at most 100"),
        ({"crossover_rate": np.ones(2)}, TypeError, "crossover_rate must be a number"),
        ({"fitness": np.ones(2)}, ValueError, "fitness=.* is unknown"),
        ({"decomposition": [None]}, ValueError, r"decomposition\[0\] must be a non-empty"),
        ({"decomposition": [[1, [2]]]}, ValueError, r"decomposition\[0\] is no array"),
        ({"decomposition": np.ones(2)}, ValueError, r"decomposition\[0\] must be a non-empty"),
        ({"checkpoint": "\ud800"}, ValueError, "checkpoint=.* cannot be the name of a file"),
        ({"checkpoint": "a\0b"}, ValueError, "checkpoint=.* cannot be the name of a file"),
    ],
)
def test_arguments_are_refused_by_name(data, arguments, error, message):
    with pytest.raises(error, match=message):
        evolve(**data, **SMALL | arguments)


@pytest.mark.filterwarnings("ignore")  # of the overflow, and of nothing better than the first
@pytest.mark.parametrize("variant", ["LECCDE", "LEDE"])
def test_a_network_that_has_overflowed_is_not_kept(data, variant):
    """With an F of 10 weights grow until nothing but NaN comes out, which is no better."""
    result = evolve(
        **data, **SMALL | {"max_generations": 400, "variant": variant}, fitness="cross_entropy",
        population_size=8, scale_factor=10.0, max_evaluations=None,
    )  # fmt: skip
    latest = result.history.columns()["validation_fitness"]
    assert np.isfinite(result.network.genotype).all()
    assert result.validation_fitness == np.nanmax(result.history.columns()["best_validation"])
    assert np.isfinite([result.train_fitness, result.validation_fitness]).all()
    assert variant == "LEDE" or np.isnan(latest).any()  # it does come to that


def test_a_large_whole_number_is_an_initial_range(data):
    assert evolve(**data, **SMALL, initial_range=10**30).generations == 2


def test_a_wide_initial_range_needs_a_wide_dtype(data):
    wide = {"initial_range": 1e39, "scale_initial_range": True}
    assert evolve(**data, **SMALL | wide, dtype="float64").generations == 2


@pytest.mark.parametrize("sizes", [(10**9,), (10**6, 10**6), (2**62,)], ids=str)
def test_networks_that_cannot_fit_are_refused_with_the_figures(data, sizes):
    message = (
        r"hidden_layer_sizes=.* weights and biases; .* needs at least .* GB .* there are .* GB"
    )
    with pytest.raises(MemoryError, match=message):
        evolve(**data, **SMALL | {"hidden_layer_sizes": sizes})


def test_memory_is_not_checked_where_it_is_unknown(data, monkeypatch):
    monkeypatch.setattr(memory, "find_size", lambda: None)
    assert evolve(**data, **SMALL).generations == 2
    monkeypatch.setattr(memory, "find_size", lambda: 1000)
    with pytest.raises(MemoryError, match="population_size=20"):
        evolve(**data, **SMALL, population_size=20)
    with pytest.raises(MemoryError, match="weights and biases; the search needs"):
        evolve(**data, **SMALL)
