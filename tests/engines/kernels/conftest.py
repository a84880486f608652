"""What tests of kernels draw; strategies come as fixtures and are drawn with `data.draw`.

Numbers come from a grid of small dyadic fractions, where all arithmetic is exact, so that ties and
zero differences are really ties and zero differences, and from a wide range of magnitudes.
"""

import numpy as np
import pytest
from hypothesis import strategies as st

GRID = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
PRE_ACTIVATIONS = st.sampled_from([-50.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 50.0])  # ±50 saturate


def matrices(elements, n_rows, n_columns):
    row = st.lists(elements, min_size=n_columns, max_size=n_columns)
    return st.lists(row, min_size=n_rows, max_size=n_rows).map(np.array)


@st.composite
def draw_hidden_case(draw, elements=GRID, pre_activations=PRE_ACTIVATIONS):
    n_outputs, n_instances = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    rest = draw(matrices(elements, n_outputs, n_instances))
    weights = draw(matrices(elements, 1, n_outputs))[0]
    now = draw(matrices(pre_activations, 1, n_instances))[0]
    candidates = draw(matrices(pre_activations, 3, n_instances))
    # Classes may be missing from the batch.
    y = draw(st.lists(st.integers(0, n_outputs - 1), min_size=n_instances, max_size=n_instances))
    return rest, weights, now, candidates, np.array(y, dtype=np.int32)


@st.composite
def draw_output_case(draw):
    n_outputs, n_instances = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    outputs = draw(matrices(GRID, n_outputs, n_instances))
    candidates = draw(matrices(GRID, 3, n_instances))
    y = draw(st.lists(st.integers(0, n_outputs - 1), min_size=n_instances, max_size=n_instances))
    return outputs, draw(st.integers(0, n_outputs - 1)), candidates, np.array(y, dtype=np.int32)


@pytest.fixture(scope="session")
def magnitudes():
    return st.builds(
        lambda sign, exponent, mantissa: sign * mantissa * 10.0**exponent,
        st.sampled_from([-1, 1]),
        st.integers(-12, 12),
        st.floats(1, 10),
    )


@pytest.fixture(scope="session")
def hidden_cases():
    """Logits without one hidden neuron, its weights, its pre-activations now and as candidates."""
    return draw_hidden_case


@pytest.fixture(scope="session")
def output_cases():
    """Logits, which of them changes, what it changes to, and the targets."""
    return draw_output_case
