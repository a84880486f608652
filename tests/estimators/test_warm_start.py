"""Fits that go on: warm starts, pickles, networks to begin around."""

import pickle

import numpy as np
import pytest

from coevo import (
    CoevoClassifier,
    CoevoRegressor,
    Extension,
    PopulationReduction,
    RandomGroups,
    WeightDecay,
)
from coevo.core.metrics import Accuracy

QUICK = {"hidden_layer_sizes": (6,), "max_evaluations": 4_000, "random_state": 1, "n_threads": 1,
         "validation_fraction": 0.0}  # fmt: skip
COUNTED = {"fitness": "accuracy"}
ESTIMATORS = (CoevoClassifier, CoevoRegressor)


@pytest.mark.parametrize("limited", [True, False])
def test_a_warm_start_goes_on(iris, limited):
    X, y = iris
    classifier = CoevoClassifier(**QUICK, warm_start=True, limited_evaluation=limited).fit(X, y)
    generations, fitness = classifier.n_iter_, classifier.validation_fitness_
    classifier.fit(X, y)
    assert classifier.n_iter_ == pytest.approx(2 * generations, abs=2)
    assert classifier.validation_fitness_ >= fitness
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        classifier.set_params(hidden_layer_sizes=(3,)).fit(X, y)
    cold = classifier.set_params(warm_start=False).fit(X, y)
    assert cold.network_.architecture.hidden_layer_sizes == (3,)


def test_a_warm_start_on_other_data_measures_everyone_again(iris):
    X, y = iris
    other = np.roll(y, 50)  # what was right is wrong now
    classifier = CoevoClassifier(
        **QUICK | COUNTED, warm_start=True, limited_evaluation=False, decomposition="whole"
    ).fit(X, y)
    assert classifier._fit_state.ongoing.state.fitness.min() > 0.7
    n_evaluations = classifier.n_evaluations_
    classifier.set_params(max_evaluations=None, max_generations=1).fit(X, other)
    state = classifier._fit_state.ongoing.state
    population = state.subpopulations[0][0]
    for genotype, fitness in zip(population, state.fitness[0], strict=True):
        network = classifier._fit_state.unscale_network(classifier.network_.architecture, genotype)
        answers = network.outputs(X).argmax(axis=1)
        assert fitness == pytest.approx(np.mean(answers == other))
    assert state.champions[0] == state.fitness[0].argmax()
    # 20 individuals measured anew and 20 trials
    assert classifier.n_evaluations_ == n_evaluations + 40


@pytest.mark.parametrize(
    "decomposition", ["neuron", "synapse", RandomGroups(size=9, redraw_every=2)], ids=str
)
def test_a_warm_start_measures_everyone_in_place(iris, decomposition):
    X, y = iris
    other = np.roll(y, 50)
    classifier = CoevoClassifier(
        (3,), decomposition=decomposition, extensions=[WeightDecay(0.1)], limited_evaluation=False,
        fitness="accuracy", max_evaluations=None, max_generations=3, population_size=6,
        random_state=1, dtype="float64", warm_start=True, validation_fraction=0.0,
    ).fit(X, y)  # fmt: skip
    data = classifier._check_data(X, y, None, reset=False)
    inputs = classifier._fit_state.scale(data, "float64").inputs
    measured = []

    class Observer(Extension):
        """Looks at the individuals before the first generation changes them."""

        name = "observer"

        def before_generation(self, search):
            state = search.state
            individuals = [x for part in state.subpopulations for x in part]
            for i, group in enumerate(search.decomposition.groups):
                networks = np.tile(state.global_solution, (6, 1))
                networks[:, group] = individuals[i]
                outputs = classifier.network_.architecture.forward(networks, inputs)
                expected = Accuracy()(outputs, other) - 0.1 * (individuals[i] ** 2).mean(axis=1)
                np.testing.assert_allclose(state.fitness[i], expected)
                measured.append(i)

    classifier.set_params(max_generations=1, extensions=[WeightDecay(0.1), Observer()])
    classifier.fit(X, other)
    assert measured == list(range(len(classifier._fit_state.ongoing.decomposition)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_warm_start_learns_what_is_new(iris, estimator):
    X, y = iris
    other = np.roll(y, 50)
    warm = estimator(**QUICK, warm_start=True, limited_evaluation=False).fit(X, y)
    warm.fit(X, other)
    assert warm.score(X, other) > warm.score(X, y)
    assert warm.score(X, other) > 0.6


def test_a_pickled_estimator_predicts_and_goes_on(iris):
    X, y = iris
    classifier = CoevoClassifier(**QUICK, warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copy.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(
        copy.fit(X, y).network_.genotype, classifier.fit(X, y).network_.genotype
    )


@pytest.mark.parametrize("control", ["dither", "jde", "shade"])
def test_a_control_goes_on_with_what_it_has_learnt(iris, control):
    arguments = QUICK | {
        "control": control, "strategy": "current-to-pbest/1", "warm_start": True, "random_state": 1,
    }  # fmt: skip
    classifier = CoevoClassifier(**arguments).fit(*iris)
    memory = classifier._fit_state.ongoing.state.memories[control]
    learnt = {name: array.copy() for name, array in memory.items()}
    classifier.fit(*iris)
    assert classifier._fit_state.ongoing.state.memories[control] is memory
    assert all(not np.array_equal(memory[name], learnt[name]) for name in learnt)
    classifier.set_params(control="fixed").fit(*iris)  # another control begins anew
    assert classifier._fit_state.ongoing.state.memories["fixed"] == {}
    assert control not in classifier._fit_state.ongoing.state.memories


def test_subpopulations_shrink_and_stay_small(iris):
    arguments = QUICK | {"extensions": [PopulationReduction(final_size=5)], "warm_start": True}
    classifier = CoevoClassifier(**arguments).fit(*iris)
    size = classifier._fit_state.ongoing.state.fitness.shape[1]
    assert 5 <= size < classifier.settings_.population_size
    generations = classifier.n_iter_
    classifier.fit(*iris)
    assert classifier._fit_state.ongoing.state.fitness.shape[1] <= size
    assert classifier.n_iter_ > generations


def test_a_fit_begins_around_a_network(numbers):
    X, y = numbers
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant, which has no scale
    first = CoevoRegressor(**QUICK | {"random_state": 1}).fit(X, y)
    second = CoevoRegressor(
        **QUICK | {"random_state": 2, "initial_range": 0.01, "dtype": "float64", "fitness": "r2"}
    )
    second.fit(X, y, X_val=X, y_val=y, initial_network=first.network_)
    assert second.history_["validation_fitness"][0] == pytest.approx(first.score(X, y))
    assert second.score(X, y) >= first.score(X, y)
    second.set_params(warm_start=True)
    with pytest.raises(ValueError, match="initial_network begins a search, and warm_start=True"):
        second.fit(X, y, initial_network=first.network_)
