"""Random groups: what redrawing keeps, and what it does to fitness and champions."""

import numpy as np
import pytest
from conftest import make_classification_data
from hypothesis import given
from hypothesis import strategies as st
from test_network import architectures

from coevo import Settings, evolve
from coevo.decomposition import decompose
from coevo.evaluation import Data
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import Accuracy
from coevo.network import Architecture
from coevo.regrouping import recut
from coevo.search import Search

seeds = st.integers(0, 2**32 - 1)


def compose(decomposition, subpopulations, chosen):
    network = np.empty(len(decomposition.layer_of_gene))
    individuals = [x for part in subpopulations for x in part]
    for i, group in enumerate(decomposition.groups):
        network[group] = individuals[i][chosen[i]]
    return network


@given(architectures, st.integers(1, 30), st.integers(4, 9), seeds)
def test_redrawing_keeps_the_global_solution_and_the_genes(architecture, group_size, size, seed):
    rng = np.random.default_rng(seed)
    n_genes = architecture.n_genes
    start = decompose("random", architecture, group_size)
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


def test_fitness_after_redrawing_by_hand():
    """A weight and a bias for each of two outputs, cut into {0, 1}, {2, 3}, then {0, 2}, {1, 3}."""
    start = decompose("random", Architecture(1, (), 2), 2)
    before, after = start.redraw(np.array([0, 1, 2, 3])), start.redraw(np.array([0, 2, 1, 3]))
    individuals = np.array([[[1, 2], [3, 4], [5, 6]], [[10, 20], [30, 40], [50, 60]]])
    fitness = np.array([[0.1, 0.5, 0.3], [0.6, 0.2, 0.4]])
    (parts,), new_fitness = recut([individuals], fitness, np.array([1, 0]), before, after)
    # Individual 1 of the first subpopulation is its champion and changes places with individual 0.
    np.testing.assert_array_equal(parts[0], [[3, 10], [1, 30], [5, 50]])
    np.testing.assert_array_equal(parts[1], [[4, 20], [2, 40], [6, 60]])
    np.testing.assert_allclose(new_fitness, [[0.55, 0.15, 0.35]] * 2)


def make_search(**changes):
    inputs, targets = make_classification_data(np.random.default_rng(2))
    defaults = {
        "hidden_layer_sizes": (4,), "decomposition": "random", "group_size": 5,
        "redraw_groups_every": 3, "population_size": 6, "batch_size": 20,
        "max_evaluations": None, "max_generations": 7, "seed": 3, "representative": "best",
    }  # fmt: skip
    settings = Settings(**defaults | changes)
    architecture = Architecture(4, (4,), 3)
    decomposition = decompose("random", architecture, settings.group_size)
    data = Data(inputs.astype(np.float32), targets)
    evaluator = ReferenceEvaluator(architecture, decomposition, Accuracy(), data, data)
    return Search(evaluator, decomposition, settings)


def test_groups_are_redrawn_every_so_many_generations():
    search = make_search()
    orders = [tuple(search.state.gene_order)]
    for _ in search:
        orders.append(tuple(search.state.gene_order))
    # Generations 1–3 share the first groups, 4–6 the second, 7 has the third.
    assert [orders.index(order) for order in orders[1:]] == [0, 0, 0, 4, 4, 4, 7]


@pytest.mark.parametrize("limited", [True, False])
def test_the_champions_make_the_global_solution_in_every_generation(limited):
    search = make_search(limited_evaluation=limited)
    for _ in search:
        state = search.state
        np.testing.assert_array_equal(search._compose(state.champions), state.global_solution)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.25])
