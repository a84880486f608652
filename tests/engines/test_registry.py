"""Which engine serves which decomposition."""

import numpy as np
import pytest

from coevo import evolve
from coevo.core.decomposition import decompose
from coevo.core.network import Architecture
from coevo.engines.registry import choose_engine


@pytest.mark.parametrize(
    ("decomposition", "engine"),
    [
        ("neuron", "delta"), ("neuron_outgoing", "delta"), ("synapse", "delta"),
        ("whole", "batched"), ("layer", "batched"), ("random", "batched"),
        ([range(5), range(5, 35)], "batched"),
        ([range(2), range(2, 5), *[[d] for d in range(5, 35)]], "delta"),
    ],
)  # fmt: skip
def test_the_result_says_which_engine_served(make_classification_data, decomposition, engine):
    inputs, targets = make_classification_data(np.random.default_rng(2), 60, 4)
    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], hidden_layer_sizes=(4,),
        batch_size=20, max_generations=2, decomposition=decomposition, seed=1,
    )  # fmt: skip
    assert result.engine == engine


def test_an_unknown_engine_is_refused():
    architecture = Architecture(2, (2,), 2)
    with pytest.raises(ValueError, match=r"engine='fast'.*auto, delta, batched, reference"):
        choose_engine("fast", architecture, decompose("neuron", architecture))
