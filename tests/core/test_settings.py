"""Settings: objects and names, nested names, and where old names are now."""

from dataclasses import fields, replace

import numpy as np
import pytest

from coevo import (
    JDE,
    SHADE,
    BatchGrowth,
    CurrentToPBest,
    PopulationReduction,
    RandomGroups,
    Settings,
    Smoothing,
    Strategy,
    WeightDecay,
    evolve,
)
from coevo.core.control import Fixed
from coevo.core.settings import MOVED, describe_settings
from coevo.study import read_plan


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"control": Fixed(), "strategy": "auto", "decomposition": "neuron"}),
        ({"strategy": "rand/1"}, {"strategy": Strategy()}),
        ({"strategy__rate": 0.1}, {"strategy": Smoothing(rate=0.1)}),
        ({"control": "shade"}, {"control": SHADE()}),
        ({"control": "shade(memory_size=10)"}, {"control": SHADE(10)}),
        ({"control__memory_size": 10, "control": "shade"}, {"control": SHADE(10)}),
        ({"control": JDE(), "control__low": 0.1}, {"control": JDE(low=0.1)}),
        ({"decomposition": "random"}, {"decomposition": RandomGroups()}),
        ({"decomposition": "random(7)"}, {"decomposition": RandomGroups(7)}),
        (
            {"decomposition": "random", "decomposition__redraw_every": 3},
            {"decomposition": RandomGroups(redraw_every=3)},
        ),
        ({"strategy__crossover": "exponential"}, {"strategy": Strategy(crossover="exponential")}),
        (
            {"strategy": "current-to-pbest/1", "strategy__share": 0.3},
            {"strategy": CurrentToPBest(share=0.3)},
        ),
        ({"extensions": "weight_decay"}, {"extensions": (WeightDecay(),)}),
        ({"extensions": WeightDecay(0.5)}, {"extensions": (WeightDecay(0.5),)}),
        (
            {"extensions": ["weight_decay(rate=0.5)", BatchGrowth(900)]},
            {"extensions": (WeightDecay(0.5), BatchGrowth(900))},
        ),
    ],
)
def test_names_texts_objects_and_nested_names(given, expected):
    settings = Settings.from_names(given)
    assert {name: getattr(settings, name) for name in expected} == expected


def test_nested_names_work_in_every_place_that_takes_settings(tmp_path, make_classification_data):
    expected = SHADE(10), RandomGroups(8, 2)
    nested = {
        "control": "shade", "control__memory_size": 10, "decomposition": "random",
        "decomposition__size": 8, "decomposition__redraw_every": 2,
    }  # fmt: skip
    inputs, targets = make_classification_data(np.random.default_rng(1))
    data = (inputs[:40], targets[:40], inputs[40:], targets[40:])
    short = {"hidden_layer_sizes": (3,), "batch_size": 20, "max_generations": 1, "seed": 1}
    start = Settings(control=SHADE(3), decomposition=RandomGroups(8), **short)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'seeds = 1\n[[experiment]]\ndataset = "WBC"\nvariants = ["LECCDE"]\n'
        '[experiment.settings]\ncontrol = "shade"\ncontrol__memory_size = 10\n'
        'decomposition = "random"\ndecomposition__size = 8\ndecomposition__redraw_every = 2\n',
        encoding="utf-8",
    )
    planned = read_plan(plan).experiments[0].rows[0].runs[0].settings
    for settings in (
        Settings.from_names(nested),
        evolve(*data, **nested, **short).settings,
        evolve(*data, start, control__memory_size=10, decomposition__redraw_every=2).settings,
        Settings(**planned),
    ):
        assert (settings.control, settings.decomposition) == expected


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"popsize": 20}, ValueError, "the setting='popsize' is unknown; .*population_size"),
        ({"control": "magic"}, ValueError, "control='magic' is unknown; choose one of fixed, dit"),
        ({"control": None}, TypeError, "control must be one of fixed, dither, .* got None"),
        ({"strategy": None}, TypeError, "strategy must be one of rand/1, .* got None"),
        ({"strategy": ""}, ValueError, "strategy='' is unknown"),
        ({"decomposition": None}, TypeError, "decomposition must be one of whole, .* got None"),
        ({"control__size": 3}, ValueError, "the setting of control=fixed='size' is unknown"),
        (
            {"control": "shade", "control__size": 3},
            ValueError,
            "the setting of control=shade='size' is unknown; choose one of memory_size",
        ),
        ({"decomposition__size": 3}, ValueError, "decomposition='neuron' has no setting 'size'"),
        ({"extensions__rate": 3}, ValueError, "extensions='auto' has no setting 'rate'"),
        ({"fitness__beta": 3}, ValueError, "the setting before __='fitness' is unknown"),
        ({"control": "shade(memory=3)"}, TypeError, r"control='shade\(memory=3\)': .*memory"),
        ({"control": "shade(memory_size=0)"}, ValueError, "memory_size must be at least 1"),
        ({"extensions": 3}, TypeError, "extensions must be a list of extensions or their names"),
        ({"extensions": None}, TypeError, "extensions must be a list of extensions or their na"),
        ({"extensions": ["rain"]}, ValueError, "extensions='rain' is unknown; .* batch_growth"),
        ({"extensions": [3]}, TypeError, "extensions must be one of batch_growth, .* got 3"),
        (
            {"extensions": ["weight_decay", WeightDecay(0.5)]},
            ValueError,
            "extensions holds 'weight_decay' twice",
        ),
        ({"scale_initial_range": 1}, TypeError, "scale_initial_range must be True or False"),
    ],
)
def test_what_cannot_be_understood_is_named(given, error, message):
    with pytest.raises(error, match=message):
        Settings.from_names(given)


