"""One generation of each variant, worked out by hand.

Four instances x = −2, −1, 1, 2 of the classes 0, 0, 1, 1; a network without hidden layer whose two
output neurons have one weight and one bias each. Class 1 wins where w1 x + b1 > w0 x + b0; a tie
goes to class 0. NP = 4, F = 0.5, CR = 0.5, decay = 0.5.

The random numbers are scripted so that target 0 has the parents 1, 2, 3; target 1: 0, 2, 3;
target 2: 3, 1, 0; target 3: 2, 0, 1.
"""

import numpy as np
import pytest

from coevo import Strategy
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import Accuracy
from coevo.core.network import Architecture
from coevo.engines.reference import ReferenceEvaluator
from coevo.training.variants import variant_settings

pytestmark = pytest.mark.without_jit

X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
Y = np.array([0, 0, 1, 1])

OUTPUT_0 = [[0, 0], [1, 0], [-1, 0], [0, 1]]
OUTPUT_1 = [[0, 0], [1, 0], [-1, 0], [0, -1]]

# The c-th number times the individuals not yet taken is the place of the parent among those.
PARENTS = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.9, 0.9, 0.0], [0.9, 0.0, 0.0]]
MUTANT, TARGET = 0, 65535  # a 16-bit lane below or above CR


class ScriptedGenerator:
    """Stands in for a NumPy generator and deals out what a test has written down."""

    def __init__(self, uniforms, starts, lanes):
        self.uniforms = np.array(uniforms, dtype=float)
        self.starts = np.array(starts)
        self.lanes = np.array(lanes, dtype=np.uint16)

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms

    def integers(self, high, size):
        assert size == self.starts.shape
        return self.starts


@pytest.fixture(autouse=True)
def scripted_lanes(monkeypatch):
    def draw_lanes(rng, shape):
        assert shape == rng.lanes.shape
        return rng.lanes

    monkeypatch.setattr("coevo.core.operators.draw_lanes", draw_lanes)


def prepare(variant, subpopulations, fitness, champions, rng, **changes):
    """A search that stands just before a generation."""
    architecture = Architecture(1, (), 2)
    settings = variant_settings(
        variant, hidden_layer_sizes=(), population_size=4, scale_factor=0.5, crossover_rate=0.5,
        decay=0.5, batch_size=4, dtype="float64", representative="best",
        validate_every="replacement", **changes,
    )  # fmt: skip
    decomposition = decompose(settings.decomposition, architecture)
    data = Data(X, Y)
    evaluator = ReferenceEvaluator(architecture, decomposition, Accuracy(), data, data)
    search = assemble(evaluator, decomposition, resolve(settings))
    state = search.state
    search._timed(search._initialise)
    state.subpopulations = [np.array(subpopulations, dtype=float)]
    state.fitness = np.array(fitness, dtype=float)
    state.champions = np.array(champions)
    state.global_solution = search._compose(state.champions)
    state.best_validation, state.evaluations = 0.0, 0
    state.rng = rng
    return search


def cooperative(variant, **changes):
    lanes = [[MUTANT, TARGET], [TARGET, MUTANT], [MUTANT, MUTANT], [TARGET, TARGET]]
    # Where a lane already says so, the one gene drawn makes no difference; target 3 has no other.
    rng = ScriptedGenerator([PARENTS] * 2, [[0, 1, 0, 0]] * 2, [lanes] * 2)
    return prepare(
        variant, [OUTPUT_0, OUTPUT_1], [[0.4, 0.8, 0.6, 0.2], [0.2, 0.4, 0.8, 0.6]], [2, 1], rng,
        extensions=(), **changes,
    )  # fmt: skip


def whole(variant):
    individuals = [a + b for a, b in zip(OUTPUT_0, OUTPUT_1, strict=True)]
    lanes = [
        [TARGET, TARGET, MUTANT, MUTANT],
        [MUTANT, TARGET, TARGET, TARGET],
        [TARGET, TARGET, TARGET, TARGET],
        [MUTANT, MUTANT, MUTANT, MUTANT],
    ]
    rng = ScriptedGenerator([PARENTS], [[2, 0, 3, 0]], [lanes])
    return prepare(variant, [individuals], [[0.4, 0.8, 0.6, 0.2]], [1], rng)


def assert_state(search, subpopulations, fitness, global_solution, evaluations):
    state = search.state
    np.testing.assert_allclose(state.subpopulations[0], subpopulations)
    np.testing.assert_allclose(state.fitness, fitness)
    np.testing.assert_allclose(state.global_solution, global_solution)
    assert state.evaluations == evaluations
    assert state.generation == 1


def test_leccde():
    search = cooperative("LECCDE")
    search._timed(search._evolve)
    # Output 0, with output 1 = [1, 0] fixed. Mutants [.5, −.5], [−.5, −.5], [.5, 1], [−1.5, 0];
    # trials [.5, 0], [1, −.5], [.5, 1], [−1.5, 1]. Accuracy of targets 1, ½, 1, ¾; of trials 1, ½,
    # ½, 1. Ft′ of targets .2+1, .4+.5, .3+1, .1+.75. Ft_v = .5333, .4, .4667, .6; Ft′ of trials
    # .2333+1, .3+.5, .2667+.5, .2+1. Trials 0 and 3 win; the best is still individual 2.
    output_0 = [[0.5, 0], [1, 0], [-1, 0], [-1.5, 1]]
    fitness_0 = [0.7 / 3 + 1, 0.9, 1.3, 1.2]
    # Output 1, with output 0 = [−1, 0]. Mutants [.5, .5], [−.5, .5], [.5, −1], [−1.5, 0]; trials
    # [.5, 0], [1, .5], [.5, −1], [−1.5, −1]. Accuracy of targets 1, 1, ½, ¾; of trials 1, 1, 1, ½.
    # Ft′ of targets 1.1, 1.2, .9, 1.05. Ft_v = .6, .5333, .4, .4667; Ft′ of trials 1.2, 1.2333,
    # 1.3, .7667. Trials 0, 1 and 2 win; the best is trial 2.
    output_1 = [[0.5, 0], [1, 0.5], [0.5, -1], [0, -1]]
    fitness_1 = [1.2, 0.7 / 3 + 1, 1.3, 1.05]
    assert_state(search, [output_0, output_1], [fitness_0, fitness_1], [-1, 0, 0.5, -1], 16)


