"""Measures the speed of complete runs, and of batched NumPy for the same network."""

from __future__ import annotations

import os
import re
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coevo.core.settings import Settings
from coevo.diagnostics.baseline import Baseline, sgemm_rate
from coevo.diagnostics.environment import available_cores
from coevo.training.evolve import evolve
from coevo.training.variants import variant_settings

_N_INSTANCES = 5000


@dataclass(frozen=True)
class Speed:
    """A measurement of speed.

    Parameters
    ----------
    evaluations_per_second
        Of complete runs: random numbers, selection and validation included.
    numpy_evaluations_per_second
        Of bare forward passes of 20 networks at once in NumPy.
    sgemm_flops
        Rate of a large float32 matrix product on this machine, in FLOP/s.
    """

    shape: str
    batch_size: int
    population_size: int
    variant: str
    evaluations_per_second: float
    numpy_evaluations_per_second: float
    sgemm_flops: float

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        ratio = self.evaluations_per_second / self.numpy_evaluations_per_second
        return asdict(self) | {"ratio": ratio, "busy": _busy()}


def _busy() -> str | None:
    """Return a warning if other processes use the machine, which slows threads down."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    cores = available_cores()
    if load <= cores + 0.5:
        return None
    return f"the machine is busy (load {load:.1f} on {cores} cores), so all figures are low"


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the sizes of a shape such as 30-50-2: inputs, hidden neurons, outputs."""
    if not re.fullmatch(r"[1-9]\d{0,5}(-[1-9]\d{0,5})+", text):
        raise ValueError(f"--shape must be sizes as in 30-50-2, got {text!r}")
    sizes = tuple(map(int, text.split("-")))
    if sizes[-1] < 2:
        raise ValueError(f"--shape must end in two outputs or more, got {text!r}")
    return sizes


def measure(
    shape: tuple[int, ...],
    *,
    variant: str = "LECCDE",
    batch_size: int = 500,
    population_size: int = 20,
    seconds: float = 5.0,
) -> Speed:
    """Measure complete runs and the baseline alternately, so that noise affects both.

    Parameters
    ----------
    shape
        Inputs, hidden neurons of each layer, outputs.
    variant, batch_size, population_size
        As in `coevo.Settings`.
    seconds
        Duration of the measurement, without compilation.
    """
    settings = variant_settings(
        variant,
        hidden_layer_sizes=shape[1:-1],
        batch_size=batch_size,
        population_size=population_size,
        max_evaluations=None,
        max_seconds=seconds / 6,
        seed=0,
    )
    baseline = Baseline(shape, batch_size)
    _evolve(shape, settings, max_generations=1)  # compiles
    ours: list[float] = []
    theirs: list[float] = []
    products: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not ours:
        evaluations, taken = _evolve(shape, settings)
        ours.append(evaluations / taken)
        theirs.append(baseline.rate(seconds / 10))
        products.append(sgemm_rate(seconds / 20, 1024))
    return Speed(
        "-".join(map(str, shape)),
        batch_size,
        population_size,
        variant,
        float(np.median(ours)),
        float(np.median(theirs)),
        float(np.median(products)),
    )


def _evolve(shape: tuple[int, ...], settings: Settings, **changes: Any) -> tuple[int, float]:
    """Run on random instances; return evaluations and seconds."""
    rng = np.random.default_rng(1)
    n_instances = max(_N_INSTANCES, 2 * int(settings.batch_size))
    X = rng.uniform(-1, 1, (n_instances, shape[0])).astype(np.float32)
    y = (X @ rng.normal(size=(shape[0], shape[-1])).astype(np.float32)).argmax(axis=1)
    y[: shape[-1]] = np.arange(shape[-1])  # every class occurs
    n_valid = n_instances // 5
    parts = (X[:-n_valid], y[:-n_valid], X[-n_valid:], y[-n_valid:])
    result = evolve(*parts, settings, **changes)
    return result.evaluations, result.seconds
