"""Fast: re-evaluates only what one changed neuron affects, exactly.

The identities, with the rest of the global solution fixed:

- A hidden neuron whose activation goes from a to a′ moves the next layer's sums from s to
  s + w (a′ − a), w being its outgoing weights. An output neuron changes one output.
- All neurons of a layer see the same activations, so the sums of all candidates of a layer are one
  matrix product, whatever the order in which they are asked for.
- An instance is classified right exactly while the sum of the one changed neuron, hidden or output,
  lies in an interval that depends on the others only (`_kernels.hidden_intervals` and
  `output_intervals`). A candidate then costs two comparisons an instance.
- Where that interval holds every sum or none, the instance is out of the neuron's reach, and
  candidates need not be multiplied with it (`reaching`).

An evaluation of a network with layer sizes n, H, C on B instances thus costs O(B n) for a hidden
neuron, for accuracy even O(q n) with the q instances in reach, and O(B H) for an output neuron,
where the reference needs O(B (n H + H C)). Finding the intervals costs O(B C) for each neuron, not
for each candidate. Below the last hidden layer of a deep network the layers above are run again
from the moved sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from coevo import threads
from coevo.batches import Instances
from coevo.evaluation import _kernels, _measures, _sweeps, measuring, reaching
from coevo.evaluation._reach import LastHidden
from coevo.evaluation.batched import BatchedEvaluator, share_out_blocks, weighted_sums
from coevo.evaluation.reaching import Reached
from coevo.evaluation.sums import CandidateSums
from coevo.evaluation.surroundings import Surroundings
from coevo.network import Array
from coevo.selection import Contest


class DeltaEvaluator(BatchedEvaluator):
    """The Evaluator contract by delta evaluation, for the decomposition "neuron"."""

    def _prepare(self) -> None:
        if self._decomposition.name != "neuron":
            raise ValueError(
                "the delta engine serves decomposition='neuron', "
                f"not {self._decomposition.name!r}; use engine='batched'"
            )
        super()._prepare()
        architecture = self._architecture
        self._matrices: list[Array] = []
        self._surroundings = Surroundings(architecture, self._training.inputs)
        self._valid_surroundings = Surroundings(architecture, self._validation.inputs)
        self._valid_matrices: list[Array] = []
        self._batch_measure = measuring.find_measure(self._fitness, self._training)
        self._valid_measure = measuring.find_measure(self._fitness, self._validation)
        self._valid_solution = self._global_solution
        self._sums = CandidateSums(self._training.inputs.dtype)
        self._reached: Reached | None = None  # the layer that is staged, if it reaches few
        self._settle: Callable[[], None] = lambda: None
        self._replaced: list[int] = []  # since validation was last begun
        self._validations: list[Callable[[], Array]] = []  # begun, in order
        self._places = [
            (depth, neuron)
            for depth, layer in enumerate(architecture.layers)
            for neuron in range(layer.n_neurons)
        ]
        self._activation_code = _kernels.ACTIVATION_CODES[architecture.activation]

    # ---------------------------------------------------------------------------- one generation

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Begin afresh, so that rounding does not pile up over generations.

        Another core may do it while this one reproduces; `_settle` waits for it.
        """
        self._settle()
        self.validate()
        self._global_solution = global_solution.copy()
        self._matrices = self._architecture.matrices(self._global_solution)
        if not np.array_equal(self._valid_solution, global_solution):
            self._valid_solution = global_solution.copy()
            self._valid_matrices = self._architecture.matrices(self._valid_solution)
            self._valid_surroundings.run(self._valid_matrices)
        n_instances = len(self._training) if isinstance(instances, slice) else len(instances)
        self._settle = threads.begin(
            partial(self._look_around, instances), size=self._matrices[0].size * n_instances
        )

    def _look_around(self, instances: Instances) -> None:
        """Run the global solution on the instances."""
        self._batch = self._training[instances]
        self._batch_measure = measuring.find_measure(self._fitness, self._batch)
        self._surroundings = Surroundings(self._architecture, self._batch.inputs)
        self._surroundings.run(self._matrices)

    def sweep(self, subpopulations: range, contest: Contest) -> None:
        """Sweep in compiled loops next to the outputs, if they know the measure; else in steps."""
        self.stage(subpopulations, contest.candidates)
        layer, neuron = self._places[subpopulations.start]
        is_compiled = self._batch_measure is not None and layer >= len(self._matrices) - 2
        if is_compiled and self._reached is not None:
            neurons = range(neuron, neuron + len(subpopulations))
            reaching.sweep(self._reached, neurons, contest)
            for k in np.flatnonzero(contest.has_moved):
                self._note(subpopulations[k], contest.representatives[k])
        elif is_compiled and self._sums.fits:
            self._sweep_blocks(subpopulations, contest)
        else:
            self._step_through(subpopulations, contest)

    def _look_at_reach(self, subpopulations: range) -> Reached | None:
        """Look whether candidates need to be multiplied with few instances only.

        That takes neurons of the last hidden layer, and a measure that asks for nothing but the
        instances' classes: their activation must be bounded, or it must be accuracy, for which the
        interval tells. Weights would not be added up in the same order every time.
        """
        layer, neuron = self._places[subpopulations.start]
        is_near = layer == len(self._matrices) - 2 and type(self._fitness) in measuring.COUNTED
        is_accuracy = isinstance(self._batch_measure, _measures.AccuracyOn)
        is_bounded = self._activation_code in _kernels.BOUNDED
        if not is_near or self._batch.weights is not None or not (is_accuracy or is_bounded):
            return None
        neurons = range(neuron, neuron + len(subpopulations))
        return reaching.look_around(self._last_hidden(), neurons)

    def _last_hidden(self) -> LastHidden:
        return LastHidden(
            inputs=np.ascontiguousarray(self._surroundings.activations[-2].T),
            activations=self._surroundings.activations[-1],
            outgoing=np.ascontiguousarray(self._matrices[-1][:, :-1].T),
            outputs=self._surroundings.sums[-1],
            targets=self._batch.targets,
            activation=self._activation_code,
        )

    def _sweep_blocks(self, subpopulations: range, contest: Contest) -> None:
        """Sweep over as many subpopulations at a time as the buffer holds the sums of.

        While this thread sweeps over some neurons, others may already multiply for the next.
        """
        assert self._batch_measure is not None
        sums, start = self._sums, subpopulations.start
        while start < subpopulations.stop:
            if isinstance(self._batch_measure, _measures.AccuracyOn):
                # Its sweep is short: overlapping it costs more than it saves.
                sums.hold_from(start)
                self._sweep_held(contest, sums.held)
            else:
                sums.make_room(start)
                sweep = partial(self._sweep_held, contest)
                threads.prepare_ahead(sums.prepare, sweep, sums.ranges_ahead())
            start = sums.held.stop

    def _sweep_held(self, contest: Contest, neighbours: range) -> None:
        """Sweep over some subpopulations whose sums are in the buffer."""
        assert self._batch_measure is not None
        held, first_staged = self._sums.held, self._sums.subpopulations.start
        start = neighbours.start
        while start < neighbours.stop:
            layer, first_neuron = self._places[start]
            first = start - first_staged
            rows = slice(first, neighbours.stop - first_staged)
            is_output = layer == len(self._matrices) - 1
            sweep = _sweeps.Sweep(
                sums=self._sums.array,
                biases=np.stack([vectors[rows, :, -1] for vectors in self._sums.candidates]),
                outputs=self._surroundings.sums[-1],
                measure=self._batch_measure,
                activation=_kernels.IDENTITY if is_output else self._activation_code,
                first_held=start - held.start,
                first_neuron=first_neuron,
                first=first,
            )
            if is_output:
                n_done = _sweeps.sweep_outputs(sweep, contest)
            else:
                activations = self._surroundings.activations[-1]
                n_done = _sweeps.sweep_hidden(sweep, contest, activations, self._matrices[-1])
            stop = start + int(n_done)
            for i in range(start, stop):
                k = i - first_staged
                if contest.has_moved[k]:
                    self._note(i, contest.representatives[k])
            if stop < neighbours.stop:  # its new representative is not among the candidates
                self.replace(stop, contest.representatives[stop - first_staged], None)
                stop += 1
            start = stop

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors; their sums are computed, some neurons at a time, when asked for."""
        self._settle()
        layer, neuron = self._places[subpopulations.start]
        if layer > 0 and neuron == 0:  # the layer below has come to rest
            self._begin_to_validate()
            self._surroundings.run(self._matrices, layer)
        self._sums.stage(subpopulations, candidates, self._surroundings.activations[layer])
        self._reached = self._look_at_reach(subpopulations)

    def evaluate(self, i: int) -> Array:
        """Measure in compiled loops next to the outputs, further below run the layers above."""
        layer, neuron = self._places[i]
        if self._reached is not None and self._activation_code in _kernels.BOUNDED:
            counts = reaching.count_classes(self._reached.layer, neuron, self._sums.rows_of(i))
            return measuring.measure_counts(self._fitness, counts, len(self._batch))
        if layer >= len(self._matrices) - 2 and type(self._fitness) in measuring.COMPILED:
            measured = [self._measure_compiled(layer, neuron, *some) for some in self._sums.of(i)]
            return np.concatenate(measured)
        if self._sums.fits:  # trials and targets at once
            rows = [sums + biases[:, np.newaxis] for sums, biases in self._sums.of(i)]
            return self._run_upwards(layer, neuron, np.concatenate(rows))
        return np.concatenate(
            [
                self._run_upwards(layer, neuron, sums + biases[:, np.newaxis])
                for sums, biases in self._sums.of(i)
            ]
        )

    def replace(self, i: int, individual: Array, candidate: int | None) -> None:
        """Move what the neuron feeds, with its candidate's sums if they are at hand."""
        layer, neuron = self._places[i]
        if candidate is None or i not in self._sums.held:
            sums = individual[:-1] @ self._surroundings.activations[layer]
        else:
            sums = self._sums.held_of(i).reshape(-1, len(self._batch))[candidate]
        self._surroundings.move(self._matrices, layer, neuron, sums + individual[-1])
        self._note(i, individual)

    def _note(self, i: int, individual: Array) -> None:
        """Note down a move that has been made."""
        layer, neuron = self._places[i]
        self._matrices[layer][neuron] = individual
        self._replaced.append(i)

    def evaluate_global_solution(self) -> float:
        """Measure the outputs, which have moved along."""
        self._settle()
        return float(self._measure(self._surroundings.sums[-1][np.newaxis], self._batch)[0])

    def validate(self) -> Array:
        """Catch up with the generation's moves, layer by layer: one matrix product for each."""
        begun, self._validations = self._validations, []
        fitness = [validation() for validation in begun]
        layer, neurons = self._take_moves()
        return np.concatenate([*fitness, self._validate_layer(layer, neurons)])

    def _begin_to_validate(self) -> None:
        """Have the moves of a layer that has come to rest validated while the next is swept."""
        layer, neurons = self._take_moves()
        earlier = self._validations[-1:]

        def work() -> Array:
            for validation in earlier:
                validation()
            return self._validate_layer(layer, neurons)

        size = self._matrices[layer][neurons].size * len(self._validation)
        self._validations.append(threads.begin(work, size))

    def _take_moves(self) -> tuple[int, list[int]]:
        """Return the layer and the neurons of the moves whose validation has not been begun."""
        places, self._replaced = [self._places[i] for i in self._replaced], []
        return (places[0][0] if places else 0), [neuron for _, neuron in places]

    def memory(self) -> dict[str, Array]:
        """The validation set's sums and activations, which move along with each neuron.

        They differ in their last bits from those of a fresh run.
        """
        surroundings = self._valid_surroundings
        sums = {f"sums.{layer}": array for layer, array in enumerate(surroundings.sums)}
        hidden = enumerate(surroundings.activations[1:])
        return sums | {f"activations.{layer}": array for layer, array in hidden}

    def recall(self, memory: dict[str, Array], global_solution: Array) -> None:
        """Take over sums and activations, if they have the right shapes."""
        surroundings = self._valid_surroundings
        self._valid_solution = global_solution.copy()
        self._valid_matrices = self._architecture.matrices(self._valid_solution)
        surroundings.run(self._valid_matrices)
        fresh = self.memory()
        if {name: array.shape for name, array in memory.items()} != {
            name: array.shape for name, array in fresh.items()
        }:
            raise ValueError("its activations of the validation set have other shapes")
        for name, array in fresh.items():
            array[...] = memory[name]

    # ------------------------------------------------------------------------------------- fitness

    def _run_upwards(self, layer: int, neuron: int, sums: Array) -> Array:
        """Run the layers above a neuron with other sums, (m, B), a block of candidates at a time.

        The activations of the layer that they feed are not held.
        """
        n_neurons = [len(matrix) for matrix in self._matrices[layer:]]
        fitness = np.empty(len(sums))

        def work(here: slice) -> None:
            outputs = self._surroundings.outputs_with(
                self._matrices, layer, neuron, sums[here], self._scratch
            )
            fitness[here] = self._measure(outputs, self._batch)

        n_instances = sums.shape[1]
        held = max(n_neurons[2:], default=n_neurons[-1]) * n_instances
        share_out_blocks(work, len(sums), max(n_neurons) * n_instances, held)
        return fitness

    def _measure_compiled(self, layer: int, neuron: int, sums: Array, biases: Array) -> Array:
        """Measure candidates of a last hidden or an output neuron, shared out among the cores."""
        outputs = self._surroundings.sums[-1]
        if layer == len(self._matrices) - 1:
            slopes = np.zeros(len(outputs), dtype=outputs.dtype)
            slopes[neuron] = 1
            now, activation = outputs[neuron], _kernels.IDENTITY
        else:
            slopes = self._matrices[-1][:, neuron]
            now, activation = self._surroundings.activations[-1][neuron], self._activation_code
        candidates = _measures.Candidates(sums, biases, outputs, slopes, now, activation)
        return measuring.measure(self._fitness, candidates, self._batch)

    def _validate_layer(self, layer: int, neurons: list[int]) -> Array:
        """Move some neurons of a layer, one after the other, and measure after each."""
        if not neurons:
            return np.empty(0)
        surroundings, matrices = self._valid_surroundings, self._valid_matrices
        incoming = self._matrices[layer][neurons]
        sums = weighted_sums(incoming, surroundings.activations[layer])
        if self._valid_measure is not None and layer == len(matrices) - 2:
            fitness = self._measure_after_moves(neurons, sums)
        else:
            fitness = np.empty(len(neurons))
            for move, neuron in enumerate(neurons):
                surroundings.move(matrices, layer, neuron, sums[move])
                outputs = surroundings.outputs_from(matrices, layer + 1, self._scratch)[np.newaxis]
                fitness[move] = self._measure(outputs, self._validation)[0]
        matrices[layer][neurons] = incoming
        surroundings.run(matrices, layer + 1)
        return fitness

    def _measure_after_moves(self, neurons: list[int], sums: Array) -> Array:
        """Move neurons of the last hidden layer, all in one loop."""
        surroundings = self._valid_surroundings
        after = self._activate(sums)
        before = surroundings.activations[-1][neurons]
        outgoing = np.ascontiguousarray(self._valid_matrices[-1][:, neurons].T)
        fitness = np.empty(len(neurons))
        _measures.measure_after_moves(
            self._valid_measure, surroundings.sums[-1], outgoing, before, after, fitness
        )
        surroundings.sums[-2][neurons] = sums
        surroundings.activations[-1][neurons] = after
        return fitness
