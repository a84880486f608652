"""Keeps the tests away from the data sets of the machine."""

import pytest


@pytest.fixture(autouse=True)
def _no_default_folder(monkeypatch, tmp_path):
    """Whatever the machine has, only tests that name a folder see it."""
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nowhere"))
