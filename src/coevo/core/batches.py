"""Batches: a partition of the training instances, visited in order over and over."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from coevo._typing import Array

Instances = slice | Array
"""Which training instances: a slice, or an array of their indices."""


@dataclass
class Batches:
    """A random partition of the training instances, and which batch is next.

    Parameters
    ----------
    order : integer array of shape (n_instances,)
        The instances, batch after batch.
    n_batches
        Number of batches; their sizes differ by one at most.
    reshuffles
        Whether a new partition is drawn whenever every batch has been visited.
    next_size
        The size of batches from the next partition on; None to keep their number.
    """

    order: Array
    n_batches: int
    reshuffles: bool = False
    position: int = 0
    next_size: int | None = None

    @classmethod
    def all_instances(cls, n_instances: int) -> Batches:
        """Full evaluation: one batch of all instances, in the order given."""
        return cls(np.arange(n_instances), n_batches=1)

    @classmethod
    def partition(
        cls, rng: np.random.Generator, n_instances: int, batch_size: int, reshuffles: bool = False
    ) -> Batches:
        """Limited evaluation: max(1, round(n_instances / batch_size)) random batches."""
        if batch_size > n_instances:
            warnings.warn(
                f"batch_size={batch_size} is larger than the {n_instances} training instances; "
                "one batch holds them all",
                stacklevel=2,
            )
        n_batches = max(1, round(n_instances / batch_size))
        return cls(rng.permutation(n_instances), n_batches, reshuffles)

    def __len__(self) -> int:
        return self.n_batches

    def __getitem__(self, k: int) -> Instances:
        """Return the instances of batch k."""
        if self.n_batches == 1:
            return slice(0, len(self.order))  # all instances, without a copy
        # As numpy.array_split: the first batches have one instance more.
        size, longer = divmod(len(self.order), self.n_batches)
        start = k * size + min(k, longer)
        return self.order[start : start + size + (k < longer)]

    def take(self, rng: np.random.Generator) -> Instances:
        """Return the next batch; after the last one, draw a new partition if `reshuffles`."""
        if self.position == self.n_batches:
            self.position = 0
            if self.reshuffles:
                self.order = rng.permutation(len(self.order))
                if self.next_size is not None:
                    self.n_batches = max(1, round(len(self.order) / self.next_size))
        self.position += 1
        return self[self.position - 1]
