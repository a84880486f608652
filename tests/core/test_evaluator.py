"""What all engines have in common."""

import numpy as np
import pytest

from coevo.core.decomposition import decompose
from coevo.core.evaluator import Data
from coevo.core.metrics import Accuracy
from coevo.core.network import Architecture
from coevo.engines.reference import ReferenceEvaluator


@pytest.fixture
def make_evaluator():
    def make(inputs):
        data = Data(np.array(inputs), np.zeros(len(inputs), dtype=int))
        architecture = Architecture(2, (), 2)
        decomposition = decompose("neuron", architecture)
        return ReferenceEvaluator(architecture, decomposition, Accuracy(), data, data)

    return make


def test_input_size_is_the_root_mean_square(make_evaluator):
    assert make_evaluator([[3.0, -4.0], [0.0, 0.0]] * 5000).input_size == 2.5


def test_inputs_of_zeros_have_the_size_1(make_evaluator):
    assert make_evaluator([[0.0, 0.0]] * 3).input_size == 1.0


def test_a_memory_of_another_engine_is_refused(make_evaluator):
    evaluator = make_evaluator([[1.0, 2.0]])
    evaluator.recall({}, np.zeros(6))
    with pytest.raises(ValueError, match="unknown memory: a, b"):
        evaluator.recall({"b": np.zeros(1), "a": np.zeros(1)}, np.zeros(6))
