"""Fast for groups that are parts of one neuron, with or without its outgoing weights, exactly.

The identities, with the rest of the global solution fixed:

- If some of a neuron's incoming weights w go to w′, its sums go from s to s + Σ (w′_d − w_d) x_d,
  x being what it sees, and 1 for its bias.
- If its outgoing weights go from v to v′ while its activation goes from a to a′, the next layer's
  sums go from t to t − v a + v′ a′.
- Groups that hold all incoming weights of neurons of one layer see the same activations: the sums
  of all their candidates are one matrix product.

An evaluation of a network with layer sizes n, H, C on B instances thus costs O(B (g + C)) for a
group of g genes, where the reference needs O(B (n H + H C)). If the outgoing weights stay, what
follows from a sum is measured as for a whole neuron (see `delta`): accuracy costs O(B g). Below the
last hidden layer the layers above are run again from the moved sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coevo import threads
from coevo.batches import Instances
from coevo.decomposition import Decomposition
from coevo.evaluation import _kernels, _measures, _part_kernels, measuring
from coevo.evaluation.batched import BatchedEvaluator, share_out_blocks
from coevo.evaluation.parts import Parts
from coevo.evaluation.scene import Scene
from coevo.evaluation.sums import BLOCK_ELEMENTS
from coevo.network import Architecture, Array


def serves(architecture: Architecture, decomposition: Decomposition) -> bool:
    """Return whether each group is a part of one neuron, and stays one."""
    return not decomposition.is_redrawn and Parts(architecture, decomposition).are_parts


class _Candidates(NamedTuple):
    """Some candidates of one group: sums (m, B), what to add to them (m,), and outgoing weights.

    The outgoing weights are (m, neurons of the next layer), or None if the group holds none.
    """

    sums: Array
    biases: Array
    outgoing: Array | None


class PartialEvaluator(BatchedEvaluator):
    """The Evaluator contract by delta evaluation, for groups that are parts of one neuron."""

    def _prepare(self) -> None:
        super()._prepare()
        decomposition = self._decomposition
        self._parts = Parts(self._architecture, decomposition)
        if decomposition.is_redrawn or not self._parts.are_parts:
            raise ValueError(
                "the delta engine serves decompositions whose groups are each a part of one "
                f"neuron, not {decomposition.name!r}; use engine='batched'"
            )
        measure = measuring.find_measure(self._fitness, self._training)
        self._counts_right = isinstance(measure, _measures.AccuracyOn)
        self._is_compiled = type(self._fitness) in measuring.COMPILED
        self._activation_code = _kernels.ACTIVATION_CODES[self._architecture.activation]
        self._buffer = np.empty(0, dtype=self._training.inputs.dtype)
        self._held = range(0)  # the subpopulations whose candidates' sums are in the buffer
        self._all_columns: Array | None = None
        self._valid_columns = np.asfortranarray(self._validation.inputs)
        self._moved: list[tuple[int, Array]] = []

    # ---------------------------------------------------------------------------- one generation

    def rebase(self, global_solution: Array, instances: Instances) -> None:
        """Run the global solution afresh, so that rounding does not pile up over generations."""
        self._batch = self._training[instances]
        if isinstance(instances, slice):  # all of them, the same ones each time
            if self._all_columns is None:
                self._all_columns = np.asfortranarray(self._batch.inputs)
            columns = self._all_columns
        else:
            columns = np.asfortranarray(self._batch.inputs)
        self._global_solution = global_solution.copy()
        self._scene = Scene(self._architecture, self._global_solution, columns)
        self._before = global_solution.copy()
        self._moved = []

    def stage(self, subpopulations: range, candidates: Sequence[Array]) -> None:
        """Keep the vectors; their sums are computed when asked for."""
        self._staged = subpopulations, candidates
        self._held = range(0)

    def evaluate(self, i: int) -> Array:
        """Measure in compiled loops next to the outputs, otherwise run the layers above."""
        self._scene.turn_to(self._parts.layers[i], self._parts.neurons[i])
        measured = [self._measure_candidates(i, some) for some in self._candidates(i)]
        return np.concatenate(measured)

    def replace(self, i: int, individual: Array, candidate: int | None) -> None:
        """Move what the part's neuron feeds."""
        self._move(self._scene, i, individual)
        self._moved.append((i, individual.copy()))

    def evaluate_global_solution(self) -> float:
        """Measure the outputs, which have moved along."""
        return float(self._measure(self._scene.outputs()[np.newaxis], self._batch)[0])

    def validate(self) -> Array:
        """Make the generation's moves once more, on the validation set, and measure after each."""
        scene = Scene(self._architecture, self._before, self._valid_columns)
        moved, self._moved = self._moved, []
        shape = (self._architecture.n_outputs, len(self._validation))
        step = max(1, BLOCK_ELEMENTS // math.prod(shape))
        outputs = np.empty((min(step, len(moved)), *shape), dtype=self._buffer.dtype)
        fitness = np.empty(len(moved))

        for start in range(0, len(moved), step):
            some = moved[start : start + step]
            for place, (i, individual) in enumerate(some):
                self._move(scene, i, individual)
                outputs[place] = scene.outputs()
            measured = fitness[start : start + step]

            def work(here: slice, measured: Array = measured) -> None:
                measured[here] = self._measure(outputs[here], self._validation)

            share_out_blocks(work, len(some), math.prod(shape))
        return fitness

    def _move(self, scene: Scene, i: int, individual: Array) -> None:
        scene.turn_to(self._parts.layers[i], self._parts.neurons[i])
        layout, present = self._parts.layout(i), scene.solution[self._decomposition.groups[i]]
        is_whole = self._parts.are_whole[i]
        shift = individual if is_whole else individual - present
        sums = shift[layout.weights] @ scene.inputs[layout.inputs]
        if layout.bias is not None:
            sums += shift[layout.bias]
        if not is_whole:
            sums += scene.sums
        outgoing = None
        if layout.has_outgoing:
            outgoing = scene.outgoing.copy()
            outgoing[layout.fed] = individual[layout.outgoing]
        scene.move(sums, outgoing)
        scene.solution[self._decomposition.groups[i]] = individual

    # -------------------------------------------------------------------------------- candidates

    def _candidates(self, i: int) -> Iterator[_Candidates]:
        """Yield the candidates of a subpopulation in order, as many at a time as memory allows."""
        subpopulations, candidates = self._staged
        k, layout, scene = i - subpopulations.start, self._parts.layout(i), self._scene
        is_whole, n_instances = self._parts.are_whole[i], len(self._batch)
        n_candidates = sum(len(vectors[k]) for vectors in candidates)
        is_held = is_whole and n_candidates * n_instances <= BLOCK_ELEMENTS
        if is_held and i not in self._held:
            self._hold_from(i)
        present = scene.solution[self._decomposition.groups[i]]
        step = max(1, BLOCK_ELEMENTS // n_instances)
        for part, vectors in enumerate(candidates):
            for start in range(0, len(vectors[k]), step):
                some = vectors[k, start : start + step]
                shift = some if is_whole else some - present
                if is_held:
                    sums = self._sums[part, i - self._held.start]
                else:
                    sums = _product(shift[:, layout.weights], scene.inputs[layout.inputs])
                if not is_whole:
                    sums += scene.sums
                biases = np.zeros_like(sums[:, 0])
                if layout.bias is not None:
                    biases += shift[:, layout.bias]
                outgoing = None
                if layout.has_outgoing:
                    outgoing = np.repeat(scene.outgoing[np.newaxis], len(some), axis=0)
                    outgoing[:, layout.fed] = some[:, layout.outgoing]
                yield _Candidates(sums, biases, outgoing)

    def _hold_from(self, i: int) -> None:
        """Fill the buffer with the sums of subpopulation i and as many after it as fit."""
        subpopulations, candidates = self._staged
        layout = self._parts.layout(i)
        below = self._scene.inputs[layout.inputs]
        shape = (len(candidates), candidates[0].shape[1], below.shape[1])
        n_held = min(subpopulations.stop - i, BLOCK_ELEMENTS // math.prod(shape))
        self._held = range(i, i + n_held)
        size = n_held * math.prod(shape)
        if self._buffer.size < size:
            # Kept from one generation to the next: fresh memory costs as much as filling it.
            self._buffer = np.empty(size, dtype=below.dtype)
        self._sums = self._buffer[:size].reshape(shape[0], n_held, shape[1], shape[2])
        first = i - subpopulations.start
        for sums, vectors in zip(self._sums, candidates, strict=True):
            weights = vectors[first : first + n_held][..., layout.weights]
            threads.multiply(
                weights.reshape(-1, len(below)), below, out=sums.reshape(-1, below.shape[1])
            )

    # ----------------------------------------------------------------------------------- fitness

    def _measure_candidates(self, i: int, candidates: _Candidates) -> Array:
        layer, neuron = self._parts.layers[i], self._parts.neurons[i]
        n_layers = len(self._architecture.layers)
        is_near_outputs = layer >= n_layers - 2 and candidates.outgoing is None
        if not (is_near_outputs and self._is_compiled):
            return self._run_upwards(candidates)
        if not self._counts_right:
            return self._measure_compiled(layer, neuron, candidates)
        sums, biases, _ = candidates
        outputs, measured = self._scene.outputs(), np.empty(len(sums))
        if layer == n_layers - 1:
            _part_kernels.measure_output(
                sums, biases, outputs, self._batch.targets, neuron, measured
            )
        else:
            _part_kernels.measure_hidden(
                sums, biases, outputs, self._batch.targets, self._scene.outgoing,
                self._scene.activations, self._activation_code, measured,
            )  # fmt: skip
        return measured

    def _measure_compiled(self, layer: int, neuron: int, candidates: _Candidates) -> Array:
        outputs = self._scene.outputs()
        if layer == len(self._architecture.layers) - 1:
            slopes = np.zeros(len(outputs), dtype=outputs.dtype)
            slopes[neuron] = 1
            now, activation = outputs[neuron], _kernels.IDENTITY
        else:
            slopes, now = self._scene.outgoing, self._scene.activations
            activation = self._activation_code
        return measuring.measure(
            self._fitness,
            _measures.Candidates(
                candidates.sums, candidates.biases, outputs, slopes, now, activation
            ),
            self._batch,
        )

    def _run_upwards(self, candidates: _Candidates) -> Array:
        """Run the layers above the part's neuron, a block of candidates at a time."""
        sums, biases, outgoing = candidates
        size = max(layer.n_neurons for layer in self._architecture.layers) * sums.shape[1]
        fitness = np.empty(len(sums))

        def work(here: slice) -> None:
            rows = sums[here] + biases[here, np.newaxis]
            weights = None if outgoing is None else outgoing[here]
            outputs = self._scene.outputs_with(rows, weights, self._scratch)
            fitness[here] = self._measure(outputs, self._batch)

        share_out_blocks(work, len(sums), size)
        return fitness


def _product(weights: Array, inputs: Array) -> Array:
    """Return weights times inputs, (m, B), from (m, g) and (g, B); one weight needs no product."""
    if len(inputs) == 1:
        return np.asarray(np.multiply.outer(weights[:, 0], inputs[0]))
    return np.asarray(weights @ inputs)
