"""The engine for parts of neurons, and full passes for the rest, against the reference."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_classification_data
from test_engines import (
    MEASURES,
    assert_measured_alike,
    assert_same_run,
    make_parts,
    measure_block,
)

from coevo import Settings, evolve
from coevo.decomposition import decompose
from coevo.evaluation import moves as moves_module
from coevo.evaluation import partial as partial_module
from coevo.evaluation.batched import BatchedEvaluator
from coevo.evaluation.partial import PartialEvaluator, serves
from coevo.evaluation.parts import Parts
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import Accuracy, CrossEntropy
from coevo.network import ACTIVATIONS, Architecture


def cut_neurons(architecture):
    """Each neuron in two or three parts, genes and parts in any order."""
    rng = np.random.default_rng(3)
    genes = np.arange(architecture.n_genes)
    groups = []
    for neuron in decompose("neuron", architecture).groups:
        groups += np.array_split(rng.permutation(genes[neuron]), rng.integers(2, 4))
    return [groups[i] for i in rng.permutation(len(groups))]


def outgoing_in_parts(architecture):
    """A first hidden neuron with half of its outgoing weights; the others' as they come."""
    groups = [
        list(np.arange(architecture.n_genes)[g])
        for g in decompose("neuron_outgoing", architecture).groups
    ]
    half = groups[0][-2:]
    return [groups[0][-3::-1], *groups[1:], [half[0]], [half[1]]]


SERVED = {
    "neuron": lambda architecture: "neuron",
    "neuron_outgoing": lambda architecture: "neuron_outgoing",
    "synapse": lambda architecture: "synapse",
    "parts of neurons": cut_neurons,
    "some outgoing": outgoing_in_parts,
}


def settings_for(hidden_layer_sizes, decomposition, **changes):
    defaults = {
        "hidden_layer_sizes": hidden_layer_sizes, "decomposition": decomposition,
        "population_size": 8, "batch_size": 40, "max_evaluations": None, "max_generations": 9,
        "seed": 4, "dtype": "float64", "representative": "best",
    }  # fmt: skip
    return Settings(**defaults | changes)


@pytest.mark.parametrize(
    ("name", "hidden_layer_sizes", "limited"),
    [
        ("neuron", (6, 5), True),
        ("neuron_outgoing", (), True), ("neuron_outgoing", (7,), False),
        ("neuron_outgoing", (5, 4, 3), True),
        ("synapse", (), False), ("synapse", (7,), True), ("synapse", (4, 3), False),
        ("parts of neurons", (), True), ("parts of neurons", (7,), False),
        ("parts of neurons", (6, 5), True),
        ("some outgoing", (7,), True), ("some outgoing", (6, 5), False),
    ],
)  # fmt: skip
def test_whole_runs_are_identical(name, hidden_layer_sizes, limited):
    parts = make_parts(4, hidden_layer_sizes)
    decomposition = SERVED[name](parts[0])
    settings = settings_for(hidden_layer_sizes, decomposition, limited_evaluation=limited)
    assert serves(parts[0], decompose(decomposition, parts[0]))
    assert_same_run(PartialEvaluator, parts, settings)


@pytest.mark.parametrize("name", ["parts of neurons", "some outgoing"])
def test_whole_runs_by_full_passes_are_identical(name):
    parts = make_parts(4, (6, 5))
    assert_same_run(BatchedEvaluator, parts, settings_for((6, 5), SERVED[name](parts[0])))


@pytest.mark.parametrize(("hidden_layer_sizes", "limited"), [((7,), True), ((6, 5), False)])
def test_whole_runs_with_random_groups_are_identical(hidden_layer_sizes, limited):
    settings = settings_for(
        hidden_layer_sizes, "random", limited_evaluation=limited, group_size=9,
        redraw_groups_every=3, max_generations=10,
    )  # fmt: skip
    assert_same_run(BatchedEvaluator, make_parts(4, hidden_layer_sizes), settings)


