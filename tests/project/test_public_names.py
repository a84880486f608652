"""`import coevo` gives every public name, and imports nothing heavy until one is used."""

import subprocess
import sys

import pytest

import coevo


@pytest.mark.parametrize("name", coevo.__all__)
def test_each_public_name_is_there(name):
    assert getattr(coevo, name) is not None
    assert name in dir(coevo)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'measures'"):
        _ = coevo.measures


def test_models_have_short_names():
    from coevo.core import metrics
    from coevo.persistence import model

    assert coevo.load_model is model.load
    assert coevo.save_model is model.save
    assert coevo.metrics is metrics


def test_import_is_quick():
    code = "import sys, coevo; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"numpy", "numba", "sklearn", "matplotlib"} & set(done.stdout.split())
