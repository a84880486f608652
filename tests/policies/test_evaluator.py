"""Black boxes on the one search: the same decisions as the reference engine, and Jacobi."""

import numpy as np
import pytest

from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import find_metric
from coevo.core.network import Architecture
from coevo.engines.reference import ReferenceEvaluator
from coevo.policies.evaluator import SourceEvaluator
from coevo.training.variants import VARIANTS


class DataSource:
    """Measures networks as the reference engine does, and counts."""

    input_size = 1.0

    def __init__(self, reference):
        self.reference = reference
        self.n_instances = reference.n_instances
        self.sizes, self.n_validated, self.contexts = [], 0, []

    def begin_generation(self):
        self.sizes.append([])

    def measure(self, genotypes, instances):
        if self.sizes:
            self.sizes[-1].append(len(genotypes))
        self.contexts.append(genotypes.copy())
        return self.reference.evaluate_networks(genotypes, instances)

    def validate(self, genotypes):
        self.n_validated += len(genotypes)
        return self.reference.validate_networks(genotypes)


@pytest.fixture
def make_pair(make_classification_data):
    """A search on the reference engine, and one that asks a source."""

    def make(settings, simultaneous=False):
        settings = resolve(settings)
        inputs, targets = make_classification_data(np.random.default_rng(3))
        architecture = Architecture(4, settings.hidden_layer_sizes, 3)
        decomposition = decompose(settings.decomposition, architecture)
        reference = ReferenceEvaluator(
            architecture, decomposition, find_metric(settings.fitness),
            Data(inputs[:40], targets[:40]), Data(inputs[40:], targets[40:]),
        )  # fmt: skip
        source = DataSource(reference)
        asking = SourceEvaluator(source, decomposition, simultaneous)
        searches = [assemble(e, decomposition, settings) for e in (reference, asking)]
        return *searches, source

    return make


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("strategy", ["rand/1", "rand/1(synchronous=False)"])
def test_decisions_are_those_of_the_reference(small_settings, make_pair, variant, strategy):
    settings = small_settings(variant, scale_initial_range=False, strategy=strategy)
    expected, asking, source = make_pair(settings)
    expected.run()
    asking.run()
    np.testing.assert_array_equal(asking.state.fitness, expected.state.fitness)
    np.testing.assert_array_equal(asking.state.global_solution, expected.state.global_solution)
    assert asking.state.evaluations == expected.state.evaluations
    assert source.n_validated <= 1 + settings.max_generations  # once a generation, at most


def test_validation_is_that_of_the_global_solution_at_the_end(small_settings, make_pair):
    expected, asking, source = make_pair(small_settings(scale_initial_range=False))
    for _ in zip(expected, asking, strict=True):
        here, there = (s.state.history.latest.validation_fitness for s in (asking, expected))
        assert here == there
    best = source.reference.validate_networks(asking.state.best_network[np.newaxis])[0]
    assert best == asking.state.best_validation


def test_simultaneous_contests_share_the_global_solution_of_the_start(small_settings, make_pair):
    settings = small_settings(scale_initial_range=False, max_generations=1)
    _, asking, source = make_pair(settings, simultaneous=True)
    decomposition = asking.decomposition
    source.contexts.clear()
    asking.run()
    start = source.contexts[settings.sampling_rounds][0]  # measured at the end of generation 0
    source_calls = source.contexts[settings.sampling_rounds + 1 :]
    assert source.sizes[-1] == [3 * 2 * 6, 3 * 2 * 6, 1]  # a call for each layer, then X
    for networks, subpopulations in zip(source_calls, [range(3), range(3, 6)], strict=False):
        for i, part in zip(subpopulations, np.split(networks, 3), strict=True):
            others = np.ones(part.shape[1], dtype=bool)
            others[decomposition.groups[i]] = False
            np.testing.assert_array_equal(part[:, others], np.tile(start[others], (12, 1)))
    assert asking.state.generation == 1
