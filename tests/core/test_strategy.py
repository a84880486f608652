"""Strategies by name, text and object."""

import pytest

from coevo import CurrentToPBest, Settings, Strategy
from coevo.core.operators import MUTATIONS
from coevo.core.strategy import STRATEGIES


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("rand/1", Strategy()),
        ("rand/1/bin", Strategy("rand/1", "binomial")),
        ("rand/1/exp", Strategy("rand/1", "exponential")),
        ("best/1", Strategy("best/1")),
        ("rand/2/exp", Strategy("rand/2", "exponential")),
        ("rand/1(synchronous=False)", Strategy(synchronous=False)),
        ("rand/1/exp(accept_ties=False)", Strategy("rand/1", "exponential", accept_ties=False)),
        ("current-to-pbest/1", CurrentToPBest()),
        ("current-to-pbest/1(share=0.2)", CurrentToPBest(share=0.2)),
        (CurrentToPBest(crossover="exponential"), CurrentToPBest("exponential")),
    ],
)
def test_names_and_texts(given, expected):
    assert Settings(strategy=given).strategy == expected


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(),
        Strategy("best/1", "exponential", synchronous=False, accept_ties=False),
        CurrentToPBest(),
        CurrentToPBest("exponential", share=0.25, archive_rate=0.0),
    ],
    ids=str,
)
def test_the_text_of_a_strategy_is_read_back(strategy):
    assert Settings(strategy=str(strategy)).strategy == strategy


def test_every_mutation_has_a_strategy():
    made = [make() for make in STRATEGIES.values()]
    assert {s.mutation for s in made if isinstance(s, Strategy)} == MUTATIONS.keys()


@pytest.mark.parametrize(
    ("strategy", "size"),
    [(Strategy(), 4), (Strategy("rand/2"), 6), (Strategy("best/1"), 3), (CurrentToPBest(), 3)],
)
def test_the_target_and_its_random_parents_need_places(strategy, size):
    assert strategy.minimum_population_size == size
    Settings(strategy=strategy, population_size=size)
    with pytest.raises(ValueError, match=f"population_size must be at least {size} for strategy"):
        Settings(strategy=strategy, population_size=size - 1)


@pytest.mark.parametrize(
    ("share", "size", "n_best"), [(0.1, 20, 2), (0.1, 4, 1), (0.0, 20, 1), (1.0, 20, 20)]
)
def test_a_pbest_is_one_of_a_share(share, size, n_best):
    assert CurrentToPBest(share=share).count_best(size) == n_best
    assert Strategy().count_best(size) == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Strategy("rand/7"), ValueError, "mutation='rand/7' is unknown; .* rand/1"),
        (lambda: Strategy("current-to-pbest/1"), ValueError, "mutation='current-to-pbest/1' is"),
        (lambda: Strategy(crossover="x"), ValueError, "crossover='x' is unknown; .* binomial, exp"),
        (lambda: Strategy(synchronous=1), TypeError, "synchronous must be True or False, got 1"),
        (lambda: Strategy(accept_ties=None), TypeError, "accept_ties must be True or False"),
        (lambda: CurrentToPBest(share=-1), ValueError, "share must be at least 0 and at most 1"),
        (lambda: CurrentToPBest(archive_rate=-1), ValueError, "archive_rate must be at least 0"),
        (lambda: CurrentToPBest("x"), ValueError, "crossover='x' is unknown"),
        (lambda: CurrentToPBest(synchronous=1), TypeError, "synchronous must be True or False"),
        (lambda: Settings(strategy="rand/7"), ValueError, "strategy='rand/7' is unknown; .* rand"),
        (
            lambda: Settings(strategy="rand/1(share=0.2)"),
            TypeError,
            r"strategy='rand/1\(share=0.2\)': .*share",
        ),
    ],
)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()
