"""Multilabel targets: one logit a label, from fit to an exported graph."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, f1_score, get_scorer, hamming_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from coevo import CoevoClassifier, CoevoRegressor, export_onnx, load_model, make_metric
from coevo.core.label_metrics import LabelFBeta

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 6_000, "random_state": 1, "n_threads": 1}


@pytest.fixture(scope="session")
def data():
    return make_multilabel_classification(
        n_samples=400, n_features=8, n_classes=3, n_labels=2, random_state=5
    )


@pytest.fixture(scope="session")
def fitted(data):
    return CoevoClassifier(**QUICK).fit(*data)


def run_graph(exported, X):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["labels", "probabilities"], {"input": X})


def test_each_label_has_a_logit(data, fitted):
    X, y = data
    assert fitted.score(X, y) == accuracy_score(y, fitted.predict(X)) > 0.5
    assert hamming_loss(y, fitted.predict(X)) < 0.2
    assert [classes.tolist() for classes in fitted.classes_] == [[0, 1]] * 3
    logits = fitted.decision_function(X)
    assert logits.shape == y.shape
    np.testing.assert_array_equal(fitted.predict(X), logits > 0)
    np.testing.assert_allclose(fitted.predict_proba(X), 1 / (1 + np.exp(-logits)), atol=1e-12)
    assert fitted.settings_.fitness.name == "cross_entropy"
    assert fitted.engine_ == "delta"


@pytest.mark.parametrize(
    ("fitness", "metric"),
    [
        ("accuracy", accuracy_score),
        ("label_accuracy", lambda y, p: 1 - hamming_loss(y, p)),
        ("f1_macro", lambda y, p: f1_score(y, p, average="macro")),
        ("f1_weighted", lambda y, p: f1_score(y, p, average="weighted")),
        (LabelFBeta(average="samples"), lambda y, p: f1_score(y, p, average="samples")),
        (hamming_loss, lambda y, p: -hamming_loss(y, p)),
        (make_metric(lambda y, p: np.mean(y == p)), lambda y, p: np.mean(y == p)),
        (get_scorer("f1_micro"), lambda y, p: f1_score(y, p, average="micro")),
    ],
)
def test_whatever_the_fitness_is_it_is_maximised(data, fitness, metric):
    X, y = data
    quick = QUICK | {"max_evaluations": 2_000, "validation_fraction": 0.0}
    classifier = CoevoClassifier(**quick, fitness=fitness).fit(X, y)
    best = classifier.history_["best_validation"]
    assert best[-1] > best[0]
    assert classifier.train_fitness_ == pytest.approx(metric(y, classifier.predict(X)))


def test_scorers_of_probabilities_serve_two_labels_too(data):
    X, y = data[0], data[1][:, :2]
    classifier = CoevoClassifier(**QUICK, fitness="roc_auc").fit(X, y)
    expected = roc_auc_score(y, classifier.predict_proba(X))
    assert get_scorer("roc_auc")(classifier, X, y) == pytest.approx(expected)
    assert (cross_val_score(classifier, X, y, scoring="roc_auc", cv=2) > 0.6).all()


@pytest.mark.parametrize("make", [sparse.csr_array, lambda y: y.tolist(), lambda y: y == 1])
def test_labels_may_be_given_in_many_ways(data, fitted, make):
    X, y = data
    other = CoevoClassifier(**QUICK).fit(X, make(y))
    np.testing.assert_array_equal(other.network_.genotype, fitted.network_.genotype)
    assert isinstance(other.predict(X), np.ndarray)


def test_a_saved_model_knows_its_labels(data, tmp_path):
    X, y = data
    names = ["sport", "politics", "Köln"]
    classifier = CoevoClassifier(**QUICK).fit(X, pd.DataFrame(y, columns=names))
    classifier.save(tmp_path / "m")
    content = load_model(tmp_path / "m")
    assert content.labels == tuple(names)
    np.testing.assert_array_equal(content.predict(X), classifier.predict(X))
    loaded = CoevoClassifier.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert loaded.score(X, y) == classifier.score(X, y)
    loaded.save(tmp_path / "again")
    assert load_model(tmp_path / "again").labels == tuple(names)
    with pytest.raises(ValueError, match="model of a classifier"):
        CoevoRegressor.load(tmp_path / "m")
    for each in (classifier, content):
        labels, probabilities = run_graph(export_onnx(each), X)
        np.testing.assert_array_equal(labels, classifier.predict(X))
        np.testing.assert_allclose(probabilities, classifier.predict_proba(X), atol=1e-9)


def test_a_pipelines_graph_has_labels(data):
    pytest.importorskip("skl2onnx")
    X, y = data[0].astype(np.float32), data[1]
    pipeline = make_pipeline(MinMaxScaler(), CoevoClassifier(**QUICK)).fit(X, y)
    labels, probabilities = run_graph(export_onnx(pipeline), X)
    np.testing.assert_array_equal(labels, pipeline.predict(X))
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), atol=1e-5)


def test_a_stream_of_labels_needs_no_classes(data):
    X, y = data
    classifier = CoevoClassifier(**QUICK, generations_per_batch=10)
    for start in range(0, 400, 100):
        classifier.partial_fit(X[start : start + 100], y[start : start + 100])
    assert hamming_loss(y, classifier.predict(X)) < 0.3
    with pytest.raises(ValueError, match="y has 2 labels, there were 3"):
        classifier.partial_fit(X, y[:, :2])


def test_smoothing_serves_labels(data):
    X, y = data
    quick = QUICK | {"strategy": "smoothing", "max_evaluations": 50_000}
    classifier = CoevoClassifier(**quick).fit(X, y)
    assert hamming_loss(y, classifier.predict(X)) < 0.2
    with pytest.raises(ValueError, match="roc_auc is neither; it serves accuracy"):
        CoevoClassifier(**quick, fitness="roc_auc").fit(X, y)


def test_warm_starts_go_on_and_weights_count(data):
    X, y = data
    classifier = CoevoClassifier(**QUICK, warm_start=True).fit(X, y)
    before = classifier.n_evaluations_
    assert classifier.fit(X, y).n_evaluations_ > before
    weights = np.where(y[:, 0] > 0, 1.0, 0.0)
    weighted = CoevoClassifier(**QUICK).fit(X, y, sample_weight=weights)
    assert weighted.predict(X)[:, 0].mean() > 0.95  # all that counts has the label


def test_what_makes_no_sense_is_refused_by_name(data):
    X, y = data
    with pytest.raises(ValueError, match="multilabel y must have a column of 0 and 1"):
        CoevoClassifier(**QUICK).fit(X, y + 1)
    with pytest.raises(ValueError, match="class_weight is for instances of one class each"):
        CoevoClassifier(**QUICK, class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="fitness='margin' is a metric for classification"):
        CoevoClassifier(**QUICK, fitness="margin").fit(X, y)
    with pytest.raises(ValueError, match=r"fitness='profits' is unknown; .* label_accuracy"):
        CoevoClassifier(**QUICK, fitness="profits").fit(X, y)
    with pytest.raises(ValueError, match="fitness='f_beta' is a metric for multilabel"):
        CoevoClassifier(**QUICK, fitness=LabelFBeta()).fit(X, y[:, 0])
