"""Weight decay: a penalty on large weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array
from coevo._validation import check_real
from coevo.core.extensions.base import Extension


@dataclass
class WeightDecay(Extension):
    """Subtracts rate × mean square of a candidate's genes from its fitness.

    The genes are those of its subpopulation. Validation fitness is not penalised.

    Parameters
    ----------
    rate
        Penalty for a mean square of 1.
    """

    name: ClassVar[str] = "weight_decay"
    rate: float = 1e-3

    def __post_init__(self) -> None:
        check_real("rate", self.rate, 0)

    def penalty(self, vectors: Array) -> Array:
        """Return rate × mean square of vectors (k, n, genes): (k, n)."""
        squares = np.einsum("knd,knd->kn", vectors, vectors)
        return np.asarray(squares * (self.rate / vectors.shape[2]))
