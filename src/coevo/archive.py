"""Keeps individuals that were replaced, so that later mutants may point away from them."""

from __future__ import annotations

import numpy as np

from coevo.compiling import compiled, copy
from coevo.network import Array


def archive_replaced(
    rng: np.random.Generator, archived: Array, n_archived: Array, targets: Array, gains: Array
) -> None:
    """Archive the targets that were replaced by a better trial.

    A trial that ties with its target takes its place, but the target is not archived: it shows no
    direction to move away from. Once an archive is full, a newcomer takes the place of one at
    random.

    Parameters
    ----------
    rng
        Source of randomness.
    archived : array of shape (k, size, genes), changed in place
        The archive of each subpopulation.
    n_archived : integer array of shape (k,), changed in place
        How many individuals are in each.
    targets : array of shape (k, n_targets, genes)
        As they were before selection.
    gains : array of shape (k, n_targets)
        By how much the adjusted fitness of their trials is above theirs.
    """
    _archive(archived, n_archived, targets, gains, rng.random(gains.shape))


@compiled
def _archive(archived, n_archived, targets, gains, uniforms):
    size = archived.shape[1]
    for i in range(len(targets)):
        for t in range(targets.shape[1]):
            if not gains[i, t] > 0:
                continue
            place = n_archived[i]
            if place < size:
                n_archived[i] += 1
            else:
                place = int(uniforms[i, t] * size)
            copy(targets[i, t], archived[i, place])
