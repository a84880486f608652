"""The problem that a black box poses to `run_search`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Batches
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator
from coevo.core.metrics import Metric
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.policies.evaluator import Source, SourceEvaluator
from coevo.training.problem import Problem


@dataclass(frozen=True)
class Measured(Metric):
    """Stands for a fitness that is measured elsewhere, in `Settings.fitness`.

    Parameters
    ----------
    source
        What measures it.
    """

    source: str
    name: ClassVar[str] = "measured"
    task: ClassVar[str] = "black box"
    is_graded: ClassVar[bool] = True

    def __call__(self, outputs: Array, targets: Array, weights: Array | None = None) -> Array:
        """Refuse: there are no outputs to compare with targets."""
        raise TypeError(f"{self.source} measures networks, not outputs")


@dataclass(frozen=True)
class BlackBoxProblem(Problem):
    """Networks that a source measures.

    Parameters
    ----------
    source
        Measures networks.
    networks
        Their architecture.
    engine
        What the result calls the source.
    simultaneous
        As for `SourceEvaluator`.
    initial_network, previous, arguments
        As for `Problem`.
    """

    source: Source
    networks: Architecture
    engine: str
    simultaneous: bool = False

    @property
    def task(self) -> str:
        """Neither classification nor regression."""
        return Measured.task

    def find_metric(self, settings: Settings) -> Metric:
        """Return what stands for the source."""
        return Measured(self.engine)

    def architecture(self, settings: Settings) -> Architecture:
        """Return the architecture of the networks that are evolved."""
        return self.networks

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return self.source.n_instances

    def make_evaluator(
        self,
        engine: str,
        settings: Settings,
        architecture: Architecture,
        decomposition: Decomposition,
    ) -> tuple[str, Evaluator]:
        """Return an evaluator that asks the source."""
        return self.engine, SourceEvaluator(self.source, decomposition, self.simultaneous)

    def measure_training(self, evaluator: Evaluator, network: Array, batches: Batches) -> float:
        """Measure the network on one batch: all instances would take as long as a search."""
        self.source.settle()
        return float(evaluator.evaluate_networks(network[np.newaxis], batches[0])[0])
