"""The race with other libraries: all run for the same thing, and the referee is fair."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import CrossEntropy
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.datasets import Part, Split
from coevo.engines.batched import BatchedEvaluator

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = ("race", "race_report", "libraries", "mnist", "apart", "machine")
ARCHITECTURE = Architecture(561, (50,), 6)


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


def as_coevo_orders_them(population):
    """Bring the weights and biases of a layer together, neuron by neuron."""
    ends = np.cumsum([50 * 561, 50, 6 * 50])
    parts = np.split(population, ends, axis=1)
    n = len(population)
    matrices = [
        np.concatenate([w.reshape(n, size, -1), b.reshape(n, size, 1)], axis=2)
        for w, b, size in ((parts[0], parts[1], 50), (parts[2], parts[3], 6))
    ]
    return ARCHITECTURE.genotype(matrices)


@pytest.fixture
def start(race, parts):
    return race.Start(parts, race.libraries.HAR, seconds=3.0, seed=1)


def test_fitness_of_the_others_is_coevos(race, parts, start):
    task = race.make_task(start)
    population = task.begin()
    genotypes = as_coevo_orders_them(population * task.scale)
    outputs = ARCHITECTURE.forward(genotypes, parts.train.inputs)
    expected = CrossEntropy()(outputs, parts.train.labels)
    np.testing.assert_allclose(task.evaluate(population), expected, rtol=1e-5)


def test_others_may_measure_fitness_on_a_part_of_the_rows(race, parts, start):
    task = race.make_task(start, rows=15)
    assert task.inputs.shape == (561, 15)
    rows = [np.flatnonzero((parts.train.inputs == x).all(axis=1)) for x in task.inputs.T]
    rows = np.concatenate(rows)
    assert len(set(rows)) == 15
    np.testing.assert_array_equal(task.targets.argmax(axis=0), parts.train.labels[rows])
    np.testing.assert_array_equal(task.scale, race.make_task(start).scale)


def test_others_begin_in_coevos_range(race, parts, start):
    train = Data(parts.train.inputs, parts.train.labels)
    decomposition = decompose("whole", ARCHITECTURE)
    evaluator = BatchedEvaluator(ARCHITECTURE, decomposition, CrossEntropy(), train, train)
    settings = Settings(decomposition="whole", population_size=400, batch_size=20, seed=1)
    state = assemble(evaluator, decomposition, resolve(settings)).state
    ours = np.abs(state.subpopulations[0][0]).max(axis=0)
    theirs = as_coevo_orders_them(race.make_task(start).scale[np.newaxis])[0]
    assert (ours <= theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=0.1)


def test_referee_tests_what_validated_best(race):
    held_out = SimpleNamespace(inputs=np.zeros((4, 1)), labels=np.array([0, 1, 1, 1]))
    test = SimpleNamespace(inputs=np.ones((4, 1)), labels=np.array([1, 1, 0, 0]))
    referee = race.Referee(
        10.0, SimpleNamespace(validation=held_out, test=test), race.libraries.HAR
    )
    answers = iter([([1, 1, 1, 1], [1, 1, 1, 1]), ([0, 0, 1, 0], [1, 1, 0, 0])])
    for seconds in (1.0, 1.05, 2.0):  # the second one is not due yet
        if seconds != 1.05:
            validation, tested = map(np.array, next(answers))
        referee.look(seconds, 5, lambda x, v=validation, t=tested: t if x[0, 0] else v)
    assert [point["seconds"] for point in referee.points] == [1.0, 2.0]
    assert [point["validation"] for point in referee.points] == [0.75, 0.75]
    assert [point["test"] for point in referee.points] == [0.5, 0.5]


def test_referee_looks_at_the_end_of_a_search_that_ended_by_itself(race, parts):
    referee = race.Referee(10.0, parts, race.libraries.HAR)
    for seconds, is_end in ((1.0, False), (1.01, False), (1.02, True)):
        referee.look(seconds, 5, lambda x: np.zeros(len(x)), is_end)
    assert [point["seconds"] for point in referee.points] == [1.0, 1.02]


def test_clock_stands_still_while_accuracy_is_looked_at(race, parts, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(race.time, "perf_counter", lambda: now[0])
    referee = race.Referee(3.0, parts, race.libraries.HAR)

    def best():
        now[0] += 50.0
        return np.zeros(race.libraries.HAR.n_genes)

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
    row = race.race_report.make_row(race.RUNNERS["evox"], outcome, (10.0, 60.0))
    assert row.startswith("| EvoX | DE |")
    assert "not run" in row
    assert "no-such-library" in row


def points(*tests, seconds=60.0):
    found = [{"seconds": 10.0 * k, "evaluations": k, "validation": t, "test": t}
             for k, t in enumerate(tests, start=1)]  # fmt: skip
    return {"points": found, "seconds": seconds, "version": "1", "population": 20}


def test_what_a_search_had_found_after_so_many_seconds(race):
    test_at = race.race_report.test_at
    outcome = points(0.5, 0.6, 0.7)
    assert [test_at(outcome, s) for s in (5, 10, 25, 60)] == pytest.approx([None, 50, 60, 70])
    assert test_at(outcome, 180) is None  # it was not granted as much


def test_the_lead_is_over_the_best_other_library_without_gradients(race):
    outcomes = {"coevo": points(0.9), "snes": points(0.8), "evox": points(0.85),
                "backprop": points(0.95)}  # fmt: skip
    _, line = race.race_report.describe_lead(outcomes, race.RUNNERS, (10.0,))
    assert "+5.0 after 10 s (EvoX DE)" in line


@pytest.fixture
def arguments():
    return SimpleNamespace(only=None, seconds=None, seed=1, patience=0, tune=True)


@pytest.fixture
def searched(race, monkeypatch):
    """Stand in for the searches; wider steps validate better."""
    calls = []

    def search(race_, name, seconds, arguments, options):
        calls.append((name, seconds, options))
        release = {"version": "1", "options": options, "seed": arguments.seed}
        return points(options.get("stdev", 0.5), seconds=seconds) | release

    monkeypatch.setattr(race, "search_apart", search)
    monkeypatch.setattr(race, "version", lambda package: "1")
    return calls


def test_settings_are_chosen_by_validation_and_nothing_is_run_twice(
    race, searched, arguments, tmp_path
):
    har = race.RACES["HAR"]
    race.tune(har, race.Store(tmp_path), arguments)
    assert len(searched) == sum(len(list(r.combinations())) for r in race.RUNNERS.values())
    race.tune(har, race.Store(tmp_path), arguments)
    race.run(har, race.Store(tmp_path), arguments)
    n_tuned = sum(len(list(r.combinations())) for r in race.RUNNERS.values())
    assert [name for name, *_ in searched[n_tuned:]] == list(race.RUNNERS)
    assert {n: o for n, _, o in searched[n_tuned:]}["snes"]["stdev"] == 0.3
    race.run(har, race.Store(tmp_path), arguments)
    assert len(searched) == n_tuned + len(race.RUNNERS)
    arguments.only = ["snes"]
    race.run(har, race.Store(tmp_path), arguments)
    assert [name for name, *_ in searched[n_tuned + len(race.RUNNERS) :]] == ["snes"]


def test_a_race_asks_for_settings_first(race, searched, arguments, tmp_path):
    arguments.only = ["snes"]
    with pytest.raises(SystemExit, match="--tune --only snes first"):
        race.run(race.RACES["MNIST"], race.Store(tmp_path), arguments)


def test_the_page_and_the_pictures_are_made_from_the_file(race, searched, arguments, tmp_path):
    mnist = race.RACES["MNIST"]
    for act in (race.tune, race.run):
        act(mnist, race.Store(tmp_path), arguments)
    content = race.Store(tmp_path).content
    race.race_report.write(content, race.RACES, race.RUNNERS, tmp_path)
    page = (tmp_path / "race.md").read_text(encoding="utf-8")
    assert "784-50-10" in page
    assert "first steps of 0.3" in page
    assert (tmp_path / "race_mnist.png").stat().st_size > 0
    assert not (tmp_path / "race.png").exists()


def test_labels_do_not_overlap(race):
    heights = [96.0, 97.0, 50.0, 50.0, 50.5, 20.0, 0.0]
    places = race.race_report.spread(heights, 5.0, 0.0, 100.0)
    assert np.argsort(places, kind="stable").tolist() == np.argsort(heights, kind="stable").tolist()
    assert np.diff(sorted(places)).min() >= 5.0 - 1e-9
    assert min(places) >= 0.0
    assert max(places) <= 100.0
    assert places[5] == 20.0
