"""The estimators: data in every form, what is maximised, going on, and files."""

import inspect
import logging
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import cohen_kappa_score, f1_score, make_scorer, mean_pinball_loss

import coevo
from coevo import CoevoClassifier, CoevoRegressor, Settings, model
from coevo.estimators.checking import MIN_VALIDATION
from coevo.evaluation import Data
from coevo.evaluation.batched import BatchedEvaluator
from coevo.fitness import Accuracy, CustomFitness, FBeta, Profit

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}
COUNTED = {"fitness": "accuracy"}
ESTIMATORS = (CoevoClassifier, CoevoRegressor)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(
        n_samples=300, n_features=6, n_informative=4, weights=[0.8], random_state=3
    )
    return X, y


@pytest.fixture(scope="module")
def numbers():
    return load_diabetes(return_X_y=True)


# -------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_arguments_are_the_settings(estimator):
    arguments = inspect.signature(estimator).parameters
    settings = set(Settings.__dataclass_fields__) - {"seed"} | {"random_state"}
    assert settings <= set(arguments)
    assert set(estimator().get_params()) == set(arguments)


def test_a_classifiers_defaults_are_the_papers_but_for_the_budget():
    arguments, settings = CoevoClassifier().get_params(), Settings()
    for name in set(Settings.__dataclass_fields__) - {"seed", "max_evaluations"}:
        assert arguments[name] == getattr(settings, name), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clones_are_alike_and_nothing_is_checked_before_fit(estimator):
    given = estimator(
        fitness=f1_score, callbacks=[print], decay=7, decomposition=[[0, 1], [2]], batch_size="x"
    )
    copy = clone(given)
    assert copy.get_params() == given.get_params()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("decay", 7), ("batch_size", "x"), ("batch_size", 0), ("validation_fraction", 1.0),
        ("validation_fraction", -0.1), ("scale_inputs", "yes"), ("generations_per_batch", 0),
        ("random_state", "x"), ("activation", "softplus"), ("hidden_layer_sizes", (0,)),
        ("class_weight", "heavy"), ("class_weight", {9: 1.0}), ("max_evaluations", None),
    ],
)  # fmt: skip
def test_errors_name_the_argument(iris, argument, value):
    with pytest.raises((ValueError, TypeError), match=argument):
        CoevoClassifier(**QUICK | {argument: value}).fit(*iris)


def test_the_estimators_are_in_the_lobby():
    assert {"CoevoClassifier", "CoevoRegressor"} <= set(coevo.__all__)
    with pytest.raises(AttributeError, match="no attribute 'CoevoCluster'"):
        _ = coevo.CoevoCluster


# ------------------------------------------------------------------------------------------- data


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]), np.array([-5, 3, 70]),
        np.array([0.0, 1.0, 2.0]), np.array(["x", "yy", "z"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)  # fmt: skip
def test_labels_of_any_type(iris, labels):
    X, y = iris
    classifier = CoevoClassifier(**QUICK).fit(X, labels[y])
    assert classifier.classes_.tolist() == sorted(labels)
    answers = classifier.predict(X)
    assert answers.dtype == labels.dtype
    assert np.mean(answers == labels[y]) > 0.8
    same = CoevoClassifier(**QUICK).fit(X, y).predict(X)
    np.testing.assert_array_equal(answers, np.sort(labels)[same])


def test_booleans_are_labels(binary):
    X, y = binary
    assert CoevoClassifier(**QUICK).fit(X, y == 1).predict(X).dtype == bool


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_known_by_their_columns(iris, library):
    X, y = iris
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = library.DataFrame(dict(zip(names, X.T, strict=True)))
    labels = library.Series(np.array(["a", "b", "c"])[y].tolist())
    classifier = CoevoClassifier(**QUICK).fit(frame, labels)
    assert classifier.feature_names_in_.tolist() == names
    expected = CoevoClassifier(**QUICK).fit(X, y)
    np.testing.assert_array_equal(
        classifier.predict(frame), np.array(["a", "b", "c"])[expected.predict(X)]
    )
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[names[::-1]])


