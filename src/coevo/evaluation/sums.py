"""The weighted sums of a layer's candidates: one matrix product for as many neurons as fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from coevo import threads
from coevo.network import Array

BLOCK_ELEMENTS = 4 * 2**20
"""Sums held at once: 16 MB in float32."""
_GRAIN = 200  # candidates in a product below which it gets slow


class CandidateSums:
    """The candidates of neighbouring neurons, and the sums of some of them in a buffer.

    Attributes
    ----------
    subpopulations
        The neurons' subpopulations.
    candidates : arrays of equal shape (len(subpopulations), m, n + 1)
        A subpopulation's candidates are its rows of the first array, then of the second.
    held
        The subpopulations whose sums are in the buffer, or will be.
    array : array of shape (parts, len(held), m, B)
        The buffer: sums without bias.
    """

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self.subpopulations = self.held = range(0)
        self.candidates: Sequence[Array] = ()
        self._buffer = np.empty(0, dtype=dtype)
        self._below = self.array = np.empty((0, 0), dtype=dtype)

    def stage(self, subpopulations: range, candidates: Sequence[Array], below: Array) -> None:
        """Take over candidates and what their layer sees, (n, B); nothing is multiplied yet."""
        self.subpopulations, self.candidates, self._below = subpopulations, candidates, below
        self.held = range(0)

    @property
    def fits(self) -> bool:
        """Whether the buffer can hold the sums of one subpopulation."""
        n_candidates = sum(vectors.shape[1] for vectors in self.candidates)
        return bool(n_candidates * self._below.shape[1] <= BLOCK_ELEMENTS)

    def of(self, i: int) -> Iterator[tuple[Array, Array]]:
        """Yield the sums without bias, (m, B), and the biases, (m,), of candidates in order."""
        k = i - self.subpopulations.start
        if self.fits:
            if i not in self.held:
                self.hold_from(i)
            for sums, vectors in zip(self.held_of(i), self.candidates, strict=True):
                yield sums, vectors[k, :, -1]
            return
        step = max(1, BLOCK_ELEMENTS // self._below.shape[1])
        for vectors in self.candidates:
            for start in range(0, len(vectors[k]), step):
                part = vectors[k, start : start + step]
                yield part[:, :-1] @ self._below, part[:, -1]

    def rows_of(self, i: int) -> list[Array]:
        """Return a subpopulation's candidates: arrays of shape (m, n + 1)."""
        return [vectors[i - self.subpopulations.start] for vectors in self.candidates]

    def held_of(self, i: int) -> Array:
        """Return the sums of a subpopulation in the buffer: (parts, m, B)."""
        return np.asarray(self.array[:, i - self.held.start])

    def hold_from(self, i: int) -> None:
        """Fill the buffer with the sums of subpopulation i and as many after it as fit."""
        self.make_room(i)
        n_parts, n_held = self.array.shape[:2]

        def work(start: int, stop: int) -> None:
            for part in range(n_parts):
                first, last = (min(max(k - part * n_held, 0), n_held) for k in (start, stop))
                if first < last:
                    self._multiply(range(i + first, i + last), part)

        threads.share_out(work, n_parts * n_held, self._grain(), evenly=False)

    def make_room(self, i: int) -> None:
        """Have the buffer hold subpopulation i and as many after it as fit."""
        n_parts, n_instances = len(self.candidates), self._below.shape[1]
        n_candidates = self.candidates[0].shape[1]
        size = n_parts * n_candidates * n_instances
        n_held = min(self.subpopulations.stop - i, BLOCK_ELEMENTS // size)
        self.held = range(i, i + n_held)
        if self._buffer.size < n_held * size:
            # Kept from one generation to the next: fresh memory costs as much as filling it.
            self._buffer = np.empty(n_held * size, dtype=self._below.dtype)
        shape = (n_parts, n_held, n_candidates, n_instances)
        self.array = self._buffer[: math.prod(shape)].reshape(shape)

    def ranges_ahead(self) -> list[range]:
        """Cut those that have room into ranges that are worth a product each."""
        return threads.cut_ahead(self.held, self._grain() // len(self.candidates))

    def prepare(self, neighbours: range) -> None:
        """Compute the sums of some subpopulations that have room in the buffer."""
        for part in range(len(self.array)):
            self._multiply(neighbours, part)

    def _grain(self) -> int:
        """How many subpopulations' trials, or targets, are worth a product of their own."""
        _, _, n_candidates, n_instances = self.array.shape
        size = n_candidates * len(self._below) * n_instances
        return 1 + int(max(_GRAIN // n_candidates, threads.LARGE_PRODUCT // max(1, size)))

    def _multiply(self, neighbours: range, part: int) -> None:
        """Compute the sums of one part, the trials or the targets, of some subpopulations."""
        here = slice(neighbours.start - self.held.start, neighbours.stop - self.held.start)
        first = self.subpopulations.start
        rows = slice(neighbours.start - first, neighbours.stop - first)
        weights = self.candidates[part][rows, :, :-1].reshape(-1, len(self._below))
        sums = self.array[part, here].reshape(-1, self._below.shape[1])
        np.matmul(weights, self._below, out=sums)
