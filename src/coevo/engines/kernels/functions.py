"""Exponential, logarithm, tanh and its inverse that compilers can turn into SIMD instructions.

Those of the C library are calls, one number at a time. In float32 these here are polynomials, exact
to about two units in the last place, and a loop around them handles eight numbers at once. In
float64, where engines must agree with the reference bit for bit, the C library's are used.

With x = n ln 2 + r and |r| ≤ ln 2 / 2, exp(x) = 2ⁿ exp(r): the polynomial p(r) ≈ exp(r) − 1 is a
least-squares fit, and 2ⁿ is written straight into the bits of a float32.
"""

from __future__ import annotations

import math

import numpy as np

from coevo.runtime.jit import Choice, compiled, compiled_with

_REAL = np.float32
_LOG2_E = _REAL(1 / math.log(2))
_LN2_HIGH = _REAL(0.693359375)  # few bits, so that n times it is exact
_LN2_LOW = _REAL(math.log(2) - 0.693359375)
_E0, _E1, _E2, _E3, _E4 = map(_REAL, (0.49999997, 0.16666542, 0.0416676, 0.00836667, 0.00138582))
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = map(
    _REAL,
    (
        0.9999999742674393, -0.4999998703228416, 0.3333418333851952, -0.25002153460998855,
        0.19956977483211547, -0.16560695991269192, 0.14949095474122331, -0.14377330571090435,
        0.08743945361076513,
    ),
)  # fmt: skip
_LEAST = _REAL(-87)  # exp of less is no normal number any more
_ROOT_HALF_BITS = np.int32(0x3F3504F3)  # of √½, so that mantissas end up in [√½, √2)
_SATURATION = _REAL(9.02)  # from here on tanh is rounded to 1


@compiled_with("contract")
def _split_exp(x):
    """Return p ≈ exp(r) − 1 and 2ⁿ, with exp(x) = 2ⁿ (1 + p)."""
    n = np.floor(x * _LOG2_E + _REAL(0.5))
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = r + r * r * (_E0 + r * (_E1 + r * (_E2 + r * (_E3 + r * _E4))))
    bits = (np.int32(n) + np.int32(127)) << np.int32(23)
    return p, np.int32(bits).view(_REAL)


@compiled_with("contract")
def _exp32(x):
    p, power = _split_exp(max(x, _LEAST))
    return power * p + power


@compiled_with("contract")
def _tanh32(x):
    # With E = exp(2 |x|) − 1 it is E / (E + 2), where nothing cancels for small x.
    p, power = _split_exp(min(abs(x), _SATURATION) * _REAL(2))
    less_one = power * p + (power - _REAL(1))
    size = less_one / (less_one + _REAL(2))
    return np.copysign(size, x)


@compiled_with("contract")
def _log32(x):
    bits = np.float32(x).view(np.int32)
    exponent = (bits - _ROOT_HALF_BITS) >> np.int32(23)
    f = np.int32(bits - (exponent << np.int32(23))).view(_REAL) - _REAL(1)
    p = f * (_L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * (
        _L4 + f * (_L5 + f * (_L6 + f * (_L7 + f * _L8))))))))  # fmt: skip
    return p + _REAL(exponent) * _LN2_HIGH + _REAL(exponent) * _LN2_LOW


@compiled_with("contract")
def _artanh32(x):
    return _REAL(0.5) * _log32((_REAL(1) + x) / (_REAL(1) - x))


@compiled
def _exp64(x):
    return math.exp(x)


@compiled
def _tanh64(x):
    return math.tanh(x)


@compiled
def _log64(x):
    return math.log(x)


@compiled
def _artanh64(x):
    return math.atanh(x)


exp = Choice({np.float32: _exp32, np.float64: _exp64})
"""e to the x, for an x of at most 80; in float32 it never falls below 1e-38."""

tanh = Choice({np.float32: _tanh32, np.float64: _tanh64})
"""The hyperbolic tangent."""

log = Choice({np.float32: _log32, np.float64: _log64})
"""The natural logarithm of a positive normal number."""

artanh = Choice({np.float32: _artanh32, np.float64: _artanh64})
"""The inverse of tanh, for an x between −1 and 1, both excluded."""
