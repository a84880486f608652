"""The algorithm, readable beside the paper; knows no layers and no kernels.

DE, LEDE, CCDE and LECCDE are this one search. The decomposition says whether there is one
population or many (CC); the inheritance says whether evaluation is limited (LE).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from coevo.archive import archive_replaced
from coevo.batches import Batches, Instances
from coevo.control import CONTROLS, Control, Memory
from coevo.decomposition import Decomposition
from coevo.evaluation import Evaluator
from coevo.history import Generation, History
from coevo.inheritance import FullEvaluation, Inheritance, LimitedEvaluation
from coevo.network import Array
from coevo.operators import STRATEGIES, draw_parents, make_trials, mean_fitness
from coevo.reduction import choose_survivors
from coevo.regrouping import recut
from coevo.selection import Contest
from coevo.settings import Settings
from coevo.stopping import StopReason, on_interrupt, reached_criterion, spent_share

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
        The fittest individual of each subpopulation, which is part of the global solution unless
        means are.
    archives : list of arrays of shape (k, n, genes), one for each block
        Room for individuals that were replaced; n is 0 unless the strategy uses them.
    n_archived : integer array of shape (SP,)
        How many are in each archive.
    control
        What the control of F and CR remembers.
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
    archives: list[Array]
    n_archived: Array
    control: Memory
    global_solution: Array
    best_network: Array
    best_validation: float = -np.inf
    best_generation: int = 0
    generation: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    gene_order: Array | None = None


def penalties(vectors: Array, weight_decay: float) -> Array:
    """Return what weight decay takes off the fitness of vectors (k, n, genes): (k, n)."""
    squares = np.einsum("knd,knd->kn", vectors, vectors)
    return np.asarray(squares * (weight_decay / vectors.shape[2]))


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

    @property
    def here(self) -> slice:
        """Where the subpopulations are among all."""
        return slice(self.subpopulations.start, self.subpopulations.stop)


@dataclass(frozen=True)
class _Tally:
    """What the trials of a generation were made with and how they did: arrays of shape (SP, NP)."""

    scale_factors: Array
    crossover_rates: Array
    wins: Array
    gains: Array

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> _Tally:
        """Return the tally of a generation that begins."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape))


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
        if state is not None and state.gene_order is not None:
            self._group(state.gene_order)
        self.state = self._draw_state() if state is None else state
        self.stop_reason: StopReason | None = None
        self._turns = self._plan_turns()
        self._begin_memories()

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
        tally = _Tally.blank(state.fitness.shape)
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

    def _reproduce(self, turn: _Turn, tally: _Tally) -> Contest:
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
        )

    def _learn(self, turn: _Turn, tally: _Tally, targets: Array | None) -> None:
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
        self._begin_memories()
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
        reaches = np.broadcast_to(settings.initial_range, layers.max() + 1)
        if settings.scale_initial_range:
            reaches = reaches / np.sqrt(self.decomposition.layer_inputs)
            reaches[0] /= self.evaluator.input_size  # activations above are about 1
        reach = reaches[layers]
        subpopulations = []
        for genes in self.decomposition.genes_of_blocks:
            individuals = rng.uniform(-1, 1, (len(genes), size, genes.shape[1]))
            individuals *= reach[genes][:, np.newaxis]
            if self.initial_network is not None:
                individuals += self.initial_network[genes][:, np.newaxis]
                individuals[:, 0] = self.initial_network[genes]
            subpopulations.append(individuals.astype(dtype))
        n_subpopulations = len(self.decomposition)
        return SearchState(
            rng=rng,
            batches=batches,
            subpopulations=subpopulations,
            fitness=np.zeros((n_subpopulations, size)),
            champions=np.zeros(n_subpopulations, dtype=np.int64),
            archives=[],
            n_archived=np.zeros(n_subpopulations, dtype=np.int64),
            control={},
            global_solution=np.zeros(sum(sizes), dtype=dtype),
            best_network=np.zeros(sum(sizes), dtype=dtype),
            gene_order=gene_order,
        )

    def _begin_memories(self) -> None:
        """Make room for what is learnt, unless the search has such a memory already.

        A memory of another shape belongs to another control or strategy, with which an estimator
        went on until now.
        """
        state = self.state
        fresh = self.control.begin(*state.fitness.shape)
        shapes, others = ({n: a.shape for n, a in m.items()} for m in (fresh, state.control))
        if shapes != others:
            state.control = fresh
        rooms = [
            np.zeros((len(part), self._archive_size(), part.shape[2]), part.dtype)
            for part in state.subpopulations
        ]
        if [room.shape for room in rooms] != [archive.shape for archive in state.archives]:
            state.archives = rooms
            state.n_archived[:] = 0

    def _plan_turns(self) -> list[_Turn]:
        size = self.state.fitness.shape[1]
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