def test_targets_without_a_measured_fitness_are_measured(limited, weight_decay):
    """With full evaluation a generation after redrawing costs twice as much, and is exact."""
    search = make_search(limited_evaluation=limited, weight_decay=weight_decay)
    spent = []
    for generation in search:
        spent.append(generation.evaluations)
        if not limited and generation.generation in (4, 7):
            last = len(search.decomposition) - 1
            # The last subpopulation was measured in the global solution as it is now.
            network = search.state.global_solution.copy()
            for j, individual in enumerate(search.state.subpopulations[-1][-1]):
                network[search.decomposition.groups[last]] = individual
                measured = search.evaluator.evaluate_networks(network[np.newaxis], slice(0, 60))
                expected = measured[0] - weight_decay * (individual**2).mean()
                assert search.state.fitness[last, j] == pytest.approx(expected, rel=1e-5)
    each = len(search.decomposition) * 6
    costs = np.diff(spent)
    expected = [2, 2, 2, 2, 2, 2] if limited else [1, 1, 2, 1, 1, 2]
    np.testing.assert_array_equal(costs, np.array(expected) * each)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("control", ["jde", "shade"])
def test_archives_and_what_is_learnt_begin_afresh_with_new_groups(control, limited):
    search = make_search(
        control=control, strategy="current-to-pbest/1", redraw_probability=0.5,
        limited_evaluation=limited, max_generations=3,
    )  # fmt: skip
    search.run()
    state = search.state
    fresh = search.control.begin(*state.fitness.shape)
    assert state.n_archived.any()
    assert not np.array_equal(state.control["scale_factors"], fresh["scale_factors"])
    search._redraw_groups()
    assert not state.n_archived.any()
    for archive, genes in zip(state.archives, search.decomposition.genes_of_blocks, strict=True):
        assert archive.shape == (len(genes), 6, genes.shape[1])
    assert state.control.keys() == fresh.keys()
    for name, learnt in state.control.items():
        np.testing.assert_array_equal(learnt, fresh[name])


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("control", ["fixed", "jde", "shade"])
def test_subpopulations_of_random_groups_shrink(control, limited, synchronous):
    search = make_search(
        control=control, strategy="current-to-pbest/1", limited_evaluation=limited,
        synchronous=synchronous, redraw_groups_every=2, population_size=12,
        final_population_size=4, max_generations=8,
    )  # fmt: skip
    state, sizes, orders = search.state, [], set()
    for _ in search:
        size = state.fitness.shape[1]
        sizes.append(size)
        orders.add(tuple(state.gene_order))
        np.testing.assert_array_equal(state.champions, state.fitness.argmax(axis=1))
        np.testing.assert_array_equal(search._compose(state.champions), state.global_solution)
        for part, archive, genes in zip(
            state.subpopulations, state.archives, search.decomposition.genes_of_blocks, strict=True
        ):
            assert part.shape == archive.shape == (len(genes), size, genes.shape[1])
        assert (state.n_archived <= size).all()
        assert state.n_archived.any()
    assert sizes == [12, 11, 10, 9, 8, 7, 6, 5]
    assert len(orders) == 4
    assert state.best_validation > state.history.rows[0, 5]


def test_random_groups_of_everything_are_one_population():
    inputs, targets = make_classification_data(np.random.default_rng(2))
    arguments = (inputs[:40], targets[:40], inputs[40:], targets[40:])
    result = evolve(
        *arguments, hidden_layer_sizes=(3,), decomposition="random", group_size=10**6,
        redraw_groups_every=1, batch_size=20, max_generations=3, seed=1,
    )  # fmt: skip
    assert result.evaluations == 20 + 3 * 2 * 20


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"group_size": 0}, ValueError, "group_size must be at least 1, got 0"),
        ({"group_size": 2.5}, TypeError, "group_size must be a whole number, got 2.5"),
        ({"redraw_groups_every": 0}, ValueError, "redraw_groups_every must be at least 1, got 0"),
        ({"redraw_groups_every": None}, TypeError, "redraw_groups_every must be a whole number"),
    ],
)
def test_bad_settings_are_named(change, error, message):
    with pytest.raises(error, match=message):
        Settings(decomposition="random", **change)
