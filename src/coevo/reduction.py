"""Chooses who stays when subpopulations shrink."""

from __future__ import annotations

import numpy as np

from coevo.network import Array


def choose_survivors(fitness: Array, champions: Array, size: int) -> Array:
    """Keep the champion and the fittest of the others; of those equally fit the first ones.

    The fitness is the adjusted one: by it the individuals have competed, and all of a subpopulation
    were measured on the same batch in the last generation.

    Parameters
    ----------
    fitness : array of shape (SP, NP)
    champions : integer array of shape (SP,)
        The individual of each subpopulation that is part of the global solution.
    size
        How many stay.

    Returns
    -------
    integer array of shape (SP, size), ascending in each row
    """
    ranked = fitness.copy()
    ranked[np.arange(len(fitness)), champions] = np.inf
    fittest = np.argsort(-ranked, axis=1, kind="stable")[:, :size]
    return np.sort(fittest, axis=1)
