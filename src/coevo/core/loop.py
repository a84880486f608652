"""The loop around a search's generations: callbacks, history, stopping, the best network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator
from coevo.core.history import Generation
from coevo.core.settings import Settings
from coevo.core.state import SearchState, draw_batches
from coevo.core.stopping import StopReason, on_interrupt, reached_criterion
from coevo.runtime.jit import clock

Callback = Callable[[Any], bool | None]
"""Called with the search after each generation; a true answer ends the run."""


class SearchLoop(ABC):
    """A search that goes generation by generation; subclasses say what a generation is.

    Iterate over it to go one generation at a time, or `run` it to the end. In its settings, nothing
    is "auto".
    """

    def __init__(
        self,
        evaluator: Evaluator,
        decomposition: Decomposition,
        settings: Settings,
        state: SearchState,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.evaluator = evaluator
        self.decomposition = decomposition
        self.settings = settings
        self.first_settings = settings
        """As they were at the start; extensions may change `settings`."""
        self.state = state
        self.callbacks = tuple(callbacks)
        self.stop_reason: StopReason | None = None
        self.has_forgotten = False
        """Whether the state came with a memory that does not fit the settings."""
        self._began = 0.0

    @abstractmethod
    def _initialise(self) -> None:
        """Evaluate the first networks; the history has a generation 0 afterwards."""

    @abstractmethod
    def _evolve(self) -> None:
        """Take one generation."""

    @property
    @abstractmethod
    def evaluations_per_generation(self) -> int:
        """How many evaluations a generation takes at least."""

    @property
    def limits(self) -> tuple[float | None, float | None, float | None]:
        """Evaluations, generations and seconds that are granted; a search may be granted more."""
        return self.settings.limits

    @abstractmethod
    def _remeasure(self) -> None:
        """Measure again what depends on the previous instances."""

    def turn_to_new_instances(self) -> None:
        """Draw batches of the evaluator's instances, and measure the best network on them.

        For warm starts and streams, in which the instances may differ from those before.
        """
        state = self.state
        state.batches = draw_batches(state.rng, self.settings, self.evaluator.n_instances)
        self._remeasure()
        networks = state.best_network[np.newaxis]
        state.best_validation = float(self.evaluator.validate_networks(networks)[0])
        state.best_generation = state.generation

    def run(self) -> StopReason:
        """Search until a stopping criterion is met; Ctrl-C is one."""

        def ask_to_stop() -> None:
            self.stop_reason = StopReason.INTERRUPTED

        with on_interrupt(ask_to_stop):
            for _ in self:
                pass
        assert self.stop_reason is not None
        return self.stop_reason

    def __iter__(self) -> Iterator[Generation]:
        """Yield each generation once it is done."""
        self.stop_reason = None
        if self.state.evaluations == 0:
            self._timed(self._initialise)
        while self._timed(self._go_on):
            answers = [callback(self) for callback in self.callbacks]
            if any(answers):  # all are called, also after one that says stop
                self.stop_reason = self.stop_reason or StopReason.CALLBACK
            yield self.state.history.latest

    def _go_on(self) -> bool:
        """Take one generation unless the run is over; return whether it was taken."""
        if self._is_over():  # line 15 of Algorithm 1
            return False
        self._evolve()
        return True

    def _record(
        self,
        validation_fitness: float,
        batch_fitness: float | None = None,
        seconds: float | None = None,
    ) -> None:
        """Add the generation to the history; what is not given is measured now."""
        state = self.state
        if batch_fitness is None:
            batch_fitness = self.evaluator.evaluate_global_solution()
        if seconds is None:
            seconds = state.seconds + clock() - self._began
        state.history.append(
            Generation(
                state.generation,
                state.evaluations,
                seconds,
                batch_fitness,
                float(validation_fitness),
                state.best_validation,
            )
        )

    def _timed(self, part: Callable[[], bool | None]) -> bool | None:
        """Count the seconds of a part of the run; those of callbacks are not counted."""
        self._began = clock()
        answer = part()
        self.state.seconds += clock() - self._began
        return answer

    def _validate(self) -> float:
        """Measure the global solution on the validation set, and keep it if it is the best."""
        state = self.state
        validation = float(self.evaluator.validate_networks(state.global_solution[np.newaxis])[0])
        if validation > state.best_validation and np.isfinite(state.global_solution).all():
            state.best_validation, state.best_generation = validation, state.generation
            state.best_network[:] = state.global_solution
        return validation

    @property
    @abstractmethod
    def _is_validated(self) -> bool:
        """Whether the global solution has been validated in the latest generation."""

    def settle(self) -> None:
        """Validate the last network, if the run has ended between two validations.

        Called after the last checkpoint: a run that goes on from there validates when it would have
        done so without stopping.
        """
        if not self._is_validated:
            validation = self._validate()
            self.state.history.amend(validation, self.state.best_validation)

    def _find_last_gain(self) -> int:
        """Return the generation from which patience counts."""
        return self.state.best_generation

    def _is_over(self) -> bool:
        state = self.state
        self.stop_reason = self.stop_reason or reached_criterion(
            self.settings, state.history.latest, self._find_last_gain()
        )
        return self.stop_reason is not None
