"""What targets and trials inherit."""

import numpy as np

from coevo.core.inheritance import FullEvaluation, LimitedEvaluation


def test_asexual_and_sexual_rules_by_hand():
    targets, trials = LimitedEvaluation(0.2).inherit(np.array([0.5, 1.0]), np.array([0.7, 0.0]))
    np.testing.assert_allclose(targets, [0.5 * 0.8, 1.0 * 0.8])
    np.testing.assert_allclose(trials, [0.6 * 0.8, 0.5 * 0.8])


def test_full_evaluation_keeps_the_targets_fitness_and_gives_trials_nothing():
    full = FullEvaluation()
    targets, trials = full.inherit(np.array([0.5, 1.0]), np.array([0.7, 0.0]))
    np.testing.assert_array_equal(targets, [0.5, 1.0])
    np.testing.assert_array_equal(trials, [0.0, 0.0])
    # It is not limited evaluation with decay 1, which would measure the target again.
    assert not full.measures_targets
    assert LimitedEvaluation(1.0).measures_targets