@pytest.mark.without_jit
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_whole_runs_are_identical_for_every_activation(name, activation):
    settings = settings_for((7,), name, activation=activation, seed=11)
    assert_same_run(PartialEvaluator, make_parts(4, (7,), activation=activation), settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"synchronous": False, "max_generations": 3},
        {"strategy": "current-to-best/1", "crossover": "exponential"},
        {"representative": "mean"},
        {"initial_range": 100.0, "scale_initial_range": False},
        {"weight_decay": 0.01, "control": "shade", "strategy": "current-to-pbest/1"},
    ],
)
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_whole_runs_are_identical_for_other_settings(name, changes):
    assert_same_run(PartialEvaluator, make_parts(4, (7,)), settings_for((7,), name, **changes))


@pytest.mark.parametrize("block", [1, 500, 2000])
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse", "parts of neurons"])
def test_blocks_do_not_change_the_run(monkeypatch, name, block):
    """Room for one candidate or network, for a few, for a few neurons at a time."""
    monkeypatch.setattr(partial_module, "BLOCK_ELEMENTS", block)
    monkeypatch.setattr("coevo.decomposition._LONGEST_BLOCK", 3)
    parts = make_parts(4, (4, 3))
    settings = settings_for((4, 3), SERVED[name](parts[0]), max_generations=6)
    assert_same_run(PartialEvaluator, parts, settings)


@pytest.mark.parametrize("n_genes", [1, 500])
def test_validating_a_few_moves_at_a_time_does_not_change_the_run(monkeypatch, n_genes):
    monkeypatch.setattr(moves_module, "_MOST_GENES", n_genes)
    assert_same_run(BatchedEvaluator, make_parts(4, (7,)), settings_for((7,), "neuron"))


@pytest.mark.parametrize("is_weighted", [(False, False), (True, True)], ids=["", "weighted"])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_every_measure_is_the_references(name, measure, is_weighted):
    """Of two hidden layers one is next to the outputs, where measures have loops of their own."""
    parts = make_parts(4, (4, 3), 90)
    engines = (ReferenceEvaluator, PartialEvaluator)
    assert_measured_alike(engines, parts, decompose(name, parts[0]), measure, is_weighted)


@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_float32_differs_only_where_the_margin_is_below_rounding(name):
    architecture, training, validation = make_parts(6, (8,), 300, dtype="float32")
    decomposition = decompose(name, architecture)
    evaluator = PartialEvaluator(architecture, decomposition, Accuracy(), training, validation)
    rng = np.random.default_rng(3)
    genotype = rng.uniform(-4, 4, architecture.n_genes).astype(np.float32)
    evaluator.rebase(genotype, slice(0, len(training)))
    inputs = training.inputs.astype(np.float64)
    for block in decomposition.blocks:
        shape = (len(block), 6, decomposition.sizes[block.start])
        trials = rng.uniform(-4, 4, shape).astype(np.float32)
        measured = measure_block(evaluator, block, trials)
        for k, i in enumerate(block):
            networks = np.tile(genotype.astype(np.float64), (6, 1))
            networks[:, decomposition.groups[i]] = trials[k]
            outputs = architecture.forward(networks, inputs)
            top_two = np.sort(outputs, axis=2)[..., -2:]
            is_clear = top_two[..., 1] - top_two[..., 0] > 1e-4
            right = outputs.argmax(axis=2) == training.targets
            counts = np.rint(measured[k] * len(training))
            assert ((right & is_clear).sum(axis=1) <= counts).all()
            assert (counts <= (right | ~is_clear).sum(axis=1)).all()


def test_many_small_moves_do_not_pile_up_rounding():
    """A generation of the synapses of hundreds of inputs moves the outputs thousands of times."""
    rng = np.random.default_rng(1)
    inputs, targets = make_classification_data(rng, 100, 300, 3)
    architecture = Architecture(300, (12,), 3)
    decomposition = decompose("synapse", architecture)
    data = replace(make_parts(3, (12,))[1], inputs=inputs.astype(np.float32), targets=targets)
    evaluator = PartialEvaluator(architecture, decomposition, CrossEntropy(), data, data)
    genotype = rng.normal(size=architecture.n_genes).astype(np.float32)
    evaluator.rebase(np.zeros_like(genotype), slice(0, 100))
    for i in range(architecture.n_genes):
        evaluator.replace(i, genotype[i : i + 1], None)
    exact = architecture.forward(genotype.astype(np.float64), inputs.astype(np.float32))
    np.testing.assert_allclose(evaluator._scene.outputs().T, exact, rtol=1e-4, atol=1e-4)
    assert evaluator.validate()[-1] == pytest.approx(
        float(CrossEntropy()(exact, targets)), abs=1e-4
    )


