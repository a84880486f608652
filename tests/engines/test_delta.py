"""The delta engine against the reference: the same decisions, the same network, over whole runs."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from coevo import Strategy, evolve
from coevo.core.decomposition import decompose
from coevo.core.evaluator import Data
from coevo.core.metrics import (
    AbsoluteError,
    Accuracy,
    ClippedMargin,
    CrossEntropy,
    FBeta,
    Profit,
    RocAuc,
    SquaredError,
    make_metric,
)
from coevo.core.network import ACTIVATIONS, Architecture
from coevo.engines import candidates as candidates_module
from coevo.engines import open_instances
from coevo.engines import validation as validation_module
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.delta import DeltaEvaluator
from coevo.engines.passes import Scratch
from coevo.engines.reference import ReferenceEvaluator
from coevo.runtime import threads

LAYERS = [(), (7,), (6, 5), (5, 4, 3)]
ENGINES = (ReferenceEvaluator, DeltaEvaluator, BatchedEvaluator)

# ---------------------------------------------------------------------------------- whole neurons


@pytest.mark.parametrize("n_classes", [2, 3, 6, 10, 26])
@pytest.mark.parametrize("hidden_layer_sizes", LAYERS)
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical(
    make_problem, settings_for, assert_same_run, variant, hidden_layer_sizes, n_classes
):
    problem = make_problem(n_classes, hidden_layer_sizes)
    assert_same_run(DeltaEvaluator, problem, settings_for(hidden_layer_sizes, variant))


@pytest.mark.parametrize("hidden_layer_sizes", LAYERS)
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_when_means_represent(
    make_problem, settings_for, assert_same_run, variant, hidden_layer_sizes
):
    settings = settings_for(hidden_layer_sizes, variant, representative="mean")
    assert_same_run(DeltaEvaluator, make_problem(4, hidden_layer_sizes), settings)


@pytest.mark.parametrize("few", [0.0, 1.0])  # multiply with all instances, or with open ones only
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_for_every_activation(
    make_problem, settings_for, assert_same_run, variant, hidden_layer_sizes, activation, few,
    monkeypatch,
):  # fmt: skip
    monkeypatch.setattr(open_instances, "_FEW", few)
    problem = make_problem(4, hidden_layer_sizes, activation=activation)
    settings = settings_for(hidden_layer_sizes, variant, activation=activation)
    assert_same_run(DeltaEvaluator, problem, settings)


@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_on_several_blocks_of_instances(
    make_problem, settings_for, assert_same_run, variant, monkeypatch
):
    monkeypatch.setattr(open_instances, "_FEW", 1.0)
    problem = make_problem(4, (7,), n_instances=2000)  # blocks hold 512
    assert_same_run(DeltaEvaluator, problem, settings_for((7,), variant, batch_size=600))


@pytest.mark.parametrize("few", [0.2, 1.0])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "sign"])
@pytest.mark.parametrize("counted", [FBeta(2.0, "macro"), Profit(np.eye(4) + 0.5)])
def test_whole_runs_are_identical_for_confusion_matrices(
    make_problem, settings_for, assert_same_run, counted, activation, few, monkeypatch
):
    monkeypatch.setattr(open_instances, "_FEW", few)
    problem = make_problem(4, (7,), activation=activation)
    settings = settings_for((7,), "LECCDE", activation=activation)
    assert_same_run(DeltaEvaluator, problem, settings, counted)


@pytest.mark.parametrize("representative", ["best", "mean"])
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("graded", [CrossEntropy(), ClippedMargin(0.5)])
def test_whole_runs_are_alike_for_graded_metrics(
    make_problem, settings_for, assert_same_run, graded, variant, hidden_layer_sizes, representative
):
    settings = settings_for(hidden_layer_sizes, variant, representative=representative)
    problem = make_problem(4, hidden_layer_sizes)
    assert_same_run(DeltaEvaluator, problem, settings, graded, rtol=1e-9)


@pytest.mark.parametrize("representative", ["best", "mean"])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("error", [SquaredError(), AbsoluteError()])
def test_whole_runs_are_alike_for_errors(
    make_problem, settings_for, assert_same_run, error, n_outputs, variant, representative
):
    _, *parts = make_problem(2, (7,))
    slopes = np.random.default_rng(n_outputs).normal(size=(6, n_outputs))
    parts = [replace(part, targets=np.sin(part.inputs @ slopes)) for part in parts]
    settings = settings_for((7,), variant, representative=representative)
    problem = (Architecture(6, (7,), n_outputs, "tanh"), *parts)
    assert_same_run(DeltaEvaluator, problem, settings, error, rtol=1e-9)


@pytest.mark.without_jit
@pytest.mark.parametrize(
    "changes",
    [{"representative": "mean"}, {"strategy": "rand/1(synchronous=False)", "max_generations": 4}],
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_whole_runs_are_identical_when_steps_are_shared_out(
    make_problem, settings_for, assert_same_run, variant, n_threads, changes, monkeypatch
):
    monkeypatch.setattr(open_instances, "_FEW", 1.0)
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**8)
    with threads.limit(n_threads):
        settings = settings_for((7,), variant, **changes)
        assert_same_run(DeltaEvaluator, make_problem(4, (7,)), settings)


ONE_BY_ONE = {"strategy": "rand/1(synchronous=False)", "max_generations": 4}
PBEST_ONE_BY_ONE = {"strategy": "current-to-pbest/1(synchronous=False)", "max_generations": 4}


@pytest.mark.parametrize(
    "changes",
    [
        ONE_BY_ONE,
        ONE_BY_ONE | {"representative": "mean"},
        {"strategy": Strategy("best/1", "exponential")},
        {"strategy": "current-to-best/1"},
        {"strategy": "rand/1(accept_ties=False)"},
        {"strategy": "rand/2", "reshuffle_batches": True},
        {"initial_range": 0.01, "scale_initial_range": False, "seed": 3,  # most seeds stand still
         "extensions": ()},
        {"initial_range": 100.0, "scale_initial_range": False},
        {"control": "dither", "extensions": ["weight_decay(rate=0.01)"]},
        {"control": "jde", "extensions": ["population_reduction(final_size=4)"]},
        {"control": "shade", "strategy": "current-to-pbest/1",
         "extensions": ["population_reduction(final_size=4)"]},
        {"extensions": ["turnover(parts=3)"]},
        {"extensions": ["turnover(parts=3)"]} | ONE_BY_ONE,
        {"control": "shade"} | ONE_BY_ONE,
        PBEST_ONE_BY_ONE,
    ],
)  # fmt: skip
@pytest.mark.parametrize("variant", ["CCDE", pytest.param("LECCDE", marks=pytest.mark.without_jit)])
def test_whole_runs_are_identical_for_other_settings(
    make_problem, settings_for, assert_same_run, variant, changes
):
    settings = settings_for((7,), variant, **changes)
    assert_same_run(DeltaEvaluator, make_problem(4, (7,)), settings)


@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
@pytest.mark.parametrize("hidden_layer_sizes", [(7,), (6, 5)])
@pytest.mark.parametrize("block", [1, 500, 2000])
def test_blocks_do_not_change_the_run(
    make_problem, settings_for, assert_same_run, monkeypatch, variant, hidden_layer_sizes, block
):
    """Room for one candidate, for a few, for a few neurons at a time."""
    monkeypatch.setattr(open_instances, "_FEW", 0.0)
    monkeypatch.setattr(candidates_module, "BLOCK_ELEMENTS", block)
    monkeypatch.setattr(validation_module, "BLOCK_ELEMENTS", block)
    problem = make_problem(4, hidden_layer_sizes)
    assert_same_run(DeltaEvaluator, problem, settings_for(hidden_layer_sizes, variant))


@pytest.mark.parametrize("metric", [Accuracy(), CrossEntropy(), RocAuc()], ids=lambda m: m.name)
def test_a_block_is_staged_once(make_problem, settings_for, monkeypatch, metric):
    """Also where there is no fused loop, or no room for it."""
    architecture, training, validation = make_problem(4, (6, 5))
    decomposition = decompose("neuron", architecture)
    staged = []
    stage = candidates_module.StagedCandidates.stage

    def count(self, subpopulations, *arguments):
        staged.append(subpopulations)
        stage(self, subpopulations, *arguments)

    monkeypatch.setattr(candidates_module.StagedCandidates, "stage", count)
    for elements in (candidates_module.BLOCK_ELEMENTS, 1):
        monkeypatch.setattr(candidates_module, "BLOCK_ELEMENTS", elements)
        monkeypatch.setattr(open_instances, "_FEW", 1.0)
        evolve(
            training.inputs, training.targets, validation.inputs, validation.targets,
            hidden_layer_sizes=(6, 5), fitness=metric, max_generations=1, batch_size=40,
            population_size=6, sampling_rounds=1, dtype="float64", seed=1,
        )  # fmt: skip
        assert staged == list(decomposition.blocks)
        staged.clear()


# ------------------------------------------------------------------------------ parts of neurons


@pytest.mark.parametrize(
    ("name", "hidden_layer_sizes", "limited"),
    [
        ("neuron_outgoing", (), True), ("neuron_outgoing", (7,), False),
        ("neuron_outgoing", (5, 4, 3), True),
        ("synapse", (), False), ("synapse", (7,), True), ("synapse", (4, 3), False),
        ("parts of neurons", (), True), ("parts of neurons", (7,), False),
        ("parts of neurons", (6, 5), True),
        ("some outgoing", (7,), True), ("some outgoing", (6, 5), False),
        ("shuffled neurons", (6, 5), True), ("shuffled neurons", (7,), False),
    ],
)  # fmt: skip
def test_whole_runs_of_parts_are_identical(
    make_problem, settings_for, assert_same_run, find_groups, name, hidden_layer_sizes, limited
):
    problem = make_problem(4, hidden_layer_sizes)
    groups = find_groups(name, problem[0])
    assert DeltaEvaluator.serves(problem[0], decompose(groups, problem[0]))
    settings = settings_for(hidden_layer_sizes, decomposition=groups, limited_evaluation=limited)
    assert_same_run(DeltaEvaluator, problem, settings)


@pytest.mark.without_jit
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_whole_runs_of_parts_are_identical_for_every_activation(
    make_problem, settings_for, assert_same_run, name, activation
):
    settings = settings_for((7,), decomposition=name, activation=activation, seed=11)
    assert_same_run(DeltaEvaluator, make_problem(4, (7,), activation=activation), settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "rand/1(synchronous=False)", "max_generations": 3},
        {"strategy": Strategy("current-to-best/1", "exponential")},
        {"representative": "mean"},
        {"initial_range": 100.0, "scale_initial_range": False},
        {"extensions": ["weight_decay(rate=0.01)"], "control": "shade",
         "strategy": "current-to-pbest/1"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_whole_runs_of_parts_are_identical_for_other_settings(
    make_problem, settings_for, assert_same_run, name, changes
):
    settings = settings_for((7,), decomposition=name, **changes)
    assert_same_run(DeltaEvaluator, make_problem(4, (7,)), settings)


@pytest.mark.parametrize("block", [1, 500, 2000])
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse", "parts of neurons"])
def test_blocks_do_not_change_the_run_of_parts(
    make_problem, settings_for, assert_same_run, find_groups, monkeypatch, name, block
):
    """Room for one candidate or network, for a few, for a few neurons at a time."""
    monkeypatch.setattr(candidates_module, "BLOCK_ELEMENTS", block)
    monkeypatch.setattr(validation_module, "BLOCK_ELEMENTS", block)
    monkeypatch.setattr("coevo.core.decomposition._LONGEST_BLOCK", 3)
    problem = make_problem(4, (4, 3))
    groups = find_groups(name, problem[0])
    settings = settings_for((4, 3), decomposition=groups, max_generations=6)
    assert_same_run(DeltaEvaluator, problem, settings)


def test_a_generation_of_many_synapses(make_classification_data):
    """Hundreds of subpopulations of one gene, with a metric of outputs."""
    inputs, targets = make_classification_data(np.random.default_rng(1), 60, 90, 3)
    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], hidden_layer_sizes=(8,),
        decomposition="synapse", fitness="cross_entropy", population_size=4, batch_size=20,
        max_generations=1, sampling_rounds=1, seed=1,
    )  # fmt: skip
    assert result.evaluations == 4 + 2 * 4 * (91 * 8 + 27)
    assert result.validation_fitness >= result.history.rows[0, 5]


def test_many_small_moves_do_not_pile_up_rounding(make_classification_data):
    """A generation of the synapses of hundreds of inputs moves the outputs thousands of times."""
    rng = np.random.default_rng(1)
    inputs, targets = make_classification_data(rng, 100, 300, 3)
    architecture = Architecture(300, (12,), 3)
    decomposition = decompose("synapse", architecture)
    data = Data(inputs.astype(np.float32), targets)
    evaluator = DeltaEvaluator(architecture, decomposition, CrossEntropy(), data, data)
    genotype = rng.normal(size=architecture.n_genes).astype(np.float32)
    evaluator.rebase(np.zeros_like(genotype), slice(0, 100))
    evaluator.stage(decomposition.blocks[0], [genotype[:3612, np.newaxis, np.newaxis]])
    for i in range(architecture.n_genes):
        evaluator.replace(i, genotype[i : i + 1], None)
    exact = architecture.forward(genotype.astype(np.float64), inputs.astype(np.float32))
    outputs = evaluator._context.find_outputs(Scratch())
    np.testing.assert_allclose(outputs.T, exact, rtol=1e-4, atol=1e-4)
    assert evaluator.validate()[-1] == pytest.approx(
        float(CrossEntropy()(exact, targets)), abs=1e-4
    )


# -------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize("is_weighted", [(False, False), (True, True)], ids=["", "weighted"])
@pytest.mark.parametrize(
    "hidden_layer_sizes", [(), pytest.param((7,), marks=pytest.mark.without_jit), (6, 5)]
)
def test_every_metric_is_the_references(
    make_problem, assert_measured_alike, hidden_layer_sizes, metric, is_weighted, monkeypatch
):
    monkeypatch.setattr(open_instances, "_FEW", 0.0)
    problem = make_problem(4, hidden_layer_sizes)
    decomposition = decompose("neuron", problem[0])
    assert_measured_alike(ENGINES, problem, decomposition, metric, is_weighted)


@pytest.mark.parametrize("is_weighted", [(False, False), (True, True)], ids=["", "weighted"])
@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse", "shuffled neurons"])
def test_every_metric_of_parts_is_the_references(
    make_problem, assert_measured_alike, find_groups, name, metric, is_weighted
):
    """Of two hidden layers one is next to the outputs, where metrics have loops of their own."""
    problem = make_problem(4, (4, 3), 90)
    decomposition = decompose(find_groups(name, problem[0]), problem[0])
    engines = (ReferenceEvaluator, DeltaEvaluator)
    assert_measured_alike(engines, problem, decomposition, metric, is_weighted)


@pytest.mark.parametrize("is_weighted", [(False, True), (True, False)])
@pytest.mark.parametrize("metric", [Accuracy(), CrossEntropy()])
def test_weights_of_either_data_count_by_themselves(
    make_problem, assert_measured_alike, metric, is_weighted
):
    problem = make_problem(4, (7,))
    assert_measured_alike(ENGINES, problem, decompose("neuron", problem[0]), metric, is_weighted)


@pytest.mark.parametrize(
    "ours", [Accuracy, FBeta, CrossEntropy, ClippedMargin, SquaredError, AbsoluteError]
)
def test_a_users_subclass_of_a_metric_is_measured_as_it_says(
    make_problem, assert_measured_alike, ours
):
    class Cubed(ours):
        def __call__(self, outputs, targets, weights=None):
            return ours.__call__(self, outputs, targets, weights) ** 3

    problem = make_problem(4, (7,))
    assert_measured_alike(ENGINES, problem, decompose("neuron", problem[0]), Cubed())


@pytest.mark.parametrize("few", [0.0, 1.0])
@pytest.mark.parametrize("hidden_layer_sizes", [(20,), (12, 10)])
def test_float32_differs_only_where_the_margin_is_below_rounding(
    make_problem, assert_right_but_for_rounding, hidden_layer_sizes, few, monkeypatch
):
    monkeypatch.setattr(open_instances, "_FEW", few)
    architecture, training, validation = make_problem(6, hidden_layer_sizes, 600, dtype="float32")
    decomposition = decompose("neuron", architecture)
    evaluator = DeltaEvaluator(architecture, decomposition, Accuracy(), training, validation)
    assert_right_but_for_rounding(evaluator, architecture, decomposition, training)


@pytest.mark.parametrize("name", ["neuron_outgoing", "synapse"])
def test_float32_of_parts_differs_only_where_the_margin_is_below_rounding(
    make_problem, assert_right_but_for_rounding, name
):
    architecture, training, validation = make_problem(6, (8,), 300, dtype="float32")
    decomposition = decompose(name, architecture)
    evaluator = DeltaEvaluator(architecture, decomposition, Accuracy(), training, validation)
    assert_right_but_for_rounding(evaluator, architecture, decomposition, training, 6)


# ------------------------------------------------------------------------------------ tied scores


def area_by_scikit_learn(targets, outputs, sample_weight=None):
    if outputs.shape[1] == 2:
        score = outputs[:, 1].astype(float) - outputs[:, 0]
        return roc_auc_score(targets, score, sample_weight=sample_weight)
    shares = np.exp(outputs.astype(float) - outputs.max(axis=1, keepdims=True).astype(float))
    shares /= shares.sum(axis=1, keepdims=True)
    return roc_auc_score(targets, shares, multi_class="ovr", sample_weight=sample_weight)


def make_tied_data(n_classes, seed):
    """Few different inputs, so that many instances have exactly the same scores."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(-2, 3, (260, 3)).astype(np.float64)
    targets = (inputs[:, 0] + rng.normal(scale=1.5, size=260) > 0).astype(int)
    targets = targets + (n_classes > 2) * (rng.random(260) < 0.3)
    return inputs[:160], targets[:160], inputs[160:], targets[160:]


