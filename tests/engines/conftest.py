"""Problems, whole runs and single blocks that several tests of engines compare."""

from dataclasses import replace

import numpy as np
import pytest

from coevo import Settings
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data, FusedEvaluator
from coevo.core.label_metrics import LabelCrossEntropy, LabelFBeta
from coevo.core.metrics import (
    METRICS,
    AbsoluteError,
    Accuracy,
    ClippedMargin,
    FBeta,
    FunctionMetric,
    Profit,
    SquaredError,
)
from coevo.core.network import Architecture
from coevo.core.selection import find_candidates, select
from coevo.engines.reference import ReferenceEvaluator
from coevo.training.variants import variant_settings


def pytest_generate_tests(metafunc):
    """Run a test that asks for a `metric` with every metric there is."""
    if "metric" in metafunc.fixturenames and not any(
        "metric" in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize")
    ):
        metrics = [
            *METRICS.values(),
            FBeta(2.0, "macro"),
            ClippedMargin(0.5),
            Profit(np.arange(16).reshape(4, 4)),
            SquaredError((0.5, 2.0, 30.0, 1.0)),
            AbsoluteError((0.5, 2.0, 30.0, 1.0)),
            FunctionMetric(mean_true_output, "outputs"),
            LabelCrossEntropy(),
            LabelFBeta(),
        ]
        metafunc.parametrize("metric", metrics, ids=lambda metric: f"{metric.task} {metric.name}")


def mean_true_output(targets, outputs, sample_weight=None):
    return np.average(outputs[np.arange(len(targets)), targets], weights=sample_weight)


@pytest.fixture(scope="session")
def make_problem(make_classification_data):
    """An architecture with training and validation data that suit it."""

    def make(n_classes, hidden_layer_sizes, n_instances=240, dtype="float64", activation="tanh"):
        rng = np.random.default_rng([n_classes, *hidden_layer_sizes])
        inputs, targets = make_classification_data(rng, n_instances, 6, n_classes)
        inputs = inputs.astype(dtype)
        n_train = n_instances * 2 // 3
        training = Data(inputs[:n_train], targets[:n_train])
        validation = Data(inputs[n_train:], targets[n_train:])
        return Architecture(6, hidden_layer_sizes, n_classes, activation), training, validation

    return make


@pytest.fixture(scope="session")
def settings_for():
    """Settings of a short run, for a variant's name or for a decomposition."""

    def make(hidden_layer_sizes, variant=None, **changes):
        defaults = {
            "hidden_layer_sizes": hidden_layer_sizes, "population_size": 8, "batch_size": 40,
            "max_evaluations": None, "max_generations": 9, "seed": 4 if variant is None else 11,
            "dtype": "float64", "representative": "best", "validate_every": "replacement",
        }  # fmt: skip
        if variant is None:
            return resolve(Settings(**defaults | changes))
        return resolve(variant_settings(variant, **defaults | changes))

    return make


def run(engine, problem, settings, metric):
    """A whole run, with the fitness of all individuals after each generation."""
    architecture, training, validation = problem
    decomposition = decompose(settings.decomposition, architecture)
    evaluator = engine(architecture, decomposition, metric, training, validation)
    decisions = []
    search = assemble(
        evaluator, decomposition, settings,
        callbacks=[lambda search: decisions.append(search.state.fitness.copy())],
    )  # fmt: skip
    search.run()
    return search.state, decisions


@pytest.fixture(scope="session")
def assert_same_run():
    """Compare a run with the reference's: decisions and networks exactly, fitness within rtol."""

    def compare(engine, problem, settings, metric=Accuracy(), rtol=0.0):  # noqa: B008
        expected, expected_decisions = run(ReferenceEvaluator, problem, settings, metric)
        state, decisions = run(engine, problem, settings, metric)
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

    return compare


@pytest.fixture(scope="session")
def compete():
    """Let a block compete as the search does: fused if the engine can, else one by one."""

    def compete_block(engine, block, contest):
        outcome = contest[2]
        if isinstance(engine, FusedEvaluator) and engine.sweep(block, *contest):
            return
        engine.stage(block, find_candidates(*contest))
        for k, i in enumerate(block):
            candidate = int(select(*contest, k, engine.evaluate(i)))
            if outcome.has_moved[k]:
                chosen = candidate if candidate >= 0 else None
                engine.replace(i, outcome.representatives[k], chosen)

    return compete_block


