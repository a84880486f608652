"""`AskTell`: a search whose networks are measured elsewhere, by whoever asks for them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from coevo._typing import Array, StrPath
from coevo._validation import check_flag
from coevo.core.hooks import Hook
from coevo.core.loop import Callback
from coevo.core.network import Architecture, Network
from coevo.core.settings import Settings
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.persistence.plain import as_plain, plain_settings
from coevo.policies.backends import Serial
from coevo.policies.defaults import settle_settings
from coevo.policies.function_source import FunctionSource, check_fitness, split_instances
from coevo.policies.problem import BlackBoxProblem
from coevo.training.evolve import gather_hooks
from coevo.training.result import Result
from coevo.training.run import run_search


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
        training, validation = split_instances(instances, validation_instances)
        settings = settle_settings(settings, variant, architecture, len(training), changes)
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
