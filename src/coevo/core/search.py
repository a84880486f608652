"""Algorithm 1 of the paper; the numbers in the margin are its line numbers.

DE, LEDE, CCDE and LECCDE are this one search. The decomposition says whether there is one
population or many (CC); the inheritance says whether evaluation is limited (LE). The search knows
no layers and no kernels: an Evaluator measures, and extensions add what the paper does not have
(`core/extensible.py`).

Line 2 is `draw_state` in `core/state.py`, line 15 the loop in `core/loop.py`. Lines 18 and 19 copy
P_i and Ft_i; here the trials are made, and what they inherit is found, before anything is replaced.
Line 20, each target in turn, is the loop in `select`.

Two things are arranged differently from the listing, with the same result. Subpopulations that see
the same inputs are handled as a block: their trials depend on their own individuals only, so that
all can be made before the first is measured. And validation, which nothing in the search depends
on, is asked for once a generation and answers for every replacement. Outside of the paper's
settings it may be that of the global solution every so many generations (`validate_every`).
"""

from __future__ import annotations

import math

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.extensible import ExtensibleSearch
from coevo.core.operators import MUTATIONS, draw_parents, make_trials, mean_fitness
from coevo.core.schedule import TrialLog, Turn
from coevo.core.selection import Offspring, Outcome, Rule, find_candidates, select


class Search(ExtensibleSearch):
    """Limited Evaluation Cooperative Co-evolutionary DE (LECCDE), and DE, LEDE and CCDE.

    Iterate over it to go one generation at a time, or `run` it to the end. `assemble` builds one
    from settings.
    """

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

    def _sample_networks(self, batch: Instances) -> None:
        """Give each individual the mean fitness of the random networks it took part in."""
        state, n_subpopulations = self.state, len(self.decomposition)
        size = state.fitness.shape[1]
        totals, times = np.zeros_like(state.fitness), np.zeros_like(state.fitness)  # 3
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

    def _compose(self, chosen: Array) -> Array:
        """Assemble a network from the chosen individual of each subpopulation."""
        return self.decomposition.compose(self.state.subpopulations, chosen)
