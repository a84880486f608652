"""A fit, a stream, `evolve`, a study and `coevo train` each prepare a search once."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from coevo import CoevoClassifier, Settings, evolve
from coevo.study.plan import read_plan
from coevo.study.worker import perform
from coevo.tabular.job import Job
from coevo.tabular.training import train
from coevo.training import problem as problems
from coevo.training import run

SHORT = {"hidden_layer_sizes": (3,), "max_evaluations": 300}


@pytest.fixture
def steps(monkeypatch):
    """Count what is called while a search is prepared; clear it before the call to look at."""
    counts = Counter()

    def count(owner, name):
        original = getattr(owner, name)

        def counted(*arguments, **keywords):
            counts[name] += 1
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (Settings, "__post_init__"), (Settings, "check_end"), (run, "resolve"),
        (run, "decompose"), (run, "assemble"), (problems, "choose_engine"),
        (problems, "resolve_metric"),
    ):  # fmt: skip
        count(owner, name)
    return counts


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 4))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture(params=["auto", "rand/1"])
def strategy(request, data):
    """A strategy; what is only made once in a process, such as the defaults, has been made."""
    X, y = data
    evolve(X, y, X, y, **SHORT, strategy=request.param, seed=1)
    return request.param


ONCE = {"check_end", "resolve", "decompose", "assemble", "choose_engine", "resolve_metric"}
GIVEN_AND_RESOLVED = 2  # the settings as they are given, and those with every "auto" resolved


def check(steps, n_settings):
    assert steps == dict.fromkeys(ONCE, 1) | {"__post_init__": n_settings}


def test_evolve(steps, data, strategy):
    X, y = data
    steps.clear()
    evolve(X, y, X, y, **SHORT, strategy=strategy, seed=1)
    check(steps, GIVEN_AND_RESOLVED)


@pytest.mark.parametrize("fitness", ["auto", "accuracy", "f1_weighted"])
def test_fit(steps, data, strategy, fitness):
    classifier = CoevoClassifier(**SHORT, strategy=strategy, fitness=fitness, random_state=1)
    steps.clear()
    classifier.fit(*data)
    check(steps, GIVEN_AND_RESOLVED)


def test_warm_start(steps, data, strategy):
    classifier = CoevoClassifier(**SHORT, strategy=strategy, random_state=1, warm_start=True)
    classifier.fit(*data)
    steps.clear()
    classifier.fit(*data)
    check(steps, GIVEN_AND_RESOLVED + 1)  # and those with a budget that is granted once more


def test_stream(steps, data, strategy):
    classifier = CoevoClassifier((3,), strategy=strategy, random_state=1)
    steps.clear()
    classifier.partial_fit(*data, classes=[0, 1])
    check(steps, GIVEN_AND_RESOLVED + 1)  # and those for one batch
    steps.clear()
    classifier.partial_fit(*data)
    check(steps, GIVEN_AND_RESOLVED + 2)  # and those with a budget that is granted once more


def test_run_of_a_study(steps):
    run = read_plan("quick").runs[0]
    steps.clear()
    perform(replace(run, settings={**run.settings, "max_evaluations": 300}))
    check(steps, GIVEN_AND_RESOLVED)


def test_coevo_train(steps, data, strategy, tmp_path):
    X, y = data
    table = np.column_stack([X, y])
    path = tmp_path / "table.csv"
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,y", comments="", fmt="%.4f")
    steps.clear()
    options = {"data": str(path), "target": "y", "task": "classification", "strategy": strategy}
    train(Job().with_changes(options | SHORT), tmp_path / "run")
    check(steps, GIVEN_AND_RESOLVED + 1)  # options are checked before the table is read
