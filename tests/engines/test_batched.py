"""Full passes of many networks against the reference."""

import numpy as np
import pytest

from coevo import evolve
from coevo.core.decomposition import RandomGroups, decompose
from coevo.engines import passes, replacements
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.reference import ReferenceEvaluator


@pytest.mark.parametrize("n_classes", [2, 3, 6, 10, 26])
@pytest.mark.parametrize("hidden_layer_sizes", [(), (7,), (6, 5), (5, 4, 3)])
@pytest.mark.parametrize("variant", ["DE", "LEDE"])
def test_whole_runs_are_identical(
    make_problem, settings_for, assert_same_run, variant, hidden_layer_sizes, n_classes
):
    # Evolving whole networks is slow to find something better.
    settings = settings_for(hidden_layer_sizes, variant, max_generations=60)
    assert_same_run(BatchedEvaluator, make_problem(n_classes, hidden_layer_sizes), settings)


@pytest.mark.parametrize("variant", ["DE", "LEDE"])
@pytest.mark.parametrize("hidden_layer_sizes", [(), (7,), (6, 5)])
@pytest.mark.parametrize(("n_rows", "n_instances"), [(1, 7), (20, 7), (20, 1000)])
def test_blocks_do_not_change_the_run_of_whole_networks(
    make_problem, settings_for, assert_same_run, monkeypatch, variant, hidden_layer_sizes, n_rows,
    n_instances,
):  # fmt: skip
    """One network or some at a time, on some instances or all."""
    monkeypatch.setattr(passes, "_ROWS", n_rows)
    monkeypatch.setattr(passes, "_BLOCK", 1)
    monkeypatch.setattr(passes, "_LEAST_STEP", n_instances)
    settings = settings_for(hidden_layer_sizes, variant, max_generations=40)
    assert_same_run(BatchedEvaluator, make_problem(4, hidden_layer_sizes), settings)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("decomposition", ["layer", "custom"])
def test_every_decomposition_is_served(
    make_problem, settings_for, assert_same_run, decomposition, limited
):
    problem = make_problem(4, (6, 5))
    if decomposition == "custom":
        genes = np.random.default_rng(1).permutation(problem[0].n_genes)
        decomposition = np.array_split(genes, 7)
    settings = settings_for((6, 5), decomposition=decomposition, limited_evaluation=limited)
    assert_same_run(BatchedEvaluator, problem, settings)


@pytest.mark.parametrize("name", ["neuron", "parts of neurons", "some outgoing"])
def test_what_the_delta_engine_serves_is_served_too(
    make_problem, settings_for, assert_same_run, find_groups, name
):
    problem = make_problem(4, (6, 5))
    settings = settings_for((6, 5), decomposition=find_groups(name, problem[0]))
    assert_same_run(BatchedEvaluator, problem, settings)


@pytest.mark.parametrize(("hidden_layer_sizes", "limited"), [((7,), True), ((6, 5), False)])
def test_whole_runs_with_random_groups_are_identical(
    make_problem, settings_for, assert_same_run, hidden_layer_sizes, limited
):
    settings = settings_for(
        hidden_layer_sizes, decomposition=RandomGroups(size=9, redraw_every=3),
        limited_evaluation=limited, max_generations=10,
    )  # fmt: skip
    assert_same_run(BatchedEvaluator, make_problem(4, hidden_layer_sizes), settings)


def test_a_single_group_may_have_any_order(make_problem, settings_for, assert_same_run):
    """A vector of all genes is not a network unless its genes are in the genotype's order."""
    problem = make_problem(3, (5,))
    backwards = [np.arange(problem[0].n_genes)[::-1]]
    settings = settings_for((5,), decomposition=backwards, max_generations=40)
    assert_same_run(BatchedEvaluator, problem, settings)


@pytest.mark.parametrize("n_genes", [1, 500])
def test_validating_a_few_replacements_at_a_time_does_not_change_the_run(
    make_problem, settings_for, assert_same_run, monkeypatch, n_genes
):
    monkeypatch.setattr(replacements, "_MOST_GENES", n_genes)
    settings = settings_for((7,), decomposition="neuron")
    assert_same_run(BatchedEvaluator, make_problem(4, (7,)), settings)


@pytest.mark.parametrize("is_weighted", [(False, False), (True, True)], ids=["", "weighted"])
def test_every_metric_is_the_references(make_problem, assert_measured_alike, metric, is_weighted):
    problem = make_problem(4, (4, 3), 90)
    decomposition = decompose("layer", problem[0])
    engines = (ReferenceEvaluator, BatchedEvaluator)
    assert_measured_alike(engines, problem, decomposition, metric, is_weighted)


@pytest.mark.parametrize("fitness", ["cross_entropy", "roc_auc"])
def test_threads_do_not_change_the_result(make_problem, fitness):
    _, training, validation = make_problem(4, (6,), 3000, dtype="float32")
    results = [
        evolve(
            training.inputs, training.targets, validation.inputs, validation.targets,
            variant="LEDE", hidden_layer_sizes=(6,), max_evaluations=600, seed=1,
            n_threads=n, batch_size=2000, fitness=fitness,
        )
        for n in (1, 2)
    ]  # fmt: skip
    np.testing.assert_array_equal(results[0].network.genotype, results[1].network.genotype)
