"""`evolve_function`: networks for any black box that measures them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coevo._typing import Array, StrPath
from coevo._validation import check_flag
from coevo.core.batches import Instances
from coevo.core.component import is_auto
from coevo.core.hooks import Hook
from coevo.core.loop import Callback
from coevo.core.network import Architecture, Network
from coevo.core.settings import Settings
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.persistence.plain import as_plain, plain_settings
from coevo.policies.backends import Backend, Serial, Shares, choose_backend
from coevo.policies.defaults import complete
from coevo.policies.episodes import Parcel
from coevo.policies.problem import BlackBoxProblem
from coevo.training.evolve import gather_hooks, resolve_settings
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


def _call(function: Any, *arguments: Any) -> tuple[Array, float]:
    if isinstance(function, Parcel):
        function = function.unpack()
    answer: tuple[Array, float] = function(*arguments)
    return answer


def check_fitness(argument: str, answer: Any, n: int) -> Array:
    """Return the fitness of n networks, or raise an error that names who gave it."""
    try:
        fitness = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must give {n} numbers, one for each network, got {answer!r:.200}"
        ) from None
    if fitness.shape != (n,):
        raise ValueError(
            f"{argument} must give {n} numbers, one for each network, got shape {fitness.shape}"
        )
    if not np.isfinite(fitness).all():
        wrong = fitness[~np.isfinite(fitness)][0]
        raise ValueError(f"{argument} must give finite numbers, got {wrong}")
    return fitness


@dataclass
class FunctionSource:
    """Measures networks by a function.

    Parameters
    ----------
    function
        Of genotypes and instances, as the backend packed it.
    backend
        Where it is called.
    training, validation
        The instances.
    """

    function: Any
    backend: Backend
    training: Any
    validation: Any
    input_size: float = 1.0

    def __post_init__(self) -> None:
        self._shares = Shares()

    @property
    def n_instances(self) -> int:
        """Number of training instances."""
        return len(self.training)

    def begin_generation(self) -> None:
        """Nothing is held constant."""

    def settle(self) -> None:
        """Nothing changes."""

    def measure(self, genotypes: Array, instances: Instances) -> Array:
        """Call the function on training instances."""
        return self._measure(genotypes, _pick(self.training, instances))

    def validate(self, genotypes: Array) -> Array:
        """Call the function on the validation instances."""
        return self._measure(genotypes, self.validation)

    def _measure(self, genotypes: Array, instances: Any) -> Array:
        parts = self._shares.cut(len(genotypes), self.backend.n_workers)
        tasks = [(self.function, genotypes[part], instances) for part in parts]
        fitness, seconds = zip(*self.backend.run(_call, tasks), strict=True)
        self._shares.note(len(genotypes), sum(seconds))
        return np.concatenate(fitness)

    def memory(self) -> dict[str, Array]:
        """Nothing is carried over."""
        return {}

    def recall(self, memory: dict[str, Array]) -> None:
        """Nothing to recall."""
        if memory:
            raise ValueError(f"unknown memory: {', '.join(sorted(memory))}")


def _pick(instances: Any, which: Instances) -> Any:
    """Return some instances: an array of an array, otherwise a list."""
    if isinstance(instances, np.ndarray):
        return instances[which]
    return [instances[k] for k in np.arange(len(instances))[which]]


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
    training, validation = _split(instances, validation_instances)
    settings = _settle(settings, variant, architecture, len(training), changes)
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


def _settle(
    settings: Settings | None,
    variant: str | None,
    architecture: Architecture,
    n_instances: int,
    changes: dict[str, Any],
) -> Settings:
    """Return settings for networks of an architecture."""
    if not isinstance(architecture, Architecture):
        raise TypeError(f"architecture must be a coevo.Architecture, got {architecture!r}")
    for name in ("hidden_layer_sizes", "activation"):
        if name in changes:
            raise ValueError(f"{name} is part of architecture; give it there alone")
    if "fitness" in changes or (settings is not None and not is_auto(settings.fitness)):
        raise ValueError("fitness is what measure returns; give that alone")
    completed = complete(settings, variant, changes)
    if settings is None and "batch_size" not in changes:
        completed["batch_size"] = min(completed["batch_size"], n_instances)
    return replace(
        resolve_settings(settings, variant, completed),
        hidden_layer_sizes=architecture.hidden_layer_sizes,
        activation=architecture.activation,
    )


def _split(given: Any, validation: Any) -> tuple[Any, Any]:
    """Return training and validation instances as sequences."""
    training = _as_sequence("instances", given)
    if validation is not None:
        return training, _as_sequence("validation_instances", validation)
    if len(training) < 5:
        return training, training
    every_fifth = np.arange(len(training)) % 5 == 4
    return _pick(training, np.flatnonzero(~every_fifth)), _pick(
        training, np.flatnonzero(every_fifth)
    )


def _as_sequence(argument: str, given: Any) -> Any:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        given = np.arange(given)
    if not isinstance(given, np.ndarray | Sequence) or isinstance(given, str) or not len(given):
        raise ValueError(
            f"{argument} must be a sequence that is not empty, or how many there are, got {given!r}"
        )
    return given


# --------------------------------------------------------------------------------------- ask, tell


@dataclass(frozen=True)
class Question:
    """Networks whose fitness is asked for.

    Parameters
    ----------
    networks
        To be measured.
    instances
        What on.
    is_validation
        Whether these are the validation instances.
    """

    networks: list[Network]
    instances: Any
    is_validation: bool


class _ClosedError(BaseException):
    """Ends the search of an `AskTell` that is closed."""


class AskTell:
    """A search for those whose evaluation runs elsewhere: it asks, and is told.

    The search runs in a thread of its own, which waits while a question is open. It is the search
    of `evolve_function`, with its checkpoints.

    Parameters
    ----------
    architecture, settings, instances, validation_instances, variant, simultaneous, callbacks
        As for `coevo.evolve_function`.
    checkpoint, resume, initial_network, changes
        As for `coevo.evolve_function`.

    Examples
    --------
    >>> from coevo import Architecture, AskTell
    >>> search = AskTell(Architecture(2, (), 1), instances=1, max_generations=3, seed=1)
    >>> with search:
    ...     while (question := search.ask()) is not None:
    ...         search.tell([-abs(n.outputs([[1, 1]])[0, 0] - 0.5) for n in question.networks])
    >>> search.result.generations
    3
    """

    def __init__(
        self,
        architecture: Architecture,
        settings: Settings | None = None,
        *,
        instances: int | Sequence[Any] | Array,
        validation_instances: int | Sequence[Any] | Array | None = None,
        variant: str | None = None,
        simultaneous: bool = False,
        callbacks: Sequence[Callback | Hook] = (),
        checkpoint: StrPath | Checkpoint | None = None,
        resume: bool = False,
        initial_network: Network | None = None,
        **changes: Any,
    ) -> None:
        check_flag("simultaneous", simultaneous)
        training, validation = _split(instances, validation_instances)
        settings = _settle(settings, variant, architecture, len(training), changes)
        self._architecture = architecture
        self._validation = validation
        self._questions: queue.Queue[Question | None] = queue.Queue()
        self._answers: queue.Queue[Array | None] = queue.Queue()
        self._open: Question | None = None
        self._result: Result | None = None
        self._error: BaseException | None = None
        source = FunctionSource(self._forward, Serial(), training, validation)
        problem = BlackBoxProblem(
            source,
            architecture,
            "asked",
            simultaneous,
            initial_network=initial_network,
            arguments=plain_settings(settings)
            | as_plain({
                "architecture": architecture, "instances": training,
                "validation_instances": validation, "simultaneous": simultaneous,
            }),
        )  # fmt: skip
        hooks = gather_hooks(callbacks, checkpoint, resume)
        self._thread = threading.Thread(
            target=self._search, args=(problem, settings, hooks), name="coevo-asks", daemon=True
        )
        self._thread.start()

    def ask(self) -> Question | None:
        """Return the networks to be measured next, None if the search has ended.

        Asked again before `tell`, it returns the same question.
        """
        if self._open is None and self._error is None and self._result is None:
            self._open = self._questions.get()
            if self._open is None:
                self._thread.join()
        if self._error is not None:
            raise self._error
        return self._open

    def tell(self, fitness: ArrayLike) -> None:
        """Give the fitness of the networks that were asked for.

        Parameters
        ----------
        fitness : array of shape (n_networks,)
        """
        if self._open is None:
            raise ValueError("nothing has been asked: call ask before tell")
        answer = check_fitness("fitness", fitness, len(self._open.networks))
        self._open = None
        self._answers.put(answer)

    @property
    def result(self) -> Result:
        """What the search leaves behind, once it has ended."""
        if self._result is None:
            raise ValueError("the search has not ended: go on until ask returns None")
        return self._result

    def close(self) -> None:
        """End the search, whether it is over or not; a checkpoint stays as it is."""
        self._answers.put(None)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _forward(self, genotypes: Array, instances: Any) -> tuple[Array, float]:
        """Ask for the fitness of networks and wait for the answer; called by the search."""
        networks = [Network(self._architecture, genotype) for genotype in genotypes]
        self._questions.put(Question(networks, instances, instances is self._validation))
        answer = self._answers.get()
        if answer is None:
            raise _ClosedError
        return answer, 0.0

    def _search(
        self, problem: BlackBoxProblem, settings: Settings, hooks: Iterable[Hook | Callback]
    ) -> None:
        try:
            self._result = run_search(problem, settings, list(hooks))
        except _ClosedError:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._questions.put(None)
