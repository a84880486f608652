"""Policies: a network with what its inputs and outputs mean in an environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coevo._typing import Array, StrPath
from coevo._validation import check_integer
from coevo.core.network import Network
from coevo.core.settings import Settings
from coevo.persistence import model
from coevo.persistence.container import FileFormatError
from coevo.persistence.onnx import GraphBuilder
from coevo.policies.actor import Actor
from coevo.policies.backends import Shares, choose_backend
from coevo.policies.episodes import Simulator, close_environment, make_environment
from coevo.policies.rendering import check_film, draw, write_film
from coevo.policies.simulation import FRESH, draw_seeds, pack_simulator, run_all
from coevo.policies.spaces import (
    Actions,
    Observations,
    Plain,
    check_plain,
    describe_actions,
    describe_space,
)

if TYPE_CHECKING:
    import onnx


class MeanReturn(NamedTuple):
    """The mean return of a policy.

    Attributes
    ----------
    mean
        Over the episodes.
    low, high
        A 95 % confidence interval of the mean, by Student's t.
    n_episodes
        How many there were.
    """

    mean: float
    low: float
    high: float
    n_episodes: int


@dataclass(frozen=True, eq=False)
class Policy:
    """A network that acts in an environment.

    Parameters
    ----------
    network
        Takes observations as the environment gives them, flattened.
    observations, actions
        The environment's spaces, as JSON values; see `coevo.policies.spaces`.
    env
        The id of the environment, or a factory, if it is known.
    env_kwargs
        What the environment is made with.
    max_steps
        Where episodes are cut off; None for where the environment ends them.
    """

    network: Network
    observations: Plain
    actions: Plain
    env: Any = None
    env_kwargs: Mapping[str, Any] | None = None
    max_steps: int | None = None

    def act(self, observation: Any) -> Any:
        """Return the action for an observation: what `env.step` takes.

        Parameters
        ----------
        observation
            As the environment gives it.
        """
        actor = Actor(self.network.architecture, self.observations, self.actions)
        actor.load(self.network.genotype)
        return actor.act(observation)

    def mean_return(
        self,
        n_episodes: int = 100,
        *,
        seed: int = 0,
        env: Any = None,
        env_kwargs: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        backend: str = "serial",
        n_workers: int | None = None,
        cluster: Any = None,
    ) -> MeanReturn:
        """Return the mean return of episodes that no training saw, and its interval.

        Parameters
        ----------
        n_episodes
            At least 2.
        seed
            Of the episodes; training and validation use others.
        env, env_kwargs, max_steps
            An environment other than that of the training, with the same spaces.
        backend, n_workers, cluster
            As for `coevo.evolve_policy`.
        """
        check_integer("n_episodes", n_episodes, 2)
        check_integer("seed", seed, 0, maximum=None)
        simulator = self._simulator(env, env_kwargs, self._limit(max_steps))
        with closing(simulator), choose_backend(backend, n_workers, cluster) as chosen:
            packed = pack_simulator(chosen, simulator)
            found = run_all(
                chosen, Shares(), packed, self.network.genotype[np.newaxis],
                np.zeros(n_episodes, dtype=np.int64), draw_seeds(seed, FRESH, n_episodes),
                np.zeros(self.network.architecture.n_inputs), False,
            )  # fmt: skip
        return summarise(found.returns)

    def record(
        self,
        path: StrPath,
        *,
        seed: int = 0,
        env: Any = None,
        env_kwargs: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
    ) -> float:
        """Write an episode as a GIF or an MP4, without a screen, and return its sum of rewards.

        Parameters
        ----------
        path
            The file: .gif, or .mp4, for which ffmpeg or the extra coevo[video] is needed.
        seed
            Of the episode.
        env, env_kwargs, max_steps
            As for `mean_return`; the environment must have the render mode "rgb_array".
        """
        check_film(path)
        check_integer("seed", seed, 0)
        limit = self._limit(max_steps)
        made = self.make_environment(env, env_kwargs, render_mode="rgb_array")
        try:
            pictures, total = draw(self, made, seed, limit)
        finally:
            close_environment(made)
        write_film(path, pictures)
        return total

    def make_environment(
        self, env: Any = None, env_kwargs: Mapping[str, Any] | None = None, **further: Any
    ) -> Any:
        """Return the environment of the training, or another one, made with further arguments.

        Raises
        ------
        ValueError
            If it has other spaces than the policy.
        """
        env, kwargs = self._choose(env, env_kwargs)
        made = make_environment(env, kwargs, **further)
        bounds = self.actions.get("bounds", "squash")
        spaces = describe_space(made.observation_space), describe_actions(made.action_space, bounds)
        for name, there, here in zip(
            ("observations", "actions"), spaces, (self.observations, self.actions), strict=True
        ):
            if there != here:
                close_environment(made)
                raise ValueError(f"env={env!r} has the {name} {there}; the policy has {here}")
        return made

    def _choose(self, env: Any, kwargs: Mapping[str, Any] | None) -> tuple[Any, Any]:
        if env is not None:
            return env, kwargs
        if self.env is None:
            raise ValueError("env must be given: the policy does not know its environment")
        return self.env, self.env_kwargs if kwargs is None else kwargs

    def _limit(self, max_steps: int | None) -> int | None:
        if max_steps is None:
            return self.max_steps
        check_integer("max_steps", max_steps, 1)
        return max_steps

    def _simulator(
        self, env: Any, kwargs: Mapping[str, Any] | None, max_steps: int | None
    ) -> Simulator:
        close_environment(self.make_environment(env, kwargs))
        env, kwargs = self._choose(env, kwargs)
        return Simulator(
            env, kwargs, self.observations, self.actions, self.network.architecture, max_steps
        )

    # -------------------------------------------------------------------------------------- files

    def save(
        self,
        path: StrPath,
        *,
        settings: Settings | Mapping[str, Any] | None = None,
        fitness: Mapping[str, float] | None = None,
    ) -> None:
        """Write the policy to a model file, which `coevo.load_policy` reads.

        A factory is not written: `env` must be given again after loading.

        Parameters
        ----------
        path
            The file, by custom ending in .safetensors.
        settings, fitness
            Of the run that made it.
        """
        known = self.env if isinstance(self.env, str) else None
        kwargs = dict(self.env_kwargs or {}) if known else {}
        content = {
            "observations": self.observations,
            "actions": self.actions,
            "env": known,
            "env_kwargs": kwargs,
            "max_steps": self.max_steps,
        }
        try:
            json.dumps(content)
        except TypeError as error:
            raise TypeError(f"env_kwargs cannot be saved as JSON: {error}") from None
        model.save(path, self.network, settings=settings, fitness=fitness, policy=content)

    def export_onnx(self, path: StrPath | None = None) -> onnx.ModelProto:
        """Return the policy as an ONNX model, and write it to a file if there is a path.

        Its input is `observation`, of shape (n_instances, n_inputs), flattened, in float64; its
        output `action` is of shape (n_instances,) for one choice, otherwise (n_instances, n) for
        the flattened action.

        Parameters
        ----------
        path
            The file, by custom ending in .onnx.
        """
        actions = Actions(self.actions)
        builder = GraphBuilder()
        number, whole = builder.tensor_type(np.float64), builder.tensor_type(np.int64)
        builder.declare_input("observation", number, self.network.architecture.n_inputs)
        builder.add_network(self.network, "observation", "outputs")

        def constant(name: str, values: Any) -> str:
            return builder.add_constant(name, np.asarray(values))

        if actions.kind == "Discrete":
            builder.add("ArgMax", ["outputs"], "choice", axis=-1, keepdims=0)
            builder.add("Add", ["choice", constant("start", actions.plain["start"])], "action")
            builder.declare_output("action", whole)
        elif actions.kind == "MultiDiscrete":
            names = [f"part_{k}" for k in range(len(actions.plain["nvec"]))]
            sizes = constant("sizes", actions.plain["nvec"])
            builder.add("Split", ["outputs", sizes], *names, axis=-1)
            choices = [
                builder.add("ArgMax", [name], f"choice_{k}", axis=-1, keepdims=1)
                for k, name in enumerate(names)
            ]
            builder.add("Concat", choices, "choices", axis=-1)
            builder.add("Add", ["choices", constant("start", actions.plain["start"])], "action")
            builder.declare_output("action", whole, len(names))
        elif actions.kind == "MultiBinary":
            builder.add("Greater", ["outputs", constant("zero", 0.0)], "is_on")
            builder.add("Cast", ["is_on"], "action", to=builder.tensor_type(np.int8))
            builder.declare_output("action", builder.tensor_type(np.int8), actions.n_outputs)
        else:
            low, high, middle, half, is_squashed = actions.box
            builder.add("Tanh", ["outputs"], "tanh")
            builder.add("Where", [constant("is_squashed", is_squashed > 0), "tanh", "outputs"],
                        "kept")  # fmt: skip
            builder.add("Mul", ["kept", constant("half", half)], "scaled")
            builder.add("Add", ["scaled", constant("middle", middle)], "shifted")
            builder.add("Max", ["shifted", constant("low", low)], "above")
            builder.add("Min", ["above", constant("high", high)], "within")
            dtype = builder.tensor_type(actions.dtype)
            builder.add("Cast", ["within"], "action", to=dtype)
            builder.declare_output("action", dtype, actions.n_outputs)
        return builder.build("policy", path)


def load_policy(path: StrPath) -> Policy:
    """Read a policy from a model file.

    Parameters
    ----------
    path
        A file that `Policy.save` wrote.

    Raises
    ------
    coevo.persistence.model.ModelError
        If the file is damaged, foreign or newer, or holds no policy.
    """
    loaded = model.load(path)
    content = loaded.policy
    try:
        if content is None:
            raise FileFormatError("it holds a network, but no policy")
        policy = Policy(network=loaded.network, **content)
        check_plain(policy.observations, is_action=False)
        check_plain(policy.actions, is_action=True)
        _check(policy)
    except (TypeError, ValueError) as error:
        raise model.ModelError(f"{path} is not a good policy file: {error}") from None
    genotype = loaded.network.genotype.astype(np.float64)
    return replace(policy, network=Network(loaded.network.architecture, genotype))


def _check(policy: Policy) -> None:
    architecture = policy.network.architecture
    if architecture.n_inputs != Observations(policy.observations).n_inputs:
        raise ValueError("its network does not take its observations")
    if architecture.n_outputs != Actions(policy.actions).n_outputs:
        raise ValueError("its network does not give its actions")
    if architecture.output_activation != "identity":
        raise ValueError("its output neurons have an activation")
    if not (policy.env is None or isinstance(policy.env, str)):
        raise ValueError("its env is not a name")
    if not isinstance(policy.env_kwargs, dict):
        raise ValueError("its env_kwargs are not a table")
    if policy.max_steps is not None:
        check_integer("max_steps", policy.max_steps, 1)


def summarise(returns: Array) -> MeanReturn:
    """Return the mean of returns and its interval."""
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    n = len(returns)
    mean = float(returns.mean())
    half = float(t.ppf(0.975, n - 1) * returns.std(ddof=1) / np.sqrt(n))
    return MeanReturn(mean, mean - half, mean + half, n)
