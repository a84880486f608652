"""`evolve_policy`: it learns, it resumes bit for bit, and it says what it cannot do."""

import subprocess
import sys

import numpy as np
import pytest

from coevo import (
    Architecture,
    Settings,
    Smoothing,
    evolve_function,
    evolve_policy,
    load_policy,
)
from coevo.core.stopping import StopReason
from coevo.policies.defaults import DEFAULTS

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
SMALL = {"hidden_layer_sizes": (3,), "population_size": 6, "seed": 4}


def test_a_policy_gets_to_the_target(make_target_env):
    result = evolve_policy(make_target_env(), **SMALL, max_evaluations=3000)
    start = result.history.rows[0, 4]
    reached = result.mean_return(50)
    assert reached.mean > max(start, -3.0)  # standing still has a mean of −6.7
    assert reached.low < reached.mean < reached.high
    assert result.stop_reason is StopReason.MAX_EVALUATIONS
    assert result.validation_return == result.history.rows[-1, 5]
    assert result.settings.fitness.source == "episodes"


def test_the_returned_network_did_what_validation_says(make_target_env):
    result = evolve_policy(make_target_env(), **SMALL, max_generations=5)
    from coevo.policies.simulation import _VALIDATION, draw_seeds

    env, returns = make_target_env()(), []
    for seed in draw_seeds(SMALL["seed"], _VALIDATION, 20):
        observation, _ = env.reset(seed=int(seed))
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, is_over, _, _ = env.step(result.act(observation))
            total += reward
        returns.append(total)
    assert np.mean(returns) == pytest.approx(result.validation_return, rel=1e-12)


@pytest.mark.parametrize("variant", ["DE", "LEDE", "CCDE", "LECCDE"])
def test_variants(make_target_env, variant):
    result = evolve_policy(
        make_target_env(), variant=variant, n_training_seeds=4, max_generations=2, **SMALL
    )
    assert result.generations == 2
    assert result.settings.limited_evaluation == variant.startswith("LE")
    per_generation = result.evaluations / (result.generations + 1)
    assert result.episodes > per_generation


def test_settings_are_those_of_policies(make_target_env):
    result = evolve_policy(make_target_env(), max_generations=1, seed=1, population_size=5)
    expected = Settings(**DEFAULTS | {"population_size": 5})
    for name in DEFAULTS:
        assert getattr(result.settings, name) == getattr(expected, name)
    given = Settings(hidden_layer_sizes=(2,), batch_size=3, max_generations=1, seed=1)
    settings = evolve_policy(make_target_env(), given).settings
    assert settings.batch_size == 3
    assert settings.scale_factor == DEFAULTS["scale_factor"]


def test_a_resumed_run_is_the_same_run(make_target_env, tmp_path):
    factory, path = make_target_env(), tmp_path / "run.checkpoint"
    whole = evolve_policy(factory, **SMALL, max_generations=6)
    evolve_policy(factory, **SMALL, max_generations=2, checkpoint=path)
    resumed = evolve_policy(
        factory, **SMALL, max_generations=6, checkpoint=path, resume=True, backend="processes",
        n_workers=2,
    )  # fmt: skip
    np.testing.assert_array_equal(resumed.network.genotype, whole.network.genotype)
    assert resumed.validation_return == whole.validation_return
    assert resumed.evaluations == whole.evaluations
    assert abs(resumed.steps - whole.steps) <= 10 * DEFAULTS["batch_size"]  # train fitness, twice
    with pytest.raises(ValueError, match=r"max_steps is None in the checkpoint and 7 here"):
        evolve_policy(factory, **SMALL, max_generations=9, checkpoint=path, resume=True,
                      max_steps=7)  # fmt: skip


KILLED = """
import os, signal, sys
from coevo import Checkpoint, evolve_policy
def kill(search):
    if search.state.generation == 3:
        os.kill(os.getpid(), signal.SIGKILL)
evolve_policy("Pendulum-v1", hidden_layer_sizes=(2,), population_size=4, max_generations=5, seed=2,
    max_steps=20, checkpoint=Checkpoint(sys.argv[1], every_generations=1), callbacks=[kill],
    backend="processes", n_workers=2)
"""


def test_a_killed_run_is_resumed_bit_for_bit(tmp_path):
    path = tmp_path / "run.checkpoint"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=120)
    assert done.returncode < 0
    arguments = {
        "hidden_layer_sizes": (2,), "population_size": 4, "max_generations": 5, "seed": 2,
        "max_steps": 20,
    }  # fmt: skip
    resumed = evolve_policy("Pendulum-v1", **arguments, checkpoint=path, resume=True)
    whole = evolve_policy("Pendulum-v1", **arguments)
    np.testing.assert_array_equal(resumed.network.genotype, whole.network.genotype)
    assert resumed.evaluations == whole.evaluations


def test_a_run_without_a_seed_resumes_with_its_own(make_target_env, tmp_path):
    arguments = SMALL | {"seed": None}
    path = tmp_path / "run.checkpoint"
    first = evolve_policy(make_target_env(), **arguments, max_generations=1, checkpoint=path)
    second = evolve_policy(
        make_target_env(), **arguments, max_generations=2, checkpoint=path, resume=True
    )
    assert first.settings.seed == second.settings.seed


