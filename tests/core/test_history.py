"""The history: bounded, and with the first and the latest generation in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.history import Generation, History


@given(st.integers(1, 20_000))
def test_history_is_bounded_and_keeps_the_first_and_the_latest(n):
    class Short(History):
        capacity = 16

    history = Short()
    for g in range(n):
        history.append(Generation(g, g * 10, g * 0.5, 0.1, 0.2, 0.3))
    generations = history.columns()["generation"]
    assert len(generations) <= 17
    assert (generations[0], generations[-1]) == (0, n - 1)
    assert n <= 16 or len(generations) >= 8
    kept = np.diff(generations)[:-1]
    assert (kept == history.stride).all()
    np.testing.assert_array_equal(history.columns()["evaluations"], generations * 10)


def test_empty_history_says_so():
    with pytest.raises(ValueError, match="has not begun"):
        History().latest  # noqa: B018
