"""The race with other libraries: all run for the same thing, and the referee is fair."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.evaluator import Data
from coevo.core.metrics import CrossEntropy
from coevo.core.settings import Settings
from coevo.datasets import Part, Split
from coevo.engines.batched import BatchedEvaluator

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = ("race", "libraries", "apart", "machine")


@pytest.fixture
def race(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import race

    yield race
    for module in MODULES:
        sys.modules.pop(module, None)


@pytest.fixture
def parts(rng):
    def part(n):
        inputs = rng.uniform(-1, 1, (n, 561)).astype(np.float32)
        return Part(inputs, rng.integers(6, size=n), np.arange(n))

    return Split(part(40), part(20), part(20), None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def as_coevo_orders_them(race, population):
    """Bring the weights and biases of a layer together, neuron by neuron."""
    ends = np.cumsum([50 * 561, 50, 6 * 50])
    parts = np.split(population, ends, axis=1)
    n = len(population)
    matrices = [
        np.concatenate([w.reshape(n, size, -1), b.reshape(n, size, 1)], axis=2)
        for w, b, size in ((parts[0], parts[1], 50), (parts[2], parts[3], 6))
    ]
    return race.ARCHITECTURE.genotype(matrices)


def test_fitness_of_the_others_is_coevos(race, parts):
    task = race.make_task(parts, seed=1)
    population = task.begin()
    genotypes = as_coevo_orders_them(race, population * task.scale)
    outputs = race.ARCHITECTURE.forward(genotypes, parts.train.inputs)
    expected = CrossEntropy()(outputs, parts.train.labels)
    np.testing.assert_allclose(task.evaluate(population), expected, rtol=1e-5)


def test_others_begin_in_coevos_range(race, parts):
    train = Data(parts.train.inputs, parts.train.labels)
    decomposition = decompose("whole", race.ARCHITECTURE)
    evaluator = BatchedEvaluator(race.ARCHITECTURE, decomposition, CrossEntropy(), train, train)
    settings = Settings(decomposition="whole", population_size=400, batch_size=20, seed=1)
    state = assemble(evaluator, decomposition, settings).state
    ours = np.abs(state.subpopulations[0][0]).max(axis=0)
    theirs = as_coevo_orders_them(race, race.make_task(parts, seed=1).scale[np.newaxis])[0]
    assert (ours <= theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=0.1)


def test_referee_tests_what_validated_best(race):
    held_out = SimpleNamespace(inputs=np.zeros((4, 1)), labels=np.array([0, 1, 1, 1]))
    test = SimpleNamespace(inputs=np.ones((4, 1)), labels=np.array([1, 1, 0, 0]))
    referee = race.Referee(10.0, SimpleNamespace(validation=held_out, test=test))
    answers = iter([([1, 1, 1, 1], [1, 1, 1, 1]), ([0, 0, 1, 0], [1, 1, 0, 0])])
    for seconds in (1.0, 1.05, 2.0):  # the second one is not due yet
        if seconds != 1.05:
            validation, tested = map(np.array, next(answers))
        referee.look(seconds, 5, lambda x, v=validation, t=tested: t if x[0, 0] else v)
    assert [point["seconds"] for point in referee.points] == [1.0, 2.0]
    assert [point["validation"] for point in referee.points] == [0.75, 0.75]
    assert [point["test"] for point in referee.points] == [0.5, 0.5]


def test_clock_stands_still_while_accuracy_is_looked_at(race, parts, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(race.time, "perf_counter", lambda: now[0])
    referee = race.Referee(3.0, parts)

    def best():
        now[0] += 50.0
        return np.zeros(race.N_GENES)

    referee.begin()
    now[0] += 1.0
    referee.count(20, best)
    now[0] += 1.0
    referee.count(20, best)
    now[0] += 1.0
    with pytest.raises(race.Finished):
        referee.count(20, best)
    points = [(point["seconds"], point["evaluations"]) for point in referee.points]
    assert points == [(1.0, 20), (2.0, 40), (3.0, 60)]


def test_a_missing_library_has_a_row_that_says_so(race, capsys):
    def search():
        return {"version": race.version("no-such-library")}

    race.print_outcome(search)
    outcome = race.json.loads(capsys.readouterr().out)
    row = race.make_row("evox", outcome)
    assert row.startswith("| EvoX | DE |")
    assert "not run" in row
    assert "no-such-library" in row


def test_labels_do_not_overlap(race):
    heights = [96.0, 97.0, 50.0, 50.0, 50.5, 20.0, 0.0]
    places = race.spread(heights, 5.0, 0.0, 100.0)
    assert np.argsort(places, kind="stable").tolist() == np.argsort(heights, kind="stable").tolist()
    assert np.diff(sorted(places)).min() >= 5.0 - 1e-9
    assert min(places) >= 0.0
    assert max(places) <= 100.0
    assert places[5] == 20.0