def test_observations_are_normalised_by_all_generations_before(make_target_env):
    scalings = []
    evolve_policy(
        make_target_env(), **SMALL, max_generations=3,
        callbacks=[lambda search: scalings.append(search.evaluator.source.scaling)],
    )  # fmt: skip
    assert len({scaling.centre.tobytes() for scaling in scalings}) == 3
    assert all(np.all(scaling.factor > 0) for scaling in scalings)
    fixed = []
    evolve_policy(
        make_target_env(), **SMALL, max_generations=3, variant="CCDE", n_training_seeds=2,
        callbacks=[lambda search: fixed.append(search.evaluator.source.scaling)],
    )  # fmt: skip
    assert fixed[0] is fixed[2]  # fitness is not measured again, and must stay true
    assert not np.array_equal(fixed[0].factor, [1, 1])
    raw = []
    evolve_policy(
        make_target_env(), **SMALL, max_generations=1, normalize_observations=False,
        callbacks=[lambda search: raw.append(search.evaluator.source.scaling)],
    )  # fmt: skip
    assert raw[0].factor.tolist() == [1, 1]


def test_environments_by_id_take_arguments():
    result = evolve_policy(
        "Pendulum-v1", env_kwargs={"g": 0.0}, hidden_layer_sizes=(), max_generations=1, seed=1,
        max_steps=10, population_size=4,
    )  # fmt: skip
    assert result.policy.make_environment().unwrapped.g == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fitness": "accuracy"}, "fitness is the mean return of episodes; shape it with reward"),
        ({"n_validation_seeds": 0}, "n_validation_seeds must be at least 1"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"bounds": "tanh"}, "bounds='tanh' is unknown"),
        ({"batchsize": 3}, "batchsize"),
        ({"resume": True}, "resume=True needs a checkpoint"),
    ],
)
def test_refusals(make_target_env, changes, message):
    with pytest.raises(ValueError, match=message):
        evolve_policy(make_target_env(), **changes)


def test_smoothing_needs_data(make_target_env):
    for arguments in ({"strategy": "smoothing"}, {"settings": Settings(strategy=Smoothing())}):
        with pytest.raises(ValueError, match=r'strategy="smoothing" needs a data set'):
            evolve_policy(make_target_env(), **arguments)
        with pytest.raises(ValueError, match=r'strategy="smoothing" needs a data set'):
            evolve_function(lambda *_: 0.0, Architecture(1, (), 1), instances=4, **arguments)


def test_wrong_types(make_target_env):
    with pytest.raises(TypeError, match="env_kwargs must be a dictionary of arguments, got"):
        evolve_policy(make_target_env(), env_kwargs=[1])
    with pytest.raises(TypeError, match="reward must be a function of a Step"):
        evolve_policy(make_target_env(), reward=3)
    with pytest.raises(TypeError, match="simultaneous must be True or False"):
        evolve_policy(make_target_env(), simultaneous=1)


def test_an_environment_need_not_be_a_gymnasium_env(make_target_env):
    class Plain:
        """Has what is needed and nothing else; not even `close`."""

        def __init__(self):
            env = make_target_env()()
            self.observation_space, self.action_space = env.observation_space, env.action_space
            self.reset, self.step = env.reset, env.step

    result = evolve_policy(Plain, **SMALL, max_generations=1)
    expected = evolve_policy(make_target_env(), **SMALL, max_generations=1)
    np.testing.assert_array_equal(result.network.genotype, expected.network.genotype)
    assert result.mean_return(3) == expected.mean_return(3)


def test_the_environment_is_closed_whatever_happens(make_target_env):
    closed = []

    def factory():
        env = make_target_env()()
        env.close = lambda: closed.append(env)
        return env

    def fail(search):
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError, match="no"):
        evolve_policy(factory, **SMALL, max_generations=1, callbacks=[fail])
    assert len(set(map(id, closed))) == 2  # one to see its spaces, one for the episodes


@pytest.mark.parametrize("backend", ["serial", "processes"])
def test_nested_observations_and_several_choices(tmp_path, backend):
    spaces = gymnasium.spaces

    class Signs(gymnasium.Env):
        """Rewards 1 for each of two choices that says what is seen."""

        observation_space = spaces.Dict(
            a=spaces.Box(-1, 1, (1,)), b=spaces.Dict(kind=spaces.Discrete(3, start=1))
        )
        action_space = spaces.MultiDiscrete([2, 3])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.n_steps = 0
            return self._observe(), {}

        def _observe(self):
            self.seen = self.np_random.uniform(-1, 1, 1), int(self.np_random.integers(1, 4))
            return {"a": self.seen[0], "b": {"kind": self.seen[1]}}

        def step(self, action):
            assert self.action_space.contains(action)
            wanted = [self.seen[0][0] > 0, self.seen[1] - 1]
            reward = float(np.sum(action == wanted))
            self.n_steps += 1
            return self._observe(), reward, self.n_steps == 10, False, {}

    result = evolve_policy(
        Signs, hidden_layer_sizes=(4,), seed=1, max_evaluations=1_500, backend=backend
    )
    assert result.network.architecture.n_inputs == 4
    assert result.mean_return(50).low > 12  # chance is 8.3 of 20
    result.save(tmp_path / "policy.safetensors")
    loaded = load_policy(tmp_path / "policy.safetensors")
    assert loaded.mean_return(5, env=Signs) == result.mean_return(5)


def test_spaces_are_checked_before_anything_runs(make_target_env):
    spaces = gymnasium.spaces
    with pytest.raises(ValueError, match=r"env.observation_space is Text"):
        evolve_policy(make_target_env(observation_space=spaces.Text(3)))
    with pytest.raises(ValueError, match=r"env.observation_space is Box\(.*: it is empty"):
        evolve_policy(make_target_env(observation_space=spaces.Box(-1, 1, (0,))))
    with pytest.raises(ValueError, match=r"env.action_space is Dict"):
        evolve_policy(make_target_env(action_space=spaces.Dict(a=spaces.Discrete(2))))
