"""What several test modules share."""

import os

import numpy as np
import pytest
from hypothesis import settings

# Compiling a kernel may take seconds on first use; that says nothing about the property under test.
settings.register_profile("coevo", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("coevo")


@pytest.fixture
def rng():
    return np.random.default_rng(20180715)


@pytest.fixture
def no_jit():
    return os.environ.get("NUMBA_DISABLE_JIT") == "1"


def make_classification_data(rng, n_instances=60, n_inputs=4, n_classes=3):
    """Noisy linear classes; every class occurs."""
    inputs = rng.uniform(-1, 1, (n_instances, n_inputs))
    scores = inputs @ rng.normal(size=(n_inputs, n_classes)) + rng.normal(
        scale=0.3, size=(n_instances, n_classes)
    )
    targets = scores.argmax(axis=1)
    targets[:n_classes] = np.arange(n_classes)
    return inputs, targets