def test_a_classifiers_answers_agree(iris, binary):
    for X, y in (iris, binary):
        classifier = CoevoClassifier(**QUICK).fit(X, y)
        probabilities, decisions = classifier.predict_proba(X), classifier.decision_function(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_array_equal(probabilities.argmax(axis=1), classifier.predict(X))
        if probabilities.shape[1] == 2:
            assert decisions.shape == (len(X),)
            np.testing.assert_array_equal(decisions > 0, classifier.predict(X))
        else:
            assert decisions.shape == probabilities.shape


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scaling_makes_units_irrelevant(estimator, iris):
    X, y = iris
    other = np.ascontiguousarray(X * [1e-3, 1.0, 1e6, 25.0] + [1e4, 0, -3, 2])
    a, b = estimator(**QUICK).fit(X, y), estimator(**QUICK).fit(other, y)
    np.testing.assert_allclose(a.predict(X), b.predict(other), rtol=1e-3, atol=1e-3)


def test_the_network_takes_unscaled_inputs_and_gives_numbers_in_the_targets_units(numbers):
    X, y = numbers
    regressor = CoevoRegressor(**QUICK).fit(X, 1000 * y + 5)
    assert regressor.score(X, 1000 * y + 5) > 0.2
    np.testing.assert_array_equal(regressor.network_.outputs(X)[:, 0], regressor.predict(X))
    same = CoevoRegressor(**QUICK).fit(X, y)
    np.testing.assert_allclose(regressor.predict(X), 1000 * same.predict(X) + 5, rtol=1e-3)


def test_a_feature_that_is_constant_is_ignored(iris):
    X, y = iris
    wider = np.column_stack([X, np.full(len(X), 3.0)])
    classifier = CoevoClassifier(**QUICK).fit(wider, y)
    other = wider.copy()
    other[:, -1] = 1e6
    np.testing.assert_array_equal(
        classifier.decision_function(wider), classifier.decision_function(other)
    )


def test_inputs_may_be_left_as_they_are(iris):
    X, y = iris
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    assert CoevoClassifier(**QUICK, scale_inputs=False).fit(centred, y).score(centred, y) > 0.8
    with pytest.raises(ValueError, match="too large for dtype='float32'"):
        CoevoClassifier(**QUICK, scale_inputs=False).fit(1e39 * X, y)


def test_several_outputs(numbers):
    X, y = numbers
    both = np.column_stack([y, -1e4 * y])
    for fitness, budget in (("squared_error", 6_000), ("absolute_error", 6_000), ("r2", 2_000)):
        regressor = CoevoRegressor(**QUICK | {"max_evaluations": budget}, fitness=fitness)
        predicted = regressor.fit(X, both).predict(X)
        assert predicted.shape == both.shape
        assert regressor.score(X, both) > 0.05
    assert CoevoRegressor(**QUICK).fit(X, y[:, np.newaxis]).predict(X).shape == (len(X), 1)


def test_instances_of_no_weight_are_no_instances(binary):
    X, y = binary
    weights = np.ones(len(X))
    weights[::3] = 0
    weighted = CoevoClassifier(**QUICK).fit(X, y, sample_weight=weights)
    without = CoevoClassifier(**QUICK).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(weighted.network_.genotype, without.network_.genotype)


def test_class_weights_multiply_sample_weights(binary):
    X, y = binary
    counts = np.bincount(y)
    balanced = CoevoClassifier(**QUICK, class_weight="balanced").fit(X, y)
    by_hand = CoevoClassifier(**QUICK).fit(X, y, sample_weight=len(y) / (2 * counts[y]))
    np.testing.assert_array_equal(balanced.network_.genotype, by_hand.network_.genotype)
    plain = CoevoClassifier(**QUICK).fit(X, y)
    assert balanced.predict(X).sum() > plain.predict(X).sum()


def test_weights_must_make_sense(binary):
    X, y = binary
    with pytest.raises(ValueError, match="sample_weight"):
        CoevoClassifier(**QUICK).fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="zero"):
        CoevoClassifier(**QUICK).fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="class_weight leaves no"):
        CoevoClassifier(**QUICK, class_weight={0: 0.0, 1: 0.0}).fit(X, y)


