"""Runs episodes, in this process or in a worker that keeps its environment alive between calls."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from coevo._typing import Array
from coevo.core.network import Architecture
from coevo.policies.actor import Actor
from coevo.policies.spaces import Plain

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
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"env_kwargs must be a dictionary of arguments, got {kwargs!r}")
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


def close_environment(made: Any) -> None:
    """Close an environment, if it can be closed."""
    if hasattr(made, "close"):
        made.close()


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
    architecture
        Of the networks.
    max_steps
        Where episodes are cut off; None for where the environment ends them.
    reward
        Returns the reward of a `Step` for training, None for the environment's own.
    """

    env: Any
    kwargs: Mapping[str, Any] | None
    observations: Plain
    actions: Plain
    architecture: Architecture
    max_steps: int | None = None
    reward: Callable[[Step], float] | None = None
    _made: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs; of an id also its specification.

        An id that the user's script registered is not known elsewhere.
        """
        spec = import_gymnasium().registry.get(self.env) if isinstance(self.env, str) else None
        return vars(self) | {"_made": None, "spec": spec}

    def __setstate__(self, state: dict[str, Any]) -> None:
        spec = state.pop("spec")
        vars(self).update(state)
        if spec is not None:
            import_gymnasium().registry.setdefault(self.env, spec)

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
        is_random, reward = genotypes is None, self.reward if is_shaped else None
        if genotypes is None:  # observations are added up all the same
            genotypes, rows = np.zeros((1, self.architecture.n_genes)), np.zeros_like(rows)
        actor, loaded = Actor(self.architecture, self.observations, self.actions), None
        outcomes, statistics = [], np.empty((len(seeds), 2, self.architecture.n_inputs))
        for k, (row, seed) in enumerate(zip(rows.tolist(), seeds.tolist(), strict=True)):
            if row != loaded:
                actor.load(genotypes[row], centre)
                loaded = row
            actor.statistics.fill(0)
            outcomes.append(self._run(actor.act, seed, reward, is_random))
            statistics[k] = actor.statistics
        returns, steps = zip(*outcomes, strict=True)
        return Episodes(
            np.array(returns, dtype=np.float64), np.array(steps, dtype=np.int64),
            statistics[:, 0], statistics[:, 1], time.perf_counter() - began,
        )  # fmt: skip

    def _run(
        self,
        act: Callable[[Any], Any],
        seed: int,
        reward: Callable[[Step], float] | None,
        is_random: bool,
    ) -> tuple[float, int]:
        """Run one episode; return its sum of rewards and its number of steps."""
        env = self._environment()
        step, total, n_steps, running = env.step, 0.0, 0, "env"
        try:
            observation, _ = env.reset(seed=seed)
            if is_random:
                env.action_space.seed(seed)
            for n_steps in range(self.max_steps or ENDLESS):  # noqa: B007 - how many are done
                action = act(observation)
                if is_random:
                    action = env.action_space.sample()
                following, gained, terminated, truncated, info = step(action)
                if reward is not None:
                    running = "reward"
                    gained = reward(
                        Step(observation, action, following, gained, terminated, truncated, info)
                    )
                    if not math.isfinite(gained):
                        raise ValueError(f"it returned {gained}; rewards must be finite")
                    running = "env"
                total += gained
                if terminated or truncated:
                    break
                observation = following
            else:
                if self.max_steps is None:
                    raise ValueError("the episode does not end: set max_steps")
            total = float(total)
            if not math.isfinite(total):
                raise ValueError(f"the rewards add up to {total}; they must be finite")
        except Exception as error:
            self.close()  # it may be in any state
            raise EpisodeError(
                f"{running}={getattr(self, running)!r} failed after {n_steps} steps of the episode "
                f"with seed {seed}: {type(error).__name__}: {error}"
            ) from error
        return total, n_steps + 1

    def _environment(self) -> Any:
        if self._made is None:
            self._made = make_environment(self.env, self.kwargs)
        return self._made

    def close(self) -> None:
        """Close the environment; the next episode makes another."""
        made, self._made = self._made, None
        close_environment(made)


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
