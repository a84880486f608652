"""The algorithm, readable beside the paper; knows no layers and no kernels.

DE, LEDE, CCDE and LECCDE are this one search. The decomposition says whether there is one
population or many (CC); the inheritance says whether evaluation is limited (LE).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from coevo.batches import Batches
from coevo.decomposition import Decomposition
from coevo.evaluation import Evaluator
from coevo.history import Generation, History
from coevo.inheritance import FullEvaluation, Inheritance, LimitedEvaluation
from coevo.network import Array
from coevo.operators import STRATEGIES, Contest, draw_parents, make_trials, mean_fitness
from coevo.regrouping import recut
from coevo.settings import Settings
from coevo.stopping import StopReason, on_interrupt, reached_criterion

Callback = Callable[["Search"], bool | None]
"""Called after each generation; a true answer ends the run."""


@dataclass
class SearchState:
    """All that changes during a search.

    Attributes
    ----------
    rng
        The one source of randomness.
    batches
        The training instances in batches, and which is next.
    subpopulations : list of arrays of shape (k, NP, genes), one for each block
        The individuals x_ij.
    fitness : float64 array of shape (SP, NP)
        Their fitness Ft.
    champions : integer array of shape (SP,)
        Which individual of each subpopulation is part of the global solution.
    global_solution : array of shape (n_genes,)
        The paper's X.
    best_network : array of shape (n_genes,)
        The global solution that did best on the validation set, `best_validation`, first seen in
        generation `best_generation`.
    generation, evaluations, seconds
        Counters; `seconds` is the time spent in generations.
    history
        The generations so far.
    gene_order : integer array of shape (n_genes,), or None
        The genes in the order that random groups were cut from; None if the groups are not drawn.
    """

    rng: np.random.Generator
    batches: Batches
    subpopulations: list[Array]
    fitness: Array
    champions: Array
    global_solution: Array
    best_network: Array
    best_validation: float = -np.inf
    best_generation: int = 0
    generation: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    gene_order: Array | None = None


@dataclass(frozen=True)
class _Turn:
    """Targets of neighbouring subpopulations that can meet their trials at the same time.

    Synchronously these are all targets of a block. Asynchronously it is one target of one
    subpopulation, because the next trial may be made from the outcome.
    """

    block: int
    rows: slice
    subpopulations: range
    targets: range
    completes: bool


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
    """

    def __init__(
        self,
        evaluator: Evaluator,
        decomposition: Decomposition,
        settings: Settings,
        callbacks: Sequence[Callback] = (),
        state: SearchState | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.decomposition = decomposition
        self.settings = settings
        self.callbacks = tuple(callbacks)
        self.inheritance: Inheritance = (
            LimitedEvaluation(settings.decay) if settings.limited_evaluation else FullEvaluation()
        )
        self._inheritance: Inheritance = self.inheritance  # of this generation
        if state is not None and state.gene_order is not None:
            self._group(state.gene_order)
        self.state = self._draw_state() if state is None else state
        self.stop_reason: StopReason | None = None
        self._turns = self._plan_turns()

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
        state, settings = self.state, self.settings
        first_batch = state.batches[0]
        size = settings.population_size
        sums, times = np.zeros_like(state.fitness), np.zeros_like(state.fitness)
        everyone = np.arange(len(self.decomposition))
        # Alone, an individual is a network already: there is nobody to combine it with.
        rounds = settings.sampling_rounds if len(self.decomposition) > 1 else 1
        for _ in range(rounds):
            chosen = np.arange(size)[:, np.newaxis]
            if len(self.decomposition) > 1:
                chosen = state.rng.integers(size, size=(size, len(self.decomposition)))
            networks = np.stack([self._compose(individuals) for individuals in chosen])
            fitness = self.evaluator.evaluate_networks(networks, first_batch)
            state.evaluations += len(networks)
            np.add.at(sums, (everyone, chosen), fitness[:, np.newaxis])
            np.add.at(times, (everyone, chosen), 1)
        state.fitness[:] = sums / np.maximum(times, 1)
        state.champions[:] = state.fitness.argmax(axis=1)
        state.global_solution[:] = self._compose(state.champions)
        self.evaluator.rebase(state.global_solution, first_batch)
        validation = self.evaluator.validate_networks(state.global_solution[np.newaxis])[0]
        self._remember([], np.array([validation]), state.global_solution)
        self._record(validation)

    def _evolve(self) -> None:
        """One generation: every subpopulation in turn, in the context of the others' best."""
        state, evaluator = self.state, self.evaluator
        self._inheritance = self.inheritance
        is_time = state.generation % self.settings.redraw_groups_every == 0
        if self.decomposition.is_redrawn and is_time and state.generation > 0:
            self._redraw_groups()
        before = state.global_solution.copy()
        wins = np.zeros(state.fitness.shape, dtype=bool)
        moved: list[int] = []
        evaluator.rebase(before, state.batches.take(state.rng))
        for turn in self._turns:
            contest = self._reproduce(turn, wins)
            evaluator.sweep(turn.subpopulations, contest)  # evaluate, select, X_i ← x_i,max
            state.evaluations += sum(math.prod(part.shape[:2]) for part in contest.candidates)
            for k in np.flatnonzero(contest.has_moved):
                i = turn.subpopulations[k]
                champion = contest.individuals[k, contest.champions[k]]
                state.global_solution[self.decomposition.groups[i]] = champion
                moved.append(i)
        state.generation += 1
        validations = evaluator.validate()
        self._remember(moved, validations, before)
        self._record(validations[-1] if moved else state.history.latest.validation_fitness)

    def _reproduce(self, turn: _Turn, wins: Array) -> Contest:
        """Mutate and cross; say what targets and trials inherit."""
        settings, state = self.settings, self.state
        strategy = STRATEGIES[settings.strategy]
        here = slice(turn.subpopulations.start, turn.subpopulations.stop)
        individuals, fitness = state.subpopulations[turn.block][turn.rows], state.fitness[here]
        parents = draw_parents(state.rng, strategy, fitness, turn.targets)
        trials = make_trials(
            state.rng, individuals, turn.targets, parents, strategy,
            settings.scale_factor, settings.crossover, settings.crossover_rate,
        )  # fmt: skip
        from_targets, from_parents = self._inheritance.inherit(
            fitness[:, turn.targets.start : turn.targets.stop], mean_fitness(fitness, parents)
        )
        return Contest(
            individuals=individuals,
            fitness=fitness,
            champions=state.champions[here],
            wins=wins[here],
            has_moved=np.zeros(len(individuals), dtype=bool),
            first_target=turn.targets.start,
            trials=trials,
            from_targets=from_targets,
            from_parents=from_parents,
            measures_targets=self._inheritance.measures_targets,
            completes=turn.completes,
        )

    # ----------------------------------------------------------------------------- random groups

    def _group(self, order: Array) -> None:
        """Form groups of the genes in this order, and tell the evaluator."""
        self.decomposition = self.decomposition.redraw(order)
        self.evaluator.regroup(self.decomposition)

    def _redraw_groups(self) -> None:
        """Draw new groups; the global solution, and the genes there are, stay as they are."""
        state, before = self.state, self.decomposition
        state.gene_order = state.rng.permutation(len(state.global_solution))
        self._group(state.gene_order)
        state.subpopulations, state.fitness = recut(
            state.subpopulations, state.fitness, state.champions, before, self.decomposition
        )
        state.champions[:] = 0
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
                state.seconds + time.perf_counter() - self._began,
                self.evaluator.evaluate_global_solution(),
                float(validation_fitness),
                state.best_validation,
            )
        )

    def _timed(self, part: Callable[[], None]) -> None:
        self._began = time.perf_counter()
        part()
        self.state.seconds += time.perf_counter() - self._began

    def _is_over(self) -> bool:
        state = self.state
        self.stop_reason = self.stop_reason or reached_criterion(
            self.settings, state.history.latest, state.best_generation
        )
        return self.stop_reason is not None

    def _compose(self, chosen: Array) -> Array:
        """Put a network together from the chosen individual of each subpopulation."""
        network = np.empty_like(self.state.global_solution)
        start = 0
        for genes, individuals in zip(
            self.decomposition.genes_of_blocks, self.state.subpopulations, strict=True
        ):
            stop = start + len(genes)
            network[genes] = individuals[np.arange(len(genes)), chosen[start:stop]]
            start = stop
        return network

    def _draw_state(self) -> SearchState:
        settings = self.settings
        rng = np.random.Generator(np.random.SFC64(settings.seed))
        n_instances = self.evaluator.n_instances
        if settings.limited_evaluation:
            batches = Batches.partition(
                rng, n_instances, settings.batch_size, settings.reshuffle_batches
            )
        else:
            batches = Batches.all_instances(n_instances)
        dtype = np.dtype(settings.dtype)
        layers = self.decomposition.layer_of_gene
        gene_order = None
        if self.decomposition.is_redrawn:
            gene_order = rng.permutation(len(layers))
            self._group(gene_order)
        size, sizes = settings.population_size, self.decomposition.sizes
        reach = np.broadcast_to(settings.initial_range, layers.max() + 1)[layers]
        subpopulations = []
        for genes in self.decomposition.genes_of_blocks:
            individuals = rng.uniform(-1, 1, (len(genes), size, genes.shape[1]))
            individuals *= reach[genes][:, np.newaxis]
            subpopulations.append(individuals.astype(dtype))
        n_subpopulations = len(self.decomposition)
        return SearchState(
            rng=rng,
            batches=batches,
            subpopulations=subpopulations,
            fitness=np.zeros((n_subpopulations, size)),
            champions=np.zeros(n_subpopulations, dtype=np.int64),
            global_solution=np.zeros(sum(sizes), dtype=dtype),
            best_network=np.zeros(sum(sizes), dtype=dtype),
            gene_order=gene_order,
        )

    def _plan_turns(self) -> list[_Turn]:
        size = self.settings.population_size
        turns = []
        for b, block in enumerate(self.decomposition.blocks):
            if self.settings.synchronous:
                turns.append(_Turn(b, slice(0, len(block)), block, range(size), completes=True))
                continue
            for k, i in enumerate(block):
                turns += [
                    _Turn(b, slice(k, k + 1), range(i, i + 1), range(j, j + 1), j == size - 1)
                    for j in range(size)
                ]
        return turns
