"""The benchmark measures complete runs beside the baseline."""

import numpy as np
import pytest

from coevo.diagnostics import bench
from coevo.diagnostics.baseline import N_NETWORKS, Baseline


def test_baseline_is_a_forward_pass():
    baseline = Baseline((3, 4, 2), 50, seed=1)
    weights, biases = baseline.weights, baseline.biases
    expected = []
    for network in range(N_NETWORKS):
        hidden = np.tanh(weights[0][network] @ baseline.inputs + biases[0][network])
        logits = weights[1][network] @ hidden + biases[1][network]
        expected.append((logits.argmax(axis=0) == baseline.targets).mean())
    assert baseline.run().tolist() == pytest.approx(expected)
    assert baseline.run().tolist() == pytest.approx(expected)  # memory is reused


@pytest.mark.parametrize("text", ["3", "3-0-2", "3-4-1", "a-b", "3--2", "-3-2", "3-4-2 ", "٣-2"])
def test_bad_shapes_are_refused(text):
    with pytest.raises(ValueError, match="--shape must"):
        bench.parse_shape(text)


def test_shape():
    assert bench.parse_shape("30-50-2") == (30, 50, 2)
    assert bench.parse_shape("4-2") == (4, 2)


def test_busy_machine_is_told(monkeypatch):
    monkeypatch.setattr(bench.os, "getloadavg", lambda: (9.0, 0, 0), raising=False)
    monkeypatch.setattr(bench, "available_cores", lambda: 2)
    assert "load 9.0 on 2 cores" in bench._busy()
    monkeypatch.setattr(bench, "available_cores", lambda: 16)
    assert bench._busy() is None
