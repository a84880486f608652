"""What is recorded of the libraries that a run depends on."""

import os
import platform
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info

from coevo.diagnostics import environment


def test_the_kernels_of_blas_are_among_the_versions():
    numpys = next(lib for lib in threadpool_info() if "numpy" in lib["filepath"])
    assert environment.versions()["blas"].startswith(f"{numpys['internal_api']} ")
    if numpys["internal_api"] == "openblas":
        assert environment.versions()["blas"].endswith(numpys["architecture"])


@pytest.mark.parametrize("kernels", ["Haswell", "Sandybridge"])
def test_other_kernels_are_another_version(kernels):
    is_openblas = environment.blas_libraries()[0]["internal_api"] == "openblas"
    if not is_openblas or platform.machine() != "x86_64":
        pytest.skip("needs OpenBLAS with kernels for these processors")
    program = "from coevo.diagnostics.environment import versions; print(versions()['blas'])"
    found = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "OPENBLAS_CORETYPE": kernels},
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    assert found.strip().endswith(kernels)
