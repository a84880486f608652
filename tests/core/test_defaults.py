"""What "auto" stands for."""

from dataclasses import fields, replace

import numpy as np
import pytest

from coevo import BatchGrowth, PopulationReduction, RandomGroups, Settings, Smoothing, Turnover
from coevo.core.component import AUTO
from coevo.core.defaults import ProblemSize, resolve

SIZE = ProblemSize(10_000, 20, 60)


@pytest.mark.parametrize(
    ("changes", "strategy"),
    [({}, "smoothing"), ({"fitness": "accuracy"}, "smoothing"), ({"control": "fixed"}, "smoothing"),
     ({"control": "shade"}, "rand/1"), ({"population_size": 30}, "rand/1"),
     ({"fitness": "roc_auc"}, "rand/1")],
    ids=str,
)  # fmt: skip
def test_the_strategy_is_smoothing_unless_a_setting_of_evolution_is_given(changes, strategy):
    assert resolve(Settings(**changes)).strategy.name == strategy


# ------------------------------------------------------------------------ differential evolution


def test_auto_is_resolved_once_and_for_all():
    settings = Settings(strategy="rand/1")
    for task, fitness in (("classification", "cross_entropy"), ("regression", "squared_error")):
        resolved = resolve(settings, task, ProblemSize(1000, 9, 60))
        assert resolved.fitness == fitness
        assert AUTO not in {
            value for f in fields(resolved) if isinstance(value := getattr(resolved, f.name), str)
        }
        assert resolve(resolved, task) == resolved
    given = {"scale_factor": 0.3, "crossover_rate": 0.4, "initial_range": 1.0}
    kept = resolve(Settings(**given, scale_initial_range=False), "regression")
    assert {name: getattr(kept, name) for name in given} == given
    assert kept.scale_initial_range is False


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"fitness": "margin"}, True),
        ({"fitness": "squared_error"}, True),
        ({"fitness": "accuracy"}, False),
        ({"fitness": "f1"}, False),
        ({"fitness": lambda targets, outputs: 0.0}, False),
        ({"limited_evaluation": False}, False),
        ({"decomposition": "whole"}, False),
        ({"decomposition": "synapse"}, False),
        ({"decomposition": RandomGroups()}, False),
        ({"decomposition": [[0, 1], [2]]}, False),
        ({"decomposition": "whole", "representative": "mean"}, True),
        ({"representative": "best"}, False),
    ],
)
def test_means_represent_where_they_were_found_better(changes, expected):
    assert resolve(Settings(strategy="rand/1", **changes)).takes_means == expected


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        (PopulationReduction(21), "final_size=21 must be at most population_size=20"),
        (BatchGrowth(499), "final_size=499 must be at least batch_size=500"),
    ],
)
def test_extensions_are_checked_with_what_auto_stands_for(extension, message):
    settings = Settings(extensions=[extension])
    with pytest.raises(ValueError, match=message):
        resolve(settings, size=SIZE)


@pytest.mark.parametrize(
    ("changes", "n_parts"),
    [
        ({"hidden_layer_sizes": ()}, 1),
        ({"hidden_layer_sizes": (999,)}, 1),
        ({"hidden_layer_sizes": (50, 1000)}, 2),
        ({"hidden_layer_sizes": (2499, 50)}, 4),
        ({"hidden_layer_sizes": (2000,)}, 4),
        ({"hidden_layer_sizes": (10_000,)}, 8),
        ({"hidden_layer_sizes": (2000,), "limited_evaluation": False}, 1),
        ({"hidden_layer_sizes": (2000,), "decomposition": "layer"}, 1),
        ({"hidden_layer_sizes": (2000,), "decomposition": RandomGroups()}, 1),
    ],
)
def test_wide_layers_evolve_a_part_at_a_time(changes, n_parts):
    resolved = resolve(Settings(strategy="rand/1", **changes))
    found = [e for e in resolved.extensions if isinstance(e, Turnover)]
    assert found == ([Turnover(n_parts)] if n_parts > 1 else [])
    given = resolve(Settings(strategy="rand/1", extensions=[], **changes))
    assert given.extensions == ()


# ------------------------------------------------------------------------------------- smoothing