@pytest.fixture(scope="session")
def assert_measured_alike(make_contest, compete):
    """Compare the first engine with the others, block by block, on all that an engine measures.

    Every block's candidates, before and after replacements, fused or not, in place, on training and
    on validation data. is_weighted: whether training and validation instances have weights.
    """

    def compare(engines, problem, decomposition, metric, is_weighted=(False, False)):
        architecture, training, validation = problem
        rng = np.random.default_rng(8)
        if metric.task == "regression":
            training = replace(training, targets=rng.normal(size=(len(training), 4)))
            validation = replace(validation, targets=rng.normal(size=(len(validation), 4)))
        elif metric.task == "multilabel":
            training = replace(training, targets=rng.integers(2, size=(len(training), 4)))
            validation = replace(validation, targets=rng.integers(2, size=(len(validation), 4)))
        if is_weighted[0]:
            training = replace(training, weights=rng.uniform(0.1, 2, len(training)))
        if is_weighted[1]:
            validation = replace(validation, weights=rng.uniform(0.1, 2, len(validation)))
        engines = [
            engine(architecture, decomposition, metric, training, validation) for engine in engines
        ]
        solutions = [np.linspace(-1, 1, architecture.n_genes) for _ in engines]
        for engine, solution in zip(engines, solutions, strict=True):
            engine.rebase(solution, slice(0, 50))
        for block in decomposition.blocks:
            vectors = rng.normal(size=(len(block), 6, decomposition.sizes[block.start]))
            in_place = [engine.evaluate_in_place(block, vectors.copy()) for engine in engines]
            contests = [
                make_contest(
                    vectors[:, :3].copy(), vectors[:, 3:], champions=np.full(len(block), 7),
                    inherited_by_targets=np.full((len(block), 3), 0.01),
                )
                for _ in engines
            ]  # fmt: skip
            expected = contests[0][2]
            for engine, contest, measured in zip(engines, contests, in_place, strict=True):
                np.testing.assert_allclose(measured, in_place[0], rtol=1e-9)
                compete(engine, block, contest)
                np.testing.assert_allclose(contest[2].fitness, expected.fitness, rtol=1e-9)
                np.testing.assert_array_equal(contest[2].champions, expected.champions)
                np.testing.assert_array_equal(contest[2].wins, expected.wins)
        for engine, solution in zip(engines, solutions, strict=True):
            np.testing.assert_array_equal(solution, solutions[0])  # changed in place
            np.testing.assert_allclose(
                engine.evaluate_global_solution(), engines[0].evaluate_global_solution(), rtol=1e-9
            )
        expected, *others = (engine.validate() for engine in engines)
        assert len(expected) == len(decomposition)
        for moves in others:
            np.testing.assert_allclose(moves, expected, rtol=1e-9)

    return compare


@pytest.fixture(scope="session")
def assert_right_but_for_rounding():
    """Candidates in float32 have the exact accuracy, but for margins that are below rounding."""

    def check(evaluator, architecture, decomposition, training, n_candidates=12):
        rng = np.random.default_rng(3)
        genotype = rng.uniform(-4, 4, architecture.n_genes).astype(np.float32)
        evaluator.rebase(genotype, slice(0, len(training)))
        inputs = training.inputs.astype(np.float64)
        for block in decomposition.blocks:
            shape = (len(block), n_candidates, decomposition.sizes[block.start])
            vectors = rng.uniform(-4, 4, shape).astype(np.float32)
            measured = evaluator.evaluate_in_place(block, vectors)
            for k, i in enumerate(block):
                networks = np.tile(genotype.astype(np.float64), (n_candidates, 1))
                networks[:, decomposition.groups[i]] = vectors[k]
                outputs = architecture.forward(networks, inputs)
                top_two = np.sort(outputs, axis=2)[..., -2:]
                is_clear = top_two[..., 1] - top_two[..., 0] > 1e-4
                right = outputs.argmax(axis=2) == training.targets
                counts = np.rint(measured[k] * len(training))
                assert ((right & is_clear).sum(axis=1) <= counts).all()
                assert (counts <= (right | ~is_clear).sum(axis=1)).all()

    return check


def cut_neurons(architecture):
    """Each neuron in two or three parts, genes and parts in any order."""
    rng = np.random.default_rng(3)
    genes = np.arange(architecture.n_genes)
    groups = []
    for neuron in decompose("neuron", architecture).groups:
        groups += np.array_split(rng.permutation(genes[neuron]), rng.integers(2, 4))
    return [groups[i] for i in rng.permutation(len(groups))]


def cut_outgoing(architecture):
    """A first hidden neuron with half of its outgoing weights; the others' as they come."""
    groups = [
        list(np.arange(architecture.n_genes)[g])
        for g in decompose("neuron_outgoing", architecture).groups
    ]
    half = groups[0][-2:]
    return [groups[0][-3::-1], *groups[1:], [half[0]], [half[1]]]


def shuffle_neurons(architecture):
    """Whole neurons, their genes and themselves in another order."""
    rng = np.random.default_rng(3)
    genes = np.arange(architecture.n_genes)
    groups = [genes[neuron][::-1] for neuron in decompose("neuron", architecture).groups]
    return [groups[i] for i in rng.permutation(len(groups))]


@pytest.fixture(scope="session")
def find_groups():
    """A decomposition by its name, also of some whose groups the user has chosen."""
    chosen = {
        "parts of neurons": cut_neurons,
        "some outgoing": cut_outgoing,
        "shuffled neurons": shuffle_neurons,
    }

    def find(name, architecture):
        return chosen[name](architecture) if name in chosen else name

    return find
