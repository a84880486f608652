"""Which groups lie within one neuron, and what their genes are."""

import numpy as np
import pytest

from coevo.core.decomposition import decompose
from coevo.core.network import Architecture
from coevo.engines.groups import NeuronGroups

# 2 inputs, 2 hidden neurons, 2 outputs: genes 0 to 5 go to hidden neurons, 6 to 11 to outputs.
ARCHITECTURE = Architecture(2, (2,), 2)


@pytest.mark.parametrize(
    ("groups", "are_within"),
    [
        ([[1, 0], [2]], True),
        ([[6, 7, 8]], True),
        ([[0, 1, 2, 6, 9]], True),  # hidden neuron 0 and what it feeds
        ([[9, 5, 10]], False),  # the bias of neuron 1, and weights of both neurons
        ([[5, 10]], True),
        ([[2, 5]], False),
        ([[2, 8]], False),  # a hidden bias and an output bias
        ([[6, 9]], False),  # outgoing weights alone: two output neurons
    ],
)
def test_groups_within_neurons_are_told_from_others(groups, are_within):
    rest = sorted(set(range(12)) - {gene for group in groups for gene in group})
    decomposition = decompose([*groups, *[[d] for d in rest]], ARCHITECTURE)
    assert NeuronGroups(ARCHITECTURE, decomposition).are_within_neurons is are_within


def test_groups_know_their_genes():
    chosen = [[9, 2, 0, 6], [1], [3, 4, 5], [7, 8], [10, 11]]
    groups = NeuronGroups(ARCHITECTURE, decompose(chosen, ARCHITECTURE))
    assert (groups.layers, groups.neurons) == ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
    first = groups[0]
    assert (first.layer, first.neuron) == (0, 0)
    assert (first.bias, first.weights, first.inputs) == (1, slice(2, 3), slice(0, 1))
    np.testing.assert_array_equal(first.outgoing, [0, 3])
    np.testing.assert_array_equal(first.fed, [1, 0])
    assert first.has_outgoing
    assert groups[3].bias == 1
    assert not groups[3].has_outgoing
    assert [groups[i].is_whole for i in range(5)] == [False, False, True, False, False]
    assert not groups.are_neurons


@pytest.mark.parametrize(
    ("groups", "are_neurons"),
    [
        ("neuron", True),
        ([range(3), range(3, 6), range(6, 9), range(9, 12)], True),
        ([range(3, 6), range(3), range(6, 9), range(9, 12)], False),
        ([[0, 2, 1], range(3, 6), range(6, 9), range(9, 12)], False),
        ("synapse", False),
        ("neuron_outgoing", False),
    ],
)
def test_neurons_in_order_are_told_from_other_groups(groups, are_neurons):
    found = NeuronGroups(ARCHITECTURE, decompose(groups, ARCHITECTURE))
    assert found.are_neurons is are_neurons
