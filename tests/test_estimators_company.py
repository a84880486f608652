"""The estimators in company: scikit-learn's tools, its callbacks, joblib, and ONNX."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from coevo import CoevoClassifier, CoevoRegressor
from coevo.onnx_export import export_onnx

QUICK = {"hidden_layer_sizes": (5,), "max_evaluations": 2_000, "random_state": 1, "n_threads": 1}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :8], y


def test_pipeline(cancer):
    pipeline = make_pipeline(StandardScaler(), CoevoClassifier(**QUICK)).fit(*cancer)
    assert pipeline.score(*cancer) > 0.8


def test_grid_search(cancer):
    grid = GridSearchCV(
        CoevoClassifier(**QUICK), {"hidden_layer_sizes": [(3,), (5,)], "decay": [0.2, 1.0]}, cv=2
    ).fit(*cancer)
    assert set(grid.best_params_) == {"hidden_layer_sizes", "decay"}
    assert grid.best_score_ > 0.8


def test_cross_validate(cancer):
    scores = cross_validate(
        CoevoClassifier(**QUICK, fitness="f1"), *cancer, cv=3, scoring=["f1", "roc_auc"]
    )
    assert scores["test_f1"].min() > 0.8


def test_calibration(cancer):
    X, y = cancer
    calibrated = CalibratedClassifierCV(CoevoClassifier(**QUICK), cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.8


def test_permutation_importance(cancer):
    X, y = cancer
    classifier = CoevoClassifier(**QUICK).fit(np.column_stack([X, np.ones(len(X))]), y)
    found = permutation_importance(
        classifier, np.column_stack([X, np.ones(len(X))]), y, n_repeats=2, random_state=0
    )
    assert found.importances_mean[-1] == 0 < found.importances_mean.max()


def test_joblib_in_parallel(cancer):
    X, y = cancer
    fits = [
        joblib.delayed(CoevoClassifier(**QUICK | {"random_state": seed}).fit)(X, y)
        for seed in (0, 1)
    ]
    there = joblib.Parallel(n_jobs=2)(fits)
    for seed, classifier in enumerate(there):
        here = CoevoClassifier(**QUICK | {"random_state": seed}).fit(X, y)
        np.testing.assert_array_equal(classifier.network_.genotype, here.network_.genotype)


# ----------------------------------------------------------------------- scikit-learn's callbacks


class Recorder:
    """Follows scikit-learn's callback protocol."""

    def __init__(self, last=None):
        self.calls, self.scores, self.last = [], [], last

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.calls.append(f"end {context.task_name}")
        self.scores.append(fitted_estimator.score(X, y))
        return context.task_id == self.last

    def teardown(self, estimator, context):
        self.calls.append("teardown")


def test_scikit_learns_callbacks_follow_a_fit(cancer):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    classifier = CoevoClassifier(**QUICK).set_callbacks(recorder).fit(*cancer)
    assert recorder.calls[:2] == ["setup", "begin fit"]
    assert recorder.calls[-2:] == ["end fit", "teardown"]
    generations = recorder.calls[2:-2]
    assert generations == ["begin generation", "end generation"] * classifier.n_iter_
    assert recorder.scores[-1] == classifier.score(*cancer)


def test_scikit_learns_callbacks_end_a_fit_and_a_pipeline_hands_them_on(cancer):
    callback = pytest.importorskip("sklearn.callback")
    classifier = CoevoClassifier(**QUICK).set_callbacks(Recorder(last=1)).fit(*cancer)
    assert (classifier.n_iter_, classifier.stop_reason_) == (2, "callback")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    pipeline = make_pipeline(StandardScaler(), CoevoClassifier(**QUICK)).set_callbacks(monitor)
    pipeline.fit(*cancer)
    regressor = CoevoRegressor(**QUICK | {"max_evaluations": 500}).set_callbacks(Recorder())
    assert regressor.fit(*cancer).n_iter_ > 0


def test_without_scikit_learns_callbacks_all_else_works():
    # As it is before version 1.9; scikit-learn's own modules have been imported by then.
    program = """
import sys, sklearn.model_selection, sklearn.pipeline
sys.modules["sklearn.callback"] = None
from coevo import CoevoClassifier
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
classifier = CoevoClassifier((3,), max_evaluations=500, random_state=0).fit(X, y)
assert not hasattr(classifier, "set_callbacks")
assert classifier.score(X, y) > 0.5
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ------------------------------------------------------------------------------------------- ONNX


def run(exported, inputs):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"input": inputs}), strict=True))


def test_an_estimator_exports_with_its_scaling(cancer):
    pytest.importorskip("onnx")
    X, y = cancer
    classifier = CoevoClassifier(**QUICK).fit(X, np.array(["no", "yes"])[y])
    answers = run(export_onnx(classifier), X)
    np.testing.assert_array_equal(answers["label"], classifier.predict(X))
    np.testing.assert_allclose(answers["probabilities"], classifier.predict_proba(X), atol=1e-9)
    regressor = CoevoRegressor(**QUICK).fit(X, 100.0 * y)
    answers = run(export_onnx(regressor), X)
    np.testing.assert_allclose(answers["output"][:, 0], regressor.predict(X), rtol=1e-9)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [0.0, 1.0], [False, True]], ids=str)
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
def test_a_pipeline_exports_whole(cancer, scaler, labels, tmp_path):
    pytest.importorskip("skl2onnx")
    X, y = cancer
    pipeline = make_pipeline(scaler(), CoevoClassifier(**QUICK)).fit(X, np.array(labels)[y])
    exported = export_onnx(pipeline, tmp_path / "pipeline.onnx")
    assert (tmp_path / "pipeline.onnx").read_bytes() == exported.SerializeToString()
    narrow = X.astype(np.float32)
    answers = run(exported, narrow)
    expected = pipeline.predict_proba(narrow)
    np.testing.assert_allclose(answers["probabilities"], expected, rtol=0, atol=1e-5)
    is_clear = np.abs(expected[:, 0] - 0.5) > 1e-3  # float32 may tip an even balance
    same = answers["label"].astype(np.array(labels).dtype) == pipeline.predict(narrow)
    assert same[is_clear].all()


def test_a_regressors_pipeline_exports_whole():
    pytest.importorskip("skl2onnx")
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), CoevoRegressor(**QUICK)).fit(X, y)
    answers = run(export_onnx(pipeline), X.astype(np.float32))
    np.testing.assert_allclose(answers["output"][:, 0], pipeline.predict(X), rtol=1e-4)


def test_labels_that_a_pipeline_cannot_export_are_refused(cancer):
    pytest.importorskip("skl2onnx")
    X, y = cancer
    classifier = CoevoClassifier(**QUICK).fit(X, y)
    classifier.classes_ = np.array([0.5, 1.5])
    pipeline = make_pipeline(StandardScaler().fit(X), classifier)
    with pytest.raises(TypeError, match="whole numbers or texts"):
        export_onnx(pipeline)
