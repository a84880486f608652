"""Weight decay: taken off what is measured, in the first generation and in every contest."""

import numpy as np
import pytest

from coevo import RandomGroups, Settings, WeightDecay
from coevo.core.decomposition import NAMES
from coevo.core.schedule import TrialLog

pytestmark = pytest.mark.without_jit


@pytest.fixture
def make_decaying(make_search):
    def make(decomposition, limited, rate):
        return make_search(
            Settings(
                decomposition=RandomGroups(5) if decomposition == "random" else decomposition,
                limited_evaluation=limited, extensions=[WeightDecay(rate)], dtype="float64",
                hidden_layer_sizes=(3,), population_size=6, batch_size=10, max_generations=8,
                fitness="accuracy", representative="best", seed=7,
            )
        )  # fmt: skip

    return make


@pytest.mark.parametrize("decomposition", NAMES)
@pytest.mark.parametrize("limited", [True, False])
def test_weight_decay_is_taken_off_what_is_measured(make_decaying, decomposition, limited):
    plain, decayed = (make_decaying(decomposition, limited, rate) for rate in (0.0, 0.01))
    for search in (plain, decayed):
        search._timed(search._initialise)
    squares = np.concatenate([(p**2).mean(axis=2) for p in plain.state.subpopulations])
    np.testing.assert_allclose(decayed.state.fitness, plain.state.fitness - 0.01 * squares)
    # Validation does without.
    latest = decayed.state.history.latest
    networks = decayed.state.global_solution[np.newaxis]
    assert latest.validation_fitness == decayed.evaluator.validate_networks(networks)[0]


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("decomposition", NAMES)
def test_weight_decay_in_a_contest(make_decaying, decomposition, limited):
    search = make_decaying(decomposition, limited, 0.5)
    search._timed(search._initialise)
    turn = search._turns[0]
    fitness = search.state.fitness[turn.here].copy()
    targets = search.state.subpopulations[turn.block][turn.rows]
    offspring = search._reproduce(turn, TrialLog.blank(search.state.fitness.shape))
    of_targets = 0.5 * (targets**2).mean(axis=2)
    of_trials = 0.5 * (offspring.trials**2).mean(axis=2)
    if not limited:  # a target's stored fitness has it off already, a trial inherits nothing
        np.testing.assert_allclose(offspring.inherited_by_targets, fitness)
        np.testing.assert_allclose(offspring.inherited_by_trials, -of_trials)
    else:
        np.testing.assert_allclose(offspring.inherited_by_targets, 0.8 * fitness - of_targets)
        limit = 0.8 * fitness.max() - of_trials + 1e-12
        assert (offspring.inherited_by_trials < limit).all()


def test_weight_decay_keeps_weights_small(make_search, small_settings):
    ends = [
        make_search(small_settings(extensions=[WeightDecay(rate)], max_generations=40))
        for rate in (0.0, 0.1)
    ]
    for search in ends:
        search.run()
    plain, decayed = ((search.state.global_solution**2).mean() for search in ends)
    assert decayed < plain / 2


def test_settings_are_checked():
    with pytest.raises(ValueError, match="rate must be at least 0, got -1"):
        WeightDecay(-1)