def test_auto_follows_the_problem():
    settings = Settings(strategy="smoothing", max_evaluations=10**6)
    assert resolve(settings).strategy == Smoothing()
    resolved = resolve(settings, size=SIZE)
    assert resolved.strategy.width == (0.5, 0.5)
    assert resolved.strategy.rate == (0.006, 0.012)
    assert resolved.strategy.schedule == "rounds"
    assert resolved.batch_size == 200
    assert resolved.initial_range == pytest.approx((np.sqrt(3), 0.3 * np.sqrt(3)))
    assert resolve(resolved, size=SIZE) == resolved
    settings = replace(settings, activation="sign", hidden_layer_sizes=(400, 400))
    assert resolve(settings, size=SIZE).strategy.width == (1.0, 1.0, 0.5)
    assert resolve(settings, size=SIZE).strategy.rate == pytest.approx((0.003, 0.003, 0.006))
    settings = Settings(strategy="smoothing", fitness="accuracy")
    assert resolve(settings, size=SIZE).strategy.width == (1.0, 1.0)


@pytest.mark.parametrize(
    ("budget", "n_inputs", "rate"),
    [
        ({"max_generations": 1000}, 20, 0.012),
        ({"max_generations": 1000, "max_evaluations": 120 * 600}, 20, 0.02),
        ({"max_generations": 10}, 20, 0.05),
        ({"max_generations": 10}, 784, 0.0125),
        ({"max_seconds": 1.0}, 20, 0.006),
        ({"patience": 9}, 20, 0.006),
    ],
)
def test_auto_rates_follow_the_budget(budget, n_inputs, rate):
    settings = Settings(strategy="smoothing", **{"max_evaluations": None, **budget})
    resolved = resolve(settings, size=ProblemSize(10_000, n_inputs, 60))
    assert resolved.strategy.rate == pytest.approx((rate, 2 * rate))


@pytest.mark.parametrize(
    ("n_instances", "expected"), [(10, 10), (100, 16), (1000, 50), (10**6, 200)]
)
def test_auto_batches(n_instances, expected):
    size = ProblemSize(n_instances, 20, 60)
    settings = Settings(strategy="smoothing")
    assert resolve(settings, size=size).batch_size == expected
    counted = resolve(replace(settings, fitness="accuracy"), size=size)
    assert counted.batch_size == min(400, n_instances)
    assert resolve(Settings(strategy="rand/1"), size=size).batch_size == min(500, n_instances)


def test_what_is_given_is_kept():
    given = Smoothing(
        width=0.2, rate=0.1, adapt_rate=False, weight_decay=0.0, adapt_decay=False,
        schedule="constant", first_budget=None,
    )  # fmt: skip
    assert resolve(Settings(strategy=given), size=SIZE).strategy == given


@pytest.mark.parametrize(
    ("n_validation", "passes", "changes", "expected"),
    [
        (0, 1, {}, "replacement"),
        (1_333, 1, {}, "replacement"),  # 2 × 20 × 500 instances of each subpopulation
        (1_334, 1, {}, 2),
        (280_000, 1, {}, 210),
        (100, 60, {}, 1),  # a full pass for each of 60 replacements would be too much
        (1_334, 60, {}, 2),
        (2_666, 1, {"batch_size": 1000}, "replacement"),
        (2_666, 1, {"population_size": 40}, "replacement"),
        (13_333, 1, {"limited_evaluation": False}, "replacement"),  # 20 × 10,000 instances
        (13_334, 1, {"limited_evaluation": False}, 2),
        (1_333, 1, {"extensions": ["population_reduction(final_size=10)"]}, 2),
        (280_000, 1, {"validate_every": "replacement"}, "replacement"),
        (10, 1, {"validate_every": 7}, 7),
        (600, 1, {"strategy": "smoothing"}, 10),  # 3 × 200 instances
        (601, 1, {"strategy": "smoothing"}, 11),
    ],
)
def test_validation_has_its_share(n_validation, passes, changes, expected):
    settings = Settings(**{"strategy": "rand/1", "max_generations": 9} | changes)
    size = ProblemSize(10_000, 20, 60, n_validation, passes)
    assert resolve(settings, size=size).validate_every == expected
    assert resolve(settings).validate_every == settings.validate_every


def test_validation_after_each_replacement_is_differential_evolutions():
    assert resolve(Settings(validate_every="replacement")).strategy.name == "rand/1"
