"""An engine that trains by one metric and validates by another."""

import numpy as np
import pytest

from coevo.core.assembly import assemble
from coevo.core.decomposition import RandomGroups, decompose
from coevo.core.metrics import Accuracy, CrossEntropy
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.registry import ENGINES, choose_engine
from coevo.engines.two_metrics import TwoMetricEvaluator


@pytest.mark.parametrize("decomposition", ["neuron", "synapse", "layer", RandomGroups(9, 2)])
def test_training_and_validation_have_a_metric_each(make_problem, settings_for, decomposition):
    architecture, training, validation = make_problem(4, (5,))
    settings = settings_for((5,), decomposition=decomposition)
    histories = []
    for metrics in ((CrossEntropy(), Accuracy()), (CrossEntropy(), CrossEntropy())):
        groups = decompose(settings.decomposition, architecture)
        engine = ENGINES[choose_engine("auto", architecture, groups)]
        trainer = engine(architecture, groups, metrics[0], training, validation)
        validator = BatchedEvaluator(architecture, groups, metrics[1], validation, validation)
        search = assemble(TwoMetricEvaluator(trainer, validator, groups), groups, settings)
        search.run()
        histories.append(search.state.history.rows)
        outputs = architecture.forward(search.state.best_network, validation.inputs)
        measured = metrics[1](outputs, validation.targets)
        assert search.state.best_validation == pytest.approx(float(measured), abs=1e-12)
    by_accuracy, by_entropy = histories
    np.testing.assert_array_equal(by_accuracy[:, 3], by_entropy[:, 3])  # training goes the same way
    assert (by_accuracy[:, 4] != by_entropy[:, 4]).all()
