"""A search over subpopulations, and what extensions may ask of it.

Algorithm 1 itself is in `core/search.py`. Here is what it is made of, and what is no part of the
paper: the extensions' memories, and how they may change individuals, groups and turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.control import Control
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator, FusedEvaluator
from coevo.core.extensions.base import Extension, Memory
from coevo.core.inheritance import Inheritance
from coevo.core.loop import Callback, SearchLoop
from coevo.core.schedule import Turn, plan_turns
from coevo.core.settings import REPLACEMENT, Settings
from coevo.core.state import SearchState
from coevo.core.stopping import StopReason


class ExtensibleSearch(SearchLoop):
    """The components of a search by differential evolution, with hooks for extensions.

    Parameters
    ----------
    evaluator
        Measures fitness.
    decomposition
        The genes of each subpopulation.
    settings
        NP, the strategy, the stopping criteria; all components are objects, nothing is "auto".
    state
        The subpopulations, drawn (line 2) or taken over from a checkpoint.
    inheritance
        Full or limited evaluation.
    control
        F and CR of each trial.
    extensions
        What the paper does not have, in the order in which their hooks are called.
    callbacks
        Called with the search after each generation.
    initial_network : array of shape (n_genes,), optional
        A network to begin around, which is the first global solution. The first individual of each
        subpopulation is its part of it.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        decomposition: Decomposition,
        settings: Settings,
        state: SearchState,
        *,
        inheritance: Inheritance,
        control: Control,
        extensions: Sequence[Extension] = (),
        callbacks: Sequence[Callback] = (),
        initial_network: Array | None = None,
    ) -> None:
        super().__init__(evaluator, decomposition, settings, state, callbacks)
        self.extensions = (control, *extensions)
        self.inheritance = inheritance
        self.control = control
        self.initial_network = initial_network
        self._validates_replacements = settings.validate_every == REPLACEMENT
        self._fused = evaluator if isinstance(evaluator, FusedEvaluator) else None
        self._plan_turns()
        self._take_over_memories()

    # ------------------------------------------------------------------------ generations

    @property
    def evaluations_per_generation(self) -> int:
        """Trials and, if these are measured anew, targets, of subpopulations at their smallest."""
        smallest, _ = self.settings.population_sizes
        n_turns = sum(len(block) // self.turn_period for block in self.decomposition.blocks)
        return max(1, n_turns) * smallest * (1 + self.inheritance.measures_targets)

    def _remeasure(self) -> None:
        """Under full evaluation, measure all individuals.

        Their fitness would never be measured again, so that no trial could beat what was measured
        on other instances. Under limited evaluation it decays as new batches come.
        """
        if not self.settings.limited_evaluation:
            self.measure_in_place(slice(0, self.evaluator.n_instances))
        for extension in self.extensions:
            extension.turn_to_new_instances(self)

    def _is_over(self) -> bool:
        if not super()._is_over() and any(e.stagnates(self) for e in self.extensions):
            self.stop_reason = StopReason.STAGNATION
        return self.stop_reason is not None

    def has_validated_since(self, generation: int) -> bool:
        """Say whether there was a validation after a generation."""
        if self._validates_replacements:
            return True
        interval = int(self.settings.validate_every)
        return self.state.generation // interval > generation // interval

    @property
    def _is_validated(self) -> bool:
        if self._validates_replacements:
            return True
        return self.state.generation % int(self.settings.validate_every) == 0

    def _find_last_gain(self) -> int:
        """Only a validation can tell that there was no gain."""
        return self.state.best_generation if self._is_validated else self.state.generation

    # --------------------------------------------------------------------- for extensions

    @property
    def turn_period(self) -> int:
        """In how many generations each subpopulation takes its turn."""
        return max(extension.turn_period for extension in self.extensions)

    def memory(self, extension: Extension) -> Memory:
        """Return what an extension remembers; its arrays go into checkpoints."""
        return self.state.memories[extension.name]

    def measure_in_place(self, instances: Instances) -> None:
        """Give each individual the fitness it has in its place in the global solution."""
        state = self.state
        self.evaluator.rebase(state.global_solution, instances)
        for block, individuals in zip(self.decomposition.blocks, state.subpopulations, strict=True):
            measured = self.evaluator.evaluate_in_place(block, individuals)
            state.fitness[block.start : block.stop] = measured - self._penalise(individuals)
            state.evaluations += measured.size

    def keep(self, survivors: Array) -> None:
        """Remove all individuals but the survivors: (SP, NP), ascending in each row."""
        state = self.state
        state.champions[:] = (survivors == state.champions[:, np.newaxis]).argmax(axis=1)
        state.fitness = np.take_along_axis(state.fitness, survivors, axis=1)
        for b, block in enumerate(self.decomposition.blocks):
            places = survivors[block.start : block.stop, :, np.newaxis]
            state.subpopulations[b] = np.take_along_axis(state.subpopulations[b], places, axis=1)
        for extension in self.extensions:
            extension.keep(self, survivors)
        self._plan_turns()

    def repopulate(self, subpopulations: list[Array]) -> None:
        """Take over other individuals, of any number, and measure them in the global solution."""
        state = self.state
        size = subpopulations[0].shape[1]
        state.subpopulations = subpopulations
        state.fitness = np.zeros((len(self.decomposition), size))
        self.measure_in_place(state.batches[max(0, state.batches.position - 1)])
        # The first individual is X's own where individuals represent; selection moves on from it.
        state.champions[:] = 0
        self.forget()
        self._plan_turns()

    def regroup(self, decomposition: Decomposition) -> None:
        """Take over other groups of genes; the state must fit them already."""
        self.decomposition = decomposition
        self.evaluator.regroup(decomposition)
        self._plan_turns()

    def forget(self) -> None:
        """Let all extensions begin afresh."""
        self.state.memories = {e.name: e.begin(self) for e in self.extensions}

    # ------------------------------------------------------------- what extensions decide

    def _take_over_memories(self) -> None:
        """Keep memories that fit; one that does not belongs to other settings."""
        state = self.state
        kept = {
            e.name: state.memories[e.name]
            for e in self.extensions
            if e.name in state.memories and e.fits(self, state.memories[e.name])
        }
        self.has_forgotten = kept.keys() != state.memories.keys()
        state.memories = {
            e.name: kept[e.name] if e.name in kept else e.begin(self) for e in self.extensions
        }
        for extension in self.extensions:
            extension.resume(self)

    def _penalise(self, vectors: Array) -> Array | float:
        """Return what the extensions take off the fitness of vectors (k, n, genes)."""
        penalties = [extension.penalty(vectors) for extension in self.extensions]
        return sum((p for p in penalties if p is not None), start=0.0)

    def _plan_turns(self) -> None:
        size: int = self.state.fitness.shape[1]
        self._turns = plan_turns(
            self.decomposition.blocks, size, self.settings.strategy.synchronous
        )

    def _choose_turns(self) -> Sequence[Turn]:
        turns: Sequence[Turn] = self._turns
        for extension in self.extensions:
            turns = extension.choose_turns(self, turns)
        return turns