@pytest.mark.parametrize(
    ("decomposition", "engine"),
    [
        ("neuron", "delta"), ("neuron_outgoing", "delta"), ("synapse", "delta"),
        ("whole", "batched"), ("layer", "batched"), ("random", "batched"),
        ([range(5), range(5, 35)], "batched"),
        ([range(2), range(2, 5), *[[d] for d in range(5, 35)]], "delta"),
    ],
)  # fmt: skip
def test_the_result_says_which_engine_served(decomposition, engine):
    inputs, targets = make_classification_data(np.random.default_rng(2), 60, 4)
    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], hidden_layer_sizes=(4,),
        batch_size=20, max_generations=2, decomposition=decomposition, seed=1,
    )  # fmt: skip
    assert result.engine == engine


@pytest.mark.parametrize("decomposition", ["layer", "random"])
def test_what_is_not_served_is_refused(decomposition):
    architecture, training, validation = make_parts(3, (4,))
    with pytest.raises(ValueError, match=f"a part of one neuron, not '{decomposition}'.*batched"):
        PartialEvaluator(
            architecture, decompose(decomposition, architecture), Accuracy(), training, validation
        )


def test_parts_know_their_neurons():
    """2 inputs, 2 hidden neurons, 2 outputs: genes 0–5 go to hidden neurons, 6–11 to outputs."""
    architecture = Architecture(2, (2,), 2)

    def is_served(*groups):
        rest = sorted(set(range(12)) - {gene for group in groups for gene in group})
        return serves(architecture, decompose([*groups, *[[d] for d in rest]], architecture))

    assert is_served([1, 0], [2])
    assert is_served([6, 7, 8])
    assert is_served([0, 1, 2, 6, 9])  # hidden neuron 0 and what it feeds
    assert is_served([9, 5, 10]) is False  # the bias of neuron 1, and weights of both neurons
    assert is_served([5, 10])
    assert not is_served([2, 5])
    assert not is_served([2, 8])  # a hidden bias and an output bias
    assert not is_served([6, 9])  # outgoing weights alone: two output neurons
    parts = Parts(
        architecture, decompose([[9, 2, 0, 6], [1], [3, 4, 5], [7, 8], [10, 11]], architecture)
    )
    assert (parts.layers, parts.neurons) == ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
    layout = parts.layout(0)
    assert (layout.bias, layout.weights, layout.inputs) == (1, slice(2, 3), slice(0, 1))
    np.testing.assert_array_equal(layout.outgoing, [0, 3])
    np.testing.assert_array_equal(layout.fed, [1, 0])
    assert parts.layout(3).bias == 1
    assert parts.are_whole == [False, False, True, False, False]


def test_a_single_group_may_have_any_order():
    """A vector of all genes is not a network unless its genes are in the genotype's order."""
    parts = make_parts(3, (5,))
    backwards = [np.arange(parts[0].n_genes)[::-1]]
    assert_same_run(BatchedEvaluator, parts, settings_for((5,), backwards, max_generations=40))


def test_a_generation_of_many_synapses():
    """Hundreds of subpopulations of one gene, with a measure that is not counted."""
    rng = np.random.default_rng(1)
    inputs, targets = make_classification_data(rng, 60, 90, 3)
    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], hidden_layer_sizes=(8,),
        decomposition="synapse", fitness="cross_entropy", population_size=4, batch_size=20,
        max_generations=1, sampling_rounds=1, seed=1,
    )  # fmt: skip
    assert result.evaluations == 4 + 2 * 4 * (91 * 8 + 27)
    assert result.validation_fitness >= result.history.rows[0, 5]
