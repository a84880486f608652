"""Compiled metrics against the plain formula; also run with the JIT switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.label_metrics import LabelCrossEntropy
from coevo.core.metrics import ClippedMargin, CrossEntropy
from coevo.engines.kernels.activations import TANH
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.metrics import (
    AccuracyOn,
    CrossEntropyOn,
    LabelEntropyOn,
    MarginOn,
    measure_cross_entropy,
    measure_label_entropy,
    measure_margins,
    measure_outputs,
)

pytestmark = pytest.mark.without_jit


@given(data=st.data(), n_moves=st.integers(1, 3))
def test_measured_outputs_are_the_formula_move_by_move(hidden_cases, data, n_moves):
    outputs, weights, _, _, targets = data.draw(hidden_cases())
    rng = np.random.default_rng(n_moves)
    before, after = rng.choice([-1.0, -0.5, 0.0, 1.0], (2, n_moves, len(targets)))
    outgoing = rng.choice([-2.0, 0.0, 0.5, 1.0], (n_moves, len(weights)))
    measured, moved = np.empty(n_moves), outputs.copy()
    measure_outputs(AccuracyOn(targets), moved[np.newaxis], outgoing, before, after, measured)
    for move in range(n_moves):
        outputs = outputs + np.multiply.outer(outgoing[move], after[move] - before[move])
        assert measured[move] == (outputs.argmax(axis=0) == targets).mean()
    np.testing.assert_array_equal(moved, outputs)


@given(data=st.data(), n_same=st.integers(0, 2))
def test_graded_metrics_are_the_plain_formula(hidden_cases, magnitudes, data, n_same):
    """Cross-entropies and margins, for many and for a single logit that moves."""
    cases = hidden_cases(elements=magnitudes, pre_activations=magnitudes)
    rest, weights, now, candidates, targets = data.draw(cases)
    weights = weights.copy()
    weights[n_same:] = 0 if n_same else weights[n_same:]
    outputs = rest + np.multiply.outer(weights, np.tanh(now))
    shares = np.full(len(targets), 1 / len(targets))
    given = Candidates(
        candidates, np.zeros(len(candidates)), outputs, weights, np.tanh(now), TANH, HIDDEN
    )
    entropy, margin, label_entropy = np.empty((3, len(candidates)))
    labels = (np.arange(len(weights)) <= targets[:, np.newaxis]).astype(int)
    signs = 2.0 * labels.T - 1
    measure_cross_entropy(CrossEntropyOn(targets, shares), given, entropy)
    measure_margins(MarginOn(targets, shares, 1.0), given, margin)
    measure_label_entropy(LabelEntropyOn(signs, shares), given, label_entropy)
    for j, row in enumerate(candidates):
        moved = outputs + np.multiply.outer(weights, np.tanh(row) - np.tanh(now))
        scale = 1e-12 * (1 + np.abs(outputs).max() + np.abs(weights).max())
        assert entropy[j] == pytest.approx(CrossEntropy()(moved.T, targets), rel=1e-9, abs=scale)
        assert margin[j] == pytest.approx(ClippedMargin()(moved.T, targets), rel=1e-9, abs=scale)
        expected = LabelCrossEntropy()(moved.T, labels)
        assert label_entropy[j] == pytest.approx(expected, rel=1e-9, abs=scale)
