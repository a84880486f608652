"""The file format of checkpoints: bad files are refused whole."""

import dataclasses
import json
import pickle
import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from coevo import evolve
from coevo.core.state import SearchState
from coevo.persistence import checkpoint, freezing, model
from coevo.persistence.checkpoint import CheckpointError, load
from coevo.persistence.container import pack

SMALL = {
    "hidden_layer_sizes": (4,), "batch_size": 12, "population_size": 6, "max_generations": 12,
    "n_threads": 1, "seed": 5, "extensions": (), "validate_every": "replacement",
}  # fmt: skip
OLD = Path(__file__).parent / "version_0_1"


def test_every_field_of_the_state_is_kept():
    known = {*freezing.COUNTERS, *freezing.REALS, *freezing.ARRAYS}
    known |= {"rng", "batches", "subpopulations", "memories", "history"}
    assert {field.name for field in dataclasses.fields(SearchState)} == known


# --------------------------------------------------------------------------------------- bad files


@pytest.fixture
def good(path, data):
    evolve(*data, **SMALL | {"max_generations": 2}, checkpoint=path)
    return path.read_bytes()


def refuse(path, content, message=None):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        load(path)
    assert path.name in str(caught.value)


def test_every_truncation_is_refused(path, good):
    for length in [*range(256), *range(256, len(good), 41), len(good) - 1]:
        refuse(path, good[:length])
    refuse(path, good + b"\0", "should have")


def test_flipped_bits_are_refused(path, good):
    generator = random.Random(1)
    places = [*range(8 * 60), *(generator.randrange(8 * len(good)) for _ in range(600))]
    for place in places:
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        refuse(path, bytes(damaged))


def test_foreign_files_are_refused(path, good, data):
    network = evolve(*data, **SMALL | {"max_generations": 1}).network
    model.save(path.with_name("model"), network)
    others = [
        b"", b"hello", pickle.dumps({"state": 1}), bytes(4096), good[52:],
        path.with_name("model").read_bytes(),
    ]  # fmt: skip
    for other in others:
        refuse(path, other, "this is not a checkpoint of coevo")


def forge(payload, version=checkpoint.FORMAT_VERSION):
    sha = checkpoint._digest(version, payload)
    return checkpoint._PREFIX.pack(checkpoint._MAGIC, version, len(payload), sha) + payload


def test_a_newer_version_is_refused(path, good):
    message = "has format version 3, and this version of coevo reads version 2 only"
    refuse(path, forge(good[52:], 3), message)


def test_a_checkpoint_of_version_0_1_is_refused_with_what_to_do(path, data):
    path.write_bytes((OLD / "run.checkpoint").read_bytes())
    message = "has format version 1, .* finish the run with coevo 0.1, .* or remove the file"
    with pytest.raises(CheckpointError, match=message):
        evolve(*data, **SMALL, checkpoint=path, resume=True)
    assert path.read_bytes() == (OLD / "run.checkpoint").read_bytes()


@pytest.fixture
def pack_with(path, good):
    """Return a checkpoint with another content, whose digest is right."""
    path.write_bytes(good)
    saved = load(path)
    values, arrays = freezing.freeze(saved.state)
    arrays |= {f"memory.{name}": array for name, array in saved.memory.items()}

    def pack_with(values=values, arrays=arrays, **changes):
        contents = {"state": values, "fingerprint": dataclasses.asdict(saved.fingerprint)} | changes
        return forge(pack(arrays, {name: json.dumps(text) for name, text in contents.items()}))

    pack_with.values, pack_with.arrays = values, arrays
    return pack_with