@pytest.mark.parametrize("seed", range(24))
def test_what_is_reported_of_tied_scores_is_what_scikit_learn_says(seed):
    """Of the network that is kept, on both data sets, with our metric and with a user's."""
    rng = np.random.default_rng(seed)
    decomposition, engine = [
        ("neuron", "delta"), ("synapse", "delta"), ("neuron_outgoing", "delta"),
        ("whole", "batched"), ("layer", "batched"), ("neuron", "reference"),
    ][seed % 6]  # fmt: skip
    activation, initial_range = [("sign", "auto"), ("tanh", 300.0), ("sigmoid", 300.0)][
        rng.integers(3)
    ]
    users = make_metric(area_by_scikit_learn, response_method="outputs")
    n_classes = int(rng.integers(2, 4))
    X, y, X_valid, y_valid = make_tied_data(n_classes, seed)
    result = evolve(
        X, y, X_valid, y_valid, fitness=["roc_auc", users][rng.integers(2)], engine=engine,
        activation=activation, initial_range=initial_range, decomposition=decomposition,
        hidden_layer_sizes=[(5,), (4, 3)][rng.integers(2)],
        dtype=["float32", "float64"][rng.integers(2)], max_evaluations=None, max_generations=3,
        population_size=6, batch_size=80, sampling_rounds=1, n_threads=1, seed=seed,
    )  # fmt: skip
    with threads.limit(1):  # BLAS adds up in another order on another number of threads
        outputs = [result.network.outputs(inputs) for inputs in (X, X_valid)]
    assert len(np.unique(outputs[0], axis=0)) < len(X) / 2
    expected = [area_by_scikit_learn(t, o) for t, o in zip((y, y_valid), outputs, strict=True)]
    found = [result.train_fitness, result.validation_fitness]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("hidden_layer_sizes", [(5,), (4, 3)])
