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


@pytest.mark.parametrize("n", [1, 2, 3, 40, 41])
def test_the_latest_generation_is_amended_wherever_it_is_kept(n):
    class Short(History):
        capacity = 16

    history = Short()
    for g in range(n):
        history.append(Generation(g, g * 10, g * 0.5, 0.1, 0.2, 0.3))
    before = history.rows
    history.amend(0.6, 0.7)
    assert history.latest == Generation(n - 1, (n - 1) * 10, (n - 1) * 0.5, 0.1, 0.6, 0.7)
    assert history.rows[-1].tolist() == list(map(float, history.latest))
    np.testing.assert_array_equal(history.rows[:-1], before[:-1])
