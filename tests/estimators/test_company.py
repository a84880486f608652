"""The estimators in company: scikit-learn's tools, joblib, and ONNX."""

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from coevo import SHADE, CoevoClassifier, CoevoRegressor
from coevo.persistence.onnx import export_onnx

QUICK = {"hidden_layer_sizes": (5,), "max_evaluations": 2_000, "random_state": 1, "n_threads": 1}


def test_pipeline(cancer):
    pipeline = make_pipeline(StandardScaler(), CoevoClassifier(**QUICK)).fit(*cancer)
    assert pipeline.score(*cancer) > 0.8


def test_grid_search(cancer):
    grid = GridSearchCV(
        CoevoClassifier(**QUICK), {"hidden_layer_sizes": [(3,), (5,)], "decay": [0.2, 1.0]}, cv=2
    ).fit(*cancer)
    assert set(grid.best_params_) == {"hidden_layer_sizes", "decay"}
    assert grid.best_score_ > 0.8


@pytest.mark.parametrize("control", ["shade", SHADE()], ids=["name", "object"])
def test_grid_search_over_a_components_settings(cancer, control):
    grid = GridSearchCV(
        CoevoClassifier(**QUICK | {"max_evaluations": 500}, control=control),
        {"control__memory_size": [2, 7]},
        cv=2,
    ).fit(*cancer)
    chosen = grid.best_params_["control__memory_size"]
    assert grid.best_estimator_.settings_.control == SHADE(memory_size=chosen)
    assert grid.estimator.control == control  # what the user gave is left alone
    assert set(grid.cv_results_["param_control__memory_size"]) == {2, 7}


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