@pytest.mark.parametrize("name", ["neuron", "synapse", "neuron_outgoing", "parts of neurons"])
def test_tied_scores_stay_tied_along_a_generation(find_groups, name, hidden_layer_sizes):
    """The candidates' areas are those of outputs that tie exactly where inputs do."""
    inputs, targets, *_ = make_tied_data(2, seed=1)
    distinct, kinds = np.unique(inputs, axis=0, return_inverse=True)
    data = Data(inputs, targets)
    architecture = Architecture(3, hidden_layer_sizes, 2, "sign")
    decomposition = decompose(find_groups(name, architecture), architecture)
    engine = DeltaEvaluator(architecture, decomposition, RocAuc(), data, data)
    rng = np.random.default_rng(2)
    solution = rng.normal(size=architecture.n_genes)

    def find_area(network):
        return RocAuc()(architecture.forward(network, distinct)[kinds.ravel()], targets)

    engine.rebase(solution, slice(0, len(data)))
    expected_moves = []
    for block in decomposition.blocks:
        vectors = rng.normal(size=(len(block), 4, decomposition.sizes[block.start]))
        engine.stage(block, [vectors])
        for k, i in enumerate(block):
            networks = np.tile(solution, (4, 1))
            networks[:, decomposition.groups[i]] = vectors[k]
            expected = [find_area(network) for network in networks]
            np.testing.assert_allclose(engine.evaluate(i), expected, atol=1e-12)
            engine.replace(i, vectors[k, k % 4], k % 4)
            expected_moves.append(find_area(solution))
    np.testing.assert_allclose(engine.evaluate_global_solution(), find_area(solution), atol=1e-12)
    np.testing.assert_allclose(engine.validate(), expected_moves, atol=1e-12)


