"""Batches that grow along the budget."""

import pytest

from coevo import BatchGrowth, Settings


def test_batches_grow_along_the_budget(make_search, small_settings):
    search = make_search(
        small_settings(reshuffle_batches=True, extensions=[BatchGrowth(40)], max_generations=8)
    )
    sizes = []
    for _ in search:
        sizes.append(len(search.evaluator._batch))
    # 40 instances. Four batches of 10; after half the budget batches should have 25: two of 20.
    # After six of eight generations they should have 32 or 33: one of 40.
    assert sizes == [10, 10, 10, 10, 20, 20, 40, 40]


@pytest.mark.parametrize(
    ("final_size", "changes", "message"),
    [
        (10, {"batch_size": 500}, "final_size=10 must be at least batch_size=500"),
        (1000, {"reshuffle_batches": False}, "needs limited_evaluation=True and reshuffle"),
        (1000, {"limited_evaluation": False}, "needs limited_evaluation=True and reshuffle"),
        (
            1000,
            {"max_evaluations": None, "max_seconds": 1},
            "batch_growth needs a budget to follow",
        ),
    ],
)
def test_settings_are_checked(final_size, changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(extensions=[BatchGrowth(final_size)], **changes)
