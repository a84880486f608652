"""Trains on a stream, a batch at a time, from a file that is never in memory as a whole.

The file holds 60,000 synthetic images of 784 pixels, noisy copies of ten prototypes. `partial_fit`
runs one generation on each batch and keeps none. The script prints the resident memory, on Linux.
Run it with

    python examples/stream.py
"""

from __future__ import annotations

import argparse
import mmap
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from coevo import CoevoClassifier

N_INSTANCES, N_PIXELS, N_CLASSES = 60_000, 784, 10
BATCH = 500
SEED = 0


def write_images(folder: Path) -> None:
    """Write images and labels, some thousand at a time."""
    rng = np.random.default_rng(SEED)
    prototypes = rng.uniform(60, 196, (N_CLASSES, N_PIXELS))
    shape = (N_INSTANCES, N_PIXELS)
    images = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.uint8, shape=shape)
    labels = rng.integers(N_CLASSES, size=N_INSTANCES)
    for start in range(0, N_INSTANCES, 2_000):
        here = slice(start, start + 2_000)
        noisy = prototypes[labels[here]] + rng.normal(0, 120, (2_000, N_PIXELS))
        images[here] = np.clip(noisy, 0, 255)
    np.save(folder / "y.npy", labels)


def read_batches(folder: Path, first: int, last: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches; the map is opened anew for each, so that read pages are released."""
    for start in range(first, last, BATCH):
        images = np.load(folder / "X.npy", mmap_mode="r")
        labels = np.load(folder / "y.npy", mmap_mode="r")
        yield np.array(images[start : start + BATCH]), np.array(labels[start : start + BATCH])


def resident_memory() -> float:
    """Return how many megabytes are resident now, NaN if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return float("nan")
    return pages * mmap.PAGESIZE / 2**20


def draw(path: Path, fitness: list[float], memory: list[float]) -> None:
    """Draw fitness and memory against the number of batches."""
    figure, panels = plt.subplots(1, 2, figsize=(6, 2.8), layout="constrained")
    for axes, values, label in zip(
        panels, (fitness, memory), ("fitness on the last batch", "resident memory, MB"), strict=True
    ):
        axes.plot(range(1, len(values) + 1), values, color="#0072B2")
        axes.set(xlabel=f"batches of {BATCH} images", ylabel=label)
    panels[1].set_ylim(0, 1.3 * max(memory))
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=110)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    n_batches = arguments.batches
    fitness, memory = [], []
    classifier = CoevoClassifier((20,), random_state=SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_images(folder)
        size = (folder / "X.npy").stat().st_size / 2**20
        print(f"a file of {size:.0f} MB; as float32 it would take {4 * size:.0f} MB")
        began = time.perf_counter()
        tested_on = N_INSTANCES - 5_000
        for number, (X, y) in enumerate(read_batches(folder, 0, tested_on), start=1):
            classifier.partial_fit(X, y, classes=np.arange(N_CLASSES))
            fitness.append(classifier.train_fitness_)
            memory.append(resident_memory())
            if number in (10, n_batches // 2, n_batches):
                seconds = time.perf_counter() - began
                print(
                    f"after {number:3} batches of {BATCH}: {resident_memory():.0f} MB resident, "
                    f"fitness {classifier.train_fitness_:.3f} on the last batch, {seconds:.1f} s"
                )
            if number == n_batches:
                break
        rest = read_batches(folder, tested_on, N_INSTANCES)
        accuracy = np.mean([classifier.score(X, y) for X, y in rest])
        print(f"accuracy {accuracy:.3f} on 5000 test images")
    if arguments.picture:
        draw(arguments.picture, fitness, memory)


if __name__ == "__main__":
    main()
