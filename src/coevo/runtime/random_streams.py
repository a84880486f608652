"""Fast random bits in bulk, seeded by the NumPy generator of a run.

Binomial crossover needs a random number for every gene of every trial. Drawing them from a NumPy
generator would cost more than making the trials; 32 small generators in parallel use SIMD.
"""

from __future__ import annotations

import math

import numpy as np

from coevo._typing import Array
from coevo.runtime.jit import compiled

_N_STREAMS = 32
_N_WARMUPS = 16
_MASK = 2**32 - 1


def draw_lanes(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw uniform 16-bit numbers: uint16 array of the shape."""
    n_words = -(-math.prod(shape) // 2)
    n_rounds = _N_WARMUPS + -(-n_words // _N_STREAMS)
    state = rng.integers(2**32, size=(4, _N_STREAMS), dtype=np.uint32)
    words = np.empty(n_rounds * _N_STREAMS, dtype=np.uint32)
    _fill(state, words)
    lanes = words[_N_WARMUPS * _N_STREAMS :].view(np.uint16)
    return lanes[: math.prod(shape)].reshape(shape)


@compiled
def _fill(state, words):
    """Run the streams, each a small fast chaotic generator (Doty-Humphrey's SFC32).

    state: (4, n_streams) uint32, changed in place; words: (n_rounds * n_streams,) uint32, written.
    """
    n_streams = state.shape[1]
    a, b, c, counter = state[0], state[1], state[2], state[3]
    for start in range(0, len(words), n_streams):
        word = words[start : start + n_streams]
        for s in range(n_streams):
            x, y, z = int(a[s]), int(b[s]), int(c[s])
            total = (x + y + int(counter[s])) & _MASK
            a[s] = y ^ (y >> 9)
            b[s] = (z + (z << 3)) & _MASK
            c[s] = (((z << 21) | (z >> 11)) + total) & _MASK
            counter[s] = (int(counter[s]) + 1) & _MASK
            word[s] = total
