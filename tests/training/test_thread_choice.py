"""The number of threads: it decides how fast a run is, and nothing else."""

from types import SimpleNamespace

import numpy as np
import pytest

from coevo import evolve
from coevo.runtime import threads
from coevo.training import thread_choice
from coevo.training.thread_choice import ThreadChoice, schedule


def follow(seconds_of, n_generations, n_threads=4):
    """Return the threads of each generation, given `seconds_of(n_threads, generation)`."""
    choice = schedule(n_threads)
    used = [next(choice)]
    for generation in range(n_generations - 1):
        used.append(choice.send(seconds_of(used[-1], generation)))
    return used


@pytest.mark.parametrize(
    ("on_one", "on_all", "chosen"),
    [
        (0.001, 0.002, 1), (0.002, 0.001, 4), (0.001, 0.001, 1),
        (9.0, 5.0, 4), (9.0, 9.0, 4),  # generations that are too long to try one thread
    ],
)  # fmt: skip
def test_the_faster_number_is_used_but_for_a_few_tries(on_one, on_all, chosen):
    used = follow(lambda n, _: on_one if n == 1 else on_all, 1000)
    assert used.count(chosen) > 970
    assert set(used) <= {1, 4}
    if on_all > thread_choice.LONG:
        assert set(used) == {4}


def test_a_single_slow_generation_decides_nothing():
    def seconds_of(n, generation):
        return 0.02 if generation in (0, 2, 5) else 0.001 * n

    assert follow(seconds_of, 400).count(1) > 380


def test_the_choice_follows_a_run_that_changes():
    """As the instances open to neurons get fewer, there is less work to share out."""
    used = follow(lambda n, generation: 0.003 / n if generation < 500 else 0.001 * n, 4000)
    assert used[:500].count(4) > 470
    assert used[-1000:].count(1) > 980


def test_a_run_is_measured_by_its_own_clock():
    """Callbacks and compiling are not the search's time."""
    search = SimpleNamespace(state=SimpleNamespace(seconds=7.0))
    with threads.limit(2):
        hook = ThreadChoice(2)
        hook.begin(search)
        for _ in range(20):
            search.state.seconds += 0.004 if threads.available_threads() == 2 else 0.001
            hook.after_generation(search)
        assert threads.available_threads() == 1


@pytest.mark.parametrize(
    ("n_threads", "used"), [(None, {1, 3}), (3, {3}), (1, {1})], ids=["default", "3", "1"]
)
def test_only_the_default_is_a_choice(rng, n_threads, used, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    seen = set()
    evolve(
        X[:40], y[:40], X[40:], y[40:], hidden_layer_sizes=(3,), batch_size=20, seed=1,
        max_generations=8, n_threads=n_threads,
        callbacks=[lambda _: seen.add(threads._n_threads.get())],
    )  # fmt: skip
    assert seen == used


@pytest.mark.parametrize("sizes", [(37,), (20, 10)], ids=str)
@pytest.mark.parametrize("variant", ["LECCDE", "CCDE", "LEDE"])
def test_the_result_does_not_depend_on_the_number_of_threads(rng, variant, sizes, monkeypatch):
    """In float32, where products of other shapes are rounded differently."""
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**12)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    X = rng.uniform(-1, 1, (1500, 70)).astype(np.float32)
    y = (X @ rng.normal(size=(70, 3))).argmax(axis=1)
    runs = []
    for n_threads in (1, 2, 3, None):
        seen = []
        result = evolve(
            X[:1000], y[:1000], X[1000:], y[1000:], variant=variant, hidden_layer_sizes=sizes,
            fitness="cross_entropy", population_size=17, batch_size=500, max_generations=3,
            max_evaluations=None, n_threads=n_threads, seed=1,
            callbacks=[lambda search, seen=seen: seen.append(search.state.fitness.tobytes())],
        )  # fmt: skip
        validation = result.history.columns()["validation_fitness"]
        runs.append((*seen, validation.tobytes(), result.network.genotype.tobytes()))
    assert len(set(runs)) == 1