@pytest.mark.parametrize(
    ("old", "value", "now"),
    [
        ("group_size", 5, {"decomposition": "random", "decomposition__size": 5}),
        ("redraw_groups_every", 5, {"decomposition": "random", "decomposition__redraw_every": 5}),
        ("redraw_probability", 0.5, {"control": "jde", "control__redraw_probability": 0.5}),
        ("memory_size", 5, {"control": "shade", "control__memory_size": 5}),
        ("pbest_share", 0.5, {"strategy": "current-to-pbest/1", "strategy__share": 0.5}),
        ("archive_rate", 0.5, {"strategy": "current-to-pbest/1", "strategy__archive_rate": 0.5}),
        ("crossover", "exponential", {"strategy__crossover": "exponential"}),
        ("synchronous", False, {"strategy__synchronous": False}),
        ("accept_ties", False, {"strategy__accept_ties": False}),
        (
            "scale_factor_range",
            (0.1, 0.2),
            {"control": "dither", "control__low": 0.1, "control__high": 0.2},
        ),
        ("weight_decay", 0.1, {"extensions": [WeightDecay(0.1)]}),
        ("final_population_size", 5, {"extensions": [PopulationReduction(5)]}),
        ("final_batch_size", 600, {"extensions": [BatchGrowth(600)]}),
    ],
)
def test_a_setting_that_has_moved_says_where_it_is_now(old, value, now):
    with pytest.raises(ValueError, match=f"the setting '{old}' is now ") as caught:
        Settings.from_names({old: value})
    Settings.from_names(now)  # and that is true
    for name, setting in now.items():
        if "__" in name:
            assert name in str(caught.value)
        if name == "extensions":
            assert f"extensions=[{type(setting[0]).__name__}(" in str(caught.value)


def test_every_moved_setting_is_tested():
    function = test_a_setting_that_has_moved_says_where_it_is_now
    cases = next(mark for mark in function.pytestmark if mark.name == "parametrize").args[1]
    assert {case[0] for case in cases} == MOVED.keys()


def test_settings_are_compared_and_changed_as_values():
    assert Settings(control="shade") == Settings(control=SHADE())
    assert Settings(control="shade") != Settings(control=SHADE(6))
    assert replace(Settings(control="shade"), seed=3).control == SHADE()


def test_every_setting_is_described():
    described = describe_settings()
    assert list(described) == [field.name for field in fields(Settings)]
    assert all(described.values())


@pytest.mark.parametrize(
    ("value", "error"),
    [("often", ValueError), (0, ValueError), (2.5, TypeError), (None, TypeError)],
)
def test_a_validate_every_that_makes_no_sense(value, error):
    with pytest.raises(error, match="validate_every must be"):
        Settings(validate_every=value)


def test_smoothing_does_not_validate_after_each_replacement():
    with pytest.raises(ValueError, match="moves all neurons at once: validate_every"):
        Settings(strategy="smoothing", validate_every="replacement")
