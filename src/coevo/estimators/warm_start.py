"""What a fitted estimator keeps to be able to go on: its search, and how that sees instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.core.loop import SearchLoop
from coevo.core.network import Architecture, Network
from coevo.estimators.scaling import InputScaling, TargetScaling, fold, unfold
from coevo.training.run import Ongoing


class ScaledData(Data):
    """Instances as the search sees them."""


@dataclass
class Training:
    """A search and how it sees instances.

    Parameters
    ----------
    inputs, targets
        How instances are scaled; targets are those of a regressor.
    ongoing
        The search, None before it has begun.
    validation
        The validation set of a stream, if it has one.
    """

    inputs: InputScaling
    targets: TargetScaling | None
    ongoing: Ongoing | None = None
    validation: Data | None = None

    @classmethod
    def begin(cls, data: Data, scale_inputs: bool, rows: Array | None = None) -> Training:
        """Decide on the scaling by some instances.

        Parameters
        ----------
        data
            Instances as the user has them.
        scale_inputs
            Whether to scale inputs at all; targets that are numbers are always standardised.
        rows
            Which of the instances; None for all.
        """
        inputs = InputScaling.none(data.inputs.shape[1])
        if scale_inputs:
            inputs = InputScaling.to_unit_range(data.inputs, rows)
        targets = None
        if data.targets.ndim == 2:
            targets = TargetScaling.to_unit_variance(*_take(rows, data.targets, data.weights))
        return cls(inputs, targets)

    def scale(self, data: Data, dtype: str, rows: Array | None = None) -> Data:
        """Return instances, or some of them, as the search sees them; inputs are copied once."""
        if isinstance(data, ScaledData):
            return data
        inputs = self.inputs.apply(data.inputs, dtype, rows)
        targets, weights = _take(rows, data.targets, data.weights)
        if self.targets is not None:
            targets = self.targets.apply(targets, dtype)
        return ScaledData(inputs, targets, weights)

    def with_search(self, search: SearchLoop, architecture: Architecture) -> Self:
        """Return this with a search to go on with."""
        return replace(self, ongoing=Ongoing(search.state, architecture, search.decomposition))

    def scaled(self, network: Network) -> Network:
        """Return the network that does to scaled instances what this one does to the user's."""
        return unfold(network, self.inputs, self.targets)

    def unscaled(self, architecture: Architecture, genotype: Array) -> Network:
        """Return the network that takes and gives the user's own numbers."""
        return fold(Network(architecture, genotype), self.inputs, self.targets)


def _take(rows: Array | None, targets: Array, weights: Array | None) -> tuple[Array, Array | None]:
    if rows is None:
        return targets, weights
    return targets[rows], None if weights is None else weights[rows]
