"""The decomposition: groups, blocks, and what is refused."""

import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo import CoevoClassifier, RandomGroups, Settings
from coevo.core.decomposition import NAMES, decompose
from coevo.core.network import Architecture

SMALL = Architecture(3, (2,), 1)


def genes_of(decomposition):
    n_genes = sum(decomposition.sizes)
    return [np.arange(n_genes)[group].tolist() for group in decomposition.groups]


def test_neuron_is_the_papers_heuristic():
    decomposition = decompose("neuron", SMALL)
    assert genes_of(decomposition) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert decomposition.blocks == (range(0, 2), range(2, 3))


def test_layer_and_whole():
    assert genes_of(decompose("layer", SMALL)) == [list(range(8)), [8, 9, 10]]
    assert genes_of(decompose("whole", SMALL)) == [list(range(11))]


def test_neuron_outgoing_gives_every_gene_to_where_it_comes_from():
    # Hidden neurons: incoming weights, bias, the weight to the output. Output: its bias.
    assert genes_of(decompose("neuron_outgoing", SMALL)) == [[0, 1, 2, 3, 8], [4, 5, 6, 7, 9], [10]]
    deep = decompose("neuron_outgoing", Architecture(1, (2, 2), 1))
    # Genes 0–3 go to the first hidden layer, 4–9 to the second, 10–12 to the output.
    assert genes_of(deep) == [[0, 1, 4, 7], [2, 3, 5, 8], [6, 10], [9, 11], [12]]
    assert deep.blocks == (range(0, 2), range(2, 4), range(4, 5))
    flat = Architecture(3, (), 2)
    assert genes_of(decompose("neuron_outgoing", flat)) == genes_of(decompose("neuron", flat))


def test_synapse_has_one_gene_each_and_blocks_of_bounded_length():
    decomposition = decompose("synapse", Architecture(561, (50,), 6))
    assert decomposition.sizes == (1,) * 28406
    assert max(map(len, decomposition.blocks)) == 4096
    assert decomposition.blocks[6] == range(6 * 4096, 562 * 50)


def test_random_groups_are_redrawn_into_as_many_of_nearly_equal_size():
    first = decompose(RandomGroups(3), SMALL)
    assert genes_of(first) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    second = first.redraw(np.array([10, 2, 1, 9, 8, 0, 7, 6, 5, 4, 3]))
    # By first layer and size, each in the genotype's order.
    assert genes_of(second) == [[1, 2, 10], [0, 8, 9], [5, 6, 7], [3, 4]]
    assert second.is_random
    assert not decompose("neuron", SMALL).is_random


def test_har_has_56_subpopulations():
    decomposition = decompose("neuron", Architecture(561, (50,), 6))
    assert len(decomposition) == 56
    assert decomposition.sizes == (562,) * 50 + (51,) * 6


def test_neurons_of_one_layer_see_the_same_inputs():
    decomposition = decompose("neuron", Architecture(5, (4, 4, 4), 2))
    # The second and third layer have equally many genes a neuron, but other inputs.
    assert decomposition.blocks == (range(0, 4), range(4, 8), range(8, 12), range(12, 14))


@given(data=st.data(), name=st.sampled_from(NAMES))
def test_every_gene_belongs_to_exactly_one_subpopulation(architectures, data, name):
    architecture = data.draw(architectures)
    decomposition = decompose(name, architecture)
    genes = list(chain(*genes_of(decomposition)))
    assert sorted(genes) == list(range(architecture.n_genes))
    assert [len(group) for group in genes_of(decomposition)] == list(decomposition.sizes)
    assert list(chain(*decomposition.blocks)) == list(range(len(decomposition)))
    in_blocks = [genes.tolist() for block in decomposition.genes_of_blocks for genes in block]
    assert in_blocks == genes_of(decomposition)


@given(st.data())
def test_own_groups_keep_order_and_content(data):
    order = data.draw(st.permutations(range(SMALL.n_genes)))
    cuts = sorted(data.draw(st.sets(st.integers(1, SMALL.n_genes - 1), max_size=4)))
    groups = [part.tolist() for part in np.split(np.array(order), cuts)]
    decomposition = decompose(groups, SMALL)
    assert decomposition.name == "custom"
    assert genes_of(decomposition) == groups
    assert decomposition.first_layers == tuple(0 if min(group) < 8 else 1 for group in groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "at least one group"),
        ([[]], r"decomposition\[0\] must be a non-empty"),
        ([range(11), [0.5]], r"decomposition\[1\] must be a non-empty .* integers"),
        ([[range(11)]], r"decomposition\[0\] must be a non-empty one-dimensional"),
        ([range(12)], "names gene 11; the network's genes are 0 to 10"),
        ([range(-1, 10)], "names gene -1"),
        ([range(10)], "1 of them are in no group, the first is gene 10"),
        ([range(11), [3, 4]], "2 of them are more than once, the first is gene 3"),
    ],
)
def test_what_is_not_a_partition_is_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        decompose(groups, SMALL)


@pytest.mark.parametrize("value", [5, None, {"neuron": [0]}, {0, 1}, np.array(5)], ids=repr)
def test_what_cannot_be_groups_is_refused_by_name(value):
    message = r"decomposition must be one of whole, .* or a list of arrays of gene indices, got "
    for refuse in (
        lambda: decompose(value, SMALL),
        lambda: Settings(decomposition=value),
        lambda: CoevoClassifier(decomposition=value).fit([[0.0], [1.0]], [0, 1]),
    ):
        with pytest.raises(TypeError, match=message + re.escape(repr(value))):
            refuse()


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=r"decomposition='neutron' is unknown.*whole, layer, neuron"
    ):
        decompose("neutron", SMALL)
