"""Converts the state of a search to plain values and arrays, and back.

As these come from a file, a state that no search can have is refused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Batches
from coevo.core.history import History
from coevo.core.state import SearchState

COUNTERS = ("best_generation", "generation", "evaluations")
REALS = ("best_validation", "seconds")
ARRAYS = ("fitness", "champions", "global_solution", "best_network")


def freeze(state: SearchState) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a state as plain values and arrays."""
    generator = state.rng.bit_generator.state
    batches = state.batches
    values: dict[str, Any] = {
        **{name: int(getattr(state, name)) for name in COUNTERS},
        **{name: float(getattr(state, name)) for name in REALS},
        "n_blocks": len(state.subpopulations),
        "extensions": {name: sorted(memory) for name, memory in state.memories.items()},
        "bit_generator": generator["bit_generator"],
        "has_uint32": int(generator["has_uint32"]),
        "uinteger": int(generator["uinteger"]),
        "n_batches": int(batches.n_batches),
        "reshuffles": bool(batches.reshuffles),
        "position": int(batches.position),
    }
    arrays = {name: getattr(state, name) for name in ARRAYS}
    arrays |= {f"subpopulations.{b}": block for b, block in enumerate(state.subpopulations)}
    for extension, memory in state.memories.items():
        arrays |= {f"extensions.{extension}.{name}": array for name, array in memory.items()}
    arrays |= {f"history.{name}": array for name, array in state.history.freeze().items()}
    arrays |= {"rng": generator["state"]["state"], "batches": batches.order}
    return values, arrays


def thaw(values: dict[str, Any], arrays: dict[str, Array]) -> tuple[SearchState, dict[str, Array]]:
    """Return the state, and the engine's memory, which is what the other arrays are."""
    _check_counts(values)
    if arrays["rng"].dtype != np.uint64:
        raise ValueError("its random generator's state is not made of whole numbers")
    bit_generator = np.random.SFC64(0)
    bit_generator.state = {
        "bit_generator": values["bit_generator"],
        "state": {"state": arrays.pop("rng")},
        "has_uint32": values["has_uint32"],
        "uinteger": values["uinteger"],
    }
    history = {name: arrays.pop(f"history.{name}") for name in ("stride", "rows", "latest")}
    _check_history(history, values)
    parts: dict[str, Any] = {
        "rng": np.random.Generator(bit_generator),
        "batches": Batches(
            arrays.pop("batches"), values["n_batches"], values["reshuffles"], values["position"]
        ),
        "subpopulations": [arrays.pop(f"subpopulations.{b}") for b in range(values["n_blocks"])],
        "memories": {
            extension: {name: arrays.pop(f"extensions.{extension}.{name}") for name in names}
            for extension, names in values["extensions"].items()
        },
        "history": History.thaw(history),
        **{name: arrays.pop(name) for name in ARRAYS},
        **{name: values[name] for name in (*COUNTERS, *REALS)},
    }
    state = SearchState(**parts)
    _check_arrays(state)
    _check_batches(state.batches)
    return state, {name.removeprefix("memory."): array for name, array in arrays.items()}


def _check_counts(values: dict[str, Any]) -> None:
    for name in COUNTERS:
        if not (type(values[name]) is int and 0 <= values[name] < 2**63):
            raise ValueError(f"its {name} is not a whole number of at least 0")
    if values["evaluations"] == 0:
        raise ValueError("its evaluations are 0: the search has not begun")
    if values["best_generation"] > values["generation"]:
        raise ValueError("its best_generation is after its generation")
    for name in REALS:
        if type(values[name]) is not float or math.isnan(values[name]):
            raise ValueError(f"its {name} is not a number")
    if not 0 <= values["seconds"] < math.inf:
        raise ValueError("its seconds are not a finite number of at least 0")


def _check_history(history: dict[str, Array], values: dict[str, Any]) -> None:
    stride, rows, latest = history["stride"], history["rows"], history["latest"]
    counts = [values["generation"], values["evaluations"]]
    if not (
        stride.shape == ()
        and stride.dtype.kind == "i"
        and stride >= 1
        and rows.dtype == latest.dtype == np.float64
        and latest.shape == (6,)
        and rows.shape[1:] == latest.shape
        and len(rows) <= History.capacity
        and np.isfinite(rows[:, :2]).all()
        and np.array_equal(latest[:2], counts)
    ):
        raise ValueError("its history contradicts its counts")


def _check_arrays(state: SearchState) -> None:
    n_subpopulations, size = state.fitness.shape
    shapes = [block.shape for block in state.subpopulations]
    n_genes = sum(k * genes for k, _, genes in shapes)
    networks = {name: getattr(state, name) for name in ("global_solution", "best_network")}
    dtypes = {array.dtype for array in (*state.subpopulations, *networks.values())}
    if not (
        size > 0
        and sum(k for k, _, _ in shapes) == n_subpopulations == len(state.champions)
        and all(individuals == size for _, individuals, _ in shapes)
        and all(network.shape == (n_genes,) for network in networks.values())
        and len(dtypes) == 1
        and dtypes <= {np.dtype(np.float32), np.dtype(np.float64)}
    ):
        raise ValueError("the shapes and types of its subpopulations and networks contradict")
    if state.fitness.dtype != np.float64:
        raise ValueError("its fitness is not in float64")
    champions = state.champions
    if champions.dtype.kind != "i" or not ((champions >= 0) & (champions < size)).all():
        raise ValueError("its champions are not among the individuals")
    for name, network in networks.items():
        if not np.isfinite(network).all():
            raise ValueError(f"its {name} holds numbers that are not finite")
    if any(np.isnan(block).any() for block in state.subpopulations):
        raise ValueError("its subpopulations hold NaN")


def _check_batches(batches: Batches) -> None:
    order = batches.order
    if not (
        order.ndim == 1
        and order.dtype.kind == "i"
        and np.array_equal(np.sort(order), np.arange(len(order)))
        and all(type(n) is int for n in (batches.n_batches, batches.position))
        and type(batches.reshuffles) is bool
        and 1 <= batches.n_batches <= len(order)
        and 0 <= batches.position <= batches.n_batches
    ):
        raise ValueError("its batches are not a partition of the instances")
