"""`evolve`: what it returns, and the errors that name the argument."""

import numpy as np
import pytest

from coevo import RandomGroups, Settings, evolve
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import Accuracy
from coevo.core.stopping import StopReason
from coevo.engines.reference import ReferenceEvaluator
from coevo.training.paper import SHARED
from coevo.training.variants import VARIANTS

FAST = SHARED | {
    "hidden_layer_sizes": (4,), "batch_size": 10, "max_evaluations": 2000, "seed": 1,
}  # fmt: skip


@pytest.fixture
def data(make_classification_data):
    inputs, targets = make_classification_data(np.random.default_rng(2), n_instances=80)
    return inputs[:50], targets[:50], inputs[50:], targets[50:]


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_returns_the_best_network_and_how_it_was_found(data, variant):
    result = evolve(*data, variant=variant, **FAST)
    assert result.stop_reason == StopReason.MAX_EVALUATIONS
    assert result.evaluations >= 2000
    assert result.generations == result.history.columns()["generation"][-1]
    assert result.validation_fitness == np.mean(result.predict(data[2]) == data[3])
    assert result.train_fitness == np.mean(result.predict(data[0]) == data[1])
    assert result.network.genotype.dtype == np.float32
    assert result.seconds > 0


def test_labels_may_be_of_any_type(data):
    names = np.array(["ash", "birch", "cedar"])
    numbers = evolve(*data, **FAST)
    texts = evolve(data[0], names[data[1]], data[2], names[data[3]].tolist(), **FAST)
    np.testing.assert_array_equal(texts.classes, names)
    np.testing.assert_array_equal(texts.network.genotype, numbers.network.genotype)
    np.testing.assert_array_equal(texts.predict(data[2]), names[numbers.predict(data[2])])


def test_settings_and_single_changes(data):
    settings = Settings(**FAST)
    plain = evolve(*data, settings)
    np.testing.assert_array_equal(plain.network.genotype, evolve(*data, **FAST).network.genotype)
    changed = evolve(*data, settings, max_generations=2, variant="CCDE")
    assert changed.stop_reason == StopReason.MAX_GENERATIONS
    assert changed.settings.limited_evaluation is False
    assert changed.settings.hidden_layer_sizes == (4,)


@pytest.mark.parametrize("sizes", [(), (3, 2), (4, 3, 2)])
def test_any_number_of_hidden_layers(data, sizes):
    result = evolve(*data, **FAST | {"hidden_layer_sizes": sizes, "dtype": "float64"})
    assert len(result.network.weights) == len(sizes) + 1
    assert result.network.genotype.dtype == np.float64


@pytest.mark.parametrize("engine", ["delta", "batched", "reference"])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_a_run_begins_around_a_network(data, variant, engine):
    first = evolve(*data, **FAST, variant="LECCDE")
    around = FAST | {"initial_range": 0.2, "dtype": "float64", "max_evaluations": 1000}
    searches = []
    second = evolve(
        *data, **around, variant=variant, engine=engine, initial_network=first.network,
        callbacks=[searches.append],
    )  # fmt: skip
    rows = second.history.rows
    n_individuals = 20 * (4 + 3)
    assert rows[0, 1] == n_individuals  # each is measured once
    assert rows[0, 4] == pytest.approx(first.validation_fitness)
    assert second.validation_fitness >= first.validation_fitness
    assert searches[0].state.generation == second.generations


@pytest.mark.parametrize("name", ["neuron", "neuron_outgoing", "synapse", "random"])
def test_individuals_are_measured_in_their_places_in_the_network(data, name):
    network = evolve(*data, **FAST).network
    architecture, genotype = network.architecture, network.genotype.astype(float)
    given = RandomGroups(8) if name == "random" else name
    settings = Settings(**FAST | {"initial_range": 0.5, "dtype": "float64", "decomposition": given})
    decomposition = decompose(given, architecture)
    training = Data(data[0], data[1])
    evaluator = ReferenceEvaluator(
        architecture, decomposition, Accuracy(), training, Data(data[2], data[3])
    )
    search = assemble(evaluator, decomposition, resolve(settings), initial_network=genotype)
    search._timed(search._initialise)
    state, decomposition = search.state, search.decomposition  # random groups are drawn by now
    np.testing.assert_array_equal(state.global_solution, genotype)
    batch = training[state.batches[0]]
    for block, individuals in zip(decomposition.blocks, state.subpopulations, strict=True):
        for k, i in enumerate(block):
            genes = decomposition.groups[i]
            np.testing.assert_array_equal(individuals[k, 0], genotype[genes])
            noise = np.abs(individuals[k, 1:] - genotype[genes])
            assert 0.2 < noise.max() <= 0.5
            for j in (0, 7):
                changed = genotype.copy()
                changed[genes] = individuals[k, j]
                outputs = architecture.forward(changed, batch.inputs)
                assert state.fitness[i, j] == Accuracy()(outputs, batch.targets)


def test_a_network_of_another_shape_is_refused(data):
    network = evolve(*data, **FAST | {"max_evaluations": 10}).network
    with pytest.raises(ValueError, match=r"initial_network has .*\(4,\).* evolved has .*\(5,\)"):
        evolve(*data, **FAST | {"hidden_layer_sizes": (5,)}, initial_network=network)
    with pytest.raises(TypeError, match=r"initial_network must be a .*Network, got ndarray"):
        evolve(*data, **FAST, initial_network=network.genotype)
    network.genotype[3] = np.nan
    with pytest.raises(ValueError, match="initial_network must have 35 finite weights"):
        evolve(*data, **FAST, initial_network=network)


