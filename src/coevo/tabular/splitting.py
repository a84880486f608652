"""Holds rows out for the test, stratified by class."""

from __future__ import annotations

import numpy as np

from coevo._typing import Array


def hold_out(target: Array, fraction: float, seed: int, stratify: bool) -> tuple[Array, Array]:
    """Return which rows to train on and which to test on, both in the order of the table.

    If stratified, the fraction is that of each label's rows. Of a label with few rows that may be
    none; at least one is always trained on.
    """
    # Another stream than the search's, from the same seed.
    rng = np.random.default_rng([seed, 0x7E57])
    groups = [np.arange(len(target))]
    if stratify:
        labels, inverse = np.unique(target, return_inverse=True)
        groups = [np.flatnonzero(inverse == label) for label in range(len(labels))]
    test = [
        rng.permutation(rows)[: min(round(fraction * len(rows)), len(rows) - 1)] for rows in groups
    ]
    held_out = np.sort(np.concatenate(test))
    return np.setdiff1d(np.arange(len(target)), held_out), held_out
