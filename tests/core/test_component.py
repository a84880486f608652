"""Components: names, texts and objects stand for the same, and nested names reach inside."""

import pickle
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from sklearn.base import clone

from coevo.core.component import Component, find_component, nest


@dataclass
class Kettle(Component):
    name: ClassVar[str] = "kettle"
    litres: float = 1.5
    colour: str = "red"

    def __post_init__(self):
        if self.litres <= 0:
            raise ValueError("litres must be above 0")


@dataclass
class Pot(Component):
    name: ClassVar[str] = "pot/2"
    sizes: tuple = (1, 2)
    notes: list = field(default_factory=list)


KNOWN = {"kettle": Kettle, "pot/2": Pot}


def find(given, setting=""):
    return find_component("vessel", given, KNOWN, Component)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("kettle", Kettle()),
        (" kettle ", Kettle()),
        ("kettle()", Kettle()),
        ("kettle(litres=2)", Kettle(2)),
        ("kettle(2, 'blue')", Kettle(2, "blue")),
        ("kettle(\n    litres=2.5,\n    colour='a (b)',\n)", Kettle(2.5, "a (b)")),
        ("pot/2(sizes=(3, 4))", Pot((3, 4))),
        (Kettle(7), Kettle(7)),
    ],
)
def test_a_name_a_text_and_an_object(given, expected):
    assert find(given) == expected


def test_an_object_is_taken_as_it_is():
    kettle = Kettle()
    assert find(kettle) is kettle


@pytest.mark.parametrize(
    "component", [Kettle(), Kettle(2.5), Kettle(0.1, "it's"), Pot(), Pot((5,), ["a"])], ids=str
)
def test_the_text_of_a_component_is_read_back(component):
    assert find(str(component)) == component


def test_the_text_is_short():
    assert str(Kettle()) == "kettle"
    assert str(Kettle(colour="blue")) == "kettle(colour='blue')"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("cup", ValueError, "vessel='cup' is unknown; choose one of kettle, pot/2"),
        ("cup(litres=1)", ValueError, "vessel='cup' is unknown"),
        (None, TypeError, "vessel must be one of kettle, pot/2, or a Component object, got None"),
        (Kettle, TypeError, "vessel must be one of kettle, pot/2, or a Component object"),
        ("kettle(litres)", ValueError, r"cannot be read; write it as kettle\(setting=value, ...\)"),
        ("kettle(litres=open('x'))", ValueError, "cannot be read"),
        ("kettle(litres=1) or 1/0", ValueError, "is unknown"),
        ("kettle(litres=1)(2)", ValueError, "cannot be read"),
        ("kettle() + kettle(2)", ValueError, "cannot be read"),
        ("kettle(litres=", ValueError, "is unknown"),
        ("kettle(size=2)", TypeError, r"vessel='kettle\(size=2\)': .*size"),
        ("kettle(litres=0)", ValueError, "litres must be above 0"),
        ("kettle(**{'litres': 2})", (TypeError, ValueError), "kettle"),
    ],
)
def test_what_cannot_be_found_is_named(given, error, message):
    with pytest.raises(error, match=message):
        find(given)


def test_settings_are_got_set_and_cloned_as_scikit_learn_does():
    kettle = Kettle()
    assert kettle.get_params() == {"litres": 1.5, "colour": "red"}
    assert kettle.set_params(litres=3) is kettle
    assert kettle.litres == 3
    copy = clone(kettle)
    assert copy == kettle
    assert copy is not kettle
    assert pickle.loads(pickle.dumps(kettle)) == kettle


def test_a_failed_set_params_changes_nothing():
    kettle = Kettle()
    with pytest.raises(ValueError, match="the setting of kettle='size' is unknown"):
        kettle.set_params(colour="blue", size=3)
    with pytest.raises(ValueError, match="litres must be above 0"):
        kettle.set_params(colour="blue", litres=-1)
    assert kettle == Kettle()


FIND = {"vessel": find, "plate": lambda given, setting: given}
DEFAULTS = {"vessel": "kettle", "plate": "round"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        ({"vessel__litres": 2}, {"vessel": Kettle(2)}),
        ({"vessel__litres": 2, "vessel__colour": "b"}, {"vessel": Kettle(2, "b")}),
        ({"vessel__sizes": (9,), "vessel": "pot/2"}, {"vessel": Pot((9,))}),
        ({"vessel": "kettle(4)", "vessel__colour": "b"}, {"vessel": Kettle(4, "b")}),
    ],
)
def test_nested_names_change_the_component_they_belong_to(settings, expected):
    assert nest(settings, FIND, DEFAULTS) == expected


def test_an_object_that_is_nested_into_is_not_changed():
    kettle = Kettle()
    assert nest({"vessel": kettle, "vessel__litres": 2}, FIND, DEFAULTS) == {"vessel": Kettle(2)}
    assert kettle == Kettle()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cup__litres": 2}, "the setting before __='cup' is unknown; .* vessel, plate"),
        ({"vessel__size": 2}, "the setting of vessel=kettle='size' is unknown; .* litres, colour"),
        ({"plate__size": 2}, "plate='round' has no setting 'size'"),
        ({"vessel__litres": -1}, "litres must be above 0"),
    ],
)
def test_nested_names_that_lead_nowhere(settings, message):
    with pytest.raises(ValueError, match=message):
        nest(settings, FIND, DEFAULTS)
