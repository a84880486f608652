"""What both estimators share: arguments, settings, fitted attributes, model files."""

import inspect
import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score

import coevo
from coevo import (
    JDE,
    SHADE,
    BatchGrowth,
    CoevoClassifier,
    CoevoRegressor,
    CurrentToPBest,
    RandomGroups,
    Settings,
    Strategy,
)
from coevo.core.settings import describe_settings
from coevo.estimators.documentation import OWN
from coevo.persistence import model

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}
COUNTED = {"fitness": "accuracy"}
ESTIMATORS = (CoevoClassifier, CoevoRegressor)


# --------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_arguments_are_the_settings(estimator):
    arguments = inspect.signature(estimator).parameters
    settings = {field.name for field in fields(Settings)} - {"seed"} | {"random_state"}
    assert settings <= set(arguments)
    assert set(estimator().get_params(deep=False)) == set(arguments)


def test_both_estimators_have_one_signature_but_for_class_weight():
    ours, theirs = (dict(inspect.signature(kind).parameters) for kind in ESTIMATORS)
    assert ours.pop("class_weight").default is None
    assert ours == theirs


def test_defaults_are_those_of_the_settings():
    arguments = CoevoClassifier().get_params()
    for field in fields(Settings):
        if field.name != "seed":
            assert arguments[field.name] == field.default, field.name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_argument_is_documented_once(estimator):
    parameters = inspect.getdoc(estimator).partition("Attributes\n")[0]
    found = re.findall(r"^(\w+)\n(?= {4}\S)", parameters, flags=re.MULTILINE)
    assert sorted(found) == sorted(inspect.signature(estimator).parameters)
    described = " ".join(parameters.split())
    for name, text in describe_settings().items():
        assert name in OWN or name == "seed" or f"{name} {text}" in described, name
    assert set(OWN) <= {"class_weight", *found}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_settings_hold_nothing_to_be_chosen(estimator, iris):
    quick = QUICK | {"max_evaluations": 300}
    smoothed = estimator(**quick).fit(*iris).settings_
    unused = {"population_size", "scale_factor", "crossover_rate", "representative"}
    assert {f.name for f in fields(Settings) if getattr(smoothed, f.name) == "auto"} == unused
    assert "auto" not in smoothed.strategy.get_params().values()
    settings = estimator(**quick, strategy="rand/1").fit(*iris).settings_
    assert "auto" not in [getattr(settings, field.name) for field in fields(Settings)]
    is_classifier = estimator is CoevoClassifier
    assert settings.scale_factor == (0.203 if is_classifier else 0.495)
    assert settings.crossover_rate == (0.5 if is_classifier else 0.3)
    assert settings.initial_range == (4.0 if is_classifier else 0.3)
    assert settings.scale_initial_range == is_classifier
    assert settings.fitness.name == ("cross_entropy" if is_classifier else "squared_error")
    assert settings.representative == "mean"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"control__memory_size": 9}, {"control": SHADE(9)}),
        ({"control": "jde", "control__low": 0.1}, {"control": JDE(low=0.1)}),
        ({"control": JDE(), "control__low": 0.1, "control__high": 0.2}, {"control": JDE(0.1, 0.2)}),
        ({"strategy__accept_ties": False}, {"strategy": Strategy("best/1", accept_ties=False)}),
        ({"decomposition__size": 7}, {"decomposition": RandomGroups(7)}),
    ],
    ids=str,
)
def test_nested_names_set_the_settings_of_components(arguments, expected):
    classifier = CoevoClassifier(control="shade", strategy="best/1", decomposition="random")
    assert classifier.set_params(**arguments) is classifier
    for name, component in expected.items():
        assert getattr(classifier, name) == component


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("control__memory", "memory' is unknown; choose one of memory_size"),
        ("decomposition__size", "decomposition='neuron' has no setting 'size'"),
        ("activation__size", "before __='activation' is unknown; choose one of decomposition"),
        ("memory_size", "the argument 'memory_size' is now control__memory_size"),
    ],
)
def test_nested_names_that_make_no_sense_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        CoevoClassifier(control="shade").set_params(**{name: 3})


def test_components_are_seen_through_and_cloned():
    control = SHADE(memory_size=9)
    classifier = CoevoClassifier(control=control, strategy=CurrentToPBest(share=0.3))
    params = classifier.get_params(deep=True)
    assert (params["control__memory_size"], params["strategy__share"]) == (9, 0.3)
    assert "control__memory_size" not in classifier.get_params(deep=False)
    twin = clone(classifier).set_params(control__memory_size=2)
    assert (control.memory_size, twin.control.memory_size) == (9, 2)
    assert twin.strategy == classifier.strategy
    assert twin.strategy is not classifier.strategy


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
        ("max_evaluations", 10**400), ("max_seconds", 10**400), ("hidden_layer_sizes", (10**30,)),
        ("callbacks", 3), ("callbacks", print), ("callbacks", [3]), ("callbacks", "print"),
        ("checkpoint", ""), ("checkpoint", 3), ("initial_range", 1e39),
        ("initial_range", (1.0, 1e39)), ("dtype", "x"), ("dtype", 3), ("dtype", []),
        ("validation_fitness", 3), ("validation_fitness", "good"), ("validation_fitness", pd.NA),
        ("class_weight", pd.NA), ("class_weight", np.ones(2)), ("verbose", pd.NA),
        ("verbose", np.ones(2)), ("callbacks", np.array(2)), ("checkpoint", "\ud800"),
        ("decomposition", [None]), ("decomposition", [1, "a"]), ("scale_factor", 1e30),
    ],
)  # fmt: skip
def test_errors_name_the_argument(iris, argument, value):
    with pytest.raises((ValueError, TypeError), match=argument):
        CoevoClassifier(**QUICK | {argument: value}).fit(*iris)


def test_the_estimators_are_in_the_root():
    assert {"CoevoClassifier", "CoevoRegressor"} <= set(coevo.__all__)
    with pytest.raises(AttributeError, match="no attribute 'CoevoCluster'"):
        _ = coevo.CoevoCluster


@pytest.mark.parametrize(
    "arguments",
    [
        {"decomposition": "layer"}, {"decomposition": "whole"}, {"hidden_layer_sizes": (4, 3)},
        {"hidden_layer_sizes": ()}, {"dtype": "float64"}, {"activation": "sign"},
        {"limited_evaluation": False}, {"strategy": "best/1"},
        {"strategy": Strategy(synchronous=False)},
        {"validation_fitness": "f1_macro", "decomposition": "layer"},
        {"decomposition": "neuron_outgoing"},
        {"decomposition": "synapse", "validation_fitness": "f1_macro"},
        {"decomposition": RandomGroups(size=12, redraw_every=2)},
        {"decomposition": RandomGroups(redraw_every=1), "validation_fitness": "f1_macro"},
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


def test_growing_batches_are_limited_to_the_data(iris):
    classifier = CoevoClassifier(
        **QUICK, batch_size=30, extensions=[BatchGrowth(final_size=1000)], reshuffle_batches=True
    ).fit(*iris)
    assert classifier._fit_state.ongoing.state.batches.n_batches < 5


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
    assert model.load(tmp_path / "model.safetensors").settings["fitness"]["type"] == "ScorerMetric"
    with pytest.raises(NotFittedError):
        CoevoRegressor().save(tmp_path / "none")
