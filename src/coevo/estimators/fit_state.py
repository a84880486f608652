"""The state of a fit: encoding, scaling and search, kept for warm starts and streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from coevo._typing import Array
from coevo.core.evaluator import Data
from coevo.core.loop import SearchLoop
from coevo.core.network import Architecture, Network
from coevo.estimators.data import UserData
from coevo.estimators.inputs import Inputs, learn_encoding
from coevo.estimators.scaling import InputScaling, TargetScaling, fold, unfold
from coevo.persistence.encoding import Encoding
from coevo.training.problem import Ongoing


@dataclass
class FitState:
    """How a fit encodes and scales instances, and its search.

    Parameters
    ----------
    encoding
        How columns become inputs.
    inputs, targets
        How inputs and a regressor's targets are scaled.
    ongoing
        The search; None before it has begun.
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
        cls, data: UserData, scale_inputs: bool, max_categories: int, rows: Array | None = None
    ) -> FitState:
        """Learn encoding and scaling from `rows` of the data, None for all.

        A regressor's targets are standardised even without `scale_inputs`.
        """
        encoding = learn_encoding(data.columns, max_categories, rows)
        inputs = InputScaling.none(len(encoding.input_names))
        if scale_inputs and encoding.input_ranges is not None:
            inputs = InputScaling.to_unit_range(*encoding.input_ranges)
        targets = None
        if data.targets.dtype.kind == "f":
            targets = TargetScaling.to_unit_variance(*_take(rows, data.targets, data.weights))
        return cls(encoding, inputs, targets)

    def widen_ranges(self, data: UserData) -> None:
        """Extend the known ranges of numeric columns to include these instances."""
        self.encoding = self.encoding.widen(*data.columns.find_ranges()[:2])

    def scale(self, data: UserData, dtype: str, rows: Array | None = None) -> Data:
        """Return instances, or `rows` of them, encoded and scaled; inputs are copied once."""
        inputs = self.inputs.apply(Inputs(data.columns, self.encoding), dtype, rows)
        targets, weights = _take(rows, data.targets, data.weights)
        if self.targets is not None:
            targets = self.targets.apply(targets, dtype)
        return Data(inputs, targets, weights)

    def with_search(self, search: SearchLoop, architecture: Architecture) -> Self:
        """Return this with a search that can be continued."""
        return replace(self, ongoing=Ongoing(search.state, architecture, search.decomposition))

    def scale_network(self, network: Network) -> Network:
        """Return a network for scaled instances that is equivalent to one for unscaled ones."""
        return unfold(network, self.inputs, self.targets)

    def unscale_network(self, architecture: Architecture, genotype: Array) -> Network:
        """Return a network for unscaled instances that is equivalent to one for scaled ones."""
        return fold(Network(architecture, genotype), self.inputs, self.targets)


def _take(rows: Array | None, targets: Array, weights: Array | None) -> tuple[Array, Array | None]:
    if rows is None:
        return targets, weights
    return targets[rows], None if weights is None else weights[rows]
