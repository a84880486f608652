"""The baseline of the benchmarks: full forward passes of 20 networks in batched NumPy.

It computes accuracies only: no random numbers, no selection, no validation. The first layers of all
networks are one matrix product, each later layer is a stacked product, and memory is reused.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from coevo._typing import Array

N_NETWORKS = 20


class Baseline:
    """Twenty random networks and a batch of random instances."""

    def __init__(self, layer_sizes: tuple[int, ...], batch_size: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n_inputs, *neurons = layer_sizes
        self.inputs = rng.uniform(-1, 1, (n_inputs, batch_size)).astype(np.float32)
        self.targets = rng.integers(neurons[-1], size=batch_size)
        self.weights, self.biases, self.pre_activations = [], [], []
        for fan_in, size in zip(layer_sizes[:-1], neurons, strict=True):
            shape = (N_NETWORKS, size, fan_in)
            self.weights.append(rng.uniform(-4, 4, shape).astype(np.float32))
            self.biases.append(rng.uniform(-4, 4, (N_NETWORKS, size, 1)).astype(np.float32))
            self.pre_activations.append(np.empty((N_NETWORKS, size, batch_size), dtype=np.float32))

    def run(self) -> Array:
        """Return the accuracy of each network."""
        first, *later = self.weights
        flat = self.pre_activations[0].reshape(-1, self.pre_activations[0].shape[-1])
        np.matmul(first.reshape(-1, first.shape[-1]), self.inputs, out=flat)
        self.pre_activations[0] += self.biases[0]
        for depth, weights in enumerate(later, start=1):
            below = self.pre_activations[depth - 1]
            np.tanh(below, out=below)
            np.matmul(weights, below, out=self.pre_activations[depth])
            self.pre_activations[depth] += self.biases[depth]
        return np.asarray((self.pre_activations[-1].argmax(axis=1) == self.targets).mean(axis=1))

    def rate(self, seconds: float = 1.0) -> float:
        """Return evaluations per second, by the median time of a pass.

        Small products can be faster on one core than on all; the faster of the two is taken.
        """
        times = [median_time(self.run, seconds / 2)]
        with threadpool_limits(1, user_api="blas"):
            times.append(median_time(self.run, seconds / 2))
        return N_NETWORKS / min(times)


def median_time(function: Callable[[], object], seconds: float) -> float:
    """Return the median time of a call, over `seconds` of calls after two for warming up."""
    function()
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sgemm_rate(seconds: float = 1.0, size: int = 2048) -> float:
    """Return the rate of a large float32 matrix product on this machine, in FLOP/s."""
    rng = np.random.default_rng(0)
    left, right = rng.random((2, size, size), dtype=np.float32)
    product = np.empty_like(left)
    return 2 * size**3 / median_time(lambda: np.matmul(left, right, out=product), seconds)
