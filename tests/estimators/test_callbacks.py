"""Callbacks, ours and scikit-learn's, and progress."""

import subprocess
import sys

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coevo import CoevoClassifier, CoevoRegressor

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1}


def test_a_callback_ends_the_fit(iris):
    classifier = CoevoClassifier(
        **QUICK, callbacks=[lambda search: search.state.generation == 2]
    ).fit(*iris)
    assert (classifier.n_iter_, classifier.stop_reason_) == (2, "callback")


def test_verbose_speaks_to_stderr_only_and_line_by_line_in_a_pipe(iris, capfd, monkeypatch):
    monkeypatch.setattr("coevo.runtime.progress._FIRST_LINE", 0.0)
    monkeypatch.setattr("coevo.runtime.progress._GROWTH", 0.0)
    quick = QUICK | {"max_evaluations": 500}
    CoevoClassifier(**quick).fit(*iris)
    assert capfd.readouterr() == ("", "")
    CoevoClassifier(**quick, verbose=True).fit(*iris)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "evaluations  gen. 2" in shown.err


def test_verbose_shows_a_bar_on_a_terminal(iris, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    CoevoClassifier(**QUICK | {"max_evaluations": 500}, verbose=True).fit(*iris)
    assert capsys.readouterr().out == ""


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


CELL = """
import numpy as np
from coevo import CoevoClassifier
X = np.random.default_rng(0).normal(size=(200, 3))
model = CoevoClassifier((3,), max_evaluations=None, max_seconds=600, verbose=True, random_state=0)
model.fit(X, X[:, 0] > 0)
print("predicts", len(model.predict(X)), "rows")
"""


def test_interrupting_a_cell_says_what_is_kept(notebook):
    is_interrupted = []

    def interrupt(kernel, message):
        data = message["content"].get("data", {})
        if "gen. " in data.get("text/plain", "") and not is_interrupted:
            is_interrupted.append(True)
            kernel.interrupt_kernel()

    shown = notebook(CELL, interrupt)
    texts = [m["content"]["text"] for m in shown if m["msg_type"] == "stream"]
    assert "interrupted in generation" in "".join(texts)
    assert "what is kept is the best network so far" in "".join(texts)
    assert "predicts 200 rows" in "".join(texts)  # after one generation perhaps
