"""The doctor's findings in words."""

from pathlib import Path

import pytest

from coevo.diagnostics import doctor


def findings(**kernels):
    return {
        "versions": {"python": "3.11"},
        "optional": {"onnx": None, "pandas": "2.2"},
        "machine": {"system": "Linux", "processor": "fast", "cores": 4, "threads": 2},
        "blas": [
            {"internal_api": "openblas", "version": "0.3", "architecture": "Zen", "num_threads": 4}
        ],
        "environment": {"OMP_NUM_THREADS": "1"},
        "sgemm_flops": 5e10,
        "kernels": {"compiled_now": [], "seconds": 0.2, "folder": "cache"} | kernels,
    }


@pytest.mark.parametrize(
    ("kernels", "state"),
    [
        ({}, "cached in cache; a tiny run took 0.2 s"),
        ({"compiled_now": ["a", "b"], "seconds": 20.0}, "2 compiled just now in 20 s"),
        ({"folder": None}, "not kept: each process compiles for itself"),
    ],
)
def test_kernels_in_words(kernels, state):
    lines = doctor.describe(findings(**kernels))
    assert state in lines[-1]
    assert any("not installed (export, extra coevo[onnx])" in line for line in lines)
    assert any("openblas 0.3, kernels for Zen, 4 threads" in line for line in lines)
    assert any("50 GFLOP/s" in line for line in lines)
    assert any("OMP_NUM_THREADS=1" in line for line in lines)


def test_the_folder_of_cached_kernels_is_found(no_jit):
    folder = doctor.try_kernels()["folder"]
    assert (folder is None) == no_jit
    if folder is not None:
        assert any(Path(folder).glob("*.nbi"))
