"""Kernels are compiled when they are called, for the callers that they have."""

import gc
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from coevo.runtime.jit import Choice, compilations, compiled, compiled_with, watching


class Length(NamedTuple):
    value: float


class Area(NamedTuple):
    width: float
    height: float


@compiled
def measure_length(length, into):
    into[0] = length.value


@compiled
def measure_area(area, into):
    into[0] = area.width * area.height


measure = Choice({Length: measure_length, Area: measure_area})


@compiled_with("reassoc")
def add_up(values):
    total = np.float32(0)
    for k in range(len(values)):
        total += values[k]
    return total


@compiled
def add_up_and_measure(values, shape, into):
    measure(shape, into)
    return add_up(values) + into[0]


@pytest.fixture(autouse=True)
def _compiles(no_jit):
    if no_jit:
        pytest.skip("nothing is compiled")


@pytest.fixture
def values():
    return np.random.default_rng(1).random(1000, dtype=np.float32)


def test_settings_estimators_and_engines_do_not_import_numba():
    code = """
import sys, coevo, coevo.engines.delta, coevo.training.run
coevo.Settings(fitness="accuracy"), coevo.CoevoClassifier(), coevo.Checkpoint
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_kernel_is_compiled_for_its_callers_only(values):
    into = np.zeros(1)
    assert add_up_and_measure(values, Area(2.0, 3.0), into) == pytest.approx(values.sum() + 6)
    if add_up_and_measure.entry.stats.cache_hits:
        pytest.skip("an earlier run has compiled the caller, with what it calls")
    assert len(add_up_and_measure.entry.signatures) == len(measure_area.inner.signatures) == 1
    assert not measure_area.entry.signatures  # Python has not called it
    assert not measure_length.inner.signatures  # the type was another


def test_python_calls_the_kernel_for_the_type():
    into = np.zeros(1)
    measure(Length(5.0), into)
    assert into == 5
    measure(Area(5.0, 2.0), into)
    assert into == 10
    with pytest.raises(KeyError):
        measure("something else", into)


def test_a_kernel_with_fast_math_has_the_same_bits_whoever_calls_it(values):
    assert add_up_and_measure(values, Length(0.0), np.zeros(1)) == add_up(values)


def test_a_kernel_keeps_its_name_and_documentation():
    assert (add_up.__name__, add_up.__module__) == ("add_up", __name__)
    assert compiled(test_python_calls_the_kernel_for_the_type).py_func.__doc__ is None


def test_what_is_compiled_is_told_and_garbage_is_collected_again():
    told, was_collecting = [], []

    def tell(name):
        told.append(name)
        was_collecting.append(gc.isenabled())

    @compiled
    def inner_one(x):
        return x + 1

    @compiled
    def outer_one(x):
        return inner_one(x) + 1

    seconds = compilations.seconds
    with watching(tell):
        assert outer_one(1) == 3
    assert outer_one(1.0) == 3
    assert told == ["outer_one", "inner_one"]
    assert was_collecting == [False, False]
    assert gc.isenabled()
    assert compilations.seconds > seconds
