"""The regressor: units, several outputs."""

import numpy as np
import pytest

from coevo import CoevoRegressor

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}


def test_the_network_takes_unscaled_inputs_and_gives_numbers_in_the_targets_units(numbers):
    X, y = numbers
    regressor = CoevoRegressor(**QUICK).fit(X, 1000 * y + 5)
    assert regressor.score(X, 1000 * y + 5) > 0.2
    np.testing.assert_array_equal(regressor.network_.outputs(X)[:, 0], regressor.predict(X))
    same = CoevoRegressor(**QUICK).fit(X, y)
    np.testing.assert_allclose(regressor.predict(X), 1000 * same.predict(X) + 5, rtol=1e-3)


def test_several_outputs(numbers):
    X, y = numbers
    both = np.column_stack([y, -1e4 * y])
    for fitness, budget in (("squared_error", 6_000), ("absolute_error", 6_000), ("r2", 2_000)):
        regressor = CoevoRegressor(**QUICK | {"max_evaluations": budget}, fitness=fitness)
        predicted = regressor.fit(X, both).predict(X)
        assert predicted.shape == both.shape
        assert regressor.score(X, both) > 0.05
    assert CoevoRegressor(**QUICK).fit(X, y[:, np.newaxis]).predict(X).shape == (len(X), 1)


def test_targets_that_cannot_be_squared_are_refused_by_name(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match=r"y must be within ±1e\+150, and its largest number is"):
        CoevoRegressor(**QUICK).fit(X, 1e160 * y)
    large = CoevoRegressor(**QUICK).fit(X, 1e140 * y)
    assert large.score(X, 1e140 * y) > 0.2
    for targets, message in (
        (y + 1j, "Complex data not supported"),
        (y.astype("datetime64[s]"), "dates"),
    ):
        with pytest.raises(ValueError, match=message):
            CoevoRegressor(**QUICK).fit(X, targets)
