"""`evolve_function`: networks for any black box that measures them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coevo._typing import Array, StrPath
from coevo._validation import check_flag
from coevo.core.hooks import Hook
from coevo.core.loop import Callback
from coevo.core.network import Architecture, Network
from coevo.core.settings import Settings
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.persistence.plain import as_plain, plain_settings
from coevo.policies.backends import choose_backend
from coevo.policies.defaults import settle_settings
from coevo.policies.function_source import FunctionSource, check_fitness, split_instances
from coevo.policies.problem import BlackBoxProblem
from coevo.training.evolve import gather_hooks
from coevo.training.result import Result
from coevo.training.run import run_search

Measure = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class _Function:
    """A user's function, and what it is called with."""

    measure: Measure
    architecture: Architecture
    takes_many: bool

    def __call__(self, genotypes: Array, instances: Any) -> tuple[Array, float]:
        """Return the fitness of networks, and how many seconds it took to measure them."""
        began = time.perf_counter()
        networks = [Network(self.architecture, genotype) for genotype in genotypes]
        if self.takes_many:
            answer = self.measure(networks, instances)
        else:
            answer = [self.measure(network, instances) for network in networks]
        return check_fitness("measure", answer, len(networks)), time.perf_counter() - began


def evolve_function(
    measure: Measure,
    architecture: Architecture,
    settings: Settings | None = None,
    *,
    instances: int | Sequence[Any] | Array,
    validation_instances: int | Sequence[Any] | Array | None = None,
    takes_many: bool = False,
    variant: str | None = None,
    simultaneous: bool = False,
    backend: str = "serial",
    n_workers: int | None = None,
    cluster: Any = None,
    callbacks: Sequence[Callback | Hook] = (),
    checkpoint: StrPath | Checkpoint | None = None,
    resume: bool = False,
    initial_network: Network | None = None,
    **changes: Any,
) -> Result:
    """Evolve a network for whatever measures it: hardware in the loop, agents, games.

    Parameters
    ----------
    measure
        A function of a network and some instances that returns the network's fitness; more is
        better. If `takes_many`, of a list of networks, and it returns a fitness for each.
        `network.outputs(inputs)` runs a network.
    architecture
        Of the networks.
    settings
        How to search and when to stop; by default those of docs/howto/policy.md. The settings'
        `batch_size` is the number of instances in an evaluation.
    instances
        What networks are measured on, in batches: scenarios, opponents, seeds. A sequence, or a
        number n for 0, …, n − 1.
    validation_instances
        What chooses the network that is returned, once a generation; None for every fifth
        instance, which is kept out of training then, or for all if there are fewer than five.
    takes_many
        Whether `measure` takes many networks at a time.
    variant, callbacks, checkpoint, resume, initial_network
        As for `coevo.evolve`.
    simultaneous, backend, n_workers, cluster
        As for `coevo.evolve_policy`. A `measure` that is not deterministic gives another result
        each time.
    changes
        Single settings that differ from `settings`; nested names too.

    Examples
    --------
    >>> import numpy as np
    >>> from coevo import Architecture, evolve_function
    >>> def measure(network, instances):
    ...     inputs = np.array(instances, dtype=float)[:, np.newaxis]
    ...     return -float(np.square(network.outputs(inputs) - np.sin(inputs)).mean())
    >>> result = evolve_function(
    ...     measure, Architecture(1, (4,), 1), instances=np.linspace(-2, 2, 20), seed=1,
    ...     max_evaluations=2000,
    ... )
    >>> result.validation_fitness > -0.1
    True
    """
    if not callable(measure):
        raise TypeError(f"measure must be a function of network and instances, got {measure!r}")
    check_flag("takes_many", takes_many)
    check_flag("simultaneous", simultaneous)
    training, validation = split_instances(instances, validation_instances)
    settings = settle_settings(settings, variant, architecture, len(training), changes)
    hooks = gather_hooks(callbacks, checkpoint, resume)
    with choose_backend(backend, n_workers, cluster) as chosen:
        function = chosen.pack("measure", _Function(measure, architecture, takes_many))
        problem = BlackBoxProblem(
            FunctionSource(function, chosen, training, validation),
            architecture,
            "function",
            simultaneous,
            initial_network=initial_network,
            arguments=plain_settings(settings)
            | as_plain({
                "measure": measure, "architecture": architecture, "instances": training,
                "validation_instances": validation, "simultaneous": simultaneous,
            }),
        )  # fmt: skip
        return run_search(problem, settings, hooks)
