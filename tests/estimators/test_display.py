"""Pictures of histories."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coevo import CoevoClassifier, HistoryDisplay, evolve, plot_history

QUICK = {"hidden_layer_sizes": (4,), "max_evaluations": 1_000}


@pytest.fixture(autouse=True)
def without_a_screen():
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def fitted(iris):
    quick = QUICK | {"validation_fraction": 0.0, "random_state": 1}
    return CoevoClassifier(**quick, fitness="accuracy").fit(*iris)


def test_a_display_shows_an_estimators_history(fitted):
    display = plot_history(fitted)
    assert isinstance(display, HistoryDisplay)
    history = fitted.history_
    for name in ("batch_fitness", "validation_fitness", "best_validation"):
        drawn_x, drawn_y = display.lines_[name].get_data()
        np.testing.assert_array_equal(drawn_x, history["evaluations"])
        np.testing.assert_array_equal(drawn_y, history[name])
    assert display.ax_.get_ylabel() == "accuracy, higher is better"
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["training batch", "training", "best on training"]
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("x", ["generation", "seconds"])
def test_any_axes_and_any_course_will_do(fitted, x):
    axes = Figure().subplots()
    display = HistoryDisplay.from_estimator(fitted, x=x, ax=axes)
    assert display.ax_ is axes
    assert axes.get_xlabel() == x
    np.testing.assert_array_equal(display.lines_["best_validation"].get_xdata(), fitted.history_[x])


def test_pipelines_results_histories_and_frames_will_do(fitted, iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), CoevoClassifier(**QUICK)).fit(X, y)
    result = evolve(X[::2], y[::2], X[1::2], y[1::2], **QUICK, batch_size=25, seed=1)
    for source, metric in (
        (pipeline, "cross_entropy"), (result, "cross_entropy"), (result.history, "fitness"),
        (fitted.history_, "fitness"), (pd.DataFrame(fitted.history_), "fitness"),
    ):  # fmt: skip
        display = plot_history(source, ax=Figure().subplots())
        assert display.ax_.get_ylabel() == f"{metric}, higher is better"


def test_what_cannot_be_drawn_is_refused(fitted):
    with pytest.raises(NotFittedError):
        plot_history(CoevoClassifier())
    with pytest.raises(ValueError, match="x='time' is unknown; choose one of evaluations, gener"):
        plot_history(fitted, x="time")
    with pytest.raises(ValueError, match="history lacks the column 'batch_fitness'"):
        plot_history({"evaluations": [1]})
