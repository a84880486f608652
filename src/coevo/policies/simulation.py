"""The source of fitness that runs episodes: normalisation, seeds, and work for the backend."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.network import Network
from coevo.estimators.scaling import InputScaling, fold
from coevo.policies.backends import Backend, Shares
from coevo.policies.episodes import Episodes, Simulator, run_episodes
from coevo.policies.statistics import ObservationStatistics

N_RANDOM_EPISODES = 10
"""Episodes of random actions by which observations are normalised at first."""

_TRAINING, _VALIDATION, _RANDOM, FRESH = range(4)


def draw_seeds(seed: int, stream: int, n: int) -> Array:
    """Return the seeds of n episodes; streams have nothing in common."""
    return np.random.SeedSequence([seed, stream]).generate_state(n).astype(np.int64)


def pack_simulator(backend: Backend, simulator: Simulator) -> Any:
    """Return a simulator as tasks should carry it, or say which argument cannot be sent."""
    for argument, thing in (("reward", simulator.reward), ("env_kwargs", simulator.kwargs)):
        backend.pack(argument, thing)
    return backend.pack("env", simulator)


def run_all(
    backend: Backend,
    shares: Shares,
    simulator: Any,
    genotypes: Array | None,
    rows: Array,
    seeds: Array,
    centre: Array,
    is_shaped: bool,
) -> Episodes:
    """Run episodes on a backend; the arguments are those of `Simulator.run`.

    Parameters
    ----------
    simulator
        As the backend packed it.
    """
    tasks = []
    for part in shares.cut(len(seeds), backend.n_workers):
        some, here = genotypes, rows[part]
        if genotypes is not None:
            some = genotypes[here[0] : here[-1] + 1]
            here = here - here[0]
        tasks.append((simulator, some, here, seeds[part], centre, is_shaped))
    results = backend.run(run_episodes, tasks)
    returns, steps, sums, squares, seconds = zip(*results, strict=True)
    arrays = map(np.concatenate, (returns, steps, sums, squares))
    found = Episodes(*arrays, seconds=sum(seconds))  # type: ignore[misc, arg-type]
    shares.note(len(seeds), found.seconds)
    return found


@dataclass
class EpisodeSource:
    """Measures networks by the mean return of episodes.

    Parameters
    ----------
    simulator
        The environment.
    backend
        Where episodes are run.
    seed
        Of the run; all seeds of episodes come from it.
    n_training, n_validation
        Numbers of episode seeds.
    normalizes
        Whether networks see observations scaled to mean 0 and deviation 1.
    is_running
        Whether they are scaled by the observations of all generations before; otherwise by those
        of the random actions at the start, for full evaluation, where fitness is measured once and
        must stay true.

    Attributes
    ----------
    n_episodes, n_steps
        What it has run so far, validation included.
    scaling
        Of the observations, constant within a generation.
    best_scaling
        That with which a network validated best.
    """

    simulator: Simulator
    backend: Backend
    seed: int
    n_training: int
    n_validation: int
    normalizes: bool
    is_running: bool = True

    def __post_init__(self) -> None:
        packed = pack_simulator(self.backend, self.simulator)
        self._run = partial(run_all, self.backend, Shares(), packed)
        self._training = draw_seeds(self.seed, _TRAINING, self.n_training)
        self._validation = draw_seeds(self.seed, _VALIDATION, self.n_validation)
        self.n_episodes = self.n_steps = 0
        self._statistics = ObservationStatistics(self.simulator.architecture.n_inputs)
        self.scaling = self.best_scaling = self._statistics.scaling()
        self._best_validation = -np.inf

    @property
    def n_instances(self) -> int:
        """Number of training seeds."""
        return self.n_training

    @property
    def input_size(self) -> float:
        """Networks see inputs of mean 0 and deviation 1, or whatever the environment gives."""
        return 1.0

    def start(self) -> None:
        """Take statistics of random actions, so that the first networks see normalised inputs."""
        if self.normalizes:
            seeds = draw_seeds(self.seed, _RANDOM, N_RANDOM_EPISODES)
            self._gather(None, seeds, is_shaped=False)
            self.scaling = self.best_scaling = self._statistics.scaling()

    def begin_generation(self) -> None:
        """Take over the statistics of all observations so far."""
        if self.normalizes and self.is_running:
            self.scaling = self._statistics.scaling()

    def measure(self, genotypes: Array, instances: Instances) -> Array:
        """Return the mean returns on training seeds, with shaped rewards."""
        return self._gather(genotypes, self._training[instances], is_shaped=True)

    def validate(self, genotypes: Array) -> Array:
        """Return the mean returns on the validation seeds, with the environment's rewards."""
        fitness = self._gather(genotypes, self._validation, is_shaped=False)
        if fitness.max() > self._best_validation:  # the search keeps the network by the same rule
            self._best_validation = float(fitness.max())
            self.best_scaling = self.scaling
        return fitness

    def _gather(self, genotypes: Array | None, seeds: Array, is_shaped: bool) -> Array:
        """Return the mean over seeds for each network: (m,)."""
        centre = self.scaling.centre
        m = 1 if genotypes is None else len(genotypes)
        folded = None
        if genotypes is not None:
            folded = np.stack([self.fold(genotype, self.scaling) for genotype in genotypes])
        rows, each = np.repeat(np.arange(m), len(seeds)), np.tile(seeds, m)
        found = self._run(folded, rows, each, centre, is_shaped)
        self.n_episodes += len(each)
        self.n_steps += int(found.steps.sum())
        sums, squares = found.sums.sum(axis=0), found.squares.sum(axis=0)
        self._statistics.add(float(found.steps.sum()), centre, sums, squares)
        return np.asarray(found.returns.reshape(m, -1).mean(axis=1))

    def fold(self, genotype: Array, scaling: InputScaling) -> Array:
        """Return the genotype, in float64, of the network that takes unscaled observations."""
        return fold(Network(self.simulator.architecture, genotype), scaling, None).genotype

    def settle(self) -> None:
        """Scale observations as for the network that validated best."""
        self.scaling = self.best_scaling

    def memory(self) -> dict[str, Array]:
        """Return counts, statistics, and the scaling of the best network."""
        statistics = self._statistics
        return {
            "counts": np.array([self.n_episodes, self.n_steps]),
            "observations": statistics.count,
            "mean": statistics.mean,
            "squares": statistics.squares,
            "best_validation": np.array(self._best_validation),
            "best_centre": self.best_scaling.centre,
            "best_factor": self.best_scaling.factor,
        }

    def recall(self, memory: dict[str, Array]) -> None:
        """Go on with these counts and statistics."""
        fresh = self.memory()
        if {n: a.shape for n, a in memory.items()} != {n: a.shape for n, a in fresh.items()}:
            raise ValueError("its memory is not that of episodes in this environment")
        self.n_episodes, self.n_steps = map(int, memory["counts"])
        statistics = self._statistics
        statistics.count, statistics.mean = memory["observations"], memory["mean"]
        statistics.squares = memory["squares"]
        self._best_validation = float(memory["best_validation"])
        self.best_scaling = InputScaling(memory["best_centre"], memory["best_factor"])
