"""Metrics of predictions."""

import numpy as np
import pytest

from coevo.tabular.scores import fit_simplest, score_classes, score_numbers


def test_classes_that_do_not_occur_count_for_nothing():
    truth, predicted = np.array(["a", "a", "b"]), np.array(["a", "c", "b"])
    found = score_classes(truth, predicted, np.array(["a", "b", "c"]))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["balanced_accuracy"] == pytest.approx(0.75)
    assert found["confusion_matrix"] == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_a_constant_target_has_no_r2():
    assert score_numbers(np.ones(3), np.zeros(3))["r2"] is None
    found = score_numbers(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    assert (found["r2"], found["rmse"], found["mae"]) == (0.0, 1.0, 1.0)
    assert found["residual_quantiles"]["100%"] == 1.0


def test_the_simplest_model_looks_at_no_input():
    rows = np.zeros((2, 1))
    labels = fit_simplest(np.array(["b", "a", "b", "a"]), "classification").predict(rows)
    assert labels.tolist() == ["a", "a"]  # tied: the first in the alphabet
    assert fit_simplest(np.array([1.0, 2.0, 6.0]), "regression").predict(rows).tolist() == [3, 3]
