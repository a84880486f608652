"""Functions in float32 against NumPy's in float64; also run with the JIT switched off."""

import math

import numpy as np
import pytest

from coevo.engines.kernels import functions

pytestmark = pytest.mark.without_jit


@pytest.mark.parametrize(
    ("name", "least", "greatest", "tolerance"),
    [("exp", -80, 40, 3e-7), ("tanh", -20, 20, 3e-7), ("log", 1e-30, 1e30, 3e-7)],
)
def test_functions_in_float32_are_good_to_the_last_bits(name, least, greatest, tolerance):
    if least > 0:
        x = np.geomspace(least, greatest, 2001, dtype=np.float32)
    else:
        x = np.linspace(least, greatest, 2001, dtype=np.float32)
        x = np.concatenate([x, x / 1000, x / 1e6])
    values = np.array([getattr(functions, name)(number) for number in x])
    expected = getattr(np, name)(x.astype(np.float64))
    assert (values == values.astype(np.float32)).all()
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=0 if name == "tanh" else 1e-9)


def test_artanh_in_float32_is_good_to_the_last_bits_of_one():
    x = np.linspace(-0.9999, 0.9999, 2001, dtype=np.float32)
    values = np.array([functions.artanh(number) for number in x])
    assert (values == values.astype(np.float32)).all()
    # A bound near 0 is compared with pre-activations of the order of 1.
    np.testing.assert_allclose(values, np.arctanh(x.astype(np.float64)), rtol=3e-7, atol=1.2e-7)
    assert functions.artanh(np.float64(0.5)) == math.atanh(0.5)


def test_functions_saturate_and_never_overflow():
    assert [functions.tanh(np.float32(x)) for x in (-1e30, -50, 50, np.inf)] == [-1, -1, 1, 1]
    assert functions.exp(np.float32(-1e30)) < 1e-37
    assert functions.log(np.float32(1)) == 0
    assert math.copysign(1, functions.tanh(np.float32(-0.0))) == -1