def test_content_that_makes_no_sense_is_refused(path, pack_with):
    values, arrays = pack_with.values, pack_with.arrays
    path.write_bytes(pack_with())
    load(path)
    for name in [name for name in arrays if not name.startswith("memory.")]:
        refuse(path, pack_with(values, {k: v for k, v in arrays.items() if k != name}), "malformed")
    for name in values:
        refuse(path, pack_with({k: v for k, v in values.items() if k != name}), "malformed")
    refuse(path, pack_with(values, arrays | {"fitness": arrays["fitness"][1:]}), "contradict")
    refuse(path, pack_with(values | {"extensions": {"jde": ["places"]}}), "malformed")
    refuse(path, pack_with(values | {"extensions": ["jde"]}), "malformed")
    refuse(path, pack_with(values | {"bit_generator": "PCG64"}), "malformed")
    refuse(path, pack_with([1]), "malformed")
    refuse(path, pack_with(fingerprint={"arguments": 1}), "malformed")
    refuse(path, forge(b""), "damaged")
    refuse(path, forge(struct.pack("<Q", 2) + b"[]"), "not a JSON dict")


HUGE = 10**30


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("generation", -HUGE, "generation"), ("generation", HUGE, "generation"),
        ("generation", 1.5, "generation"), ("generation", True, "generation"),
        ("evaluations", -1, "evaluations"), ("evaluations", 0, "evaluations"),
        ("best_generation", 99, "best_generation"), ("best_generation", -HUGE, "best_generation"),
        ("seconds", float("nan"), "seconds"), ("seconds", float("inf"), "seconds"),
        ("seconds", -1.0, "seconds"), ("seconds", "1", "seconds"), ("seconds", HUGE**20, "seconds"),
        ("best_validation", float("nan"), "best_validation"),
        ("best_validation", HUGE**20, "best_validation"),
        ("n_batches", 0, "batches"), ("n_batches", -HUGE, "batches"),
        ("n_batches", HUGE, "batches"), ("position", HUGE, "batches"),
        ("reshuffles", "no", "batches"),
        ("n_blocks", HUGE, "malformed"), ("n_blocks", -1, "malformed"),
        ("has_uint32", HUGE, "malformed"), ("uinteger", -HUGE, "malformed"),
        ("uinteger", "x", "malformed"),
    ],
)  # fmt: skip
def test_crafted_values_are_refused_by_name(path, pack_with, name, value, message):
    refuse(path, pack_with(pack_with.values | {name: value}), message)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("global_solution", lambda a: a * np.nan, "global_solution holds numbers that are not"),
        ("best_network", lambda a: a + np.inf, "best_network holds numbers that are not finite"),
        ("subpopulations.0", lambda a: a * np.nan, "subpopulations hold NaN"),
        ("subpopulations.0", lambda a: a.astype(np.int64), "subpopulations"),
        ("subpopulations.0", lambda a: a[0], "malformed"),
        ("global_solution", lambda a: a.astype(np.float64), "contradict"),
        ("fitness", lambda a: a.astype(np.float32), "fitness"),
        ("fitness", lambda a: a[:, :0], "contradict"),
        ("champions", lambda a: a + 1000, "champions"),
        ("champions", lambda a: a - 1000, "champions"),
        ("champions", lambda a: a.astype(float), "champions"),
        ("batches", lambda a: a + 10**9, "batches"),
        ("batches", lambda a: a[:0], "batches"),
        ("batches", np.zeros_like, "batches"),
        ("batches", lambda a: a.astype(float), "batches"),
        ("rng", lambda a: a[:2], "malformed"),
        ("rng", lambda a: a.astype(float), "malformed"),
        ("history.stride", lambda a: a * 0, "history"),
        ("history.stride", lambda a: -a, "history"),
        ("history.rows", lambda a: a[:, :2], "history"),
        ("history.rows", lambda a: np.zeros((10**5, 6)), "history"),
        ("history.latest", lambda a: a * np.nan, "history"),
        ("history.latest", lambda a: a + 1, "history"),
        ("history.latest", lambda a: a[:3], "history"),
    ],
)  # fmt: skip
def test_crafted_arrays_are_refused_by_name(path, pack_with, name, change, message):
    changed = {name: change(pack_with.arrays[name])}
    refuse(path, pack_with(arrays=pack_with.arrays | changed), message)


