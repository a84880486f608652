"""Rounds: when the rate falls, which weight decay is kept, when the search rests."""

import numpy as np
import pytest

from coevo.core.rounds import LENGTH, Clock, Rounds


@pytest.fixture
def begin():
    """Return rounds over one array, and the array."""

    def make(n_tries=2, decay=1.0, first_budget=np.inf, **limits):
        array = np.zeros(3)
        none = {"evaluations": np.inf, "generations": np.inf, "seconds": np.inf}
        granted = Clock(**none | limits)
        memory = Rounds.begin([array], decay, Clock(0, 0, 0), granted, first_budget)
        return Rounds(memory, [array], granted, n_tries), array

    return make


def at(generation):
    return Clock(10 * generation, generation, 0.1 * generation)


def test_the_better_try_is_kept_with_its_decay(begin):
    rounds, array = begin()
    assert rounds.decay == 2
    array[:] = 5
    rounds.end_try(-0.3, -0.3, -1.0, at(LENGTH))
    assert not array.any()  # the second try has the same start
    assert rounds.decay == 0.5
    array[:] = 7
    rounds.end_try(-0.4, -0.3, -1.0, at(2 * LENGTH))
    assert (array == 5).all()
    assert rounds.decay == 4
    assert rounds.length == 2 * LENGTH
    rounds.end_try(-0.2, -0.2, -1.0, at(4 * LENGTH))
    assert (array == 5).all()
    array[:] = 9
    rounds.end_try(-0.1, -0.1, -1.0, at(6 * LENGTH))
    assert (array == 9).all()
    assert rounds.decay == 2  # of the next round's first try


def test_one_try_keeps_the_decay(begin):
    rounds, array = begin(n_tries=1, decay=0.3)
    array[:] = 5
    rounds.end_try(-0.3, -0.3, -1.0, at(LENGTH))
    assert (array == 5).all()
    assert rounds.decay == 0.3


