"""Sizes that change along the budget."""

from types import SimpleNamespace

import pytest

from coevo import Settings
from coevo.core.extensions.along_budget import interpolate


@pytest.mark.parametrize(
    ("evaluations", "generation", "size"),
    [
        (0, 0, 100),
        (100, 0, 90),
        (100, 3, 70),  # of two limits the nearer one counts
        (5000, 3, 0),
    ],
)
def test_a_size_follows_the_share_of_the_budget(evaluations, generation, size):
    search = SimpleNamespace(
        settings=Settings(max_evaluations=1000, max_generations=10, max_seconds=1),
        state=SimpleNamespace(evaluations=evaluations, generation=generation),
    )
    assert interpolate(search, first=100, final=0) == size
