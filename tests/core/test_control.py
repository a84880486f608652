"""The paper's control, and one of a user's own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from coevo.core.control import Control, Fixed


@dataclass
class Cooling(Control):
    """F falls with each generation; CR is 1."""

    name: ClassVar[str] = "cooling"
    start: float = 0.8

    def draw(self, search, turn):
        shape = (len(turn.subpopulations), len(turn.targets))
        scale_factor = self.start / (1 + search.state.generation)
        return np.full(shape, scale_factor), np.ones(shape)


@pytest.mark.parametrize("synchronous", [True, False])
def test_a_control_of_ones_own_decides_over_f_and_cr(make_search, small_settings, synchronous):
    drawn = []

    class Watched(Cooling):
        def after_block(self, search, turn, log):
            drawn.append((search.state.generation, log.scale_factors[turn.here, turn.columns]))
            assert (log.crossover_rates[turn.here, turn.columns] == 1).all()

    settings = small_settings(
        control=Watched(), strategy__synchronous=synchronous, max_generations=3
    )
    search = make_search(settings)
    search.run()
    assert {generation for generation, _ in drawn} == {0, 1, 2}
    for generation, scale_factors in drawn:
        np.testing.assert_allclose(scale_factors, 0.8 / (1 + generation))


def test_nested_names_reach_it(small_settings):
    assert small_settings(control=Cooling(), control__start=0.5).control == Cooling(0.5)


def test_the_same_numbers_drawn_otherwise_make_the_same_run(make_search, small_settings):
    class Same(Fixed):
        name: ClassVar[str] = "same"

    ends = []
    for control in (Fixed(), Same()):
        search = make_search(small_settings(control=control))
        search.run()
        ends.append(search.state.global_solution)
    np.testing.assert_array_equal(*ends)
