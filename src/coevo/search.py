"""The algorithm, readable beside the paper; knows no layers and no kernels.

DE, LEDE, CCDE and LECCDE are this one search. The decomposition says whether there is one
population or many (CC); the inheritance says whether evaluation is limited (LE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np

from coevo.archive import archive_replaced
from coevo.batches import Instances
from coevo.compiling import clock
from coevo.control import CONTROLS, Control
from coevo.decomposition import Decomposition
from coevo.evaluation import Evaluator
from coevo.history import Generation
from coevo.inheritance import FullEvaluation, Inheritance, LimitedEvaluation, penalties
from coevo.network import Array
from coevo.operators import STRATEGIES, draw_parents, make_trials, mean_fitness
from coevo.reduction import choose_survivors
from coevo.regrouping import recut
from coevo.selection import Contest
from coevo.settings import Settings
from coevo.state import SearchState, draw_state
from coevo.stopping import StopReason, on_interrupt, reached_criterion, spent_share
from coevo.turns import Tally, Turn, plan_turns

Callback = Callable[["Search"], bool | None]
"""Called after each generation; a true answer ends the run."""


class Search:
    """Limited Evaluation Cooperative Co-evolutionary DE, and its three siblings.

    Iterate over it to go one generation at a time, or `run` it to the end.

    Parameters
    ----------
    evaluator
        Measures fitness.
    decomposition
        Which genes each subpopulation owns; random groups are drawn here.
    settings
        How to search and when to stop.
    callbacks
        Called with the search after each generation.
    state
        Where to go on from; a new search begins if there is none.
    initial_network : array of shape (n_genes,), optional
        A network to begin around: one individual of each subpopulation is its part, the others are
        that part with uniform noise of `initial_range` added, as differential evolution needs
        individuals that differ. It is the first global solution.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        decomposition: Decomposition,
        settings: Settings,
        callbacks: Sequence[Callback] = (),
        state: SearchState | None = None,
        initial_network: Array | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.decomposition = decomposition
        self.settings = settings
        self.callbacks = tuple(callbacks)
        self.inheritance: Inheritance = (
            LimitedEvaluation(settings.decay) if settings.limited_evaluation else FullEvaluation()
        )
        self._inheritance: Inheritance = self.inheritance  # of this generation
        kind = CONTROLS[settings.control]
        self.control: Control = kind(**{f.name: getattr(settings, f.name) for f in fields(kind)})
        self.initial_network = initial_network
        if state is None:
            state = draw_state(settings, decomposition, evaluator, initial_network)
        self.state = state
        if state.gene_order is not None:
            self._group(state.gene_order)
        self.stop_reason: StopReason | None = None
        self._turns = self._plan_turns()
        state.begin_memories(self.control, self._archive_size())

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
        while not self._is_over():
            self._timed(self._evolve)
            answers = [callback(self) for callback in self.callbacks]  # all are told, then asked
            if any(answers):
                self.stop_reason = self.stop_reason or StopReason.CALLBACK
            yield self.state.history.latest

    # ------------------------------------------------------------------ Algorithm 1 of the paper

    def _initialise(self) -> None:
        """Give the individuals their first fitness and put the global solution together."""
        state = self.state
        first_batch = state.batches[0]
        if self.initial_network is None:
            self._sample_networks(first_batch)
            state.champions[:] = state.fitness.argmax(axis=1)
        else:
            self._measure_around(self.initial_network, first_batch)
            state.champions[:] = 0
        state.global_solution[:] = self._compose(state.champions)
        self.evaluator.rebase(state.global_solution, first_batch)
        validation = self.evaluator.validate_networks(state.global_solution[np.newaxis])[0]
        self._remember([], np.array([validation]), state.global_solution)
        self._record(validation)

    def _sample_networks(self, instances: Instances) -> None:
        """Give each individual the mean fitness of random networks that it is part of."""
        state, settings = self.state, self.settings
        size = state.fitness.shape[1]
        sums, times = np.zeros_like(state.fitness), np.zeros_like(state.fitness)
        everyone = np.arange(len(self.decomposition))
        # Alone, an individual is a network already: there is nobody to combine it with.
        rounds = settings.sampling_rounds if len(self.decomposition) > 1 else 1
        for _ in range(rounds):
            chosen = np.arange(size)[:, np.newaxis]
            if len(self.decomposition) > 1:
                chosen = state.rng.integers(size, size=(size, len(self.decomposition)))
            networks = np.stack([self._compose(individuals) for individuals in chosen])
            fitness = self.evaluator.evaluate_networks(networks, instances)
            state.evaluations += len(networks)
            np.add.at(sums, (everyone, chosen), fitness[:, np.newaxis])
            np.add.at(times, (everyone, chosen), 1)
        state.fitness[:] = sums / np.maximum(times, 1)
        # Who took no part has 0, unless, as losses are below 0, that would make it the fittest.
        state.fitness[times == 0] = min(0.0, state.fitness[times > 0].min())
        if settings.weight_decay:
            state.fitness -= np.concatenate(
                [penalties(part, settings.weight_decay) for part in state.subpopulations]
            )

    def _measure_around(self, network: Array, instances: Instances) -> None:
        """Give each individual its fitness in its place in a network.

        Random networks would tell nothing of how well it fits into this one.
        """
        state = self.state
        self.evaluator.rebase(network.astype(state.global_solution.dtype), instances)
        for individuals, block in zip(state.subpopulations, self.decomposition.blocks, strict=True):
            here = slice(block.start, block.stop)
            shape = individuals.shape[:2]
            contest = Contest(
                individuals=individuals,
                fitness=state.fitness[here],
                champions=state.champions[here],
                wins=np.zeros(shape, dtype=bool),
                gains=np.zeros(shape),
                representatives=np.empty_like(individuals[:, 0]),
                has_moved=np.zeros(len(individuals), dtype=bool),
                first_target=0,
                trials=individuals,  # each takes its own place
                from_targets=np.full(shape, -np.inf),
                from_parents=-penalties(individuals, self.settings.weight_decay),
                measures_targets=False,
                completes=False,
                takes_means=False,
            )
            self.evaluator.sweep(block, contest)
            state.evaluations += math.prod(shape)

    def _evolve(self) -> None:
        """One generation: every subpopulation in turn, in the context of the others' best."""
        state, evaluator = self.state, self.evaluator
        before = state.global_solution.copy()
        self._reduce()
        self._redraw_groups()
        tally = Tally.blank(state.fitness.shape)
        moved: list[int] = []
        evaluator.rebase(before, state.batches.take(state.rng, self._batch_size()))
        for turn in self._turns:
            contest = self._reproduce(turn, tally)
            # Only an archive asks for targets that are gone.
            targets = contest.targets.copy() if state.archives[turn.block].size else None
            evaluator.sweep(turn.subpopulations, contest)  # evaluate, select, X_i ← x_i,max
            self._learn(turn, tally, targets)
            state.evaluations += sum(math.prod(part.shape[:2]) for part in contest.candidates)
            for k in np.flatnonzero(contest.has_moved):
                i = turn.subpopulations[k]
                genes = self.decomposition.groups[i]
                state.global_solution[genes] = contest.representatives[k]
                moved.append(i)
        state.generation += 1
        validations = evaluator.validate()
        self._remember(moved, validations, before)
        self._record(validations[-1] if moved else state.history.latest.validation_fitness)

    def _reproduce(self, turn: Turn, tally: Tally) -> Contest:
        """Mutate and cross; say what targets and trials inherit."""
        settings, state = self.settings, self.state
        strategy = STRATEGIES[settings.strategy]
        here, columns = turn.here, slice(turn.targets.start, turn.targets.stop)
        individuals, fitness = state.subpopulations[turn.block][turn.rows], state.fitness[here]
        archived = state.archives[turn.block][turn.rows]
        scale_factors, crossover_rates = self.control.draw(
            state.rng, state.control, here, turn.targets
        )
        tally.scale_factors[here, columns] = scale_factors
        tally.crossover_rates[here, columns] = crossover_rates
        n_best = max(1, round(settings.pbest_share * fitness.shape[1]))
        parents = draw_parents(
            state.rng, strategy, fitness, turn.targets, n_best, state.n_archived[here]
        )
        trials = make_trials(
            state.rng, individuals, turn.targets, parents, strategy,
            scale_factors, settings.crossover, crossover_rates, archived if archived.size else None,
        )  # fmt: skip
        from_targets, from_parents = self._inheritance.inherit(
            fitness[:, columns], mean_fitness(fitness, parents)
        )
        if settings.weight_decay:
            from_parents = from_parents - penalties(trials, settings.weight_decay)
            if self._inheritance.measures_targets:
                targets = individuals[:, columns]
                from_targets = from_targets - penalties(targets, settings.weight_decay)
        return Contest(
            individuals=individuals,
            fitness=fitness,
            champions=state.champions[here],
            wins=tally.wins[here],
            gains=tally.gains[here],
            representatives=np.empty_like(individuals[:, 0]),
            has_moved=np.zeros(len(individuals), dtype=bool),
            first_target=turn.targets.start,
            trials=trials,
            from_targets=from_targets,
            from_parents=from_parents,
            measures_targets=self._inheritance.measures_targets,
            completes=turn.completes,
            takes_means=settings.takes_means,
            accepts_ties=settings.accept_ties,
        )

    def _learn(self, turn: Turn, tally: Tally, targets: Array | None) -> None:
        """Archive targets that were bettered; tell the control once all targets have been."""
        state, here = self.state, turn.here
        if targets is not None:
            archive_replaced(
                state.rng,
                state.archives[turn.block][turn.rows],
                state.n_archived[here],
                targets,
                tally.gains[here, turn.targets.start : turn.targets.stop],
            )
        if turn.completes:
            drawn = (tally.scale_factors[here], tally.crossover_rates[here])
            self.control.learn(state.control, here, drawn, tally.wins[here], tally.gains[here])

    # --------------------------------------------------------------------- what follows the budget

    def _batch_size(self) -> int | None:
        """Return how large batches should be by now, None if they do not grow."""
        settings = self.settings
        if settings.final_batch_size is None:
            return None
        share = spent_share(settings, self.state.evaluations, self.state.generation)
        growth = settings.final_batch_size - settings.batch_size
        return round(settings.batch_size + share * growth)

    def _reduce(self) -> None:
        """Let the least fit individuals go, if subpopulations should be smaller by now."""
        state, settings = self.state, self.settings
        if settings.final_population_size is None:
            return
        share = spent_share(settings, state.evaluations, state.generation)
        fall = settings.population_size - settings.final_population_size
        size = round(settings.population_size - share * fall)
        if size >= state.fitness.shape[1]:
            return
        survivors = choose_survivors(state.fitness, state.champions, size)
        state.champions[:] = (survivors == state.champions[:, np.newaxis]).argmax(axis=1)
        state.fitness = np.take_along_axis(state.fitness, survivors, axis=1)
        for b, block in enumerate(self.decomposition.blocks):
            places = survivors[block.start : block.stop, :, np.newaxis]
            state.subpopulations[b] = np.take_along_axis(state.subpopulations[b], places, axis=1)
            state.archives[b] = state.archives[b][:, : self._archive_size()].copy()
        np.minimum(state.n_archived, self._archive_size(), out=state.n_archived)
        self.control.keep(state.control, survivors)
        self._turns = self._plan_turns()

    def _archive_size(self) -> int:
        if not STRATEGIES[self.settings.strategy].uses_archive:
            return 0
        size: int = self.state.fitness.shape[1]
        return round(self.settings.archive_rate * size)

    def _plan_turns(self) -> list[Turn]:
        size: int = self.state.fitness.shape[1]
        return plan_turns(self.decomposition.blocks, size, self.settings.synchronous)

    # ----------------------------------------------------------------------------- random groups

    def _group(self, order: Array) -> None:
        """Form groups of the genes in this order, and tell the evaluator."""
        self.decomposition = self.decomposition.redraw(order)
        self.evaluator.regroup(self.decomposition)

    def _redraw_groups(self) -> None:
        """Draw new groups, if it is time; the global solution and the genes there are stay.

        Whose F and CR were learnt, and who was replaced, are individuals and subpopulations that
        there are no more: archives and the control begin afresh.
        """
        state, before = self.state, self.decomposition
        self._inheritance = self.inheritance
        is_time = state.generation > 0 and state.generation % self.settings.redraw_groups_every == 0
        if not (before.is_redrawn and is_time):
            return
        state.gene_order = state.rng.permutation(len(state.global_solution))
        self._group(state.gene_order)
        state.subpopulations, state.fitness = recut(
            state.subpopulations, state.fitness, state.champions, before, self.decomposition
        )
        state.champions[:] = 0
        state.archives, state.control = [], {}
        state.begin_memories(self.control, self._archive_size())
        self._turns = self._plan_turns()
        self._inheritance = self.inheritance.after_redrawing()

    # ------------------------------------------------------------------------------- bookkeeping

    def _remember(self, moved: list[int], validations: Array, before: Array) -> None:
        """Keep the global solution that validated best, if it is strictly better than any before.

        Parameters
        ----------
        moved
            The subpopulations whose part of the global solution changed, in order.
        validations : array of shape (len(moved),)
            Validation fitness after each change.
        before : array of shape (n_genes,)
            The global solution before the first change.
        """
        state = self.state
        if len(validations) == 0 or validations.max() <= state.best_validation:
            return
        first_best = int(validations.argmax())
        state.best_validation = float(validations[first_best])
        state.best_generation = state.generation
        state.best_network[:] = before
        for i in moved[: first_best + 1]:
            genes = self.decomposition.groups[i]
            state.best_network[genes] = state.global_solution[genes]

    def _record(self, validation_fitness: float) -> None:
        state = self.state
        state.history.append(
            Generation(
                state.generation,
                state.evaluations,
                state.seconds + clock() - self._began,
                self.evaluator.evaluate_global_solution(),
                float(validation_fitness),
                state.best_validation,
            )
        )

    def _timed(self, part: Callable[[], None]) -> None:
        self._began = clock()
        part()
        self.state.seconds += clock() - self._began

    def _is_over(self) -> bool:
        state = self.state
        self.stop_reason = self.stop_reason or reached_criterion(
            self.settings, state.history.latest, state.best_generation
        )
        return self.stop_reason is not None

    def _compose(self, chosen: Array) -> Array:
        """Put a network together from the chosen individual of each subpopulation."""
        return self.decomposition.compose(self.state.subpopulations, chosen)