def test_a_list_of_gene_groups(data):
    n_genes = 4 * 5 + 3 * 5
    result = evolve(*data, **FAST, decomposition=[range(0, n_genes, 2), range(1, n_genes, 2)])
    assert result.evaluations >= 2000


def test_a_large_batch_warns_and_one_batch_is_used(data):
    with pytest.warns(UserWarning, match="batch_size=500 is larger than the 50 training instances"):
        evolve(*data, **FAST | {"batch_size": 500})


def changed(data, position, value):
    return [value if p == position else part for p, part in enumerate(data)]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.zeros(50), r"X_train must have shape \(n_instances, n_inputs\), got shape \(50,\)"),
        (0, np.zeros((0, 4)), r"X_train is empty: its shape is \(0, 4\)"),
        (0, [["a"] * 4] * 50, "X_train must be an array of numbers"),
        (0, [[1, 2], [3]], "X_train must be an array of numbers"),
        (
            0,
            np.full((50, 4), np.nan),
            "X_train must be finite in float32; 200 values .* row 0, col",
        ),
        (0, np.full((50, 4), 1e300), "X_train must be finite in float32"),
        (1, np.zeros(50), r"y_train holds one class only \(.*0.0.*\); there must be at least two"),
        (1, np.zeros(49), r"y_train must have shape \(50,\), one label for each row of X_train"),
        (1, np.full(50, np.nan), "y_train must not hold NaN or infinity"),
        (1, np.array([None] * 50), "y_train must not hold missing labels"),
        (2, np.zeros((0, 4)), "X_valid is empty"),
        (2, np.zeros((30, 5)), "X_valid has 5 columns; the network has 4 inputs"),
        (2, np.full((30, 4), -np.inf), "X_valid must be finite"),
        (3, np.full(30, 7), "y_valid holds the label .*7.*, which is not among the 3 classes"),
        (3, np.zeros((30, 1)), r"y_valid must have shape \(30,\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_bad_data_is_named(data, position, value, message):
    with pytest.raises(ValueError, match=message):
        evolve(*changed(data, position, value), **FAST)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"population_size": 3}, ValueError, "population_size must be at least 4 for .* rand/1"),
        ({"population_size": 5, "strategy": "rand/2"}, ValueError, "at least 6 for .* rand/2"),
        ({"population_size": 20.0}, TypeError, "population_size must be a whole number, got 20.0"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"decay": 1.5}, ValueError, "decay must be at least 0 and at most 1, got 1.5"),
        ({"decay": "much"}, TypeError, "decay must be a number, got 'much'"),
        ({"crossover_rate": -0.1}, ValueError, "crossover_rate must be at least 0 and at most 1"),
        ({"crossover_rate": float("nan")}, ValueError, "crossover_rate must be at least 0"),
        ({"scale_factor": 0}, ValueError, "scale_factor must be above 0 and at most 100.0, got 0"),
        ({"initial_range": float("inf")}, ValueError, "initial_range must be above 0 .*got inf"),
        ({"initial_range": (1, 2, 3)}, ValueError, "must be one number or 2, .* got 3"),
        ({"initial_range": (1, -2)}, ValueError, r"initial_range\[1\] must be above 0 .*got -2"),
        ({"initial_range": "wide"}, TypeError, "initial_range must be a number"),
        ({"sampling_rounds": 0}, ValueError, "sampling_rounds must be at least 1"),
        ({"max_evaluations": 0}, ValueError, "max_evaluations must be at least 1"),
        ({"max_seconds": -1}, ValueError, "max_seconds must be above 0"),
        ({"target_fitness": "high"}, TypeError, "target_fitness must be a number"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"hidden_layer_sizes": (5, 0)}, ValueError, r"hidden_layer_sizes\[1\] must be at least 1"),
        ({"hidden_layer_sizes": None}, TypeError, "hidden_layer_sizes must be a sequence"),
        ({"limited_evaluation": 1}, TypeError, "limited_evaluation must be True or False, got 1"),
        ({"activation": "swish"}, ValueError, "activation='swish' is unknown; .*tanh, sigmoid"),
        ({"fitness": "luck"}, ValueError, "fitness='luck' is unknown; choose one of accuracy"),
        ({"strategy": "rand/7"}, ValueError, "strategy='rand/7' is unknown; choose one of rand/1"),
        ({"representative": "median"}, ValueError, "representative='median' is unknown; .* best"),
        ({"strategy__crossover": "x"}, ValueError, "crossover='x' is unknown; .* binomial, expon"),
        ({"dtype": "float16"}, ValueError, "dtype='float16' is unknown; .* float32, float64"),
        ({"decomposition": "x"}, ValueError, "decomposition='x' is unknown"),
        ({"variant": "PSO"}, ValueError, "variant='PSO' is unknown; .* DE, LEDE, CCDE, LECCDE"),
        ({"engine": "warp"}, ValueError, "engine='warp' is unknown"),
        ({"popsize": 20}, ValueError, "the setting='popsize' is unknown; .*population_size"),
        ({"variant": "DE", "limited_evaluation": True}, ValueError, "contradicts variant='DE'"),
        ({"max_evaluations": None}, ValueError, "the run would never end"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(data, change, error, message):
    with pytest.raises(error, match=message):
        evolve(*data, **FAST | change)


def test_predict_checks_its_input(data):
    result = evolve(*data, **FAST | {"max_evaluations": 10})
    with pytest.raises(ValueError, match="X has 3 columns; the network has 4 inputs"):
        result.predict(np.zeros((2, 3)))
