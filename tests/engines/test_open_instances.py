"""Sweeps and counts on open instances only, against the reference."""

import pytest

from coevo.core.decomposition import decompose
from coevo.engines import open_instances
from coevo.engines.compiled_metrics import COUNTED
from coevo.engines.delta import DeltaEvaluator
from coevo.engines.reference import ReferenceEvaluator


@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
def test_metrics_of_confusion_matrices_are_the_references(
    make_problem, assert_measured_alike, hidden_layer_sizes, metric, monkeypatch
):
    if not isinstance(metric, COUNTED):
        pytest.skip("needs more than the instances' classes")
    monkeypatch.setattr(open_instances, "_FEW", 1.0)
    problem = make_problem(4, hidden_layer_sizes)
    decomposition = decompose("neuron", problem[0])
    assert_measured_alike((ReferenceEvaluator, DeltaEvaluator), problem, decomposition, metric)