def test_a_validation_set_chooses_the_network(binary):
    X, y = binary
    classifier = CoevoClassifier(**QUICK | COUNTED).fit(
        X[::2], y[::2], X_val=X[1::2], y_val=y[1::2]
    )
    assert classifier.validation_fitness_ == pytest.approx(classifier.score(X[1::2], y[1::2]))
    assert classifier.train_fitness_ == pytest.approx(classifier.score(X[::2], y[::2]))
    with pytest.raises(ValueError, match="go together"):
        CoevoClassifier(**QUICK | COUNTED).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="not among the classes"):
        CoevoClassifier(**QUICK | COUNTED).fit(X, y, X_val=X[:2], y_val=[0, 2])


def test_enough_instances_are_split_by_class():
    X, y = make_classification(n_samples=5 * MIN_VALIDATION, weights=[0.9], random_state=0)
    classifier = CoevoClassifier(**QUICK)
    data = classifier._check_data(X, y, None, reset=True)
    training, validation = classifier._split(data, 0)
    assert len(training) + len(validation) == len(X)
    assert len(validation) == MIN_VALIDATION
    assert validation.targets.mean() == pytest.approx(y.mean(), abs=0.01)
    few = data[slice(0, 400)]
    assert classifier._split(few, 0) == (few, few)


# ------------------------------------------------------------------------------------ what is good


def profit(y_true, y_pred):
    return 10 * np.sum((y_true == 1) & (y_pred == 1)) - np.sum(y_pred == 1)


@pytest.mark.parametrize(
    ("fitness", "measure"),
    [
        ("f1", f1_score),
        ("f1_weighted", lambda t, p: f1_score(t, p, average="weighted")),
        ("cohen_kappa_score", cohen_kappa_score),
        ("zero_one_loss", lambda t, p: -np.mean(t != p)),
        (cohen_kappa_score, cohen_kappa_score),
        (profit, profit),
        (make_scorer(f1_score, average="macro"), lambda t, p: f1_score(t, p, average="macro")),
        (FBeta(beta=2), None),
        (Profit([[0, -1], [0, 9]]), lambda t, p: profit(t, p) / len(t)),
        ("neg_log_loss", None),
        ("neg_brier_score", None),
        (CustomFitness(lambda targets, outputs: -np.abs(outputs).mean()), None),
    ],
)  # fmt: skip
def test_whatever_the_fitness_is_it_is_maximised(binary, fitness, measure):
    X, y = binary
    quick = QUICK | {"max_evaluations": 600}
    classifier = CoevoClassifier(**quick, fitness=fitness).fit(X, y)
    best = classifier.history_["best_validation"]
    assert best[-1] > best[0]
    assert best[-1] == classifier.validation_fitness_ == pytest.approx(classifier.train_fitness_)
    if measure is not None:
        assert classifier.train_fitness_ == pytest.approx(measure(y, classifier.predict(X)))


@pytest.mark.parametrize(
    "fitness", ["absolute_error", "r2", "mean_pinball_loss", "neg_mean_squared_error"]
)
def test_a_regressors_fitness_is_maximised(numbers, fitness):
    X, y = numbers
    regressor = CoevoRegressor(**QUICK | {"max_evaluations": 600}, fitness=fitness).fit(X, y)
    if fitness == "r2":
        assert regressor.validation_fitness_ == pytest.approx(regressor.score(X, y), abs=1e-4)
    if fitness == "mean_pinball_loss":
        loss = mean_pinball_loss(y, regressor.predict(X))
        assert regressor.validation_fitness_ == pytest.approx(-loss, rel=1e-4)
    assert regressor.history_["best_validation"][-1] > regressor.history_["best_validation"][0]


def test_weights_reach_a_metric_that_takes_them(binary):
    X, y = binary
    weights = 1.0 + y
    quick = QUICK | {"max_evaluations": 400}
    classifier = CoevoClassifier(**quick, fitness="f1_weighted").fit(X, y, sample_weight=weights)
    expected = f1_score(y, classifier.predict(X), average="weighted", sample_weight=weights)
    assert classifier.train_fitness_ == pytest.approx(expected)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        CoevoClassifier(**quick, fitness=profit).fit(X, y, sample_weight=weights)


