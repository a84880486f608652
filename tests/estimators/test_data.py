"""What users hand to an estimator: frames, weights, validation sets."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import make_classification

from coevo import CoevoClassifier
from coevo.estimators.data import MIN_VALIDATION
from coevo.persistence import model

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}
COUNTED = {"fitness": "accuracy"}


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


def test_instances_of_no_weight_are_no_instances(binary):
    X, y = binary
    weights = np.ones(len(X))
    weights[::3] = 0
    weighted = CoevoClassifier(**QUICK).fit(X, y, sample_weight=weights)
    without = CoevoClassifier(**QUICK).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(weighted.network_.genotype, without.network_.genotype)


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
    X, y = make_classification(n_samples=5 * MIN_VALIDATION, weights=[0.8], random_state=0)
    classifier = CoevoClassifier(**QUICK)
    data = classifier._check_data(X, y, None, reset=True)
    kept, split_off = classifier._split(data, 0)
    assert sorted([*kept, *split_off]) == list(range(len(X)))
    assert len(split_off) == MIN_VALIDATION
    assert y[split_off].mean() == pytest.approx(y.mean(), abs=0.03)
    assert classifier._split(data[slice(0, 80)], 0) == (None, None)


def test_a_rare_class_is_trained_on_and_the_others_validated(rng):
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    y[17] = "on"  # mistyped
    classifier = CoevoClassifier(**QUICK | COUNTED).fit(X, y)
    assert classifier.chosen_on_ == "validation"
    assert classifier.classes_.tolist() == ["no", "on", "yes"]
    data = classifier._check_data(X, y, None, reset=True)
    kept, split_off = classifier._split(data, 1)
    assert 17 in kept
    assert len(split_off) == 120
    answers = classifier.predict(X[split_off])
    assert classifier.validation_fitness_ == pytest.approx(np.mean(answers == y[split_off]))


def test_estimators_say_what_the_network_was_chosen_on(binary, tmp_path):
    X, y = binary
    quick = QUICK | {"max_evaluations": 400}
    few = CoevoClassifier(**quick, validation_fraction=0.01).fit(X, y)
    assert few.chosen_on_ == "training"
    few.save(tmp_path / "model")
    assert model.load(tmp_path / "model").fitness.keys() == {"train"}
    given = CoevoClassifier(**quick).fit(X, y, X_val=X, y_val=y)
    assert given.chosen_on_ == "validation"
    given.save(tmp_path / "model")
    assert model.load(tmp_path / "model").fitness.keys() == {"train", "validation"}
    assert (
        CoevoClassifier(**quick).fit(np.tile(X, (2, 1)), np.tile(y, 2)).chosen_on_ == "validation"
    )
    stream = CoevoClassifier(**quick).partial_fit(X, y, classes=[0, 1])
    assert stream.chosen_on_ == "training"
    assert stream.partial_fit(X, y, X_val=X, y_val=y).chosen_on_ == "validation"


# ----------------------------------------------------------------------------- what is refused


def missing(values, missing_value, place=0):
    objects = values.astype(object)
    objects[place] = missing_value
    return objects


DATES = np.arange("2020-01-01", "2020-05-30", dtype="datetime64[D]")
FRAME = pd.DataFrame({"a": DATES, "b": 1.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.ma.masked_array(X, X > 7), y), "X is a masked array"),
        (lambda X, y: (X, np.ma.masked_array(y, y > 1)), "y is a masked array"),
        (lambda X, y: (X, y, np.ma.masked_array(X[:, 0], X[:, 0] > 7)), "sample_weight is a"),
        (lambda X, y: (X + 1j, y), "X must be real, not complex"),
        (lambda X, y: (missing(X, pd.NA, (0, 0)), y), "X must be an array of numbers.*NAType"),
        (lambda X, y: (pd.DataFrame(missing(X, pd.NA, (0, 0))), y), "X must be an array of"),
        (lambda X, y: (DATES[:, np.newaxis], y), "X must be numbers, not dates"),
        (lambda X, y: (FRAME, y), "X must be numbers, not dates"),
        (lambda X, y: (X, missing(y, pd.NA)), "y must not hold missing labels"),
        (lambda X, y: (X, missing(y, None)), "y must not hold missing labels"),
        (lambda X, y: (X, missing(y, np.nan)), "y must not hold missing labels"),
        (lambda X, y: (X, missing(y, pd.NaT)), "y must not hold missing labels"),
        (lambda X, y: (X, pd.Series(missing(y.astype(str), None), dtype="string")), "missing"),
        (lambda X, y: (X, np.where(y < 1, DATES, np.datetime64("NaT"))), "missing labels"),
        (lambda X, y: (X, missing(y, "a")), "y mixes labels of types .*: int, str; give"),
        (lambda X, y: (X * 2e307, y), r"X must be within ±1e\+150"),
    ],
)  # fmt: skip
def test_data_that_would_be_misread_are_refused_by_name(iris, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CoevoClassifier(**QUICK).fit(*change(*iris))


def test_a_validation_set_that_would_be_misread_is_refused_by_name(iris):
    X, y = iris
    for changed, message in (
        ({"X_val": np.ma.masked_array(X, X > 7)}, "X_val is a masked array"),
        ({"X_val": X + 1j}, "X_val must be real"),
        ({"y_val": missing(y, pd.NA)}, "y_val must not hold missing labels"),
        ({"y_val": missing(y, "a")}, "y holds the label 'a', which is not among the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            CoevoClassifier(**QUICK).fit(X, y, **{"X_val": X, "y_val": y} | changed)


def test_unscaled_inputs_have_a_limit(iris):
    X, y = iris
    with pytest.raises(ValueError, match="X must be within"):
        CoevoClassifier(**QUICK, scale_inputs=False, dtype="float64").fit(X * 2e307, y)


def test_a_validation_fraction_that_leaves_too_little_is_refused(iris):
    X, y = (np.repeat(part, 5, axis=0) for part in iris)
    message = "validation_fraction=0.999 leaves 1 of 750 instances to train on, too few for 3 class"
    with pytest.raises(ValueError, match=message):
        CoevoClassifier(**QUICK, validation_fraction=0.999).fit(X, y)


@pytest.mark.parametrize("validation", ["split", "given"])
@pytest.mark.parametrize("columns", ["plain", "missing", "categorical"])
def test_a_fit_copies_the_instances_once(validation, columns):
    X = np.random.default_rng(0).random((100_000, 250), dtype=np.float32)  # 100 MB
    y = (X[:, 0] > 0.5).astype(int)
    features = None
    if columns == "missing":
        X[::3, :5] = np.nan
    elif columns == "categorical":
        X[:, 1] = np.arange(len(X)) % 5
        features = [1]
    data = {"X": X, "y": y}
    if validation == "given":
        data = {"X": X[20_000:], "y": y[20_000:], "X_val": X[:20_000], "y_val": y[:20_000]}
    classifier = CoevoClassifier(
        (5,), max_generations=1, random_state=0, n_threads=1, categorical_features=features
    )
    classifier.fit(X[:1000], y[:1000])  # compile
    tracemalloc.start()
    try:
        classifier.fit(**data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * X.nbytes
