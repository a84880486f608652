"""Random groups: what redrawing keeps, and what it does to fitness and champions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo import JDE, PopulationReduction, RandomGroups, Settings, WeightDecay, evolve
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.extensions.regrouping import recut
from coevo.core.metrics import Accuracy
from coevo.core.network import Architecture
from coevo.engines.registry import ENGINES

seeds = st.integers(0, 2**32 - 1)


def compose(decomposition, subpopulations, chosen):
    network = np.empty(len(decomposition.layer_of_gene))
    individuals = [x for part in subpopulations for x in part]
    for i, group in enumerate(decomposition.groups):
        network[group] = individuals[i][chosen[i]]
    return network


@given(data=st.data(), group_size=st.integers(1, 30), size=st.integers(4, 9), seed=seeds)
def test_redrawing_keeps_the_global_solution_and_the_genes(
    architectures, data, group_size, size, seed
):
    architecture = data.draw(architectures)
    rng = np.random.default_rng(seed)
    n_genes = architecture.n_genes
    start = decompose(RandomGroups(group_size), architecture)
    before = start.redraw(rng.permutation(n_genes))
    after = before.redraw(rng.permutation(n_genes))
    assert len(after) == len(before) == max(1, round(n_genes / group_size))
    assert max(after.sizes) - min(after.sizes) <= 1
    parts = [rng.normal(size=(len(g), size, g.shape[1])) for g in before.genes_of_blocks]
    fitness = rng.integers(0, 4, (len(before), size)) / 7
    champions = fitness.argmax(axis=1)
    new_parts, new_fitness = recut(parts, fitness, champions, before, after)
    # X stays X, is in one row, and is the fittest again.
    np.testing.assert_array_equal(
        compose(after, new_parts, np.zeros(len(after), dtype=int)),
        compose(before, parts, champions),
    )
    np.testing.assert_array_equal(new_fitness.argmax(axis=1), 0)
    # Every place of the genotype has the same genes as before, in some order.
    for decomposition, individuals in ((before, parts), (after, new_parts)):
        networks = np.stack(
            [compose(decomposition, individuals, [j] * len(before)) for j in range(size)]
        )
        if decomposition is before:
            expected = np.sort(networks, axis=0)
    np.testing.assert_array_equal(np.sort(networks, axis=0), expected)
    # Each gene brings its owner's fitness along.
    weights = np.array(after.sizes) / n_genes
    old_weights = np.array(before.sizes) / n_genes
    assert weights @ new_fitness.sum(axis=1) == pytest.approx(old_weights @ fitness.sum(axis=1))


def test_fitness_after_redrawing_by_hand(make_classification_data, make_regrouping):
    """A weight and a bias for each of two outputs, cut into {0, 1}, {2, 3}, then {0, 2}, {1, 3}."""
    start = decompose(RandomGroups(2), Architecture(1, (), 2))
    before, after = start.redraw(np.array([0, 1, 2, 3])), start.redraw(np.array([0, 2, 1, 3]))
    individuals = np.array([[[1, 2], [3, 4], [5, 6]], [[10, 20], [30, 40], [50, 60]]])
    fitness = np.array([[0.1, 0.5, 0.3], [0.6, 0.2, 0.4]])
    (parts,), new_fitness = recut([individuals], fitness, np.array([1, 0]), before, after)
    # Individual 1 of the first subpopulation is its champion and changes places with individual 0.
    np.testing.assert_array_equal(parts[0], [[3, 10], [1, 30], [5, 50]])
    np.testing.assert_array_equal(parts[1], [[4, 20], [2, 40], [6, 60]])
    np.testing.assert_allclose(new_fitness, [[0.55, 0.15, 0.35]] * 2)


@pytest.fixture
def make_regrouping(make_classification_data):
    """A search with random groups of five genes, drawn anew every three generations."""

    def make(engine="reference", **changes):
        inputs, targets = make_classification_data(np.random.default_rng(2))
        defaults = {
            "hidden_layer_sizes": (4,), "decomposition": RandomGroups(5, 3), "population_size": 6,
            "batch_size": 20, "max_evaluations": None, "max_generations": 7, "seed": 3,
            "representative": "best", "validate_every": "replacement",
        }  # fmt: skip
        settings = resolve(Settings.from_names(defaults | changes))
        architecture = Architecture(4, (4,), 3)
        decomposition = decompose(settings.decomposition, architecture)
        data = Data(inputs.astype(np.float32), targets)
        evaluator = ENGINES[engine](architecture, decomposition, Accuracy(), data, data)
        return assemble(evaluator, decomposition, settings)

    return make


def gene_order(search):
    return tuple(search.state.memories["regrouping"]["gene_order"])


def test_groups_are_redrawn_every_so_many_generations(make_regrouping):
    search = make_regrouping()
    orders = [gene_order(search)]
    for _ in search:
        orders.append(gene_order(search))
    # Generations 1–3 share the first groups, 4–6 the second, 7 has the third.
    assert [orders.index(order) for order in orders[1:]] == [0, 0, 0, 4, 4, 4, 7]


@pytest.mark.parametrize("limited", [True, False])
def test_the_champions_make_the_global_solution_in_every_generation(make_regrouping, limited):
    search = make_regrouping(limited_evaluation=limited)
    for _ in search:
        state = search.state
        np.testing.assert_array_equal(search._compose(state.champions), state.global_solution)


@pytest.mark.parametrize("limited", [True, False])
def test_full_evaluation_measures_everyone_once_more_after_redrawing(make_regrouping, limited):
    search = make_regrouping(limited_evaluation=limited)
    spent = [generation.evaluations for generation in search]
    each = len(search.decomposition) * 6
    expected = [2, 2, 2, 2, 2, 2] if limited else [1, 1, 2, 1, 1, 2]
    np.testing.assert_array_equal(np.diff(spent), np.array(expected) * each)


@pytest.mark.parametrize("engine", ["reference", "batched"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.25])
def test_fitness_after_redrawing_is_that_in_the_global_solution(
    make_regrouping, engine, weight_decay
):
    search = make_regrouping(
        limited_evaluation=False, extensions=[WeightDecay(weight_decay)], max_generations=3,
        engine=engine,
    )  # fmt: skip
    search.run()
    before = search.state.global_solution.copy()
    regrouping = next(e for e in search.extensions if e.name == "regrouping")
    regrouping.before_generation(search)  # generation 3 is one of those
    state, decomposition = search.state, search.decomposition
    np.testing.assert_array_equal(state.global_solution, before)
    for block, individuals in zip(decomposition.blocks, state.subpopulations, strict=True):
        for k, i in enumerate(block):
            networks = np.tile(before, (6, 1))
            networks[:, decomposition.groups[i]] = individuals[k]
            measured = search.evaluator.evaluate_networks(networks, slice(0, 60))
            expected = measured - weight_decay * (individuals[k] ** 2).mean(axis=1)
            np.testing.assert_allclose(state.fitness[i], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("control", [JDE(redraw_probability=0.5), "shade"], ids=str)
def test_archives_and_what_is_learnt_begin_afresh_with_new_groups(
    make_regrouping, control, limited
):
    search = make_regrouping(
        control=control, strategy="current-to-pbest/1",
        limited_evaluation=limited, max_generations=3,
    )  # fmt: skip
    search.run()
    state = search.state
    fresh = search.control.begin(search)
    assert state.memories["archive"]["counts"].any()
    learnt = search.memory(search.control)["scale_factors"]
    assert not np.array_equal(learnt, fresh["scale_factors"])
    regrouping = next(e for e in search.extensions if e.name == "regrouping")
    regrouping.before_generation(search)  # generation 3 is one of those
    archive = state.memories["archive"]
    assert not archive["counts"].any()
    for b, genes in enumerate(search.decomposition.genes_of_blocks):
        assert archive[f"individuals.{b}"].shape == (len(genes), 6, genes.shape[1])
    memory = search.memory(search.control)
    assert memory.keys() == fresh.keys()
    for name, learnt in memory.items():
        np.testing.assert_array_equal(learnt, fresh[name])


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("control", ["fixed", "jde", "shade"])
def test_subpopulations_of_random_groups_shrink(make_regrouping, control, limited, synchronous):
    search = make_regrouping(
        control=control, strategy="current-to-pbest/1", limited_evaluation=limited,
        strategy__synchronous=synchronous, decomposition__redraw_every=2, population_size=12,
        extensions=[PopulationReduction(4)], max_generations=8,
    )  # fmt: skip
    state, sizes, orders = search.state, [], set()
    for _ in search:
        size = state.fitness.shape[1]
        sizes.append(size)
        orders.add(gene_order(search))
        np.testing.assert_array_equal(state.champions, state.fitness.argmax(axis=1))
        np.testing.assert_array_equal(search._compose(state.champions), state.global_solution)
        archive = state.memories["archive"]
        for b, genes in enumerate(search.decomposition.genes_of_blocks):
            expected = (len(genes), size, genes.shape[1])
            assert state.subpopulations[b].shape == archive[f"individuals.{b}"].shape == expected
        assert (archive["counts"] <= size).all()
        assert archive["counts"].any()
    assert sizes == [12, 11, 10, 9, 8, 7, 6, 5]
    assert len(orders) == 4
    assert state.best_validation > state.history.rows[0, 5]


def test_random_groups_of_everything_are_one_population(make_classification_data):
    inputs, targets = make_classification_data(np.random.default_rng(2))
    arguments = (inputs[:40], targets[:40], inputs[40:], targets[40:])
    result = evolve(
        *arguments, hidden_layer_sizes=(3,), decomposition=RandomGroups(10**6, 1),
        batch_size=20, max_generations=3, seed=1,
    )  # fmt: skip
    assert result.evaluations == 20 + 3 * 2 * 20


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"size": 0}, ValueError, "size must be at least 1, got 0"),
        ({"size": 2.5}, TypeError, "size must be a whole number, got 2.5"),
        ({"redraw_every": 0}, ValueError, "redraw_every must be at least 1, got 0"),
        ({"redraw_every": None}, TypeError, "redraw_every must be a whole number"),
    ],
)
def test_bad_settings_are_named(change, error, message):
    with pytest.raises(error, match=message):
        RandomGroups(**change)
