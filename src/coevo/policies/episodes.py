"""Runs episodes, in this process or in a worker that keeps its environment alive between calls."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.policies.kernels import respond
from coevo.policies.spaces import Actions, Observations, Plain

ENDLESS = 100_000
"""Steps after which an episode is taken for endless, unless `max_steps` is given."""

_MOST_KEPT = 4  # simulators that a worker keeps alive


class EpisodeError(ValueError):
    """An environment failed, or gave something that is no observation or reward."""


class Step(NamedTuple):
    """One step of an episode, as a function that shapes rewards sees it.

    Attributes
    ----------
    observation
        What the policy acted on.
    action
        What it did.
    next_observation, reward, terminated, truncated, info
        What `env.step` returned.
    """

    observation: Any
    action: Any
    next_observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Episodes(NamedTuple):
    """What n episodes gave.

    Attributes
    ----------
    returns : array of shape (n,)
        Sums of rewards.
    steps : integer array of shape (n,)
    sums, squares : arrays of shape (n, n_inputs)
        Of the differences of an episode's observations from a centre.
    seconds
        How long the episodes took together.
    """

    returns: Array
    steps: Array
    sums: Array
    squares: Array
    seconds: float


def make_environment(env: Any, kwargs: Mapping[str, Any] | None = None, **further: Any) -> Any:
    """Make an environment from a Gymnasium id or a factory.

    Parameters
    ----------
    env
        The id, or a function that returns an environment.
    kwargs, **further
        What is handed over to it.
    """
    arguments = {**(kwargs or {}), **further}
    try:
        if isinstance(env, str):
            made = import_gymnasium().make(env, disable_env_checker=True, **arguments)
        else:
            made = env(**arguments)
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"env={env!r} cannot be made: {type(error).__name__}: {error}") from error
    missing = [
        name
        for name in ("reset", "step", "observation_space", "action_space")
        if not hasattr(made, name)
    ]
    if missing:
        raise TypeError(
            f"env must be the id of a Gymnasium environment or a function that returns one; "
            f"{env!r} returned a {type(made).__name__} without {', '.join(missing)}"
        )
    return made


def import_gymnasium() -> Any:
    """Return Gymnasium, or say how to install it."""
    try:
        return import_module("gymnasium")
    except ImportError as error:
        raise ImportError(
            "environments by their id need Gymnasium: pip install 'coevo[control]'"
        ) from error


@dataclass
class Simulator:
    """An environment and how networks act in it; all that a worker needs.

    Parameters
    ----------
    env, kwargs
        As for `make_environment`.
    observations, actions
        The spaces, as JSON values.
    sizes : tuple
        Neurons of each layer, inputs and outputs included.
    activation
        Name of the hidden neurons' activation.
    max_steps
        Where episodes are cut off; None for where the environment ends them.
    reward
        Returns the reward of a `Step` for training, None for the environment's own.
    """

    env: Any
    kwargs: Mapping[str, Any] | None
    observations: Plain
    actions: Plain
    sizes: tuple[int, ...]
    activation: str
    max_steps: int | None = None
    reward: Callable[[Step], float] | None = None
    _made: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._flatten = Observations(self.observations).flatten
        self._decode = Actions(self.actions).decode
        self._layers = np.array(self.sizes)
        self._scratch, self._outputs = np.empty((2, max(self.sizes))), np.empty(self.sizes[-1])

    def run(
        self, genotypes: Array | None, rows: Array, seeds: Array, centre: Array, is_shaped: bool
    ) -> Episodes:
        """Run episodes in order.

        Parameters
        ----------
        genotypes : float64 array of shape (m, n_genes), or None for random actions
        rows : integer array of shape (n,)
            The network of each episode.
        seeds : integer array of shape (n,)
            The seed of each episode.
        centre : array of shape (n_inputs,)
            What the sums of observations are taken around.
        is_shaped
            Whether `reward` gives the rewards.
        """
        began = time.perf_counter()
        n, n_inputs = len(seeds), self.sizes[0]
        found = Episodes(
            np.zeros(n), np.zeros(n, np.int64), np.zeros((n, n_inputs)), np.zeros((n, n_inputs)), 0
        )
        reward = self.reward if is_shaped else None
        for k in range(n):
            genotype = None if genotypes is None else genotypes[rows[k]]
            statistics = np.stack([centre, found.sums[k], found.squares[k]])
            found.returns[k], found.steps[k] = self._run(
                genotype, int(seeds[k]), reward, statistics
            )
            _, found.sums[k], found.squares[k] = statistics
        return found._replace(seconds=time.perf_counter() - began)

    def _run(
        self,
        genotype: Array | None,
        seed: int,
        reward: Callable[[Step], float] | None,
        statistics: Array,
    ) -> tuple[float, int]:
        """Run one episode; return its sum of rewards and its number of steps.

        Parameters
        ----------
        statistics : array of shape (3, n_inputs)
            As for `respond`; the last two rows are added to.
        """
        env = self._environment()
        flatten, decode, sizes = self._flatten, self._decode, self._layers
        scratch, outputs = self._scratch, self._outputs
        activation, is_random = ACTIVATION_CODES[self.activation], genotype is None
        if is_random:
            genotype = np.zeros(((sizes[:-1] + 1) * sizes[1:]).sum())
        limit = self.max_steps or ENDLESS
        total, n_steps = 0.0, 0
        with self._blame(seed) as blame:
            observation, info = env.reset(seed=seed)
            if is_random:
                env.action_space.seed(seed)
            for n_steps in range(1, limit + 1):
                largest = respond(
                    genotype, sizes, activation, flatten(observation), statistics, scratch, outputs
                )
                if largest < 0:
                    raise ValueError(
                        f"the observation has {np.size(flatten(observation))} numbers, and "
                        f"observation_space says {sizes[0]}"
                    )
                action = env.action_space.sample() if is_random else decode(largest, outputs)
                before = observation
                observation, gained, terminated, truncated, info = env.step(action)
                if reward is not None:
                    gained = reward(
                        Step(before, action, observation, gained, terminated, truncated, info)
                    )
                total += gained
                if terminated or truncated:
                    break
                blame[0] = n_steps
            else:
                if self.max_steps is None:
                    raise ValueError("the episode does not end: set max_steps")
            total = float(total)
            if not np.isfinite(total):
                raise ValueError(f"the rewards add up to {total}; they must be finite")
            if not np.isfinite(statistics).all():
                raise ValueError("an observation holds NaN or infinity")
        return total, n_steps

    @contextmanager
    def _blame(self, seed: int) -> Iterator[list[int]]:
        """Turn an error into one that names the episode; yields a place for the steps done."""
        n_steps = [0]
        try:
            yield n_steps
        except Exception as error:
            self.close()  # it may be in any state
            raise EpisodeError(
                f"env={self.env!r} failed after {n_steps[0]} steps of the episode with seed "
                f"{seed}: {type(error).__name__}: {error}"
            ) from error

    def _environment(self) -> Any:
        if self._made is None:
            self._made = make_environment(self.env, self.kwargs)
        return self._made

    def close(self) -> None:
        """Close the environment; the next episode makes another."""
        made, self._made = self._made, None
        if made is not None and hasattr(made, "close"):
            made.close()


# ------------------------------------------------------------------------------------- in workers

_kept = threading.local()


@dataclass(frozen=True)
class Parcel:
    """Something for workers, who unpack it once and keep it.

    Parameters
    ----------
    key
        Its name among all that a worker keeps.
    content
        Pickled.
    """

    key: str
    content: bytes

    def unpack(self) -> Any:
        """Return what this thread unpacked before, or unpack it."""
        things: dict[str, Any] = _kept.__dict__.setdefault("things", {})
        if self.key not in things:
            while len(things) >= _MOST_KEPT:
                oldest = things.pop(next(iter(things)))
                if hasattr(oldest, "close"):
                    oldest.close()
            things[self.key] = pickle.loads(self.content)
        return things[self.key]


def run_episodes(simulator: Simulator | Parcel, *arguments: Any) -> Episodes:
    """Run episodes on a simulator that is here or comes in a parcel; see `Simulator.run`."""
    if isinstance(simulator, Parcel):
        simulator = simulator.unpack()
    assert isinstance(simulator, Simulator)
    return simulator.run(*arguments)
