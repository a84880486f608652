"""Random bits in bulk: uniform, independent, and the generator's own."""

import numpy as np
import pytest

from coevo.runtime.random_streams import draw_lanes

pytestmark = pytest.mark.without_jit


def test_lanes_are_uniform_and_independent():
    lanes = draw_lanes(np.random.default_rng(5), (64, 4099))
    assert lanes.shape == (64, 4099)
    assert lanes.dtype == np.uint16
    for bit in range(16):
        share = ((lanes >> bit) & 1).mean()
        assert share == pytest.approx(0.5, abs=0.005)  # five standard deviations
    counts = np.bincount(lanes.ravel() >> 8, minlength=256)
    expected = lanes.size / 256
    # Chi-squared with 255 degrees of freedom: 350 is beyond the 99.99th percentile.
    assert ((counts - expected) ** 2 / expected).sum() < 350
    # No correlation between neighbours, nor between the streams' successive numbers.
    centred = lanes.ravel() / 65535 - 0.5
    for lag in (1, 2, 32, 64, 65):
        correlation = (centred[lag:] * centred[:-lag]).mean() * 12
        assert abs(correlation) < 0.01


def test_lanes_come_from_the_generator():
    first, second, other = (draw_lanes(np.random.default_rng(seed), (3, 5)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
