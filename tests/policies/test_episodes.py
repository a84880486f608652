"""Episodes by hand, and environments that misbehave."""

import numpy as np
import pytest

from coevo import Architecture, evolve_policy
from coevo.policies import EpisodeError
from coevo.policies.episodes import Simulator, make_environment

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")

OBSERVATIONS = {"space": "Box", "shape": [2]}
ACTIONS = {
    "space": "Box", "shape": [1], "low": [-1.0], "high": [1.0], "dtype": "float32",
    "bounds": "clip",
}  # fmt: skip
LINEAR = Architecture(2, (), 1)
TOWARDS = np.array([-3.0, 3.0, 0.0])  # weights of place and target, bias


def simulate(env, seeds, genotypes=TOWARDS[np.newaxis], is_shaped=False, **changes):
    simulator = Simulator(env, None, OBSERVATIONS, ACTIONS, LINEAR, **changes)
    rows = np.zeros(len(seeds), dtype=int)
    return simulator.run(genotypes, rows, np.array(seeds), np.zeros(2), is_shaped)


def test_an_episode_is_what_a_loop_by_hand_gives(make_target_env):
    factory = make_target_env()
    found = simulate(factory, [5, 6])
    for k, seed in enumerate([5, 6]):
        env = factory()
        observation, _ = env.reset(seed=seed)
        seen, rewards, is_over = [], [], False
        while not is_over:
            seen.append(observation)
            action = np.clip(TOWARDS[:2] @ observation, -1, 1)
            observation, reward, is_over, _, _ = env.step(np.array([action]))
            rewards.append(reward)
        assert found.returns[k] == pytest.approx(sum(rewards))
        assert found.steps[k] == len(rewards) == 10
        np.testing.assert_allclose(found.sums[k], np.sum(seen, axis=0, dtype=float))
        np.testing.assert_allclose(found.squares[k], np.square(seen, dtype=float).sum(axis=0))


def test_the_environment_is_made_once_and_closed_after_an_error(make_target_env):
    made = []

    def fail_later(env, answer):
        if env.n_steps == 3 and len(made) == 1:
            raise ZeroDivisionError("bump")

    def factory():
        made.append(make_target_env(fail_later)())
        made[-1].close = lambda: made.append("closed")
        return made[-1]

    simulator = Simulator(factory, None, OBSERVATIONS, ACTIONS, LINEAR)
    arguments = (TOWARDS[np.newaxis], np.zeros(2, int), np.array([1, 2]), np.zeros(2), False)
    message = "failed after 2 steps of the episode with seed 1: ZeroDivisionError: bump"
    with pytest.raises(EpisodeError, match=message):
        simulator.run(*arguments)
    assert made[1:] == ["closed"]
    simulator.run(*arguments)
    simulator.run(*arguments)
    assert len(made) == 3


def test_random_actions_depend_on_the_seed_alone(make_target_env):
    first = simulate(make_target_env(), [3, 4], genotypes=None)
    second = simulate(make_target_env(), [4], genotypes=None)
    assert first.returns[1] == second.returns[0] != first.returns[0]


def test_steps_are_limited(make_target_env):
    assert simulate(make_target_env(), [1], max_steps=4).steps.tolist() == [4]
    assert simulate(make_target_env(), [1], max_steps=40).steps.tolist() == [10]


def test_rewards_are_shaped_in_training_only(make_target_env):
    steps = []

    def reward(step):
        steps.append(step)
        return 1

    shaped = simulate(make_target_env(), [1], reward=reward, is_shaped=True)
    assert shaped.returns.tolist() == [10]
    assert len(steps) == 10
    assert steps[0].next_observation is steps[1].observation
    assert [step.terminated for step in steps] == [False] * 9 + [True]
    plain = simulate(make_target_env(), [1], reward=reward)
    assert plain.returns[0] == pytest.approx(sum(step.reward for step in steps))


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (lambda step: 1 / 0, "ZeroDivisionError"),
        (lambda step: float("nan"), "it returned nan; rewards must be finite"),
        (lambda step: None, "TypeError"),
    ],
)
def test_a_bad_reward_is_not_the_environments_fault(make_target_env, reward, message):
    with pytest.raises(EpisodeError, match=f"^reward=.*lambda.* failed after 0 steps .*{message}"):
        simulate(make_target_env(), [1], reward=reward, is_shaped=True)


def misbehave(kind):
    observation = np.zeros(2, dtype=np.float32)
    return {
        "NaN reward": lambda env, answer: (observation, float("nan"), *answer[2:]),
        "no reward": lambda env, answer: (observation, None, False, False, {}),
        "NaN observation": lambda env, answer: (observation * np.nan, *answer[1:]),
        "long observation": lambda env, answer: (np.zeros(3), *answer[1:]),
        "four values": lambda env, answer: answer[:4],
        "endless": lambda env, answer: (observation, 0.0, False, False, {}),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("NaN reward", "the rewards add up to nan; they must be finite"),
        ("no reward", "0 steps of the episode with seed .*TypeError"),
        ("NaN observation", "an observation holds NaN or infinity"),
        ("long observation", "the observation has 3 numbers; the policy takes 2"),
        ("four values", "not enough values to unpack"),
        ("endless", "the episode does not end: set max_steps"),
    ],
)
def test_bad_environments_are_named(make_target_env, monkeypatch, kind, message):
    monkeypatch.setattr("coevo.policies.episodes.ENDLESS", 50)
    factory = make_target_env(misbehave(kind))
    with pytest.raises(EpisodeError, match=f"env=.*Target.* failed after .*({message})"):
        evolve_policy(factory, hidden_layer_sizes=(), max_generations=1, seed=1)


def test_endless_episodes_are_cut_off_by_max_steps(make_target_env):
    result = evolve_policy(
        make_target_env(misbehave("endless")), hidden_layer_sizes=(), max_generations=1, seed=1,
        max_steps=5, population_size=4,
    )  # fmt: skip
    assert result.steps == 5 * result.episodes


def test_what_is_no_environment_is_refused():
    for env, error, message in [
        ("NoSuch-v0", ValueError, "env='NoSuch-v0' cannot be made"),
        (lambda: 1 / 0, ValueError, "cannot be made: ZeroDivisionError"),
        (lambda: 3, TypeError, "returned a int without reset, step, observation_space"),
    ]:
        with pytest.raises(error, match=message):
            make_environment(env)
    with pytest.raises(TypeError, match="env must be the id of a Gymnasium environment or a func"):
        evolve_policy(3)


def test_a_missing_gymnasium_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"need Gymnasium: pip install 'coevo\[control\]'"):
        make_environment("CartPole-v1")
