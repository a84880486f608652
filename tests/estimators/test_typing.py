"""Type checkers see the signatures of the estimators' methods."""

import os
from pathlib import Path

import pytest

import coevo

SNIPPET = """
from typing import assert_type

from coevo import CoevoClassifier, CoevoRegressor

X, y = [[0.0], [1.0]], [0, 1]
assert_type(CoevoClassifier().fit(X, y), CoevoClassifier)
assert_type(CoevoRegressor().fit(X, y, X_val=X, y_val=y), CoevoRegressor)
assert_type(CoevoClassifier().partial_fit(X, y, classes=[0, 1]), CoevoClassifier)
CoevoClassifier().fit(X, y, X_valid=X)
"""


def test_fit_is_typed(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    monkeypatch.setenv("MYPYPATH", os.fspath(Path(coevo.__file__).parents[1]))
    monkeypatch.chdir(tmp_path)  # away from the project's settings
    found, _, status = api.run(
        ["--follow-imports=silent", "--ignore-missing-imports", "snippet.py"]
    )
    assert status == 1
    (error,) = [line for line in found.splitlines() if "error" in line and "snippet" in line]
    assert error.startswith("snippet.py:10")
    assert 'Unexpected keyword argument "X_valid" for "fit"' in error
