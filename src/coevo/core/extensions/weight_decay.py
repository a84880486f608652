"""Weight decay: large weights cost fitness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_real
from coevo.core.extensions.base import Extension


@dataclass
class WeightDecay(Extension):
    """Takes a multiple of the mean square of a candidate's genes off its fitness.

    The genes are those that its subpopulation owns. Validation is not penalised. With full
    evaluation the fitness is measured once, and so is the penalty.

    Parameters
    ----------
    rate
        The multiple.
    """

    name: ClassVar[str] = "weight_decay"
    rate: float = 1e-3

    def __post_init__(self) -> None:
        check_real("rate", self.rate, 0)

    def penalty(self, vectors: Array) -> Array:
        """Return the penalties of vectors (k, n, genes): (k, n)."""
        squares = np.einsum("knd,knd->kn", vectors, vectors)
        return np.asarray(squares * (self.rate / vectors.shape[2]))
