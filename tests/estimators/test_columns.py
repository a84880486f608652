"""Missing values, categorical columns and sparse matrices: fitted, saved and exported."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from coevo import CoevoClassifier, CoevoRegressor, export_onnx, load_model
from coevo.estimators.columns import CategoricalColumn, Columns
from coevo.estimators.inputs import Inputs, learn_encoding
from coevo.persistence import model
from coevo.persistence.model import ModelError

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}


@pytest.fixture(scope="session")
def frame():
    """Return a frame whose target depends on which town it is and whether `b` is missing."""
    rng = np.random.default_rng(4)
    town = rng.choice(["Bonn", "Köln", "Trier"], 400)
    b = np.where(rng.random(400) < 0.3, np.nan, rng.normal(size=400))
    return pd.DataFrame(
        {
            "a": rng.normal(size=400),
            "town": pd.Categorical(np.where(rng.random(400) < 0.1, None, town)),
            "b": b,
            "floor": rng.integers(0, 3, 400),
        }
    )


@pytest.fixture(scope="session")
def labels(frame):
    return ((frame["town"] == "Köln") | frame["b"].isna()).to_numpy()


@pytest.fixture(scope="session")
def fitted(frame, labels):
    return CoevoClassifier(**QUICK | {"max_evaluations": 20_000}).fit(frame, labels)


def run_graph(exported, given):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, given)


def test_missing_values_and_categories_are_learned_from(fitted, frame, labels):
    assert fitted.score(frame, labels) > 0.97
    assert fitted.encoding_.input_names == [
        "a", "b", "floor", "b is missing", "town=", "town=Bonn", "town=Köln", "town=Trier",
    ]  # fmt: skip
    assert fitted.n_features_in_ == 4
    assert fitted.is_categorical_.tolist() == [False, True, False, False]
    assert fitted.network_.architecture.n_inputs == 8


def test_inputs_are_medians_indicators_and_categories(frame):
    quick = QUICK | {"max_evaluations": 100}
    classifier = CoevoClassifier(**quick, validation_fraction=0.0).fit(frame, frame["floor"])
    inputs = classifier.encode(frame)
    is_missing = frame["b"].isna().to_numpy()
    expected = [frame["a"], frame["b"].fillna(frame["b"].median()), frame["floor"], is_missing]
    texts = frame["town"].astype(object).fillna("")
    expected += [texts == town for town in ("", "Bonn", "Köln", "Trier")]
    np.testing.assert_array_equal(inputs, np.column_stack(expected).astype(float))
    ranges = classifier.encoding_.ranges
    assert ranges["a"] == (frame["a"].min(), frame["a"].max())
    assert classifier.encoding_.inputs_of_columns == {
        "a": [0], "town": [4, 5, 6, 7], "b": [1, 3], "floor": [2],
    }  # fmt: skip


def test_what_is_kept_for_validation_is_not_learned_from():
    columns = Columns(
        ("x", "t"),
        np.array([[1.0], [2.0], [4.0], [np.nan]]),
        None,
        {"t": CategoricalColumn.read(["a", "b", "b", "c"])},
    )
    encoding = learn_encoding(columns, rows=np.array([0, 1, 2]))
    assert encoding.medians == {"x": 2.0}
    assert encoding.ranges == {"x": (1.0, 4.0)}
    assert encoding.indicators == ()
    assert encoding.categories == {"t": ("a", "b")}
    inputs = Inputs(columns, encoding)[slice(None)]
    assert inputs.tolist() == [[1, 1, 0], [2, 0, 1], [4, 0, 1], [2, 0, 0]]


@pytest.mark.parametrize("how", ["names", "positions", "flags", "objects", "polars", "texts"])
def test_categories_may_be_given_in_many_ways(fitted, frame, labels, how):
    chosen = {"names": ["town"], "positions": [1], "flags": [False, True, False, False]}
    given, features = frame, chosen.get(how, "from_dtype")
    if how == "objects":
        given, features = frame.to_numpy(dtype=object), [1]
    elif how == "polars":
        texts = frame["town"].astype(object).where(frame["town"].notna(), None)
        given = pl.DataFrame({c: frame[c].to_numpy() for c in ("a", "b", "floor")})
        given.insert_column(1, pl.Series("town", texts.tolist(), dtype=pl.Categorical))
    elif how == "texts":
        given, features = frame.assign(town=frame["town"].astype("string")), ["town"]
    quick = QUICK | {"max_evaluations": 20_000}
    other = CoevoClassifier(**quick, categorical_features=features).fit(given, labels)
    np.testing.assert_array_equal(other.predict_proba(given), fitted.predict_proba(frame))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_numbers_may_be_categories(make, rng):
    codes = rng.integers(0, 4, 300).astype(float)
    X = np.column_stack([rng.normal(size=300), codes])
    y = (codes == 2) | (codes == 3)
    X[::50, 1] = np.nan
    classifier = CoevoClassifier(**QUICK, categorical_features=[1]).fit(make(X), y)
    assert classifier.encoding_.categories == {"x1": ("", "0", "1", "2", "3")}
    assert classifier.encoding_.medians.keys() == {"x0"}
    assert classifier.score(make(X), y) > 0.95


def test_lists_may_hold_texts_and_numbers(frame, labels, fitted):
    rows = frame.astype(object).to_numpy().tolist()
    quick = QUICK | {"max_evaluations": 20_000}
    other = CoevoClassifier(**quick, categorical_features=[1]).fit(rows, labels)
    np.testing.assert_array_equal(other.predict_proba(rows), fitted.predict_proba(frame))
    with pytest.raises(ValueError, match="Expected 2D array"):
        CoevoClassifier(**quick, categorical_features=[1]).fit(rows[0], labels[:4])


def test_unknown_categories_are_none_of_the_known(fitted, frame):
    assert not fitted.encode(frame.assign(town="Mainz"))[:, 4:].any()


def test_a_saved_model_knows_its_columns(fitted, frame, tmp_path):
    fitted.save(tmp_path / "m")
    loaded = CoevoClassifier.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
    assert loaded.encoding_ == fitted.encoding_
    assert loaded.feature_names_in_.tolist() == ["a", "town", "b", "floor"]
    assert loaded.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["town", "a", "b", "floor"]])


def test_a_graph_with_categories_takes_columns(fitted, frame, tmp_path):
    given = {name: frame[[name]].to_numpy(dtype=np.float64) for name in ("a", "b", "floor")}
    given["town"] = frame[["town"]].astype(object).fillna("").to_numpy(copy=True)
    given["town"][0] = "Mainz"
    fitted.save(tmp_path / "m")
    expected = frame.assign(town=frame["town"].astype(object))
    expected.loc[0, "town"] = "Mainz"
    with pytest.warns(UserWarning, match="Mainz"):
        probabilities = fitted.predict_proba(expected)
    for each in (fitted, load_model(tmp_path / "m")):
        _, found = run_graph(export_onnx(each), given)
        np.testing.assert_allclose(found, probabilities, atol=1e-9)


def test_a_graph_of_numbers_takes_nan(rng, tmp_path):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] * 2
    X[::4, 1] = np.nan
    regressor = CoevoRegressor(**QUICK).fit(X, y)
    regressor.save(tmp_path / "m")
    X[1, 2] = np.nan  # which never was missing in training
    with pytest.warns(UserWarning, match="'x2' misses values, and missed none in training"):
        expected = regressor.predict(X)
    assert np.isfinite(expected).all()
    for each in (regressor, load_model(tmp_path / "m")):
        (found,) = run_graph(export_onnx(each), {"input": X})
        np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)


def test_a_pipelines_graph_takes_nan(rng):
    pytest.importorskip("skl2onnx")
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = X[:, 0] > 0
    X[::4, 1] = np.nan
    pipeline = make_pipeline(FunctionTransformer(), CoevoClassifier(**QUICK)).fit(X, y)
    labels, _ = run_graph(export_onnx(pipeline), {"input": X})
    np.testing.assert_array_equal(labels, pipeline.predict(X))


def test_a_stream_takes_missing_values_and_categories(frame, labels):
    classifier = CoevoClassifier(**QUICK, generations_per_batch=3)
    for start in range(0, 400, 100):
        here = slice(start, start + 100)
        classifier.partial_fit(frame[here], labels[here], classes=[False, True])
    assert classifier.score(frame, labels) > 0.8
    assert classifier.encoding_.ranges["a"] == (frame["a"].min(), frame["a"].max())


def test_sparse_matrices_are_fitted_as_dense_ones(rng):
    X = np.where(rng.random((300, 12)) < 0.8, 0, rng.normal(size=(300, 12)))
    X[0, 3] = np.nan
    y = X[:, 0] + X[:, 1] > 0
    dense = CoevoClassifier(**QUICK).fit(X, y)
    for make in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        other = CoevoClassifier(**QUICK).fit(make(X), y)
        np.testing.assert_array_equal(other.predict_proba(make(X)), dense.predict_proba(X))


def test_a_sparse_matrix_that_is_too_large_when_dense_is_refused(monkeypatch):
    X = sparse.random(2000, 500, density=0.01, format="csr", random_state=0)
    monkeypatch.setattr("coevo.runtime.memory.find_size", lambda: 10**6)
    with pytest.raises(ValueError, match=r"X is sparse.* 2,000 × 500 .* 0.004 GB .*SVD"):
        CoevoClassifier(**QUICK).fit(X, np.arange(2000) % 2)


def test_medians_of_empty_columns_and_of_long_ones(rng):
    X = rng.normal(size=(9000, 3))
    X[:, 0] = np.nan
    X[np.arange(9000) != 17, 1] = np.nan  # the one value is not among those sampled
    columns = Columns(("a", "b", "c"), X, None, {})
    encoding = learn_encoding(columns)
    assert encoding.medians["a"] == 0
    assert encoding.medians["b"] == X[17, 1]
    assert encoding.medians["c"] == pytest.approx(np.median(X[:, 2]), abs=0.05)
    assert encoding.indicators == ("a", "b")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("dtype", "categorical_features='dtype' is unknown; choose one of from_dtype"),
        (["city"], "categorical_features='city' is unknown; choose one of a, town, b, floor"),
        ([4], "categorical_features must be at most 3"),
        ([-1], "categorical_features must be at least 0"),
        ([1.5], "categorical_features must be a whole number"),
        ([True, False], "categorical_features has 2 flags, and X has 4 columns"),
        (7, "categorical_features must be 'from_dtype', None or a list"),
        (None, "X holds text in a column that is not categorical .* makes it categorical"),
    ],
)
def test_bad_categorical_features_are_named(frame, labels, features, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CoevoClassifier(**QUICK, categorical_features=features).fit(frame, labels)


def test_texts_that_are_not_categorical_are_refused_with_the_remedy(frame, labels):
    texts = frame.assign(town=frame["town"].astype(object).fillna("none"))
    with pytest.raises(ValueError, match='"category"'):
        CoevoClassifier(**QUICK).fit(texts, labels)


def test_the_most_frequent_categories_have_an_input():
    texts = ["b"] * 3 + ["a"] * 2 + ["c"] * 2 + [None] * 4 + ["d"]
    X = pd.DataFrame({"t": pd.Categorical(texts)})
    y = np.arange(len(texts)) % 2
    quick = QUICK | {"max_evaluations": 100}
    for most, known in ((1, ("",)), (3, ("", "a", "b")), (9, ("", "a", "b", "c", "d"))):
        classifier = CoevoClassifier(**quick, max_categories=most).fit(X, y)
        assert classifier.encoding_.categories == {"t": known}
    with pytest.raises(ValueError, match="max_categories must be at least 1"):
        CoevoClassifier(**quick, max_categories=0).fit(X, y)


def test_an_encoding_that_does_not_fit_is_refused(fitted, tmp_path):
    preprocessing = {"target": None, **fitted.encoding_.as_json()}
    preprocessing["indicators"] = []
    model.save(tmp_path / "m", fitted.network_, classes=[False, True], preprocessing=preprocessing)
    with pytest.raises(ModelError, match="does not fit its network"):
        CoevoClassifier.load(tmp_path / "m")


@pytest.mark.parametrize("kind", ["sparse", "frame"])
def test_resuming_asks_for_the_same_columns(kind, rng, path, assert_same_fit):
    values = np.where(rng.random((200, 3)) < 0.5, 0, rng.normal(size=(200, 3)))
    y = values[:, 0] > 0
    X = sparse.csr_array(values)
    other = sparse.csr_array(values * 2)
    if kind == "frame":
        X = pd.DataFrame({"t": pd.Categorical(np.where(y, "a", "b")), "x": values[:, 1]})
        other = X.assign(t=X["t"].cat.rename_categories({"a": "c"}))
    quick = QUICK | {"strategy": "rand/1"}
    CoevoClassifier(**quick | {"max_evaluations": 800}, checkpoint=path).fit(X, y)
    quick |= {"max_evaluations": 2_000}
    more = quick | {"checkpoint": path, "resume": True}
    with pytest.raises(ValueError, match="inputs X"):
        CoevoClassifier(**more).fit(other, y)
    resumed = CoevoClassifier(**more).fit(X, y)
    assert_same_fit(resumed, CoevoClassifier(**quick).fit(X, y))
