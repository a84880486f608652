"""Examines this machine: versions, BLAS, threads, speed, cached kernels."""

from __future__ import annotations

import os
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from coevo.core import operators
from coevo.diagnostics.baseline import sgemm_rate
from coevo.diagnostics.environment import available_cores, blas_libraries, machine, versions
from coevo.runtime import threads
from coevo.runtime.jit import cache_folder, watching
from coevo.training.evolve import evolve

EXTRAS = {
    "pandas": "tables",
    "pyarrow": "Parquet files, extra coevo[parquet]",
    "onnx": "export, extra coevo[onnx]",
    "distributed": "studies on a cluster, extra coevo[dask]",
}
"""Optional packages and their use."""


def examine() -> dict[str, Any]:
    """Return all findings as JSON values."""
    optional: dict[str, str | None] = {}
    for package in EXTRAS:
        try:
            optional[package] = version(package)
        except PackageNotFoundError:
            optional[package] = None
    return {
        "versions": versions(),
        "optional": optional,
        "machine": machine(threads.available_threads()),
        "cores": available_cores(),
        "blas": blas_libraries(),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.endswith(("_NUM_THREADS", "_CORETYPE")) or name.startswith("NUMBA_")
        },
        "sgemm_flops": sgemm_rate(1.0, 1024),
        "kernels": try_kernels(),
    }


def try_kernels() -> dict[str, Any]:
    """Make a tiny run; return what Numba compiled for it, its seconds and the cache's folder."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3))
    y = (X.sum(axis=1) > 0).astype(int)
    compiled: list[str] = []
    began = time.perf_counter()
    with watching(compiled.append):
        evolve(
            X[:40], y[:40], X[40:], y[40:],
            hidden_layer_sizes=(3,), batch_size=20, max_evaluations=500, seed=1,
        )  # fmt: skip
    seconds = time.perf_counter() - began
    folder = cache_folder(operators._cross_binomial)
    return {
        "compiled_now": compiled,
        "seconds": seconds,
        "folder": None if folder is None else str(folder),
    }


def describe(findings: dict[str, Any]) -> list[str]:
    """Return the findings as lines."""
    host, kernels = findings["machine"], findings["kernels"]
    packages = {n: found for n, found in findings["versions"].items() if n != "blas"}
    lines = [f"{name:<14} {found}" for name, found in packages.items()]
    lines += [
        f"{name:<14} {found or 'not installed'} ({EXTRAS[name]})"
        for name, found in findings["optional"].items()
    ]
    lines.append(f"{'machine':<14} {host['system']}, {host['processor']}, {host['cores']} cores")
    for library in findings["blas"]:
        lines.append(
            f"{'BLAS':<14} {library['internal_api']} {library['version']}, kernels for "
            f"{library['architecture'] or 'an unknown processor'}, "
            f"{library['num_threads']} threads"
        )
    lines += [f"{'set':<14} {name}={value}" for name, value in findings["environment"].items()]
    lines.append(f"{'SGEMM':<14} {findings['sgemm_flops'] / 1e9:.0f} GFLOP/s")
    compiled, seconds = kernels["compiled_now"], kernels["seconds"]
    if kernels["folder"] is None:
        state = "not kept: each process compiles for itself (no folder can be written to)"
    elif compiled:
        state = f"{len(compiled)} compiled just now in {seconds:.0f} s, kept in {kernels['folder']}"
    else:
        state = f"cached in {kernels['folder']}; a tiny run took {seconds:.1f} s"
    lines.append(f"{'kernels':<14} {state}")
    return lines
