"""Spaces as plain values: how observations become inputs, and how outputs become actions.

The names and meanings are those of Gymnasium, which is not imported: a policy that has been read
from a file acts without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo._validation import check_name

Plain = dict[str, Any]
"""A space as JSON values."""

BOUNDS = ("squash", "clip")
"""How outputs are kept within a Box: by tanh, or cut off."""

_FLOATS = _SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def describe_space(space: Any, argument: str = "env.observation_space") -> Plain:
    """Return a space of Gymnasium as JSON values, or say why its values cannot be inputs."""
    kind = type(space).__name__
    if kind == "Box":
        return {"space": "Box", "shape": list(space.shape)}
    if kind == "Discrete":
        return {"space": "Discrete", "n": int(space.n), "start": int(space.start)}
    if kind == "MultiDiscrete":
        if space.nvec.ndim != 1:
            raise ValueError(f"{argument} is {space}; a MultiDiscrete must have one dimension")
        start = getattr(space, "start", np.zeros_like(space.nvec))
        return {"space": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": start.tolist()}
    if kind == "MultiBinary":
        return {"space": "MultiBinary", "shape": list(space.shape)}
    if kind == "Dict":
        parts = {
            name: describe_space(part, f"{argument}[{name!r}]")
            for name, part in space.spaces.items()
        }
        return {"space": "Dict", "parts": parts}
    if kind == "Tuple":
        listed = [describe_space(s, f"{argument}[{k}]") for k, s in enumerate(space.spaces)]
        return {"space": "Tuple", "parts": listed}
    raise ValueError(
        f"{argument} is {space}, which has no fixed number of inputs; accepted are Box, Discrete, "
        "MultiDiscrete, MultiBinary, and Dict and Tuple of these"
    )


class Observations:
    """Turns observations into inputs: numbers as they are, choices as one 0 or 1 for each.

    Parameters
    ----------
    plain
        The space, as `describe_space` gives it.
    """

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.n_inputs = _count(plain)
        self._is_vector = plain["space"] == "Box" and len(plain["shape"]) == 1

    def flatten(self, observation: Any) -> Array:
        """Return an observation as an array of numbers: (n_inputs,) if the environment keeps its
        word.
        """
        if self._is_vector and type(observation) is np.ndarray:
            dtype = observation.dtype  # compared by identity: this is called at every step
            if dtype is _SINGLE or dtype is _DOUBLE:
                return observation
        return np.concatenate(_flatten(self.plain, observation), dtype=np.float64)


def _count(plain: Plain) -> int:
    kind = plain["space"]
    if kind == "Discrete":
        return int(plain["n"])
    if kind == "MultiDiscrete":
        return int(sum(plain["nvec"]))
    if kind in ("Dict", "Tuple"):
        parts = plain["parts"]
        return sum(map(_count, parts.values() if kind == "Dict" else parts))
    return math.prod(plain["shape"])


def _flatten(plain: Plain, value: Any) -> list[Array]:
    kind = plain["space"]
    if kind == "Discrete":
        return [_one_hot(plain["n"], int(value) - plain["start"])]
    if kind == "MultiDiscrete":
        parts = zip(plain["nvec"], np.asarray(value) - plain["start"], strict=True)
        return [_one_hot(n, int(k)) for n, k in parts]
    if kind == "Dict":
        return [a for name, part in plain["parts"].items() for a in _flatten(part, value[name])]
    if kind == "Tuple":
        return [a for p, v in zip(plain["parts"], value, strict=True) for a in _flatten(p, v)]
    return [np.asarray(value, dtype=np.float64).ravel()]


def _one_hot(n: int, k: int) -> Array:
    if not 0 <= k < n:
        raise ValueError(f"an observation is choice {k} of {n}")
    array = np.zeros(n)
    array[k] = 1
    return array


class Actions:
    """What the outputs of a network stand for.

    Discrete: the choice with the largest output. MultiDiscrete: the same for each part.
    MultiBinary: 1 where the output is above 0. Box: outputs of −1 and 1 stand for the ends; beyond,
    "clip" cuts off, and "squash" takes the output's tanh, which stays within. Numbers with no two
    ends are the outputs themselves.

    Parameters
    ----------
    plain
        The space, as `describe_actions` gives it.

    Attributes
    ----------
    box : array of shape (5, n_outputs), of a Box
        Ends, middle, half the width, and whether it is squashed.
    """

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.kind = plain["space"]
        self.n_outputs = _count(plain)
        if self.kind == "Box":
            self.shape, self.dtype = tuple(plain["shape"]), np.dtype(plain["dtype"])
            ends = np.array([plain["low"], plain["high"]], dtype=np.float64)
            is_bounded = np.isfinite(ends).all(axis=0)
            low, high = np.where(is_bounded, ends, [[-1.0], [1.0]])
            is_squashed = is_bounded & (plain["bounds"] == "squash")
            self.box = np.array([*ends, low / 2 + high / 2, high / 2 - low / 2, is_squashed])

    def decode(self, outputs: Array) -> Array:
        """Return the action of a MultiBinary or MultiDiscrete space."""
        if self.kind == "MultiBinary":
            return (outputs > 0).astype(np.int8).reshape(self.plain["shape"])
        parts = np.split(outputs, np.cumsum(self.plain["nvec"])[:-1])
        return np.add([part.argmax() for part in parts], self.plain["start"])


def describe_actions(space: Any, bounds: str) -> Plain:
    """Return an action space of Gymnasium as JSON values, or say why no network can serve it.

    Parameters
    ----------
    space
        Discrete, MultiDiscrete, MultiBinary, or Box of real numbers.
    bounds
        How outputs are kept within a Box, one of `BOUNDS`.
    """
    check_name("bounds", bounds, BOUNDS)
    kind = type(space).__name__
    if kind not in ("Discrete", "MultiDiscrete", "MultiBinary", "Box"):
        raise ValueError(
            f"env.action_space is {space}; accepted are Discrete, MultiDiscrete, MultiBinary and "
            "Box"
        )
    plain = describe_space(space, "env.action_space")
    if kind == "Box":
        if space.dtype not in _FLOATS:
            raise ValueError(f"env.action_space is {space}; a Box must be float32 or float64")
        ends = {"low": space.low, "high": space.high}
        plain |= {name: values.ravel().tolist() for name, values in ends.items()}
        plain |= {"dtype": space.dtype.name, "bounds": bounds}
    return plain


def check_plain(plain: Any, is_action: bool) -> None:
    """Raise unless a space that was read from a file makes sense."""

    def is_count(value: Any) -> bool:
        return type(value) is int and 0 < value < 2**31

    def is_counts(values: Any) -> bool:
        return isinstance(values, list) and all(map(is_count, values))

    def are_whole(values: Any) -> bool:
        return isinstance(values, list) and all(type(v) is int for v in values)

    kind = plain.get("space") if isinstance(plain, Mapping) else None
    if kind == "Discrete":
        is_good = is_count(plain.get("n")) and type(plain.get("start")) is int
    elif kind == "MultiDiscrete":
        nvec, start = plain.get("nvec"), plain.get("start")
        is_good = is_counts(nvec) and are_whole(start) and len(nvec) == len(start)
    elif kind in ("MultiBinary", "Box"):
        is_good = is_counts(plain.get("shape"))
        if kind == "Box" and is_action and is_good:
            ends = [plain.get("low"), plain.get("high")]
            is_good = plain.get("bounds") in BOUNDS and plain.get("dtype") in ("float32", "float64")
            is_good = is_good and all(
                isinstance(end, list)
                and len(end) == math.prod(plain["shape"])
                and all(isinstance(value, float) and not math.isnan(value) for value in end)
                for end in ends
            )
    else:
        parts = plain.get("parts") if isinstance(plain, Mapping) else None
        is_good = not is_action and isinstance(parts, dict if kind == "Dict" else list)
        is_good = is_good and kind in ("Dict", "Tuple")
        if is_good and parts is not None:
            for part in parts.values() if kind == "Dict" else parts:
                check_plain(part, is_action=False)
    if not is_good:
        raise ValueError(f"{plain!r:.200} is no space")