def test_validation_may_be_told_otherwise(binary):
    X, y = binary
    classifier = CoevoClassifier(
        **QUICK, fitness="cross_entropy", validation_fitness="accuracy"
    ).fit(X, y)
    assert classifier.validation_fitness_ == pytest.approx(classifier.score(X, y))
    assert classifier.train_fitness_ < 0


def test_validation_by_the_same_measure_named_twice_changes_nothing(binary):
    X, y = binary
    alone = CoevoClassifier(**QUICK | COUNTED).fit(X, y)
    twice = CoevoClassifier(**QUICK | COUNTED, validation_fitness="accuracy").fit(X, y)
    np.testing.assert_array_equal(alone.network_.genotype, twice.network_.genotype)
    np.testing.assert_array_equal(
        alone.history_["validation_fitness"], twice.history_["validation_fitness"]
    )


def test_validation_weighs_classes_even_if_training_has_one_weight(binary):
    X, y = binary
    half = {0: 1.0, 1: 3.0}
    classifier = CoevoClassifier(**QUICK | COUNTED, class_weight=half)
    # All weights in training come out at 3.
    weights = np.where(y == 1, 1.0, 3.0)
    classifier.fit(X, y, sample_weight=weights, X_val=X, y_val=y)
    right = classifier.predict(X) == y
    expected = np.average(right, weights=np.where(y == 1, 3.0, 1.0))
    assert classifier.validation_fitness_ == pytest.approx(expected)
    assert classifier.train_fitness_ == pytest.approx(right.mean())


@pytest.mark.parametrize(
    "arguments",
    [
        {"decomposition": "layer"}, {"decomposition": "whole"}, {"hidden_layer_sizes": (4, 3)},
        {"hidden_layer_sizes": ()}, {"dtype": "float64"}, {"activation": "sign"},
        {"limited_evaluation": False}, {"strategy": "best/1"}, {"synchronous": False},
        {"validation_fitness": "f1_macro", "decomposition": "layer"},
        {"decomposition": "neuron_outgoing"},
        {"decomposition": "synapse", "validation_fitness": "f1_macro"},
        {"decomposition": "random", "group_size": 12, "redraw_groups_every": 2},
        {"decomposition": "random", "validation_fitness": "f1_macro", "redraw_groups_every": 1},
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_is_handed_on(iris, arguments):
    quick = QUICK | {"max_evaluations": 1_500} | arguments
    classifier = CoevoClassifier(**quick).fit(*iris)
    assert classifier.score(*iris) > 0.5
    for batch in (slice(0, 150, 2), slice(1, 150, 2)):
        X, y = (part[batch] for part in iris)
        classifier.partial_fit(X, y)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"patience": 1}, "patience"), ({"target_fitness": 0.6}, "target_fitness"),
     ({"max_seconds": 1e-6}, "max_seconds"), ({"max_generations": 2}, "max_generations")],
)  # fmt: skip
def test_every_limit_ends_a_fit(iris, limit, reason):
    quick = QUICK | COUNTED | {"max_evaluations": 50_000} | limit
    assert CoevoClassifier(**quick).fit(*iris).stop_reason_ == reason


@pytest.mark.parametrize(
    ("estimator", "fitness", "match"),
    [
        (CoevoClassifier, "acuracy", "balanced_accuracy.*neg_brier_score"),
        (CoevoRegressor, "r3", "squared_error.*r2"),
        (CoevoClassifier, "squared_error", "measure for regression"),
        (CoevoRegressor, "accuracy", "measure for classification"),
        (CoevoClassifier, "f1", "f1_macro"),
        (CoevoClassifier, 3, "must be a name"),
        (CoevoClassifier, lambda t, p: np.nan, "NaN"),
    ],
)
def test_a_fitness_that_makes_no_sense_is_refused(iris, estimator, fitness, match):
    with pytest.raises((ValueError, TypeError), match=match):
        estimator(**QUICK, fitness=fitness).fit(*iris)


# ------------------------------------------------------------------------------ runs and going on


