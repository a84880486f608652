"""Fast: re-evaluates only what one changed neuron affects, exactly.

The identities, with the rest of the global solution fixed:

- A hidden neuron whose activation goes from a to a′ moves the next layer's pre-activations from t
  to t + v (a′ − a), v being its outgoing weights; if these go to v′ too, to t − v a + v′ a′. An
  output neuron changes one output.
- All neurons of a layer see the same activations, so the pre-activations of all candidates of a
  layer are one matrix product. If only some of a neuron's weights w go to w′, its pre-activation
  goes from s to s + Σ (w′_d − w_d) x_d (`candidates`).
- An instance is classified right exactly while the pre-activation of the one changed neuron, hidden
  or output, lies in an interval that depends on the others only (`kernels.intervals`). A candidate
  then costs two comparisons an instance.
- Where that interval holds every pre-activation or none, the instance is not open to the neuron,
  and candidates need not be multiplied with it (`open_instances`).

An evaluation of a network with layer sizes n, H, C on B instances thus costs O(B n) for a hidden
neuron, for accuracy even O(q n) with its q open instances, O(B H) for an output neuron, and O(B g)
for g genes of one neuron, where the reference needs O(B (n H + H C)). Intervals cost O(B C) for
each neuron, not for each candidate; other outgoing weights cost O(B C) for each candidate. Below
the last hidden layer of a deep network the layers above are run again from the moved
pre-activations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Instances
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Data
from coevo.core.metrics import Metric
from coevo.core.network import Architecture
from coevo.core.selection import Offspring, Outcome, Rule, find_candidates
from coevo.engines.candidates import StagedCandidates, fit_in_buffer
from coevo.engines.compiled_metrics import (
    COUNTED,
    compile_metric,
    measure_candidates,
    measure_confusion_matrices,
    measure_outputs,
)
from coevo.engines.context import Context
from coevo.engines.groups import Group, NeuronGroups
from coevo.engines.kernels import sweeps as kernels
from coevo.engines.kernels.activations import ACTIVATION_CODES, BOUNDED, IDENTITY
from coevo.engines.kernels.candidates import HIDDEN, Candidates
from coevo.engines.kernels.metrics import AccuracyOn
from coevo.engines.kernels.open_instances import OpenLayer
from coevo.engines.kernels.sweeps import LastHidden
from coevo.engines.open_instances import OpenSweep
from coevo.engines.passes import FullPassEvaluator, share_out_blocks
from coevo.engines.replacements import Replacements
from coevo.engines.validation import Validator
from coevo.runtime import threads

Contest = tuple[Offspring, Rule, Outcome]


class DeltaEvaluator(FullPassEvaluator):
    """The Evaluator contract by delta evaluation, for groups that each lie within one neuron."""

    def __init__(
        self,
        architecture: Architecture,
        decomposition: Decomposition,
        metric: Metric,
        training: Data,
        validation: Data,
    ) -> None:
        super().__init__(architecture, decomposition, metric, training, validation)
        if not self.serves(architecture, decomposition):
            raise ValueError(
                "the delta engine serves decompositions whose groups are each a part of one "
                f"neuron, not {decomposition.name!r}; use engine='batched'"
            )
        self._groups = NeuronGroups(architecture, decomposition)
        self._last = len(architecture.layers) - 1
        self._activation_code = ACTIVATION_CODES[architecture.activation]
        self._validator = Validator(architecture, self._groups, metric, self._validation)
        self._staged = StagedCandidates(self._training.inputs.dtype)
        self._open: OpenSweep | None = None  # the staged layer, if few instances are open to it
        self._settle: Callable[[], None] = lambda: None
        self._replaced: list[tuple[int, Array]] = []  # since validation was last begun
        self._validations: list[Callable[[], Array]] = []  # begun, in order

    @staticmethod
    def serves(architecture: Architecture, decomposition: Decomposition) -> bool:
        """Return whether each group lies within one neuron, and goes on to do so."""
        if decomposition.is_random:
            return False
        return NeuronGroups(architecture, decomposition).are_within_neurons

    # ---------------------------------------------------------------------------- one generation

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Begin afresh, so that rounding does not pile up over generations.

        Another core may do it while this one reproduces; `_settle` waits for it.
        """
        self._settle()
        self._global_solution = global_solution
        if self.follows_validation:
            self._validate_replaced()
            self._validator.rebase(global_solution)
        if not self._is_compiled:
            self._replacements = Replacements(global_solution)
        n_instances = len(self._training) if isinstance(instances, slice) else len(instances)
        size = self._architecture.layers[0].stop * n_instances
        self._settle = threads.begin(partial(self._run_global_solution, instances), size)

    def _run_global_solution(self, instances: Instances) -> None:
        self._batch = self._training[instances]
        self._batch_metric = compile_metric(self._metric, self._batch)
        inputs = self._batch.inputs
        if not self._groups.are_neurons:  # each input's numbers side by side
            inputs = np.asfortranarray(inputs)
        self._context = Context(
            self._architecture, self._global_solution, inputs, keeps_ties=not self._is_compiled
        )

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors; pre-activations are computed on demand, some neurons at a time."""
        self._settle()
        group = self._groups[subpopulations.start]
        if self._replaced and self._groups.layers[self._replaced[-1][0]] != group.layer:
            self._begin_to_validate()  # the layer below is final for this generation
        self._context.turn_to(group)
        self._staged.stage(subpopulations, candidates, group, self._context)
        self._open = None
        if self._may_be_open(group.layer):
            neurons = range(group.neuron, group.neuron + len(subpopulations))
            self._open = OpenSweep.find(self._find_open_layer(), neurons)

    def evaluate(self, i: int) -> Array:
        """Measure in compiled loops next to the outputs, further below run the layers above."""
        group = self._groups[i]
        if self._open is not None and self._activation_code in BOUNDED:
            matrices = self._open.find_confusion_matrices(group.neuron, self._staged.vectors_of(i))
            return measure_confusion_matrices(self._metric, matrices, len(self._batch))
        self._context.turn_to(group)
        is_near_outputs = group.layer >= self._last - 1 and not group.has_outgoing
        measure = self._measure_near_outputs
        if not (is_near_outputs and self._is_compiled):
            measure = self._run_upwards
        return np.concatenate([measure(group, *some) for some in self._staged.find(i, group)])

    def replace(self, i: int, individual: Array, candidate: int | None = None) -> None:
        """Move what the neuron feeds, with its candidate's pre-activations if they are at hand."""
        self._settle()
        group, held = self._groups[i], self._staged.held
        self._context.turn_to(group)
        if candidate is None or i not in held:
            pre_activations = self._context.find_pre_activations(group, individual)
        else:
            row = self._staged.array[i - held.start, candidate]
            pre_activations = row + individual[group.bias]
        self._context.replace(group, individual, pre_activations)
        self._note(i, individual.copy())

    def _note(self, i: int, individual: Array) -> None:
        """Note a replacement that has been made, until it is validated."""
        if not self.follows_validation:
            return
        self._replaced.append((i, individual))
        if not self._is_compiled:
            self._replacements.append(self._decomposition.groups[i], individual)

    def evaluate_global_solution(self) -> float:
        """Measure the outputs, which have moved along."""
        self._settle()
        outputs = self._context.find_outputs(self._scratch)[np.newaxis]
        return float(measure_outputs(self._metric, outputs, self._batch)[0])

    # ------------------------------------------------------------------------------- validation

    def validate(self) -> Array:
        """Catch up with the generation's replacements, layer by layer.

        For metrics that may depend on exact ties the best network, which the search may keep, is
        measured by a full pass.
        """
        fitness = self._validate_replaced()
        if self._is_compiled or not len(fitness):
            return fitness
        measured: set[int] = set()
        while (best := int(fitness.argmax())) not in measured:
            network = self._replacements.compose(best + 1)
            fitness[best] = self.validate_networks(network[np.newaxis])[0]
            measured.add(best)
        self._replacements = Replacements(self._global_solution)
        return fitness

    def _validate_replaced(self) -> Array:
        begun, self._validations = self._validations, []
        fitness = [validation() for validation in begun]
        replaced, self._replaced = self._replaced, []
        return np.concatenate([*fitness, self._validator.follow(replaced)])

    def _begin_to_validate(self) -> None:
        """Have the replacements in a layer validated while the next layer is swept."""
        replaced, self._replaced = self._replaced, []
        earlier, follow = self._validations[-1:], self._validator.follow

        def work() -> Array:
            for validation in earlier:
                validation()
            return follow(replaced)

        size = sum(individual.size for _, individual in replaced) * len(self._validation)
        self._validations.append(threads.begin(work, size))

    def memory(self) -> dict[str, Array]:
        """The validation set's activations, which follow each neuron."""
        return self._validator.memory() if self.follows_validation else {}

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Take over the validation set's activations."""
        if self.follows_validation:
            self._validator.recall(memory, global_solution)
        else:
            super().recall(memory, global_solution)

    # ------------------------------------------------------------------------------ fused loops

    def sweep(
        self, subpopulations: range, offspring: Offspring, rule: Rule, outcome: Outcome
    ) -> bool:
        """Sweep in compiled loops over whole neurons of the last hidden and the output layer.

        They know the graded metrics and accuracy.
        """
        layer = self._groups.layers[subpopulations.start]
        if not self._groups.are_neurons or layer < self._last - 1:
            return False
        self._settle()
        candidates = find_candidates(offspring, rule, outcome)
        fits = fit_in_buffer(candidates, len(self._batch))
        if self._batch_metric is None or not (fits or self._may_be_open(layer)):
            return False
        self.stage(subpopulations, candidates)
        if self._open is None and not fits:
            return False
        contest = (offspring, rule, outcome)
        if self._open is None:
            self._sweep_block(contest)
            return True
        first = self._groups.neurons[subpopulations.start]
        self._open.run(range(first, first + len(subpopulations)), *contest)
        self._take_over(subpopulations, outcome)
        return True

    def _may_be_open(self, layer: int) -> bool:
        """Return whether candidates may have to be multiplied with few instances only.

        That takes neurons of the last hidden layer, and a metric that needs nothing but the
        instances' classes: their activation must be bounded, or it must be accuracy, for which the
        interval tells. Weights would not be added up in the same order every time.
        """
        is_accuracy = isinstance(self._batch_metric, AccuracyOn)
        is_bounded = self._activation_code in BOUNDED
        return (
            self._groups.are_neurons
            and layer == self._last - 1
            and type(self._metric) in COUNTED
            and self._batch.weights is None
            and (is_accuracy or is_bounded)
        )

    def _find_last_hidden(self) -> LastHidden:
        context = self._context
        outgoing = np.ascontiguousarray(context.matrices[-1][:, :-1].T)
        return LastHidden(
            context.activations[-1], outgoing, context.pre_activations[-1], self._activation_code
        )

    def _find_open_layer(self) -> OpenLayer:
        inputs = np.ascontiguousarray(self._context.activations[-2].T)
        return OpenLayer(self._find_last_hidden(), inputs, self._batch.targets)

    def _sweep_block(self, contest: Contest) -> None:
        """Sweep over as many subpopulations at a time as fit in the buffer.

        While this thread sweeps over some neurons, others may already multiply for the next.
        """
        staged = self._staged
        start = staged.subpopulations.start
        while start < staged.subpopulations.stop:
            if isinstance(self._batch_metric, AccuracyOn):
                # Its sweep is short: overlapping it costs more than it saves.
                staged.hold_from(start)
                self._sweep_held(contest, staged.held)
            else:
                staged.make_room(start)
                sweep = partial(self._sweep_held, contest)
                threads.prepare_ahead(staged.prepare, sweep, staged.cut())
            start = staged.held.stop

    def _sweep_held(self, contest: Contest, neighbours: range) -> None:
        """Sweep over some subpopulations whose pre-activations are in the buffer."""
        staged = self._staged
        while neighbours:
            first_staged, first_held = staged.subpopulations.start, staged.held.start
            rows = slice(neighbours.start - first_staged, neighbours.stop - first_staged)
            held = slice(neighbours.start - first_held, neighbours.stop - first_held)
            offspring, rule, outcome = _pick(contest, rows)
            n_done = kernels.sweep(
                self._batch_metric, staged.array[held], staged.biases_of(neighbours),
                self._find_last_hidden(), self._groups.neurons[neighbours.start],
                self._groups.layers[neighbours.start] == self._last, offspring, rule, outcome,
            )  # fmt: skip
            if n_done:
                self._take_over(neighbours[:n_done], outcome)
            if n_done < len(neighbours):  # its new representative is not among the candidates
                self.replace(neighbours[n_done], outcome.representatives[n_done], None)
            neighbours = neighbours[n_done + 1 :]

    def _take_over(self, subpopulations: range, outcome: Outcome) -> None:
        """Write what compiled loops have moved into the global solution."""
        moved = np.flatnonzero(outcome.has_moved[: len(subpopulations)])
        for k, individual in zip(moved, outcome.representatives[moved], strict=True):
            i = subpopulations[k]
            self._global_solution[self._decomposition.groups[i]] = individual
            self._note(i, individual)
        self._context.count_moves(self._groups.layers[subpopulations.start], len(moved))

    # ------------------------------------------------------------------------------------- fitness

    def _measure_near_outputs(
        self, group: Group, vectors: Array, pre_activations: Array, biases: Array
    ) -> Array:
        """Measure candidates for a last hidden or an output neuron, shared out among the cores."""
        outputs = self._context.pre_activations[-1]
        if group.layer == self._last:
            slopes = np.zeros(len(outputs), dtype=outputs.dtype)
            slopes[group.neuron] = 1
            place = (outputs[group.neuron], IDENTITY, group.neuron)
        else:
            slopes = np.ascontiguousarray(self._context.matrices[-1][:, group.neuron])
            now = self._context.activations[-1][group.neuron]
            place = (now, self._activation_code, HIDDEN)
        candidates = Candidates(pre_activations, biases, outputs, slopes, *place)
        return measure_candidates(self._metric, candidates, self._batch)

    def _run_upwards(
        self, group: Group, vectors: Array, pre_activations: Array, biases: Array
    ) -> Array:
        """Run the layers above a neuron, a block of candidates at a time."""
        context, n_instances = self._context, pre_activations.shape[1]
        around = context.look_around(group)
        outgoing = context.find_outgoing(group, vectors) if group.has_outgoing else None
        fitness = np.empty(len(vectors))

        def work(here: slice) -> None:
            outputs = context.find_outputs_with(
                group, around, pre_activations[here] + biases[here, np.newaxis],
                None if outgoing is None else outgoing[here], self._scratch,
            )  # fmt: skip
            fitness[here] = measure_outputs(self._metric, outputs, self._batch)

        n_neurons = [len(matrix) for matrix in context.matrices[group.layer :]]
        held = max(n_neurons[2:] if outgoing is None else n_neurons, default=n_neurons[-1])
        share_out_blocks(work, len(vectors), max(n_neurons) * n_instances, held * n_instances)
        return fitness


def _pick(contest: Contest, rows: slice) -> Contest:
    """Return views of a contest that concern some subpopulations."""
    offspring, rule, outcome = contest
    if rows == slice(0, len(outcome.has_moved)):
        return contest
    some = offspring._replace(
        trials=offspring.trials[rows],
        inherited_by_targets=offspring.inherited_by_targets[rows],
        inherited_by_trials=offspring.inherited_by_trials[rows],
    )
    return some, rule, Outcome(*(array[rows] for array in outcome))
