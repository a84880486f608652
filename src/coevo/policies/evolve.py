"""`evolve_policy`: from an environment to an evolved policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coevo._typing import StrPath
from coevo._validation import check_flag, check_integer
from coevo.core.component import is_auto
from coevo.core.history import History
from coevo.core.hooks import Hook
from coevo.core.loop import Callback
from coevo.core.network import Architecture, Network
from coevo.core.settings import Settings
from coevo.core.stopping import StopReason
from coevo.persistence.checkpoint_hook import Checkpoint
from coevo.persistence.plain import as_plain, plain_settings
from coevo.policies.backends import choose_backend
from coevo.policies.defaults import complete
from coevo.policies.episodes import Simulator, Step, close_environment, make_environment
from coevo.policies.policy import MeanReturn, Policy
from coevo.policies.problem import BlackBoxProblem
from coevo.policies.simulation import EpisodeSource
from coevo.policies.spaces import Actions, Observations, describe_actions, describe_space
from coevo.training.evolve import gather_hooks, resolve_settings
from coevo.training.run import run_search

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, eq=False)
class PolicyResult:
    """What an evolution of policies leaves behind.

    Parameters
    ----------
    policy
        The global solution that did best on the validation seeds.
    validation_return
        Its mean return there.
    history
        How the run went; fitness is the mean return.
    stop_reason
        Why it ended.
    generations, evaluations, episodes, steps, seconds
        What it took: an evaluation is a network on a batch of seeds; episodes and steps of the
        environment count validation too.
    settings
        The settings it ran with.
    """

    policy: Policy
    validation_return: float
    history: History
    stop_reason: StopReason
    generations: int
    evaluations: int
    episodes: int
    steps: int
    seconds: float
    settings: Settings

    @property
    def network(self) -> Network:
        """The policy's network."""
        return self.policy.network

    def act(self, observation: Any) -> Any:
        """Return the action for an observation: what `env.step` takes."""
        return self.policy.act(observation)

    def mean_return(self, n_episodes: int = 100, **arguments: Any) -> MeanReturn:
        """Return the mean return on fresh seeds, and its interval; see `Policy.mean_return`."""
        return self.policy.mean_return(n_episodes, **arguments)

    def save(self, path: StrPath) -> None:
        """Write the policy to a model file; see `Policy.save`."""
        fitness = {"validation": self.validation_return}
        self.policy.save(path, settings=self.settings, fitness=fitness)

    def export_onnx(self, path: StrPath | None = None) -> onnx.ModelProto:
        """Return the policy as an ONNX model; see `Policy.export_onnx`."""
        return self.policy.export_onnx(path)


