"""Running mean and deviation of observations, by which a network's inputs are scaled."""

from __future__ import annotations

import numpy as np

from coevo._typing import Array
from coevo.estimators.scaling import InputScaling

_SMALLEST = 1e-8  # deviation; an input that has varied by less is left out


class ObservationStatistics:
    """Mean and variance of all observations so far.

    Parameters
    ----------
    n_inputs
        Numbers in an observation.
    """

    def __init__(self, n_inputs: int) -> None:
        self.count = np.zeros(())
        self.mean = np.zeros(n_inputs)
        self.squares = np.zeros(n_inputs)  # of differences from the mean

    def add(self, count: float, centre: Array, sums: Array, squares: Array) -> None:
        """Add observations, given the sums of their differences from `centre` and of the squares.

        Chan's rule for two samples: the squares around the common mean are those around each
        sample's own, plus what lies between the two means.
        """
        if count == 0:
            return
        mean = centre + sums / count
        total = self.count + count
        between = mean - self.mean
        self.squares = self.squares + squares - sums**2 / count
        self.squares += between**2 * (self.count * count / total)
        self.mean = self.mean + between * (count / total)
        self.count = total

    def scaling(self) -> InputScaling:
        """Return what maps observations to mean 0 and deviation 1."""
        if self.count == 0:
            return InputScaling.none(len(self.mean))
        deviation = np.sqrt(np.maximum(self.squares, 0) / self.count)
        factor = np.zeros_like(deviation)
        np.divide(1, deviation, out=factor, where=deviation > _SMALLEST)
        return InputScaling(self.mean.copy(), factor)
