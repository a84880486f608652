"""The search by smoothed fitness: see `coevo.core.smoothing` for what it does and why.

One generation is one batch::

    rebase(X, batch)
    direction ← find_direction(widths)     two evaluations for each neuron
    means ← means + rate × Adam(direction − decay × means)
    X ← means

Rate and decay follow rounds (`coevo.core.rounds`).

A subpopulation is kept as its mean, as its only individual. Means are over standardised inputs, X
over the inputs as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from coevo._typing import Array
from coevo.core import adam
from coevo.core.adam import Neurons
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import SmoothingEvaluator
from coevo.core.extensions.base import Memory
from coevo.core.loop import Callback, SearchLoop
from coevo.core.metrics import ClippedMargin, ErrorMetric, Profit, SquaredError, find_metric
from coevo.core.rounds import Clock, Rounds
from coevo.core.settings import Settings
from coevo.core.smoothing import Smoothing, check_served, find_rate
from coevo.core.state import SearchState, draw_batches
from coevo.core.stopping import StopReason, reached_criterion
from coevo.runtime import threads
from coevo.runtime.jit import clock

_LEAST_DEVIATION = 0.1  # of an input, as a share of the root mean square of all deviations
_GRAIN = 2**16  # weights worth another thread
_SLOWLY = 1000  # generations after which the schedule "root" has taken 1 − √½ off the rate


class SmoothedSearch(SearchLoop):
    """A neuron-wise search along the slope of the smoothed fitness.

    The history's batch fitness is that of the global solution before its move, and its validation
    fitness that of the last validation: validation takes at most about a tenth of the time, so
    there is one every so many generations and one at the end.

    Parameters
    ----------
    settings
        The strategy is a `Smoothing`; nothing is "auto".
    state
        The means, drawn by `draw_means` or taken over from a checkpoint.
    initial_network : array of shape (n_genes,), optional
        A network to begin with in place of the means drawn.
    """

    def __init__(
        self,
        evaluator: SmoothingEvaluator,
        decomposition: Decomposition,
        settings: Settings,
        state: SearchState,
        callbacks: Sequence[Callback] = (),
        initial_network: Array | None = None,
    ) -> None:
        super().__init__(evaluator, decomposition, settings, state, callbacks)
        assert isinstance(settings.strategy, Smoothing)
        metric = find_metric(settings.fitness)
        check_served(metric)
        self._evaluator = evaluator
        self._strategy = settings.strategy
        self._initial_network = initial_network
        self._unit = _find_unit(metric)
        n_layers = len(decomposition.layer_inputs)
        self._widths, self._rates = (
            np.broadcast_to(settings.strategy.list_by_layer(name), n_layers).astype(float)
            for name in ("width", "rate")
        )
        self._has_ended_try = False
        self._validated = -1
        self._means = self._join_means()
        self._memory = self._take_over_memory()
        self._layers = self._lay_out()
        self._rounds: Rounds | None = None
        if self._strategy.schedule == "rounds":
            tries = self._strategy.adapt_decay and float(self._strategy.weight_decay) > 0
            n_tries = 2 if tries and evaluator.validates_apart else 1
            limits = Clock.limits(settings)
            self._rounds = Rounds(self._memory, self._moved_arrays(self._memory), limits, n_tries)
            if state.evaluations > 0 and not self._rounds.has_its_limits:
                self._begin_rounds()  # another budget was granted

    # ----------------------------------------------------------------------------- generations

    def _initialise(self) -> None:
        state = self.state
        if self._initial_network is not None:
            state.global_solution[:] = self._initial_network
            for layer in self._layers:
                adam.unfold(layer)
        self._fold()
        if self._rounds is not None:
            self._begin_rounds()
        self.evaluator.rebase(state.global_solution, state.batches[0])
        state.evaluations += 1
        fitness = self.evaluator.evaluate_global_solution()
        state.fitness[:] = fitness
        self._record(self._validate(), fitness)

    def _evolve(self) -> None:
        state = self.state
        self.evaluator.rebase(state.global_solution, state.batches.take(state.rng))
        fitness = self.evaluator.evaluate_global_solution()
        state.fitness[:] = fitness
        self._move(self._evaluator.find_direction(self._widths))
        state.evaluations += self.evaluations_per_generation
        state.generation += 1
        latest = state.history.latest._replace(
            generation=state.generation, evaluations=state.evaluations, seconds=self._seconds()
        )
        validation = self._go_through_rounds()
        if validation is None:
            validation = latest.validation_fitness
            is_last = reached_criterion(self.settings, latest, self._find_last_gain()) is not None
            if is_last or self._stagnates or state.generation % self._validation_interval == 0:
                validation = self._validate()
        self._record(validation, fitness, latest.seconds)

    def _move(self, direction: Array) -> None:
        """Take a step with all neurons."""
        self._memory["n_moves"] += 1
        n_moves, rates = int(self._memory["n_moves"][0]), self._rates * self._find_share_of_rate()
        if self._unit != 1:
            direction /= direction.dtype.type(self._unit)
        decay = self._rounds.decay if self._rounds else float(self._strategy.weight_decay)
        strength = decay / self.evaluator.n_instances
        start = 0
        for rate, layer in zip(rates, self._layers, strict=True):
            stop = start + layer.means.size
            part = direction[start:stop].reshape(layer.means.shape)
            decay, start = strength * len(layer.centre), stop
            move = partial(adam.move, layer, part, float(rate), decay, n_moves)
            threads.share_out(move, len(part), grain=1 + _GRAIN // len(part[0]))

    def _find_share_of_rate(self) -> float:
        """Return how much of the rates as they are set the next move has."""
        if self._rounds is not None:
            return float(self._memory["pace"][0]) * self._rounds.share_left(self._clock())
        is_constant = self._strategy.schedule == "constant"
        return 1.0 if is_constant else 1 / math.sqrt(1 + self.state.generation / _SLOWLY)

    def _go_through_rounds(self) -> float | None:
        """End the try if its moves are made; return the validation fitness if it was measured."""
        rounds, now = self._rounds, self._clock()
        if rounds is None:
            return None
        if rounds.wants_measured_plan(now):
            seconds = self._measure_seconds(now)
            rounds.plan(now, Clock(self.evaluations_per_generation, 1, seconds))
            if self._strategy.adapt_rate:
                self._memory["pace"][0] = self._find_pace(now, seconds)
        self._has_ended_try = rounds.is_over(now)
        if not self._has_ended_try:
            return None
        validation, state = self._validate(), self.state
        is_usable = np.isfinite(state.global_solution).all()  # one of NaN may have an accuracy
        fitness = validation if is_usable else math.nan
        first = state.history.least_best_validation
        rounds.end_try(fitness, state.best_validation, first, self._clock())
        self._fold()  # another try begins elsewhere
        return validation

    def _find_pace(self, now: Clock, seconds: float) -> float:
        """Return by how much to raise the rates if a generation takes so many seconds."""
        limits, n_inputs = Clock.limits(self.settings), self.decomposition.layer_inputs[0]
        planned = min(limits.generations, limits.evaluations / self.evaluations_per_generation)
        affordable = now.generations + (limits.seconds - now.seconds) / max(seconds, 1e-9)
        known, found = (find_rate(n, n_inputs) for n in (planned, min(planned, affordable)))
        return found / known

    def _measure_seconds(self, now: Clock) -> float:
        """Return how long a generation takes, without the first ones, which load kernels."""
        _, began, began_seconds = self._memory["began"]
        rows = self.state.history.rows
        rows = rows[rows[:, 0] >= began + (now.generations - began) // 3]
        if len(rows) > 1:
            return float((rows[-1, 2] - rows[0, 2]) / (rows[-1, 0] - rows[0, 0]))
        return float((now.seconds - began_seconds) / (now.generations - began))

    def _find_last_gain(self) -> int:
        """Within a try validation fitness may fall before it rises: patience waits for its end.

        The last round ends with the budget, so that patience counts within it.
        """
        if self._rounds is None or self._has_ended_try:
            return self.state.best_generation
        if self._rounds.is_last:
            return max(self.state.best_generation, self._rounds.judged_from)
        return self.state.generation

    def _clock(self) -> Clock:
        return Clock(self.state.evaluations, self.state.generation, self._seconds())

    def _seconds(self) -> float:
        return self.state.seconds + clock() - self._began

    @property
    def evaluations_per_generation(self) -> int:
        """Two for each neuron."""
        return 2 * len(self.decomposition)

    @property
    def limits(self) -> tuple[float | None, float | None, float | None]:
        """The budget as far as it is granted."""
        if self._rounds is None:
            return super().limits
        granted = self._rounds.granted
        evaluations, generations, seconds = (None if math.isinf(n) else n for n in granted)
        return evaluations, generations, seconds

    # ------------------------------------------------------------------------------ validation

    @property
    def _validation_interval(self) -> int:
        interval = int(self.settings.validate_every)
        return min(interval, self.settings.patience or interval)

    def _validate(self) -> float:
        self._validated = self.state.generation
        return super()._validate()

    @property
    def _is_validated(self) -> bool:
        return self._validated == self.state.generation

    # --------------------------------------------------------------------------- memory and state

    def _remeasure(self) -> None:
        """Begin the rounds anew; directions are always found afresh."""
        self._begin_rounds()

    def _begin_rounds(self) -> None:
        if self._rounds is None:
            return
        decay = float(self._memory["decay"][0])
        if not self._strategy.adapt_decay:
            decay = float(self._strategy.weight_decay)
        now = Clock(self.state.evaluations, self.state.generation, self.state.seconds)
        fresh = self._plan_rounds(self._memory, decay, now)
        for name, array in fresh.items():
            self._memory[name][...] = array
        self._rounds.plan(now, Clock(self.evaluations_per_generation, 1, 0))

    def _is_over(self) -> bool:
        if super()._is_over():
            return True
        if self._stagnates:
            self.stop_reason = StopReason.STAGNATION
        return self.stop_reason is not None

    @property
    def _stagnates(self) -> bool:
        return self._rounds is not None and self._rounds.stagnates(self._clock())

    def _join_means(self) -> Array:
        """Return all means as one array; the subpopulations become views of it."""
        blocks = self.state.subpopulations
        means = np.concatenate([block.reshape(-1) for block in blocks])
        starts = np.cumsum([0, *(block.size for block in blocks)])
        self.state.subpopulations = [
            means[start : start + block.size].reshape(block.shape)
            for start, block in zip(starts[:-1], blocks, strict=True)
        ]
        return means

    def _moved_arrays(self, memory: Memory) -> tuple[Array, ...]:
        """Return all that moves change, but for X, which follows from it."""
        return (self._means, memory["first"], memory["second"], memory["n_moves"])

    def _take_over_memory(self) -> Memory:
        """Keep a memory that fits the network and the schedule; otherwise begin with none."""
        state, fresh = self.state, self._begin_memory()
        found = state.memories.get(Smoothing.name, {})
        fits = {n: a.shape for n, a in found.items()} == {n: a.shape for n, a in fresh.items()}
        self.has_forgotten = bool(state.memories) and not fits
        # The means are over inputs as they were standardised first, whatever the schedule was.
        kept = {n: a for n, a in found.items() if n in fresh and a.shape == fresh[n].shape}
        if not fits and "centre" in kept and "factor" in kept:
            fresh |= kept
        elif not fits and self._strategy.standardise:
            centre, deviation = self._evaluator.find_input_moments()
            size = math.sqrt(float((deviation**2).mean())) or 1.0
            fresh["centre"][:] = centre
            fresh["factor"][:] = 1 / np.maximum(deviation, _LEAST_DEVIATION * size)
        state.memories = {Smoothing.name: found if fits else fresh}
        return state.memories[Smoothing.name]

    def _begin_memory(self) -> Memory:
        dtype, n_inputs = self._means.dtype, self.decomposition.layer_inputs[0]
        memory = {
            "first": np.zeros_like(self._means),
            "second": np.zeros_like(self._means),
            "n_moves": np.zeros(1, dtype=np.int64),
            "centre": np.zeros(n_inputs, dtype=dtype),
            "factor": np.ones(n_inputs, dtype=dtype),
        }
        if self._strategy.schedule == "rounds":
            decay = float(self._strategy.weight_decay)
            memory |= self._plan_rounds(memory, decay, Clock(0, 0, 0))
        return memory

    def _plan_rounds(self, memory: Memory, decay: float, now: Clock) -> Memory:
        first = self._strategy.first_budget
        first_budget = math.inf if first is None else float(first)
        limits = Clock.limits(self.settings)
        return Rounds.begin(self._moved_arrays(memory), decay, now, limits, first_budget)

    def _lay_out(self) -> list[Neurons]:
        """Return the neurons of each layer."""
        memory = self._memory
        genes = (self._means, self.state.global_solution, memory["first"], memory["second"])
        ends = np.cumsum(np.bincount(self.decomposition.layer_of_gene))
        layers: list[Neurons] = []
        for depth, n_inputs in enumerate(self.decomposition.layer_inputs):
            start = ends[depth - 1] if depth else 0
            mean, solution, first, second = (
                array[start : ends[depth]].reshape(-1, n_inputs + 1) for array in genes
            )
            centre = np.zeros(n_inputs, self._means.dtype)
            factor = np.ones(n_inputs, self._means.dtype)
            if depth == 0:
                centre, factor = memory["centre"], memory["factor"]
            layers.append(Neurons(mean, solution, first, second, centre, factor))
        return layers

    def _fold(self) -> None:
        """Write X from the means."""
        for layer in self._layers:
            adam.fold(layer, 0, len(layer.means))


def draw_means(
    settings: Settings, decomposition: Decomposition, evaluator: SmoothingEvaluator
) -> SearchState:
    """Draw batches and means, in this order: weights uniform within their range, biases 0.

    Ranges are over standardised inputs.
    """
    assert isinstance(settings.strategy, Smoothing)
    rng = np.random.Generator(np.random.SFC64(settings.seed))
    batches = draw_batches(rng, settings, evaluator.n_instances)
    ranges = np.broadcast_to(settings.initial_range, len(decomposition.layer_inputs))
    if settings.scale_initial_range:
        ranges = ranges / np.sqrt(decomposition.layer_inputs)
        if not settings.strategy.standardise:
            ranges[0] /= evaluator.input_size
    subpopulations = []
    for block in decomposition.blocks:
        n_genes = decomposition.sizes[block.start]
        means = rng.uniform(-1, 1, (len(block), 1, n_genes))
        means *= ranges[decomposition.first_layers[block.start]]
        means[..., -1] = 0
        subpopulations.append(means.astype(settings.dtype))
    return SearchState.begin(rng, batches, subpopulations, len(decomposition.layer_of_gene))


def _find_unit(metric: object) -> float:
    """Return the unit of a metric; directions are divided by it, which keeps decay independent."""
    if isinstance(metric, Profit):
        return float(np.ptp(metric.matrix)) or 1.0
    if isinstance(metric, ClippedMargin):
        return float(metric.limit)
    if not isinstance(metric, ErrorMetric) or metric.units is None:
        return 1.0
    power = 2 if isinstance(metric, SquaredError) else 1
    return float(np.mean(np.power(metric.units, power)))
