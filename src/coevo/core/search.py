"""Algorithm 1 of the paper; the numbers in the margin are its line numbers.

DE, LEDE, CCDE and LECCDE are this one search. The decomposition says whether there is one
population or many (CC); the inheritance says whether evaluation is limited (LE). The search knows
no layers and no kernels: an Evaluator measures, and extensions add what the paper does not have.

Two things are arranged differently from the listing, with the same result. Subpopulations that see
the same inputs are handled as a block: their trials depend on their own individuals only, so that
all can be made before the first is measured. And validation, which nothing in the search depends
on, is asked for once a generation and answers for every replacement. Outside of the paper's
settings it may be that of the global solution every so many generations (`validate_every`).
"""

from __future__ import annotations

import math
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
from coevo.core.operators import MUTATIONS, draw_parents, make_trials, mean_fitness
from coevo.core.schedule import TrialLog, Turn, plan_turns
from coevo.core.selection import Offspring, Outcome, Rule, find_candidates, select
from coevo.core.settings import REPLACEMENT, Settings
from coevo.core.state import SearchState


class Search(SearchLoop):
    """Limited Evaluation Cooperative Co-evolutionary DE, and its three siblings.

    Iterate over it to go one generation at a time, or `run` it to the end. `assemble` builds one
    from settings.

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

    # ------------------------------------------------------------------ Algorithm 1 of the paper

    def _initialise(self) -> None:
        """Lines 4 to 14: the individuals' first fitness and the first global solution."""
        state = self.state
        first_batch = state.batches[0]
        if self.initial_network is None:
            self._sample_networks(first_batch)  # 4–10
            state.champions[:] = state.fitness.argmax(axis=1)
            state.global_solution[:] = self._compose(state.champions)  # 11
        else:
            state.global_solution[:] = self.initial_network
            self.measure_in_place(first_batch)
        self.evaluator.rebase(state.global_solution, first_batch)
        validation = self.evaluator.validate_networks(state.global_solution[np.newaxis])  # 12
        self._remember([], validation, state.global_solution)  # 13, 14
        self._record(validation[0])

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

    def _sample_networks(self, batch: Instances) -> None:
        """Give each individual the mean fitness of the random networks it took part in."""
        state, n_subpopulations = self.state, len(self.decomposition)
        size = state.fitness.shape[1]
        totals, times = np.zeros_like(state.fitness), np.zeros_like(state.fitness)
        everyone = np.arange(n_subpopulations)
        # With one subpopulation an individual is a network: there is nothing to combine it with.
        rounds = self.settings.sampling_rounds if n_subpopulations > 1 else 1
        for _ in range(rounds):  # 4: c = 1 to trial × NP, NP networks at a time
            chosen = np.arange(size)[:, np.newaxis]
            if n_subpopulations > 1:
                chosen = state.rng.integers(size, size=(size, n_subpopulations))  # 5
            networks = np.stack([self._compose(individuals) for individuals in chosen])  # 6
            fitness = self.evaluator.evaluate_networks(networks, batch)  # 7
            state.evaluations += len(networks)
            np.add.at(totals, (everyone, chosen), fitness[:, np.newaxis])  # 8
            np.add.at(times, (everyone, chosen), 1)
        state.fitness[:] = totals / np.maximum(times, 1)  # 10
        # Who took no part has 0, unless that would make it the fittest, as losses are below 0.
        state.fitness[times == 0] = min(0.0, state.fitness[times > 0].min())
        for block, individuals in zip(self.decomposition.blocks, state.subpopulations, strict=True):
            state.fitness[block.start : block.stop] -= self._penalise(individuals)

    def _evolve(self) -> None:
        """Lines 16 to 46, one batch: every subpopulation in turn, in the context of the others."""
        state, evaluator = self.state, self.evaluator
        for extension in self.extensions:
            extension.before_generation(self)
        before = state.global_solution.copy()
        log = TrialLog.blank(state.fitness.shape)
        replaced: list[int] = []
        evaluator.rebase(state.global_solution, state.batches.take(state.rng))  # 16
        for turn in self._choose_turns():  # 17
            offspring = self._reproduce(turn, log)  # 24–26
            outcome = self._compete(turn, offspring, log)  # 21–23, 27–40
            replaced += [turn.subpopulations[k] for k in np.flatnonzero(outcome.has_moved)]
            for extension in self.extensions:
                extension.after_block(self, turn, log)
        state.generation += 1
        validation = state.history.latest.validation_fitness
        if self._validates_replacements:
            validations = evaluator.validate()  # 41
            self._remember(replaced, validations, before)  # 42–45
            validation = validations[-1] if replaced else validation
        elif self._is_validated:
            validation = self._validate()
        self._record(validation)

    def _reproduce(self, turn: Turn, log: TrialLog) -> Offspring:
        """Mutate and cross; say what targets and trials inherit."""
        state, strategy = self.state, self.settings.strategy
        individuals = state.subpopulations[turn.block][turn.rows]
        fitness = state.fitness[turn.here]
        found = (extension.donors(self, turn) for extension in self.extensions)
        donors = next((d for d in found if d is not None), None)
        scale_factors, crossover_rates = self.control.draw(self, turn)
        log.scale_factors[turn.here, turn.columns] = scale_factors
        log.crossover_rates[turn.here, turn.columns] = crossover_rates
        mutation = MUTATIONS[strategy.mutation]
        parents = draw_parents(  # r1, r2, r3
            state.rng, mutation, fitness, turn.targets, strategy.count_best(fitness.shape[1]),
            None if donors is None else donors.counts,
        )  # fmt: skip
        trials = make_trials(  # 24: v ← mutate, 26: u ← crossover
            state.rng, individuals, turn.targets, parents, mutation, scale_factors,
            strategy.crossover, crossover_rates, None if donors is None else donors.individuals,
        )  # fmt: skip
        mutant_fitness = mean_fitness(fitness, parents)  # 25
        by_targets, by_trials = self.inheritance.inherit(  # the inherited part of 23 and 29
            fitness[:, turn.columns], mutant_fitness
        )
        by_trials = by_trials - self._penalise(trials)
        if self.inheritance.measures_targets:
            by_targets = by_targets - self._penalise(individuals[:, turn.columns])
        offspring = Offspring(trials, turn.targets.start, by_targets, by_trials)
        for extension in self.extensions:
            extension.before_block(self, turn, offspring)
        return offspring

    def _compete(self, turn: Turn, offspring: Offspring, log: TrialLog) -> Outcome:
        """Measure targets and trials, select, and move the global solution."""
        state, settings, evaluator = self.state, self.settings, self.evaluator
        individuals = state.subpopulations[turn.block][turn.rows]
        rule = Rule(
            measures_targets=self.inheritance.measures_targets,
            accepts_ties=settings.strategy.accept_ties,
            takes_means=settings.takes_means,
            completes=turn.completes,
        )
        outcome = Outcome(  # views: selection changes P_i and Ft_i in place
            individuals=individuals,
            fitness=state.fitness[turn.here],
            champions=state.champions[turn.here],
            wins=log.wins[turn.here],
            gains=log.gains[turn.here],
            representatives=np.empty_like(individuals[:, 0]),
            has_moved=np.zeros(len(individuals), dtype=bool),
        )
        candidates = find_candidates(offspring, rule, outcome)
        state.evaluations += sum(math.prod(part.shape[:2]) for part in candidates)
        if self._fused is not None and self._fused.sweep(
            turn.subpopulations, offspring, rule, outcome
        ):
            return outcome  # an engine's fused loop made the decisions of the one below
        evaluator.stage(turn.subpopulations, candidates)
        for k, i in enumerate(turn.subpopulations):
            measured = evaluator.evaluate(i)  # 21–22 and 27–28
            candidate = int(select(offspring, rule, outcome, k, measured))  # 23, 29–39
            if outcome.has_moved[k]:
                evaluator.replace(  # 40: X_i ← x_i,max
                    i, outcome.representatives[k], candidate if candidate >= 0 else None
                )
        return outcome

    def _remember(self, replaced: list[int], validations: Array, before: Array) -> None:
        """Keep the global solution that validated best, if it is strictly better than any before.

        One whose fitness is NaN or whose weights have overflowed is not kept.

        Parameters
        ----------
        replaced
            The subpopulations whose part of the global solution changed, in order.
        validations : array of shape (len(replaced),), or (1,) for `before` itself
            Validation fitness after each change.
        before : array of shape (n_genes,)
            The global solution before the first change.
        """
        state = self.state
        validations = np.where(np.isnan(validations), -np.inf, validations)
        if len(validations) == 0 or validations.max() <= state.best_validation:  # 42
            return
        first_best = int(validations.argmax())
        network = before.copy()
        for i in replaced[: first_best + 1]:
            genes = self.decomposition.groups[i]
            network[genes] = state.global_solution[genes]
        if not np.isfinite(network).all():
            return
        state.best_network[:] = network  # 43
        state.best_validation = float(validations[first_best])  # 44
        state.best_generation = state.generation

    @property
    def _is_validated(self) -> bool:
        if self._validates_replacements:
            return True
        return self.state.generation % int(self.settings.validate_every) == 0

    def _find_last_gain(self) -> int:
        """Only a validation can tell that there was no gain."""
        return self.state.best_generation if self._is_validated else self.state.generation

    # ------------------------------------------------------------------------- for extensions

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

    def _compose(self, chosen: Array) -> Array:
        """Assemble a network from the chosen individual of each subpopulation."""
        return self.decomposition.compose(self.state.subpopulations, chosen)
