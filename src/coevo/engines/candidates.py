"""The pre-activations of a block's candidates: one matrix product for as many neurons as fit.

Groups that hold all incoming weights of neurons of one layer see the same activations, so that the
pre-activations of all their candidates are one matrix product, whatever the order in which they are
asked for. Other groups have a small product each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from coevo._typing import Array
from coevo.engines.context import Context
from coevo.engines.groups import Group
from coevo.runtime import threads

BLOCK_ELEMENTS = 4 * 2**20
"""Pre-activations held at once: 16 MB in float32."""
_GRAIN = 200  # candidates in a product below which it gets slow


def fit_in_buffer(candidates: Sequence[Array], n_instances: int) -> bool:
    """Return whether the buffer can hold all candidates of one subpopulation."""
    n_candidates = sum(vectors.shape[1] for vectors in candidates)
    return bool(n_candidates * n_instances <= BLOCK_ELEMENTS)


class StagedCandidates:
    """The candidates of a block, and the pre-activations of some of them in a buffer.

    Attributes
    ----------
    subpopulations
        The block's.
    held
        The subpopulations whose pre-activations are in the buffer, or will be.
    array : array of shape (len(held), m, B)
        The buffer: pre-activations without bias.
    """

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self._buffer = np.empty(0, dtype=dtype)
        self.subpopulations = self.held = range(0)

    def stage(
        self, subpopulations: range, candidates: Sequence[Array], group: Group, context: Context
    ) -> None:
        """Take over candidates, and the group of their first subpopulation; multiply nothing."""
        self.subpopulations, self._candidates, self._context = subpopulations, candidates, context
        self.held = range(0)
        self._group = group
        self._below = context.activations[group.layer][group.inputs]
        self._may_hold = group.is_whole and fit_in_buffer(candidates, self._below.shape[1])

    def vectors_of(self, i: int) -> Array:
        """Return a subpopulation's candidates: (m, genes)."""
        k = i - self.subpopulations.start
        return np.concatenate([vectors[k] for vectors in self._candidates])

    def find(self, i: int, group: Group) -> Iterator[tuple[Array, Array, Array]]:
        """Yield vectors, pre-activations (m, B) and biases (m,) still to be added, in order.

        All candidates at once, or as many as memory allows.
        """
        vectors = self.vectors_of(i)
        if self._may_hold:
            if i not in self.held:
                self.hold_from(i)
            yield vectors, self.array[i - self.held.start], self.biases_of(range(i, i + 1))[0]
            return
        step = max(1, BLOCK_ELEMENTS // self._below.shape[1])
        for start in range(0, len(vectors), step):
            some = vectors[start : start + step]
            pre_activations = self._context.find_pre_activations(group, some)
            yield some, pre_activations, np.zeros(len(some), dtype=pre_activations.dtype)

    def biases_of(self, neighbours: range) -> Array:
        """Return the biases of whole neurons' candidates: (len(neighbours), m)."""
        rows = self._rows(neighbours)
        return np.concatenate([v[rows, :, self._group.bias] for v in self._candidates], axis=1)

    # ------------------------------------------------------------------------------- the buffer

    def hold_from(self, i: int) -> None:
        """Fill the buffer with subpopulation i and as many after it as fit."""
        self.make_room(i)

        def work(start: int, stop: int) -> None:
            self.prepare(self.held[start:stop])

        threads.share_ranges(work, threads.cut(range(len(self.held)), self._grain()))

    def make_room(self, i: int) -> None:
        """Have the buffer hold subpopulation i and as many after it as fit."""
        n_candidates = sum(vectors.shape[1] for vectors in self._candidates)
        size = n_candidates * self._below.shape[1]
        n_held = min(self.subpopulations.stop - i, BLOCK_ELEMENTS // size)
        self.held = range(i, i + n_held)
        if self._buffer.size < n_held * size:
            # Kept from one generation to the next: fresh memory costs as much as filling it.
            self._buffer = np.empty(n_held * size, dtype=self._buffer.dtype)
        shape = (n_held, n_candidates, self._below.shape[1])
        self.array = self._buffer[: math.prod(shape)].reshape(shape)

    def cut(self) -> list[range]:
        """Cut those that have room into ranges that are worth a product each."""
        return threads.cut(self.held, self._grain())

    def prepare(self, neighbours: range) -> None:
        """Compute the pre-activations of some subpopulations that have room in the buffer."""
        first = neighbours.start - self.held.start
        out = self.array[first : first + len(neighbours)].reshape(-1, self.array.shape[2])
        rows = self._rows(neighbours)
        weights = np.concatenate(
            [vectors[rows][..., self._group.weights] for vectors in self._candidates], axis=1
        )
        np.matmul(weights.reshape(-1, len(self._below)), self._below, out=out)

    def _grain(self) -> int:
        """How many subpopulations are worth a product of their own."""
        _, n_candidates, n_instances = self.array.shape
        size = n_candidates * len(self._below) * n_instances
        return 1 + int(max(_GRAIN // n_candidates, threads.LARGE_PRODUCT // max(1, size)))

    def _rows(self, neighbours: range) -> slice:
        first = self.subpopulations.start
        return slice(neighbours.start - first, neighbours.stop - first)