@pytest.mark.parametrize(
    "change",
    [
        {"global_solution": lambda a: a[:-1], "best_network": lambda a: a[:-1]},
        {"batches": lambda a: np.append(a, len(a))},
        {"memory.": lambda a: a[..., :-1]},
        {"fitness": lambda a: np.repeat(a, 2, 1), "subpopulations": lambda a: np.repeat(a, 2, 1)},
        {"subpopulations": lambda a: a.astype(float), "global_solution": lambda a: a.astype(float),
         "best_network": lambda a: a.astype(float)},
    ],
    ids=["genes", "instances", "memory", "population size", "dtype"],
)  # fmt: skip
def test_a_state_that_does_not_fit_the_run_is_refused(path, data, pack_with, change):
    arrays = dict(pack_with.arrays)
    for start, function in change.items():
        arrays |= {n: function(a) for n, a in arrays.items() if n.startswith(start)}
    path.write_bytes(pack_with(arrays=arrays))
    with pytest.raises(CheckpointError, match=r"contradict|does not fit"):
        evolve(*data, **SMALL, checkpoint=path, resume=True)


def test_a_fingerprint_that_is_malformed_is_refused(path, pack_with):
    for changes in ({"seed": "x"}, {"seed": -1}, {"engine": 1}, {"arguments": []}, {"data": 1}):
        path.write_bytes(pack_with())
        fingerprint = dataclasses.asdict(load(path).fingerprint) | changes
        refuse(path, pack_with(fingerprint=fingerprint), "fingerprint")


def test_an_absurd_size_takes_no_memory(path):
    size = 2**40
    with open(path, "wb") as file:  # a sparse file that claims to be whole
        prefix = checkpoint._PREFIX
        file.write(
            prefix.pack(checkpoint._MAGIC, checkpoint.FORMAT_VERSION, size - prefix.size, bytes(32))
        )
        file.truncate(size)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="damaged"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("extensions.archive.counts", lambda a: a + 1000),
        ("extensions.archive.counts", lambda a: a - 1000),
        ("extensions.archive.counts", lambda a: a[1:]),
        ("extensions.archive.counts", lambda a: a.astype(float)),
        ("extensions.shade.places", lambda a: a[1:]),
        ("extensions.turnover.order", lambda a: a[1:]),
        ("extensions.turnover.order", lambda a: a * 0),
        ("extensions.shade.places", lambda a: a + 1000),
        ("extensions.shade.places", lambda a: a - 1000),
        ("extensions.shade.places", lambda a: a.astype(float)),
        ("extensions.shade.scale_factors", lambda a: a[:, 1:]),
        ("extensions.shade.scale_factors", lambda a: a.astype(np.int64)),
        ("extensions.shade.scale_factors", lambda a: a * np.nan),
        ("extensions.shade.crossover_rates", lambda a: a + np.inf),
        ("extensions.shade.crossover_rates", lambda a: -a - 1),
    ],
)
def test_extensions_whose_memory_makes_no_sense_are_refused(path, data, name, change):
    settings = SMALL | {
        "control": "shade", "strategy": "current-to-pbest/1", "extensions": ["turnover"],
    }  # fmt: skip
    evolve(*data, **settings | {"max_generations": 2}, checkpoint=path)
    saved = load(path)
    values, arrays = freezing.freeze(saved.state)
    arrays |= {f"memory.{key}": array for key, array in saved.memory.items()}
    assert name in arrays, sorted(arrays)
    texts = {"state": values, "fingerprint": dataclasses.asdict(saved.fingerprint)}
    texts = {key: json.dumps(text) for key, text in texts.items()}
    path.write_bytes(forge(pack(arrays | {name: change(arrays[name])}, texts)))
    with pytest.raises(CheckpointError, match="what its extensions remember contradicts"):
        evolve(*data, **settings, checkpoint=path, resume=True)