# --------------------------------------------------------------------------------- other promises


@pytest.mark.parametrize("name", ["layer", "random"])
def test_what_is_not_served_is_refused(make_problem, name):
    architecture, training, validation = make_problem(3, (4,))
    with pytest.raises(ValueError, match=f"a part of one neuron, not '{name}'.*batched"):
        DeltaEvaluator(
            architecture, decompose(name, architecture), Accuracy(), training, validation
        )


@pytest.mark.parametrize("name", ["neuron", "synapse"])
def test_validation_follows_a_new_global_solution(make_problem, name):
    """An engine may be given another global solution than the one it moved to itself."""
    architecture, training, validation = make_problem(3, (5,))
    decomposition = decompose(name, architecture)
    arguments = (architecture, decomposition, Accuracy(), training, validation)
    rng = np.random.default_rng(2)
    solutions = rng.normal(size=(3, architecture.n_genes))
    block = decomposition.blocks[0]
    vectors = rng.normal(size=(3, len(block), 1, decomposition.sizes[0]))
    answers = []
    for engine in (ReferenceEvaluator(*arguments), DeltaEvaluator(*arguments)):
        for solution, vector in zip(solutions.copy(), vectors, strict=True):
            engine.rebase(solution, slice(0, 30))
            engine.stage(block, (vector,))
            engine.replace(2, vector[2, 0], None)
            answers.append(engine.validate().tolist())
    assert answers[:3] == answers[3:]


@pytest.mark.parametrize("fitness", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_steps_shared_out_do_not_change_the_result(make_problem, variant, fitness, monkeypatch):
    """In float32, where the order of a sum would show."""
    monkeypatch.setattr(open_instances, "_FEW", 1.0)
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**8)
    _, training, validation = make_problem(4, (6,), 3000, dtype="float32")
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
def test_work_done_ahead_on_other_cores_does_not_change_the_result(
    make_problem, fitness, n_threads
):
    """The context, the products and the validation are large enough to be handed over."""
    _, training, validation = make_problem(120, (40, 6), 2500, dtype="float32")
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