def test_the_rate_falls_to_nothing_in_each_try(begin):
    rounds, _ = begin()
    assert rounds.share_left(at(0)) == 1
    assert rounds.share_left(at(LENGTH // 4)) == 0.75
    assert not rounds.is_over(at(LENGTH - 1))
    assert rounds.is_over(at(LENGTH))
    rounds.end_try(-0.3, -0.3, -1.0, at(LENGTH))
    assert rounds.share_left(at(LENGTH)) == 1


@pytest.mark.parametrize("limit", ["evaluations", "generations", "seconds"])
def test_the_last_round_takes_what_is_left_of_the_budget(begin, limit):
    end = at(6 * LENGTH)
    rounds, _ = begin(**{limit: getattr(end, limit)})
    rounds.plan(at(0), Clock(10, 1, 0.1))
    assert not rounds.is_last
    rounds.end_try(-0.3, -0.3, -1.0, at(LENGTH))
    rounds.end_try(-0.4, -0.3, -1.0, at(2 * LENGTH))
    assert rounds.is_last
    assert rounds.decay == 2  # of the better try, no longer tried
    assert rounds.share_left(at(3 * LENGTH)) == pytest.approx(0.75)
    assert rounds.share_left(end) == 0
    assert not rounds.is_over(end)


def test_a_small_budget_is_one_round(begin):
    rounds, _ = begin(generations=LENGTH)
    rounds.plan(at(0), Clock(10, 1, 0.1))
    assert rounds.is_last
    assert rounds.decay == 1


@pytest.mark.parametrize(
    ("best", "rests"),
    [
        ([-0.5, -0.2, -0.1, -0.05], False),
        ([-0.5, -0.2, -0.1999, -0.1985], True),  # 0.0015 of 0.2 in two rounds
        ([0.5, 0.9, 0.9, 0.9005], True),  # 0.0005 of 0.1
        ([0.5, 0.9, 0.9, 0.902], False),
        ([5.0, 9.0, 9.0, 9.0], True),
        ([5.0, 9.0, 9.0, 9.001], False),  # a profit, whose best is not known
        ([0.001, 0.002, 0.0021, 0.0022], False),  # one of small figures
    ],
)
def test_after_two_rounds_without_gain_there_is_a_last_one(begin, best, rests):
    rounds, _ = begin(n_tries=1)
    generation = 0
    for fitness in best:
        assert not rounds.is_last
        generation += rounds.length
        rounds.end_try(fitness, fitness, best[0], at(generation))
    assert rounds.is_last == rests
    if rests:
        end = generation + 1.5 * rounds.length
        assert rounds.granted.generations == end
        assert rounds.share_left(at(generation)) == 1
        assert rounds.share_left(at(end)) == 0
        assert not rounds.stagnates(at(end - 1))
        assert rounds.stagnates(at(end))


def test_the_last_round_of_a_search_that_stagnates_keeps_to_its_limits(begin):
    rounds, _ = begin(n_tries=1, generations=6 * LENGTH)
    rounds.end_try(-0.2, -0.2, -1.0, at(LENGTH))
    rounds.end_try(-0.2, -0.2, -1.0, at(3 * LENGTH))
    rounds.end_try(-0.2, -0.2, -1.0, at(5 * LENGTH))
    assert rounds.is_last
    assert rounds.granted.generations == 6 * LENGTH
    assert rounds.share_left(at(5.5 * LENGTH)) == pytest.approx(0.5)


def test_a_try_that_overflowed_is_not_kept(begin):
    rounds, array = begin()
    array[:] = 5
    rounds.end_try(-0.3, -0.3, -1.0, at(LENGTH))
    array[:] = 7
    rounds.end_try(float("nan"), -0.3, -1.0, at(2 * LENGTH))
    assert (array == 5).all()


@pytest.mark.parametrize("n_tries", [1, 2])
def test_a_round_of_which_no_try_can_be_kept_leaves_things_as_they_were(begin, n_tries):
    rounds, array = begin(n_tries, decay=1.0)
    array[:] = 5
    for k in range(n_tries):
        rounds.end_try(-0.3, -0.3, -1.0, at((k + 1) * LENGTH))
    assert rounds.length == 2 * LENGTH
    start, decay = array.copy(), rounds.decay
    for k in range(n_tries):
        array[:] = np.nan
        rounds.end_try(float("nan"), -0.3, -1.0, at((n_tries + k + 1) * LENGTH))
    np.testing.assert_array_equal(array, start)
    assert rounds.length == 4 * LENGTH
    assert rounds.decay == decay


# ------------------------------------------------------------------------------- the first budget


def go_through(rounds, fitness):
    """Make tries until the last round or the end of the list; return the generation."""
    generation = 0
    for best in fitness:
        for _ in range(2):
            generation += rounds.length
            rounds.end_try(best, best, -1.0, at(generation))
        if rounds.is_last:
            break
    return generation


def test_the_first_budget_is_all_if_it_does_not_pay_to_go_on(begin):
    rounds, _ = begin(first_budget=40 * LENGTH, generations=320 * LENGTH)
    rounds.plan(at(0), Clock(10, 1, 0.1))
    assert not rounds.is_last
    generation = go_through(rounds, [-0.5, -0.3, -0.297])  # less than a hundredth of 0.703
    assert generation == 14 * LENGTH
    assert rounds.is_last
    assert rounds.granted.generations == 40 * LENGTH
    assert rounds.share_left(at(27 * LENGTH)) == pytest.approx(0.5)
    assert not rounds.stagnates(at(40 * LENGTH - 1))
    assert rounds.stagnates(at(40 * LENGTH))


def test_the_first_budget_doubles_while_that_pays(begin):
    rounds, _ = begin(first_budget=40 * LENGTH, generations=320 * LENGTH)
    rounds.plan(at(0), Clock(10, 1, 0.1))
    generation = go_through(rounds, [-0.5, -0.3, -0.29, -0.289])
    assert generation == 30 * LENGTH
    assert rounds.is_last
    assert rounds.granted.generations == 80 * LENGTH


@pytest.mark.parametrize("limit", ["evaluations", "generations"])
def test_the_first_budget_never_exceeds_a_limit(begin, limit):
    end = at(100 * LENGTH)
    rounds, _ = begin(first_budget=40 * LENGTH, **{limit: getattr(end, limit)})
    rounds.plan(at(0), Clock(10, 1, 0.1))
    generation = go_through(rounds, [-0.9, -0.8, -0.7, -0.6, -0.5, -0.4])
    assert generation == 30 * LENGTH  # 62 do not leave room for a round after them
    assert rounds.is_last
    assert rounds.share_left(end) == 0
    assert rounds.share_left(at(65 * LENGTH)) == pytest.approx(0.5)
