"""Control of F and CR, by hand and by property."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo import JDE, SHADE, BatchGrowth, Dither, PopulationReduction, Strategy, WeightDecay
from coevo.core.assembly import assemble
from coevo.core.control import Fixed
from coevo.core.extensions.adaptation import CONTROLS
from coevo.core.schedule import TrialLog, Turn
from coevo.core.settings import Settings

pytestmark = pytest.mark.without_jit

CONTROLS_OF_TESTS = {
    "fixed": Fixed(),
    "dither": Dither(0.05, 0.5),
    "jde": JDE(0.05, 0.5, 0.5),
    "shade": SHADE(4),
}


class FakeSearch:
    """What a control sees of a search."""

    def __init__(self, control, shape, rng=None, scale_factor=0.1, crossover_rate=0.3):
        self.settings = SimpleNamespace(scale_factor=scale_factor, crossover_rate=crossover_rate)
        self.first_settings = self.settings
        self.state = SimpleNamespace(rng=rng, fitness=np.zeros(shape))
        self._memory = control.begin(self)

    def memory(self, control):
        return self._memory


def make_turn(here, targets, completes=True):
    subpopulations = range(here.start, here.stop)
    return Turn(0, here, subpopulations, targets, completes)


def make_log(shape, here, drawn, gains):
    log = TrialLog.blank(shape)
    log.scale_factors[here], log.crossover_rates[here] = drawn
    log.wins[here], log.gains[here] = gains >= 0, gains
    return log


@pytest.mark.parametrize("name", CONTROLS_OF_TESTS)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_control_draws_within_its_limits(name, seed):
    control, rng = CONTROLS_OF_TESTS[name], np.random.default_rng(seed)
    search, turn = FakeSearch(control, (5, 8), rng), make_turn(slice(1, 4), range(8))
    for _ in range(4):
        scale_factors, crossover_rates = control.draw(search, turn)
        assert scale_factors.shape == crossover_rates.shape == (3, 8)
        assert (scale_factors > 0).all()
        assert (scale_factors <= 1).all()
        assert (crossover_rates >= 0).all()
        assert (crossover_rates <= 1).all()
        gains = rng.normal(size=(3, 8))
        log = make_log((5, 8), turn.here, (scale_factors, crossover_rates), gains)
        control.after_block(search, turn, log)
        for array in search.memory(control).values():
            assert np.isfinite(array).all()
            assert len(array) == 5
    fresh = control.begin(search)
    for array_name, array in search.memory(control).items():  # nobody else has learnt anything
        np.testing.assert_array_equal(array[[0, 4]], fresh[array_name][[0, 4]])


@pytest.mark.parametrize("name", CONTROLS_OF_TESTS)
def test_nothing_is_learnt_before_the_last_target(name, rng):
    control = CONTROLS_OF_TESTS[name]
    search, turn = FakeSearch(control, (2, 8), rng), make_turn(slice(0, 2), range(8), False)
    drawn = np.full((2, 8), 0.5), np.full((2, 8), 0.9)
    control.after_block(search, turn, make_log((2, 8), turn.here, drawn, np.ones((2, 8))))
    for array_name, array in control.begin(search).items():
        np.testing.assert_array_equal(search.memory(control)[array_name], array)


def test_fixed_is_fixed_and_takes_no_random_numbers():
    search = FakeSearch(Fixed(), (2, 6))
    scale_factors, crossover_rates = Fixed().draw(search, make_turn(slice(0, 2), range(3, 6)))
    np.testing.assert_array_equal(scale_factors, np.full((2, 3), 0.1))
    np.testing.assert_array_equal(crossover_rates, np.full((2, 3), 0.3))


def test_dither_is_uniform(rng):
    control = CONTROLS_OF_TESTS["dither"]
    search = FakeSearch(control, (100, 100), rng)
    scale_factors, crossover_rates = control.draw(search, make_turn(slice(0, 100), range(100)))
    assert (crossover_rates == 0.3).all()
    assert scale_factors.min() >= 0.05
    assert scale_factors.max() <= 0.5
    assert scale_factors.mean() == pytest.approx(0.275, abs=0.007)  # five standard deviations


def test_jde_winners_keep_what_they_were_made_with():
    class Chances:
        def random(self, shape):
            assert shape == (4, 1, 2)
            # Redraw F? New F at this share of the range. Redraw CR? New CR.
            return np.array([[[0.3, 0.2]], [[0.5, 0.5]], [[0.1, 0.25]], [[0.7, 0.7]]])

    control = JDE(0.2, 0.4, 0.25)
    search = FakeSearch(control, (2, 3), Chances())
    turn = make_turn(slice(1, 2), range(3))
    drawn = np.array([[0.21, 0.1, 0.25]]), np.array([[0.9, 0.3, 0.8]])
    gains = np.array([[0.0, 1.0, -1.0]])  # a tie wins
    control.after_block(search, turn, make_log((2, 3), turn.here, drawn, gains))
    memory = search.memory(control)
    np.testing.assert_array_equal(memory["scale_factors"], [[0.1] * 3, [0.21, 0.1, 0.1]])
    np.testing.assert_array_equal(memory["crossover_rates"], [[0.3] * 3, [0.9, 0.3, 0.3]])
    scale_factors, crossover_rates = control.draw(search, make_turn(slice(1, 2), range(2)))
    np.testing.assert_allclose(scale_factors, [[0.21, 0.3]])
    np.testing.assert_allclose(crossover_rates, [[0.7, 0.3]])
    control.keep(search, np.array([[0, 1], [0, 2]]))
    np.testing.assert_array_equal(memory["scale_factors"], [[0.1, 0.1], [0.21, 0.1]])


def test_jde_redraws_as_often_as_it_should(rng):
    control = JDE(0.2, 0.4, 0.1)
    search = FakeSearch(control, (100, 100), rng)
    drawn = control.draw(search, make_turn(slice(0, 100), range(100)))
    for values, carried in zip(drawn, (0.1, 0.3), strict=True):
        assert (values != carried).mean() == pytest.approx(0.1, abs=0.015)


def test_shade_memory_by_hand():
    control = SHADE(2)
    search = FakeSearch(control, (3, 4), scale_factor=0.5, crossover_rate=0.6)
    memory, turn = search.memory(control), make_turn(slice(1, 3), range(4))
    drawn = (
        np.array([[0.2, 0.4, 0.9, 0.8], [0.1, 0.2, 0.3, 0.4]]),
        np.array([[0.1, 0.5, 0.7, 0.9], [0.1, 0.2, 0.3, 0.4]]),
    )
    gains = np.array([[0.3, 0.1, 0.0, -0.5], [0.0, -1.0, np.inf, np.nan]])
    control.after_block(search, turn, make_log((3, 4), turn.here, drawn, gains))
    # Subpopulation 1: the first two trials are better, the third ties, the fourth loses. Weights ¾
    # and ¼. F: (.75 · .04 + .25 · .16) / (.75 · .2 + .25 · .4) = .07 / .25; CR: .075 + .125.
    # Subpopulation 2 has no success that could be weighed.
    np.testing.assert_allclose(memory["scale_factors"], [[0.5, 0.5], [0.28, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(memory["crossover_rates"], [[0.6, 0.6], [0.2, 0.6], [0.6, 0.6]])
    np.testing.assert_array_equal(memory["places"], [0, 1, 0])
    for _ in range(2):
        gains = np.array([[-1, -1, 1e-300, -1], [-1, 2.0, -1, -1]])
        control.after_block(search, turn, make_log((3, 4), turn.here, drawn, gains))
    np.testing.assert_allclose(memory["scale_factors"], [[0.5, 0.5], [0.9, 0.9], [0.2, 0.2]])
    np.testing.assert_array_equal(memory["places"], [0, 1, 0])


def test_shade_draws_around_its_memories(rng):
    control = SHADE(3)
    search = FakeSearch(control, (200, 1), rng, scale_factor=0.4, crossover_rate=0.5)
    scale_factors, crossover_rates = control.draw(search, make_turn(slice(0, 200), range(200)))
    assert crossover_rates.mean() == pytest.approx(0.5, abs=0.003)
    assert crossover_rates.std() == pytest.approx(0.1, abs=0.003)
    # The Cauchy distribution's quartiles lie a spread away; 7.8 % of it, below 0, is drawn again.
    below = 0.5 - np.arctan(4) / np.pi
    for limit, quantile in ((0.3, 0.25), (0.4, 0.5), (0.5, 0.75)):
        expected = (quantile - below) / (1 - below)
        assert (scale_factors < limit).mean() == pytest.approx(expected, abs=0.012)


# ---------------------------------------------------------------------------------- whole searches

SHADE_SETTINGS = {"control": SHADE(3), "strategy": "current-to-pbest/1"}
CASES = {
    "dither": {"control": "dither"},
    "jde": {"control": JDE(redraw_probability=0.3)},
    "shade": SHADE_SETTINGS,
    "shade, rand/1": {"control": "shade"},
    "no archive": {"strategy": "current-to-pbest/1(archive_rate=0.0)"},
    "shrinking": {"extensions": [PopulationReduction(4)], "control": "jde"},
    "all": {
        **SHADE_SETTINGS, "reshuffle_batches": True, "scale_initial_range": True,
        "extensions": [PopulationReduction(4), BatchGrowth(20), WeightDecay(0.1)],
    },
}  # fmt: skip


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_searches_with_every_control(make_search, small_settings, case, synchronous):
    changes = {"population_size": 8, "max_generations": 20, "strategy": "rand/1"} | CASES[case]
    search = make_search(small_settings(**changes, strategy__synchronous=synchronous))
    has_archive = case in {"shade", "all"}
    for _ in search:
        state = search.state
        size = state.fitness.shape[1]
        np.testing.assert_array_equal(state.champions, state.fitness.argmax(axis=1))
        np.testing.assert_array_equal(state.global_solution, search._compose(state.champions))
        assert {part.shape[1] for part in state.subpopulations} == {size}
        assert ("archive" in state.memories) == has_archive
        if has_archive:
            archive = state.memories["archive"].copy()
            counts = archive.pop("counts")
            assert {individuals.shape[1] for individuals in archive.values()} == {size}
            assert (counts <= size).all()
    assert state.best_validation > state.history.rows[0, 5]
    if has_archive:
        assert counts.min() > 0


def test_a_search_learns_what_it_is_told(make_search, small_settings):
    search = make_search(small_settings(**SHADE_SETTINGS, max_generations=5))
    fresh = search.control.begin(search)
    search.run()
    memory = search.memory(search.control)
    assert (memory["places"] > 0).any()
    assert not np.array_equal(memory["scale_factors"], fresh["scale_factors"])


def test_another_control_begins_with_a_memory_of_its_own(make_search, small_settings):
    first = make_search(small_settings(max_generations=3))
    first.run()
    for changes in ({"control": "jde"}, SHADE_SETTINGS):
        settings = small_settings(max_generations=first.state.generation + 3, **changes)
        search = assemble(first.evaluator, first.decomposition, settings, state=first.state)
        search.run()
        assert search.memory(search.control).keys() == search.control.begin(search).keys()


def test_every_control_has_a_name():
    assert {name: type(control) for name, control in CONTROLS_OF_TESTS.items()} == CONTROLS
    for name in CONTROLS:
        assert Settings(control=name).control == CONTROLS[name]()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Settings(control="magic"), ValueError, "control='magic' is unknown; .* fixed, di"),
        (lambda: Settings(control=Strategy()), TypeError, "control must be one of .* a Control ob"),
        (lambda: Dither("low"), TypeError, "low must be a number, got 'low'"),
        (lambda: Dither(0, 1), ValueError, "low must be above 0"),
        (lambda: Dither(0.5, 0.1), ValueError, "high must be at least 0.5"),
        (lambda: JDE(0.5, 0.1), ValueError, "high must be at least 0.5"),
        (lambda: JDE(redraw_probability=2), ValueError, "redraw_probability must be"),
        (lambda: SHADE(0), ValueError, "memory_size must be at least 1"),
    ],
)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()
