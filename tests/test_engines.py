"""The engines against the reference: the same decisions, the same network, over whole runs."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_classification_data
from test_operators import make_contest

from coevo import Settings, evolve, threads
from coevo.decomposition import decompose
from coevo.evaluation import Data, measuring
from coevo.evaluation import batched as batched_module
from coevo.evaluation import reaching as reaching_module
from coevo.evaluation import sums as sums_module
from coevo.evaluation.batched import BatchedEvaluator
from coevo.evaluation.delta import DeltaEvaluator
from coevo.evaluation.reference import ReferenceEvaluator
from coevo.fitness import (
    FITNESSES,
    AbsoluteError,
    Accuracy,
    ClippedMargin,
    CrossEntropy,
    CustomFitness,
    FBeta,
    Profit,
    SquaredError,
)
from coevo.network import ACTIVATIONS, Architecture
from coevo.search import Search
from coevo.variants import VARIANTS, variant_settings


def make_parts(n_classes, hidden_layer_sizes, n_instances=240, dtype="float64", activation="tanh"):
    rng = np.random.default_rng([n_classes, *hidden_layer_sizes])
    inputs, targets = make_classification_data(rng, n_instances, 6, n_classes)
    inputs = inputs.astype(dtype)
    n_train = n_instances * 2 // 3
    training = Data(inputs[:n_train], targets[:n_train])
    validation = Data(inputs[n_train:], targets[n_train:])
    return Architecture(6, hidden_layer_sizes, n_classes, activation), training, validation


def run(engine, parts, settings, fitness):
    """A whole run, with every accept/reject decision."""
    architecture, training, validation = parts
    decomposition = decompose(settings.decomposition, architecture, settings.group_size)
    evaluator = engine(architecture, decomposition, fitness, training, validation)
    decisions = []
    search = Search(
        evaluator, decomposition, settings,
        callbacks=[lambda search: decisions.append(search.state.fitness.copy())],
    )  # fmt: skip
    search.run()
    return search.state, decisions


def assert_same_run(engine, parts, settings, fitness=Accuracy(), rtol=0.0):  # noqa: B008
    """Compare with the reference: decisions and networks exactly, fitness to within rtol."""
    expected, expected_decisions = run(ReferenceEvaluator, parts, settings, fitness)
    state, decisions = run(engine, parts, settings, fitness)
    # Fitness carries the whole past: one different decision and it differs ever after.
    for decided, expected_decided in zip(decisions, expected_decisions, strict=True):
        np.testing.assert_allclose(decided, expected_decided, rtol=rtol)
    for ours, theirs in zip(state.subpopulations, expected.subpopulations, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(state.best_network, expected.best_network)
    np.testing.assert_array_equal(state.champions, expected.champions)
    columns = [0, 1, 3, 4, 5]  # all but the seconds
    np.testing.assert_allclose(
        state.history.rows[:, columns], expected.history.rows[:, columns], rtol=rtol
    )
    assert expected.history.latest.best_validation > expected.history.rows[0, 5]


def settings_for(variant, hidden_layer_sizes, **changes):
    defaults = {
        "hidden_layer_sizes": hidden_layer_sizes,
        "population_size": 8,
        "batch_size": 40,
        "max_evaluations": None,
        "max_generations": 9,
        "seed": 11,
        "dtype": "float64",
        "representative": "best",
    }
    return variant_settings(variant, **defaults | changes)  # fmt: skip


def engine_for(variant):
    return DeltaEvaluator if VARIANTS[variant]["decomposition"] == "neuron" else BatchedEvaluator


@pytest.mark.parametrize("n_classes", [2, 3, 6, 10, 26])
@pytest.mark.parametrize("hidden_layer_sizes", [(), (7,), (6, 5), (5, 4, 3)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_whole_runs_are_identical(variant, hidden_layer_sizes, n_classes):
    parts = make_parts(n_classes, hidden_layer_sizes)
    # Evolving whole networks is slower to find something better.
    n_generations = 9 if engine_for(variant) is DeltaEvaluator else 60
    settings = settings_for(variant, hidden_layer_sizes, max_generations=n_generations)
    assert_same_run(engine_for(variant), parts, settings)


@pytest.mark.parametrize("hidden_layer_sizes", [(), (7,), (6, 5), (5, 4, 3)])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_when_means_represent(variant, hidden_layer_sizes):
    parts = make_parts(4, hidden_layer_sizes)
    settings = settings_for(variant, hidden_layer_sizes, representative="mean")
    assert_same_run(DeltaEvaluator, parts, settings)


@pytest.mark.parametrize("short", [0.0, 1.0])  # multiply all instances, or those in reach only
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_for_every_activation(
    variant, hidden_layer_sizes, activation, short, monkeypatch
):
    monkeypatch.setattr(reaching_module, "_SHORT", short)
    parts = make_parts(4, hidden_layer_sizes, activation=activation)
    settings = settings_for(variant, hidden_layer_sizes, activation=activation)
    assert_same_run(DeltaEvaluator, parts, settings)


@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_on_several_blocks_of_instances(variant, monkeypatch):
    monkeypatch.setattr(reaching_module, "_SHORT", 1.0)
    parts = make_parts(4, (7,), n_instances=2000)  # blocks hold 512
    assert_same_run(DeltaEvaluator, parts, settings_for(variant, (7,), batch_size=600))


@pytest.mark.parametrize("short", [0.2, 1.0])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "sign"])
@pytest.mark.parametrize("fitness", [FBeta(2.0, "macro"), Profit(np.eye(4) + 0.5)])
def test_whole_runs_are_identical_for_counts_of_classes(fitness, activation, short, monkeypatch):
    monkeypatch.setattr(reaching_module, "_SHORT", short)
    parts = make_parts(4, (7,), activation=activation)
    settings = settings_for("LECCDE", (7,), activation=activation)
    assert_same_run(DeltaEvaluator, parts, settings, fitness)


@pytest.mark.parametrize("representative", ["best", "mean"])
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("fitness", [CrossEntropy(), ClippedMargin(0.5)])
def test_whole_runs_are_alike_for_graded_measures(
    fitness, variant, hidden_layer_sizes, representative
):
    settings = settings_for(variant, hidden_layer_sizes, representative=representative)
    parts = make_parts(4, hidden_layer_sizes)
    assert_same_run(DeltaEvaluator, parts, settings, fitness, rtol=1e-9)


@pytest.mark.parametrize("representative", ["best", "mean"])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("fitness", [SquaredError(), AbsoluteError()])
def test_whole_runs_are_alike_for_errors(fitness, n_outputs, variant, representative):
    _, *parts = make_parts(2, (7,))
    slopes = np.random.default_rng(n_outputs).normal(size=(6, n_outputs))
    parts = [replace(part, targets=np.sin(part.inputs @ slopes)) for part in parts]
    settings = settings_for(variant, (7,), representative=representative)
    whole = (Architecture(6, (7,), n_outputs, "tanh"), *parts)
    assert_same_run(DeltaEvaluator, whole, settings, fitness, rtol=1e-9)


@pytest.mark.without_jit
@pytest.mark.parametrize(
    "changes", [{"representative": "mean"}, {"synchronous": False, "max_generations": 4}]
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_when_steps_are_shared_out(
    variant, n_threads, changes, monkeypatch
):
    monkeypatch.setattr(reaching_module, "_SHORT", 1.0)
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**8)
    parts = make_parts(4, (7,))
    with threads.limit(n_threads):
        assert_same_run(DeltaEvaluator, parts, settings_for(variant, (7,), **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"synchronous": False, "max_generations": 4},
        {"synchronous": False, "max_generations": 4, "representative": "mean"},
        {"strategy": "best/1", "crossover": "exponential"},
        {"strategy": "current-to-best/1"},
        {"accept_ties": False},
        {"strategy": "rand/2", "reshuffle_batches": True},
        {"initial_range": 0.01, "scale_initial_range": False, "seed": 3},  # most seeds stand still
        {"initial_range": 100.0, "scale_initial_range": False},
        {"control": "dither", "weight_decay": 0.01},
        {"control": "jde", "final_population_size": 4},
        {"control": "shade", "strategy": "current-to-pbest/1", "final_population_size": 4},
        {"control": "shade", "synchronous": False, "max_generations": 4},
        {"strategy": "current-to-pbest/1", "synchronous": False, "max_generations": 4},
    ],
)
@pytest.mark.parametrize("variant", ["CCDE", pytest.param("LECCDE", marks=pytest.mark.without_jit)])
def test_whole_runs_are_identical_for_other_settings(variant, changes):
    parts = make_parts(4, (7,))
    assert_same_run(DeltaEvaluator, parts, settings_for(variant, (7,), **changes))


@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("block", [1, 500, 2000])
def test_blocks_do_not_change_the_run(monkeypatch, variant, hidden_layer_sizes, block):
    """Room for one candidate, for a few, for a few neurons at a time."""
    monkeypatch.setattr(reaching_module, "_SHORT", 0.0)
    monkeypatch.setattr(sums_module, "BLOCK_ELEMENTS", block)
    parts = make_parts(4, hidden_layer_sizes)
    assert_same_run(DeltaEvaluator, parts, settings_for(variant, hidden_layer_sizes))


@pytest.mark.parametrize("variant", ["DE", "LEDE"])
@pytest.mark.parametrize("hidden_layer_sizes", [(), (7,), (6, 5)])
@pytest.mark.parametrize(("n_rows", "n_instances"), [(1, 7), (20, 7), (20, 1000)])
def test_blocks_do_not_change_the_run_of_whole_networks(
    monkeypatch, variant, hidden_layer_sizes, n_rows, n_instances
):
    """One network or some at a time, on some instances or all."""
    monkeypatch.setattr(batched_module, "_ROWS", n_rows)
    monkeypatch.setattr(batched_module, "_BLOCK", 1)
    monkeypatch.setattr(batched_module, "_LEAST_STEP", n_instances)
    parts = make_parts(4, hidden_layer_sizes)
    settings = settings_for(variant, hidden_layer_sizes, max_generations=40)
    assert_same_run(BatchedEvaluator, parts, settings)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("decomposition", ["layer", "custom"])
def test_batched_serves_every_decomposition(decomposition, limited):
    parts = make_parts(4, (6, 5))
    if decomposition == "custom":
        genes = np.random.default_rng(1).permutation(parts[0].n_genes)
        decomposition = np.array_split(genes, 7)
    settings = Settings(
        hidden_layer_sizes=(6, 5), decomposition=decomposition, limited_evaluation=limited,
        population_size=8, batch_size=40, max_evaluations=None, max_generations=9, seed=4,
        dtype="float64",
    )  # fmt: skip
    assert_same_run(BatchedEvaluator, parts, settings)


def test_batched_serves_neuron_too():
    assert_same_run(BatchedEvaluator, make_parts(4, (6, 5)), settings_for("LECCDE", (6, 5)))


def test_delta_says_what_it_serves():
    architecture, training, validation = make_parts(3, (4,))
    with pytest.raises(ValueError, match="serves decomposition='neuron', not 'layer'"):
        DeltaEvaluator(
            architecture, decompose("layer", architecture), Accuracy(), training, validation
        )


MEASURES = [
    *FITNESSES.values(),
    FBeta(2.0, "macro"),
    ClippedMargin(0.5),
    Profit(np.arange(16).reshape(4, 4)),
    SquaredError((0.5, 2.0, 30.0, 1.0)),
    AbsoluteError((0.5, 2.0, 30.0, 1.0)),
    CustomFitness(lambda targets, outputs: outputs[np.arange(len(targets)), targets].mean()),
]


def assert_measured_alike(engines, parts, decomposition, measure, is_weighted):
    """Every block's candidates, before and after moves, on training and validation data.

    The engines are compared with the first one. is_weighted: whether training and validation
    instances have weights.
    """
    architecture, training, validation = parts
    rng = np.random.default_rng(8)
    if measure.task == "regression":
        training = replace(training, targets=rng.normal(size=(len(training), 4)))
        validation = replace(validation, targets=rng.normal(size=(len(validation), 4)))
    if all(is_weighted) and isinstance(measure, CustomFitness):
        measure = CustomFitness(lambda y, outputs, weights: weights @ outputs[np.arange(len(y)), y])
    if is_weighted[0]:
        training = replace(training, weights=rng.uniform(0.1, 2, len(training)))
    if is_weighted[1]:
        validation = replace(validation, weights=rng.uniform(0.1, 2, len(validation)))
    engines = [
        engine(architecture, decomposition, measure, training, validation) for engine in engines
    ]
    for engine in engines:
        engine.rebase(np.linspace(-1, 1, architecture.n_genes), slice(0, 50))
    for block in decomposition.blocks:
        vectors = rng.normal(size=(len(block), 6, decomposition.sizes[block.start]))
        contests = [
            make_contest(
                vectors[:, :3].copy(), vectors[:, 3:],
                champions=np.full(len(block), 7), from_targets=np.full((len(block), 3), 0.01),
            )
            for _ in engines
        ]  # fmt: skip
        for engine, contest in zip(engines, contests, strict=True):
            engine.sweep(block, contest)
            np.testing.assert_allclose(contest.fitness, contests[0].fitness, rtol=1e-9)
            np.testing.assert_array_equal(contest.champions, contests[0].champions)
            np.testing.assert_array_equal(contest.wins, contests[0].wins)
    expected, *others = (engine.evaluate_global_solution() for engine in engines)
    expected_moves, *others_moves = (engine.validate() for engine in engines)
    assert len(expected_moves) == len(decomposition)
    for now, moves in zip(others, others_moves, strict=True):
        np.testing.assert_allclose(now, expected, rtol=1e-9)
        np.testing.assert_allclose(moves, expected_moves, rtol=1e-9)


@pytest.mark.parametrize("is_weighted", [(False, False), (True, True)], ids=["", "weighted"])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
@pytest.mark.parametrize(
    "hidden_layer_sizes", [(), pytest.param((7,), marks=pytest.mark.without_jit), (6, 5)]
)
def test_every_measure_is_the_references(hidden_layer_sizes, measure, is_weighted, monkeypatch):
    monkeypatch.setattr(reaching_module, "_SHORT", 0.0)
    parts = make_parts(4, hidden_layer_sizes)
    engines = (ReferenceEvaluator, DeltaEvaluator, BatchedEvaluator)
    assert_measured_alike(engines, parts, decompose("neuron", parts[0]), measure, is_weighted)


@pytest.mark.parametrize("is_weighted", [(False, True), (True, False)])
@pytest.mark.parametrize("measure", [Accuracy(), CrossEntropy()])
def test_weights_of_either_part_count_by_themselves(measure, is_weighted):
    parts = make_parts(4, (7,))
    engines = (ReferenceEvaluator, DeltaEvaluator, BatchedEvaluator)
    assert_measured_alike(engines, parts, decompose("neuron", parts[0]), measure, is_weighted)


@pytest.mark.parametrize(
    "ours", [Accuracy, FBeta, CrossEntropy, ClippedMargin, SquaredError, AbsoluteError]
)
def test_a_users_own_kind_of_a_measure_is_measured_as_it_says(ours):
    class Cubed(ours):
        def __call__(self, outputs, targets, weights=None):
            return ours.__call__(self, outputs, targets, weights) ** 3

    parts = make_parts(4, (7,))
    engines = (ReferenceEvaluator, DeltaEvaluator, BatchedEvaluator)
    decomposition = decompose("neuron", parts[0])
    assert_measured_alike(engines, parts, decomposition, Cubed(), (False, False))


COUNTED_MEASURES = [measure for measure in MEASURES if isinstance(measure, measuring.COUNTED)]


@pytest.mark.parametrize("measure", COUNTED_MEASURES, ids=lambda measure: measure.name)
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
def test_measures_that_count_are_the_references_in_reach(hidden_layer_sizes, measure, monkeypatch):
    monkeypatch.setattr(reaching_module, "_SHORT", 1.0)
    parts = make_parts(4, hidden_layer_sizes)
    decomposition = decompose("neuron", parts[0])
    assert_measured_alike(
        (ReferenceEvaluator, DeltaEvaluator), parts, decomposition, measure, (False, False)
    )


@pytest.mark.parametrize("short", [0.0, 1.0])
@pytest.mark.parametrize("hidden_layer_sizes", [(20,), (12, 10)])
def test_float32_differs_only_where_the_margin_is_below_rounding(
    hidden_layer_sizes, short, monkeypatch
):
    monkeypatch.setattr(reaching_module, "_SHORT", short)
    architecture, training, validation = make_parts(6, hidden_layer_sizes, 600, dtype="float32")
    decomposition = decompose("neuron", architecture)
    evaluator = DeltaEvaluator(architecture, decomposition, Accuracy(), training, validation)
    rng = np.random.default_rng(3)
    genotype = rng.uniform(-4, 4, architecture.n_genes).astype(np.float32)
    evaluator.rebase(genotype, slice(0, len(training)))
    evaluator.evaluate_global_solution()
    exact = genotype.astype(np.float64)
    sums = training.inputs.astype(np.float64) @ architecture.matrices(exact)[0][:, :-1].T
    np.testing.assert_allclose(
        evaluator._surroundings.sums[0],
        sums.T + architecture.matrices(exact)[0][:, -1:],
        rtol=1e-5, atol=1e-4,
    )  # fmt: skip
    for block in decomposition.blocks:
        shape = (len(block), 12, decomposition.sizes[block.start])
        trials = rng.uniform(-4, 4, shape).astype(np.float32)
        measured = measure_block(evaluator, block, trials)
        for k, i in enumerate(block):
            for j in range(12):
                network = exact.copy()
                network[decomposition.groups[i]] = trials[k, j]
                outputs = architecture.forward(network, training.inputs.astype(np.float64))
                top_two = np.sort(outputs, axis=1)[:, -2:]
                is_clear = top_two[:, 1] - top_two[:, 0] > 1e-4
                right = outputs.argmax(axis=1) == training.targets
                count = round(measured[k, j] * len(training))
                assert (right & is_clear).sum() <= count <= (right | ~is_clear).sum()


def measure_block(evaluator, block, trials):
    """Sweep a block without choosing champions; every trial wins and leaves its fitness behind."""
    contest = make_contest(
        np.zeros_like(trials),
        trials,
        from_targets=np.full(trials.shape[:2], -1.0),
        measures_targets=False,
        completes=False,
    )
    evaluator.sweep(block, contest)
    return contest.fitness


def test_validation_state_follows_a_new_global_solution():
    """An engine may be given another global solution than the one it moved to itself."""
    architecture, training, validation = make_parts(3, (5,))
    decomposition = decompose("neuron", architecture)
    arguments = (architecture, decomposition, Accuracy(), training, validation)
    rng = np.random.default_rng(2)
    solutions = rng.normal(size=(3, architecture.n_genes))
    vectors = rng.normal(size=(3, 5, 1, 7))
    answers = []
    for engine in (ReferenceEvaluator(*arguments), DeltaEvaluator(*arguments)):
        for solution, vector in zip(solutions, vectors, strict=True):
            engine.rebase(solution, slice(0, 30))
            engine.stage(decomposition.blocks[0], (vector,))
            engine.replace(2, vector[2, 0], None)
            answers.append(engine.validate().tolist())
    assert answers[:3] == answers[3:]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_do_not_change_the_result(n_threads):
    _, training, validation = make_parts(4, (6,), 3000, dtype="float32")
    results = [
        evolve(
            training.inputs, training.targets, validation.inputs, validation.targets,
            variant="LEDE", hidden_layer_sizes=(6,), max_evaluations=600, seed=1,
            n_threads=n, batch_size=2000,
        )
        for n in (1, n_threads)
    ]  # fmt: skip
    np.testing.assert_array_equal(results[0].network.genotype, results[1].network.genotype)


@pytest.mark.parametrize("fitness", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_steps_shared_out_do_not_change_the_result(variant, fitness, monkeypatch):
    """In float32, where the order of a sum would show."""
    monkeypatch.setattr(reaching_module, "_SHORT", 1.0)
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**8)
    _, training, validation = make_parts(4, (6,), 3000, dtype="float32")
    networks = [
        evolve(
            training.inputs, training.targets, validation.inputs, validation.targets,
            variant=variant, hidden_layer_sizes=(6,), max_generations=5, seed=1,
            n_threads=n, batch_size=1100, fitness=fitness, population_size=7,
        ).network.genotype
        for n in (1, 3)
    ]  # fmt: skip
    np.testing.assert_array_equal(*networks)


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("fitness", ["accuracy", "cross_entropy"])
def test_work_done_ahead_on_other_cores_does_not_change_the_result(fitness, n_threads):
    """The surroundings, the products and the validation are large enough to be handed over."""
    _, training, validation = make_parts(120, (40, 6), 2500, dtype="float32")
    results = [
        evolve(
            training.inputs, training.targets, validation.inputs, validation.targets,
            variant="LECCDE", hidden_layer_sizes=(40, 6), max_generations=2, seed=1,
            n_threads=n, batch_size=1200, fitness=fitness, population_size=6,
        )
        for n in (1, n_threads)
    ]  # fmt: skip
    np.testing.assert_array_equal(results[0].network.genotype, results[1].network.genotype)
    validations = [result.history.columns()["validation_fitness"] for result in results]
    np.testing.assert_array_equal(*validations)


@pytest.mark.parametrize("grain", [0, 1, 7])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_cuts_cover_every_item_once_and_come_to_an_end(n_items, grain):
    with threads.limit(3):
        ranges = threads.cut_ahead(range(5, 5 + n_items), grain)
    assert [item for items in ranges for item in items] == list(range(5, 5 + n_items))


@pytest.mark.parametrize("evenly", [True, False])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_shared_work_covers_every_item_once(evenly, n_items):
    seen = np.zeros(n_items, dtype=int)

    def count(start, stop):
        seen[start:stop] += 1

    with threads.limit(2) as n_threads:
        assert n_threads == 2
        threads.share_out(count, len(seen), grain=10, evenly=evenly)
    assert (seen == 1).all()


@pytest.mark.parametrize("evenly", [True, False])
def test_shared_work_passes_errors_on(evenly):
    def fail(start, stop):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("in another thread")
        time.sleep(0.05)  # so that another thread has the time to take its part

    with threads.limit(2), pytest.raises(RuntimeError, match="in another thread"):
        threads.share_out(fail, 100, grain=1, evenly=evenly)


@pytest.mark.parametrize("size", [1, threads.LARGE_PRODUCT])
def test_work_begun_elsewhere_gives_its_result_or_its_error(size):
    with threads.limit(2):
        assert threads.begin(lambda: 3, size)() == 3
        with pytest.raises(ZeroDivisionError):
            threads.begin(lambda: 1 // 0, size)()
        began_by = threads.begin(threading.current_thread, size)()
        assert (began_by is threading.current_thread()) == (size == 1)


def test_limit_is_undone():
    before = threads.available_threads()
    with threads.limit(1):
        assert threads.available_threads() == 1
    assert threads.available_threads() == before
