"""Predicted classes against argmax; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.metrics import count_classes
from coevo.engines.kernels.activations import IDENTITY
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.classes import count_right, fill_confusion_matrices

pytestmark = pytest.mark.without_jit


@given(data=st.data())
def test_count_right_is_argmax(output_cases, data):
    logits, _, _, targets = data.draw(output_cases())
    for shown in (logits, -logits):
        count = count_right(shown, targets, np.empty(len(targets), dtype=logits.dtype))
        assert count == (shown.argmax(axis=0) == targets).sum()


@given(data=st.data())
def test_confusion_matrices_are_the_formulas(hidden_cases, data):
    rest, weights, now, rows, targets = data.draw(hidden_cases())
    shares = np.linspace(0.5, 1.5, len(targets))
    logits = rest + np.multiply.outer(weights, now)
    candidates = Candidates(rows, np.zeros(len(rows)), logits, weights, now, IDENTITY, HIDDEN)
    matrices = np.empty((len(rows), len(weights), len(weights)))
    fill_confusion_matrices(targets, shares, candidates, matrices)
    for row, matrix in zip(rows, matrices, strict=True):
        moved = rest + np.multiply.outer(weights, row)
        np.testing.assert_allclose(matrix, count_classes(moved.T, targets, shares))