def evolve_policy(
    env: str | Callable[..., Any],
    settings: Settings | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    variant: str | None = None,
    n_training_seeds: int = 10_000,
    n_validation_seeds: int = 20,
    max_steps: int | None = None,
    reward: Callable[[Step], float] | None = None,
    bounds: str = "squash",
    normalize_observations: bool = True,
    simultaneous: bool = False,
    backend: str = "serial",
    n_workers: int | None = None,
    cluster: Any = None,
    callbacks: Sequence[Callback | Hook] = (),
    checkpoint: StrPath | Checkpoint | None = None,
    resume: bool = False,
    **changes: Any,
) -> PolicyResult:
    """Evolve a policy: a network that acts well in a simulator.

    The instances are episode seeds: a network's fitness is its mean return over the seeds of the
    generation's batch, and the policy that is returned is the one that did best on the validation
    seeds. Episodes with the same seed must be the same for the same actions.

    Parameters
    ----------
    env
        The id of a Gymnasium environment, or a function that returns one. Observations: Box,
        Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these, flattened. Actions:
        Discrete, MultiDiscrete, MultiBinary, Box.
    settings
        How to search and when to stop. By default those of docs/howto/policy.md, which are not
        those of `Settings`; "auto" stands for these too. `fitness` is always the mean return,
        `batch_size` the number of episodes in an evaluation.
    env_kwargs
        What the environment is made with.
    variant
        DE, LEDE, CCDE or LECCDE: a short name for the settings `decomposition` and
        `limited_evaluation`. Under full evaluation every network meets all `n_training_seeds`.
    n_training_seeds
        How many seeds batches are drawn from.
    n_validation_seeds
        How many seeds choose the policy.
    max_steps
        Cut episodes off after this many steps. None leaves it to the environment; an episode that
        has not ended after 100,000 steps is an error then.
    reward
        Shapes the rewards in training, not in validation: a function of a `coevo.policies.Step`.
    bounds
        How outputs are kept within a Box of actions: "squash" by tanh, or "clip".
    normalize_observations
        Scale observations to mean 0 and deviation 1, by the statistics of all generations before,
        or, under full evaluation, by those of random actions at the start. The scaling becomes
        part of the returned network.
    simultaneous
        Measure all subpopulations of a generation in the same global solution (Jacobi). A whole
        layer's candidates are independent then and fill more workers; the paper measures each
        subpopulation in what those before it left.
    backend
        Where episodes are run: "serial", in "processes" of this machine, or on a "dask" cluster.
        Neither it nor the number of workers changes the result.
    n_workers
        Number of processes; None for one for each core.
    cluster
        For Dask: a `distributed.Client`, or the address of a scheduler. None for the client of
        this process.
    callbacks, checkpoint, resume
        As for `coevo.evolve`.
    changes
        Single settings that differ from `settings`; nested names too.

    Examples
    --------
    >>> from coevo import evolve_policy
    >>> result = evolve_policy("CartPole-v1", max_generations=1, seed=1)  # doctest: +SKIP
    """
    if "fitness" in changes or (settings is not None and not is_auto(settings.fitness)):
        raise ValueError("fitness is the mean return of episodes; shape it with reward")
    check_flag("normalize_observations", normalize_observations)
    check_flag("simultaneous", simultaneous)
    check_integer("n_training_seeds", n_training_seeds, 1)
    check_integer("n_validation_seeds", n_validation_seeds, 1)
    if max_steps is not None:
        check_integer("max_steps", max_steps, 1)
    if not (isinstance(env, str) or callable(env)):
        raise TypeError(
            f"env must be the id of a Gymnasium environment or a function that returns one, got "
            f"{env!r}"
        )
    if reward is not None and not callable(reward):
        raise TypeError(f"reward must be a function of a Step, got {reward!r}")
    settings = resolve_settings(settings, variant, complete(settings, variant, changes))
    hooks = gather_hooks(callbacks, checkpoint, resume)
    settings = replace(settings, seed=_choose_seed(settings, hooks))
    simulator = make_simulator(env, env_kwargs, settings, bounds, max_steps, reward)
    options = {
        "env": env, "env_kwargs": env_kwargs, "n_training_seeds": n_training_seeds,
        "n_validation_seeds": n_validation_seeds, "max_steps": max_steps, "reward": reward,
        "bounds": bounds, "normalize_observations": normalize_observations,
        "simultaneous": simultaneous,
    }  # fmt: skip
    assert settings.seed is not None
    with closing(simulator), choose_backend(backend, n_workers, cluster) as chosen:
        source = EpisodeSource(
            simulator, chosen, settings.seed, n_training_seeds, n_validation_seeds,
            normalize_observations, settings.limited_evaluation,
        )  # fmt: skip
        source.start()
        problem = BlackBoxProblem(
            source,
            simulator.architecture,
            "episodes",
            simultaneous,
            arguments=plain_settings(settings) | as_plain(options),
        )
        result = run_search(problem, settings, hooks)
    genotype = source.fold(result.network.genotype, source.best_scaling)
    policy = Policy(
        Network(simulator.architecture, genotype), simulator.observations, simulator.actions, env,
        env_kwargs, max_steps,
    )  # fmt: skip
    return PolicyResult(
        policy, result.validation_fitness, result.history, result.stop_reason, result.generations,
        result.evaluations, source.n_episodes, source.n_steps, result.seconds, result.settings,
    )  # fmt: skip


def make_simulator(
    env: str | Callable[..., Any],
    env_kwargs: Mapping[str, Any] | None,
    settings: Settings,
    bounds: str = "squash",
    max_steps: int | None = None,
    reward: Callable[[Step], float] | None = None,
) -> Simulator:
    """Return an environment for workers.

    Parameters
    ----------
    settings
        Have hidden layers and activation.
    env, env_kwargs, bounds, max_steps, reward
        As for `evolve_policy`.
    """
    made = make_environment(env, env_kwargs)
    observations = describe_space(made.observation_space)
    actions = describe_actions(made.action_space, bounds)
    close_environment(made)
    n_inputs, n_outputs = Observations(observations).n_inputs, Actions(actions).n_outputs
    for name, n in (("observation", n_inputs), ("action", n_outputs)):
        if n == 0:
            raise ValueError(f"env.{name}_space is {getattr(made, f'{name}_space')}: it is empty")
    architecture = Architecture(
        n_inputs, settings.hidden_layer_sizes, n_outputs, settings.activation
    )
    return Simulator(env, env_kwargs, observations, actions, architecture, max_steps, reward)


def _choose_seed(settings: Settings, hooks: Sequence[Any]) -> int:
    """Return the seed, drawn if there is none; a resumed run has the one it began with."""
    if settings.seed is not None:
        return settings.seed
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    for hook in hooks:
        if isinstance(hook, Checkpoint):
            seed = hook.choose_seed(seed)
    return seed
