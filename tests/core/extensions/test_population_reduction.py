"""Subpopulations that shrink along the budget."""

import numpy as np
import pytest

from coevo import PopulationReduction, Settings
from coevo.core.extensions.population_reduction import choose_survivors


def test_the_fittest_and_the_champion_stay():
    fitness = np.array([[0.1, 0.9, 0.5, 0.5], [0.0, 1.0, 1.0, 2.0]])
    survivors = choose_survivors(fitness, np.array([1, 0]), 2)
    # Of two equally fit the first one; the second subpopulation's champion is its least fit.
    np.testing.assert_array_equal(survivors, [[1, 2], [0, 3]])


def test_the_population_falls_linearly_along_the_budget(make_search, small_settings):
    settings = small_settings(
        population_size=12, extensions=[PopulationReduction(4)], max_generations=8
    )
    search = make_search(settings)
    sizes = [search.state.fitness.shape[1] for _ in search]
    assert sizes == [12, 11, 10, 9, 8, 7, 6, 5]


@pytest.mark.parametrize(
    ("final_size", "changes", "message"),
    [
        (3, {}, "final_size must be at least 4 for strategy rand/1"),
        (21, {"population_size": 20}, "final_size=21 must be at most population_size=20"),
        (
            4,
            {"max_evaluations": None, "max_seconds": 1},
            "population_reduction needs a budget to follow: set max_evaluations or max_gen",
        ),
    ],
)
def test_settings_are_checked(final_size, changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(extensions=[PopulationReduction(final_size)], **changes)
