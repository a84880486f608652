"""What a fitted estimator keeps to be able to go on: its search, and how that sees instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.core.loop import SearchLoop
from coevo.core.network import Architecture, Network
from coevo.estimators.data import Given
from coevo.estimators.inputs import Inputs, learn_encoding
from coevo.estimators.scaling import InputScaling, TargetScaling, fold, unfold
from coevo.persistence.encoding import Encoding
from coevo.training.run import Ongoing


@dataclass
class Training:
    """A search and how it sees instances.

    Parameters
    ----------
    encoding
        How columns become inputs.
    inputs, targets
        How instances are scaled; targets are those of a regressor.
    ongoing
        The search, None before it has begun.
    validation
        The validation set of a stream, if it has one.
    """

    encoding: Encoding
    inputs: InputScaling
    targets: TargetScaling | None
    ongoing: Ongoing | None = None
    validation: Data | None = None

    @classmethod
    def begin(
        cls, data: Given, scale_inputs: bool, max_categories: int, rows: Array | None = None
    ) -> Training:
        """Decide on encoding and scaling by some instances.

        Parameters
        ----------
        data
            Instances as the user has them.
        scale_inputs
            Whether to scale inputs at all; targets that are numbers are always standardised.
        max_categories
            How many categories of a column have an input.
        rows
            Which of the instances; None for all.
        """
        encoding = learn_encoding(data.columns, max_categories, rows)
        inputs = InputScaling.none(len(encoding.input_names))
        if scale_inputs and encoding.input_ranges is not None:
            inputs = InputScaling.to_unit_range(*encoding.input_ranges)
        targets = None
        if data.targets.dtype.kind == "f":
            targets = TargetScaling.to_unit_variance(*_take(rows, data.targets, data.weights))
        return cls(encoding, inputs, targets)

    def widen_ranges(self, data: Given) -> None:
        """Let the ranges known from training include these instances."""
        self.encoding = self.encoding.widen(*data.columns.find_ranges()[:2])

    def scale(self, data: Given, dtype: str, rows: Array | None = None) -> Data:
        """Return instances, or some of them, as the search sees them; inputs are copied once."""
        inputs = self.inputs.apply(Inputs(data.columns, self.encoding), dtype, rows)
        targets, weights = _take(rows, data.targets, data.weights)
        if self.targets is not None:
            targets = self.targets.apply(targets, dtype)
        return Data(inputs, targets, weights)

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