def test_the_random_state_decides(iris):
    X, y = iris
    np.random.seed(0)  # noqa: NPY002  (the point is that it is left alone)
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    def genotype(random_state):
        quick = QUICK | {"random_state": random_state, "max_evaluations": 500}
        return CoevoClassifier(**quick).fit(X, y).network_.genotype

    for make in (lambda: 5, lambda: np.random.RandomState(5), lambda: np.random.default_rng(5)):
        np.testing.assert_array_equal(genotype(make()), genotype(make()))
    assert not np.array_equal(genotype(5), genotype(6))
    assert not np.array_equal(genotype(None), genotype(None))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_history_is_ready_for_pandas(iris):
    classifier = CoevoClassifier(**QUICK).fit(*iris)
    frame = pd.DataFrame(classifier.history_)
    assert frame["evaluations"].iloc[-1] == classifier.n_evaluations_ >= QUICK["max_evaluations"]
    assert frame["generation"].iloc[-1] == classifier.n_iter_
    assert classifier.stop_reason_ == "max_evaluations"


def test_a_callback_ends_the_fit(iris):
    classifier = CoevoClassifier(
        **QUICK, callbacks=[lambda search: search.state.generation == 2]
    ).fit(*iris)
    assert (classifier.n_iter_, classifier.stop_reason_) == (2, "callback")


