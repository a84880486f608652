"""What a fitted estimator keeps to be able to go on: its search, and how that sees instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coevo.batches import Batches
from coevo.decomposition import Decomposition, decompose
from coevo.estimators.scaling import InputScaling, TargetScaling, fold, unfold
from coevo.evaluation import Data, Evaluator
from coevo.inheritance import penalties
from coevo.network import Architecture, Array, Network
from coevo.settings import Settings
from coevo.state import SearchState


class ScaledData(Data):
    """Instances as the search sees them."""


@dataclass
class Training:
    """A search and how it sees instances.

    Parameters
    ----------
    inputs, targets
        How instances are scaled; targets are those of a regressor.
    architecture, decomposition
        What is evolved.
    state
        The search, None before it has begun.
    validation
        The validation set of a stream, if it has one.
    initial_network : array of shape (n_genes,), optional
        The network that the search begins around, for scaled instances.
    """

    inputs: InputScaling
    targets: TargetScaling | None
    architecture: Architecture
    decomposition: Decomposition
    state: SearchState | None = None
    validation: Data | None = None
    initial_network: Array | None = None

    @classmethod
    def begin(cls, data: Data, n_outputs: int, settings: Settings, scale_inputs: bool) -> Training:
        """Decide on the scaling, by these instances, and on the shape of the networks.

        Parameters
        ----------
        data
            Instances as the user has them.
        n_outputs
            Number of classes, or of numbers to predict.
        settings
            Say what the networks look like.
        scale_inputs
            Whether to scale inputs at all; targets that are numbers are always standardised.
        """
        n_inputs = data.inputs.shape[1]
        inputs = InputScaling.none(n_inputs)
        if scale_inputs:
            inputs = InputScaling.to_unit_range(data.inputs)
        targets = None
        if data.targets.ndim == 2:
            targets = TargetScaling.to_unit_variance(data.targets, data.weights)
        return cls(inputs, targets, *find_shape(n_inputs, n_outputs, settings))

    def check_same(self, n_outputs: int, settings: Settings, final_size: int | None) -> None:
        """Refuse to go on with networks of another shape.

        Subpopulations may have shrunk meanwhile; then the search goes on with those that are left.
        """
        architecture, decomposition = find_shape(self.architecture.n_inputs, n_outputs, settings)
        state = self.state
        assert state is not None
        is_same = (
            architecture == self.architecture
            and decomposition.name == self.decomposition.name
            and decomposition.sizes == self.decomposition.sizes
            and (final_size or settings.population_size)
            <= state.fitness.shape[1]
            <= settings.population_size
            and state.global_solution.dtype == settings.dtype
        )
        if not is_same:
            raise ValueError(
                "hidden_layer_sizes, activation, decomposition, group_size, population_size, dtype "
                "and the number of outputs must be what they were to go on from the previous fit"
            )

    def scale(self, data: Data, dtype: str) -> Data:
        """Return instances as the search sees them."""
        if isinstance(data, ScaledData):
            return data
        with np.errstate(over="ignore"):
            inputs = self.inputs.apply(data.inputs, dtype)
        if not np.isfinite(inputs).all():
            raise ValueError(f"X holds numbers too large for dtype={dtype!r}")
        targets = data.targets
        if self.targets is not None:
            targets = self.targets.apply(targets, dtype)
        return ScaledData(inputs, targets, data.weights)

    def turn_to(self, evaluator: Evaluator, settings: Settings) -> None:
        """Prepare the search for other instances: batches of them, and fitness on them.

        With limited evaluation the individuals' fitness decays as new batches come. With full
        evaluation it is never measured again, so that nobody could live up to what was measured on
        other instances: all are measured anew.
        """
        state = self.state
        assert state is not None
        state.batches = Batches.all_instances(evaluator.n_instances)
        if settings.limited_evaluation:
            state.batches = Batches.partition(
                state.rng, evaluator.n_instances, settings.batch_size, settings.reshuffle_batches
            )
        else:
            self._measure_everyone(evaluator, settings.weight_decay)
        best = state.best_network[np.newaxis]
        state.best_validation = float(evaluator.validate_networks(best)[0])
        state.best_generation = state.generation

    def _measure_everyone(self, evaluator: Evaluator, weight_decay: float) -> None:
        """Give each individual the fitness it has in place of the global solution's part."""
        state, decomposition = self.state, self.decomposition
        assert state is not None
        if state.gene_order is not None:
            decomposition = decomposition.redraw(state.gene_order)
        everything = slice(0, evaluator.n_instances)
        for block, individuals in zip(decomposition.blocks, state.subpopulations, strict=True):
            for k, i in enumerate(block):
                networks = np.tile(state.global_solution, (len(individuals[k]), 1))
                networks[:, decomposition.groups[i]] = individuals[k]
                state.fitness[i] = evaluator.evaluate_networks(networks, everything)
                state.evaluations += len(networks)
            if weight_decay:
                state.fitness[block.start : block.stop] -= penalties(individuals, weight_decay)

    def extend(self, settings: Settings) -> Settings:
        """Return settings that grant the search its budget once more."""
        state = self.state
        assert state is not None
        spent: dict[str, Any] = {
            "max_evaluations": state.evaluations,
            "max_generations": state.generation,
            "max_seconds": state.seconds,
        }
        limits = {name: getattr(settings, name) for name in spent}
        further = {n: limit + spent[n] for n, limit in limits.items() if limit is not None}
        return replace(settings, **further)

    def scaled(self, network: Network) -> Array:
        """Return the genotype that does to scaled instances what a network does to the user's."""
        return unfold(network, self.inputs, self.targets).genotype

    def unscaled(self, genotype: Array) -> Network:
        """Return the network that takes and gives the user's own numbers."""
        return fold(Network(self.architecture, genotype), self.inputs, self.targets)


def find_shape(
    n_inputs: int, n_outputs: int, settings: Settings
) -> tuple[Architecture, Decomposition]:
    """Return the architecture and the decomposition that settings describe."""
    architecture = Architecture(
        n_inputs, settings.hidden_layer_sizes, n_outputs, settings.activation
    )
    return architecture, decompose(settings.decomposition, architecture, settings.group_size)