def test_ccde():
    search = cooperative("CCDE")
    search._timed(search._evolve)
    # The same trials. Output 0: accuracy 1, ½, ½, 1 against the stored .4, .8, .6, .2. Trials 0 and
    # 3 win with 1 each; the first of them enters the global solution.
    output_0, fitness_0 = [[0.5, 0], [1, 0], [-1, 0], [-1.5, 1]], [1, 0.8, 0.6, 1]
    # Output 1, with output 0 = [.5, 0]: accuracy of the trials ½, 1, ½, 0 against .2, .4, .8, .6.
    output_1, fitness_1 = [[0.5, 0], [1, 0.5], [-1, 0], [0, -1]], [0.5, 1, 0.8, 0.6]
    assert_state(search, [output_0, output_1], [fitness_0, fitness_1], [0.5, 0, 1, 0.5], 8)
    assert search.state.best_validation == 1.0
    # Both moves validate with 1; the network remembered is the earlier one.
    np.testing.assert_allclose(search.state.best_network, [0.5, 0, 1, 0])


def test_de():
    search = whole("DE")
    search._timed(search._evolve)
    # Mutants [.5, −.5, .5, .5], …; trials [0, 0, .5, .5], [−.5, 0, 1, 0], [−1, 0, −1, −1],
    # [−1.5, 0, −1.5, 0] with accuracy 1, 1, ½, ½ against .4, .8, .6, .2.
    individuals = [[0, 0, 0.5, 0.5], [-0.5, 0, 1, 0], [-1, 0, -1, 0], [-1.5, 0, -1.5, 0]]
    assert_state(search, [individuals], [[1, 1, 0.6, 0.5]], individuals[0], 4)


def test_lede():
    search = whole("LEDE")
    search._timed(search._evolve)
    # Targets all have accuracy ½: Ft′ = .7, .9, .8, .6. Ft′ of trials .2333+1, .3+1, .2667+.5,
    # .2+.5: trials 0, 1 and 3 win.
    individuals = [[0, 0, 0.5, 0.5], [-0.5, 0, 1, 0], [-1, 0, -1, 0], [-1.5, 0, -1.5, 0]]
    assert_state(search, [individuals], [[0.7 / 3 + 1, 1.3, 0.8, 0.7]], individuals[1], 8)


class TurnByTurn(ScriptedGenerator):
    """Deals out the script of one subpopulation's targets, one target at a time."""

    def __init__(self, turns):
        self.turns = iter(turns)

    def random(self, shape):
        uniforms, starts, lanes = next(self.turns)
        super().__init__([[uniforms]], [[starts]], [[lanes]])
        return super().random(shape)


def test_asynchronous_trials_are_made_from_earlier_winners():
    search = cooperative("CCDE", strategy=Strategy(synchronous=False))
    everything = [MUTANT, MUTANT]
    search.state.rng = TurnByTurn([(u, 0, everything) for u in PARENTS] * 2)
    search._timed(search._evolve)
    # Output 0, with output 1 = [1, 0]; every trial is its mutant.
    # 0: [1, 0] + .5 ([−1, 0] − [0, 1]) = [.5, −.5]; .5 x > −.5 is right but for the tie at −1 → 1.
    # 1: individual 0 is now [.5, −.5]: [.5, −.5] + .5 [−1, −1] = [0, −1]; x > −1 → 1, beats .8.
    # 2: [0, 1] + .5 ([0, −1] − [.5, −.5]) = [−.25, .75]; 1.25 x > .75 → 1, beats .6.
    # 3: [−.25, .75] + .5 ([.5, −.5] − [0, −1]) = [0, 1]; x > 1 → ¾, beats .2.
    output_0 = [[0.5, -0.5], [0, -1], [-0.25, 0.75], [0, 1]]
    np.testing.assert_allclose(search.state.subpopulations[0][0], output_0)
    np.testing.assert_allclose(search.state.fitness[0], [1, 1, 1, 0.75])
    np.testing.assert_allclose(search.state.global_solution[:2], output_0[0])
    assert search.state.evaluations == 8


@pytest.mark.parametrize("variant", ["CCDE", "LECCDE"])
def test_individuals_that_took_part_in_no_network_have_fitness_zero(variant):
    search = cooperative(variant)
    choices = iter([[[0, 1], [0, 1], [2, 1], [2, 3]]] * 5)

    class Choices:
        def integers(self, high, size):
            assert (high, size) == (4, (4, 2))
            return np.array(next(choices))

    search.state.rng = Choices()
    search._initialise()
    # Networks [0, 0, 1, 0] twice, [−1, 0, 1, 0], [−1, 0, 0, −1]: accuracy 1, 1, 1, ¾.
    np.testing.assert_allclose(search.state.fitness, [[1, 0, 0.875, 0], [0, 1, 0, 0.75]])
    np.testing.assert_allclose(search.state.global_solution, [0, 0, 1, 0])
    assert search.state.evaluations == 20
