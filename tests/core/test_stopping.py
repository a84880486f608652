"""When a run ends, and why."""

import os
import signal
import threading

import pytest

from coevo.core.stopping import StopReason
from coevo.engines.reference import ReferenceEvaluator


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_evaluations": 500}, StopReason.MAX_EVALUATIONS),
        ({"max_generations": 3}, StopReason.MAX_GENERATIONS),
        ({"max_seconds": 1e-6}, StopReason.MAX_SECONDS),
        ({"target_fitness": 0.01}, StopReason.TARGET_FITNESS),
        ({"patience": 4}, StopReason.PATIENCE),
    ],
)
def test_each_criterion_stops_the_run(make_search, small_settings, change, reason):
    search = make_search(small_settings(**{"max_generations": 1000} | change))
    assert search.run() == reason
    state = search.state
    if reason is StopReason.MAX_EVALUATIONS:
        assert state.evaluations - 72 < 500 <= state.evaluations
    if reason is StopReason.MAX_GENERATIONS:
        assert state.generation == 3
    if reason is StopReason.TARGET_FITNESS:
        assert state.generation == 0  # the initial sampling was good enough
    if reason is StopReason.PATIENCE:
        assert state.generation - state.best_generation == 4


def test_criteria_combine_and_the_first_one_met_counts(make_search, small_settings):
    search = make_search(small_settings(max_generations=5, max_evaluations=10**6, patience=100))
    assert search.run() == StopReason.MAX_GENERATIONS


def test_seconds_count_all_but_callbacks_and_who_iterates(make_search, small_settings, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("coevo.core.loop.clock", lambda: now[0])
    search = make_search(
        small_settings(max_generations=4), [lambda _: now.append(now.pop() + 1000)]
    )

    def taking(seconds, step):
        def take():
            now[0] += seconds
            return step()

        return take

    monkeypatch.setattr(search, "_evolve", taking(10, search._evolve))
    monkeypatch.setattr(search, "_is_over", taking(1, search._is_over))
    for _ in search:
        now[0] += 100
    assert search.state.seconds == 4 * 10 + 5  # generations, and each look whether it is over


def test_ctrl_c_returns_the_best_so_far(make_search, small_settings):
    def press(search):
        if search.state.generation == 3:
            os.kill(os.getpid(), signal.SIGINT)

    search = make_search(small_settings(max_generations=1000), [press])
    handler = signal.getsignal(signal.SIGINT)
    assert search.run() == StopReason.INTERRUPTED
    assert search.state.generation == 3
    assert search.state.best_validation > 0
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.fixture
def heeds_ctrl_c():
    """A shell that starts tests in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_twice_does_not_wait_for_the_generation(make_search, small_settings):
    class Impatient(ReferenceEvaluator):
        def validate(self):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            return super().validate()

    search = make_search(small_settings(), evaluator_class=Impatient)
    with pytest.raises(KeyboardInterrupt):
        search.run()


def test_a_run_outside_the_main_thread_works(make_search, small_settings):
    search = make_search(small_settings())
    thread = threading.Thread(target=search.run)
    thread.start()
    thread.join(30)
    assert search.stop_reason == StopReason.MAX_GENERATIONS