def test_verbose_speaks_to_the_log_and_never_prints(iris, caplog, capfd):
    quick = QUICK | {"max_evaluations": 500}
    with caplog.at_level(logging.INFO, "coevo"):
        CoevoClassifier(**quick).fit(*iris)
        assert not caplog.records
        CoevoClassifier(**quick, verbose=True).fit(*iris)
    assert "generation 1:" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_a_bar_on_a_terminal(iris, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    CoevoClassifier(**QUICK | {"max_evaluations": 500}, verbose=True).fit(*iris)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("limited", [True, False])
def test_a_warm_start_goes_on(iris, limited):
    X, y = iris
    classifier = CoevoClassifier(**QUICK, warm_start=True, limited_evaluation=limited).fit(X, y)
    generations, fitness = classifier.n_iter_, classifier.validation_fitness_
    classifier.fit(X, y)
    assert classifier.n_iter_ == pytest.approx(2 * generations, abs=2)
    assert classifier.validation_fitness_ >= fitness
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        classifier.set_params(hidden_layer_sizes=(3,)).fit(X, y)
    cold = classifier.set_params(warm_start=False).fit(X, y)
    assert cold.network_.architecture.hidden_layer_sizes == (3,)


def test_a_warm_start_on_other_data_measures_everyone_again(iris):
    X, y = iris
    other = np.roll(y, 50)  # what was right is wrong now
    classifier = CoevoClassifier(
        **QUICK | COUNTED, warm_start=True, limited_evaluation=False, decomposition="whole"
    ).fit(X, y)
    assert classifier._training.state.fitness.min() > 0.7
    n_evaluations = classifier.n_evaluations_
    classifier.set_params(max_evaluations=None, max_generations=1).fit(X, other)
    state = classifier._training.state
    population = state.subpopulations[0][0]
    for genotype, fitness in zip(population, state.fitness[0], strict=True):
        answers = classifier._training.unscaled(genotype).outputs(X).argmax(axis=1)
        assert fitness == pytest.approx(np.mean(answers == other))
    assert state.champions[0] == state.fitness[0].argmax()
    # 20 individuals measured anew and 20 trials
    assert classifier.n_evaluations_ == n_evaluations + 40


@pytest.mark.parametrize("decomposition", ["neuron", "synapse", "random"])
def test_a_warm_start_measures_everyone_in_place(iris, decomposition):
    X, y = iris
    classifier = CoevoClassifier(
        (3,), decomposition=decomposition, group_size=9, redraw_groups_every=2, weight_decay=0.1,
        limited_evaluation=False, max_evaluations=None, max_generations=3, population_size=6,
        random_state=1, dtype="float64", warm_start=True,
    ).fit(X, y, X_val=X, y_val=y)  # fmt: skip
    training, settings = classifier._training, classifier._settings_of_fit
    state, decomposition = training.state, training.decomposition
    data = training.scale(Data(X, y), "float64")
    parts = (training.architecture, decomposition, Accuracy(), data, data)
    training.turn_to(BatchedEvaluator(*parts), settings)
    if state.gene_order is not None:
        decomposition = decomposition.redraw(state.gene_order)
    individuals = [x for part in state.subpopulations for x in part]
    for i, group in enumerate(decomposition.groups):
        networks = np.tile(state.global_solution, (6, 1))
        networks[:, group] = individuals[i]
        outputs = training.architecture.forward(networks, data.inputs)
        expected = Accuracy()(outputs, y) - 0.1 * (individuals[i] ** 2).mean(axis=1)
        np.testing.assert_allclose(state.fitness[i], expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_warm_start_learns_what_is_new(iris, estimator):
    X, y = iris
    other = np.roll(y, 50)
    warm = estimator(**QUICK, warm_start=True, limited_evaluation=False).fit(X, y)
    warm.fit(X, other)
    assert warm.score(X, other) > warm.score(X, y)
    assert warm.score(X, other) > 0.6


def test_a_pickled_estimator_predicts_and_goes_on(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK, warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copy.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(
        copy.fit(X, y).network_.genotype, classifier.fit(X, y).network_.genotype
    )


# ---------------------------------------------------------------------------------------- streams


def test_a_stream_is_learnt_batch_by_batch(rng):
    X = rng.uniform(-1, 1, (6_000, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.3, "yes", "no")
    test = slice(5_000, None)
    classifier = CoevoClassifier((8,), random_state=0, n_threads=1)
    seen = []
    for start in range(0, 5_000, 250):
        batch = slice(start, start + 250)
        classifier.partial_fit(X[batch], y[batch], classes=["yes", "no"])
        seen.append(classifier.n_iter_)
    assert seen == list(range(1, 21))
    assert classifier.score(X[test], y[test]) > 0.85
    first = CoevoClassifier((8,), random_state=0, n_threads=1)
    first.partial_fit(X[:250], y[:250], classes=["yes", "no"])
    assert classifier.score(X[test], y[test]) > first.score(X[test], y[test])


@pytest.mark.parametrize("decay", [0.2, 1.0])
def test_fitness_is_inherited_from_batch_to_batch(iris, decay):
    X, y = iris
    classifier = CoevoClassifier(**QUICK | COUNTED, decay=decay)
    classifier.partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    classifier.partial_fit(X[1::2], y[1::2])
    # Accuracy alone is at most 1; what is more comes from the first batch.
    assert (classifier._training.state.fitness.max() > 1) == (decay < 1)


def test_a_streams_validation_set_keeps_the_best_network(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK | COUNTED, generations_per_batch=3)
    classifier.partial_fit(X, y, classes=[0, 1, 2], X_val=X, y_val=y)
    best = [classifier.validation_fitness_]
    for _ in range(5):
        classifier.partial_fit(X, np.roll(y, 50))  # misled, but the best is kept
        best.append(classifier.validation_fitness_)
    assert classifier.n_iter_ == 18
    assert (np.diff(best) >= 0).all()
    assert classifier.score(X, y) == pytest.approx(best[-1])


def test_a_regressors_stream(numbers):
    X, y = numbers
    regressor = CoevoRegressor((4,), random_state=0, n_threads=1, generations_per_batch=4)
    for start in (0, 150, 300, 0, 150, 300):
        regressor.partial_fit(X[start : start + 150], y[start : start + 150])
    assert regressor.score(X, y) > 0.2
    with pytest.raises(ValueError, match="columns"):
        regressor.partial_fit(X, np.column_stack([y, y]))


def test_a_stream_that_does_not_hang_together_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        CoevoClassifier(**QUICK).partial_fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        CoevoClassifier(**QUICK, class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    classifier = CoevoClassifier(**QUICK).partial_fit(X[:60], y[:60], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not those of the calls before"):
        classifier.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="features"):
        classifier.partial_fit(X[:, :2], y)


def test_a_fit_can_be_followed_by_a_stream(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK).fit(X, y)
    generations = classifier.n_iter_
    assert classifier.partial_fit(X, y).n_iter_ == generations + 1


# ------------------------------------------------------------------------------------------ files


def test_saved_estimators_predict_the_same(iris, numbers, tmp_path):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    classifier = CoevoClassifier(**QUICK).fit(frame, np.array(["p", "q", "r"])[y])
    classifier.save(tmp_path / "model.safetensors")
    loaded = CoevoClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(frame), classifier.predict_proba(frame))
    np.testing.assert_array_equal(loaded.predict(frame), classifier.predict(frame))
    plain = model.load(tmp_path / "model.safetensors")
    assert plain.settings["hidden_layer_sizes"] == [6]
    assert plain.settings["seed"] == QUICK["random_state"]
    assert plain.fitness["train"] == classifier.train_fitness_
    np.testing.assert_array_equal(plain.predict(X), classifier.predict(frame))
    with pytest.raises(ValueError, match="classifier"):
        CoevoRegressor.load(tmp_path / "model.safetensors")
    X, y = numbers
    regressor = CoevoRegressor(**QUICK).fit(X, y)
    regressor.save(tmp_path / "model.safetensors")
    loaded = CoevoRegressor.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), regressor.predict(X))
    with pytest.raises(ValueError, match="regressor"):
        CoevoClassifier.load(tmp_path / "model.safetensors")
    regressor.set_params(fitness="r2", max_evaluations=300).fit(X, y)
    regressor.save(tmp_path / "model.safetensors")
    assert model.load(tmp_path / "model.safetensors").settings["fitness"]["type"] == "ScorerFitness"
    with pytest.raises(NotFittedError):
        CoevoRegressor().save(tmp_path / "none")


# ----------------------------------------------------------------------- control and other options


@pytest.mark.parametrize("control", ["dither", "jde", "shade"])
def test_a_control_goes_on_with_what_it_has_learnt(iris, control):
    arguments = QUICK | {
        "control": control, "strategy": "current-to-pbest/1", "warm_start": True, "random_state": 1,
    }  # fmt: skip
    classifier = CoevoClassifier(**arguments).fit(*iris)
    memory = classifier._training.state.control
    learnt = {name: array.copy() for name, array in memory.items()}
    classifier.fit(*iris)
    assert classifier._training.state.control is memory
    assert all(not np.array_equal(memory[name], learnt[name]) for name in learnt)
    classifier.set_params(control="fixed").fit(*iris)  # another control begins anew
    assert classifier._training.state.control == {}


@pytest.mark.parametrize("control", ["dither", "jde", "shade"])
def test_a_stream_with_each_control(iris, control):
    X, y = iris
    classifier = CoevoClassifier((4,), control=control, random_state=1)
    for start in range(3):
        classifier.partial_fit(X[start::3], y[start::3], classes=np.unique(y))
    assert classifier.n_iter_ == 3


def test_subpopulations_shrink_and_stay_small(iris):
    arguments = QUICK | {"final_population_size": 5, "warm_start": True, "random_state": 1}
    classifier = CoevoClassifier(**arguments).fit(*iris)
    size = classifier._training.state.fitness.shape[1]
    assert 5 <= size < classifier.population_size
    generations = classifier.n_iter_
    classifier.fit(*iris)
    assert classifier._training.state.fitness.shape[1] <= size
    assert classifier.n_iter_ > generations


@pytest.mark.parametrize("argument", ["final_population_size", "final_batch_size"])
def test_a_stream_has_no_budget_to_follow(iris, argument):
    with pytest.raises(ValueError, match=f"{argument} follows the budget, and a stream has none"):
        CoevoClassifier(**{argument: 10}).partial_fit(*iris, classes=[0, 1, 2])


def test_growing_batches_are_limited_to_the_data(iris):
    classifier = CoevoClassifier(
        **QUICK | {"batch_size": 30, "final_batch_size": 1000, "reshuffle_batches": True}
    ).fit(*iris)
    assert classifier._training.state.batches.n_batches < 5


def test_a_fit_begins_around_a_network(numbers):
    X, y = numbers
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant, which has no scale
    first = CoevoRegressor(**QUICK | {"random_state": 1}).fit(X, y)
    second = CoevoRegressor(
        **QUICK | {"random_state": 2, "initial_range": 0.01, "dtype": "float64", "fitness": "r2"}
    )
    second.fit(X, y, X_val=X, y_val=y, initial_network=first.network_)
    assert second.history_["validation_fitness"][0] == pytest.approx(first.score(X, y))
    assert second.score(X, y) >= first.score(X, y)
    second.set_params(warm_start=True)
    with pytest.raises(ValueError, match="initial_network begins a search, and warm_start=True"):
        second.fit(X, y, initial_network=first.network_)
