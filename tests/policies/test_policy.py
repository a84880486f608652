"""Policies as objects and files."""

import numpy as np
import pytest

import coevo
from coevo import Architecture, Network, Policy, load_policy
from coevo.persistence.model import ModelError
from coevo.policies.policy import summarise
from coevo.policies.spaces import Actions, Observations, describe_actions, describe_space

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
spaces = gymnasium.spaces

SPACES = {
    "discrete": spaces.Discrete(3, start=2),
    "multi": spaces.MultiDiscrete([2, 3]),
    "binary": spaces.MultiBinary(4),
    "box": spaces.Box(np.float32([-2, 0]), np.float32([2, 5])),
    "open box": spaces.Box(-np.inf, np.inf, (1, 2), dtype=np.float64),
}
BOUNDS = ["squash", "clip"]


def make_policy(action_space, bounds="squash", observation_space=None, **further):
    observation_space = observation_space or spaces.Box(-1, 1, (3,))
    observations = describe_space(observation_space)
    actions = describe_actions(action_space, bounds)
    n_inputs, n_outputs = Observations(observations).n_inputs, Actions(actions).n_outputs
    architecture = Architecture(n_inputs, (5,), n_outputs)
    genotype = np.random.default_rng(1).normal(size=architecture.n_genes)
    return Policy(Network(architecture, genotype), observations, actions, **further)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_policy_acts_the_same_after_a_round_trip(tmp_path, rng, space, bounds):
    policy = make_policy(space, bounds)
    policy.save(tmp_path / "policy.safetensors")
    loaded = load_policy(tmp_path / "policy.safetensors")
    for _ in range(5):
        observation = rng.normal(size=3)
        action = loaded.act(observation)
        assert space.contains(action)
        np.testing.assert_array_equal(action, policy.act(observation))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_an_exported_policy_acts_the_same(tmp_path, rng, space, bounds):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    policy = make_policy(space, bounds)
    path = tmp_path / "policy.onnx"
    policy.export_onnx(path)
    session = onnxruntime.InferenceSession(path)
    inputs = rng.normal(size=(20, 3))
    (actions,) = session.run(["action"], {"observation": inputs})
    expected = np.array([np.ravel(policy.act(observation)) for observation in inputs])
    np.testing.assert_allclose(actions.reshape(20, -1), expected, rtol=1e-6)


def test_a_policy_of_an_id_knows_its_environment(tmp_path):
    env = gymnasium.make("Acrobot-v1")
    policy = make_policy(
        env.action_space, observation_space=env.observation_space, env="Acrobot-v1", max_steps=9,
        env_kwargs={"render_mode": None},
    )  # fmt: skip
    policy.save(tmp_path / "policy.safetensors")
    loaded = load_policy(tmp_path / "policy.safetensors")
    assert (loaded.env, loaded.max_steps) == ("Acrobot-v1", 9)
    assert loaded.mean_return(3) == policy.mean_return(3) == (-9, -9, -9, 3)
    assert loaded.make_environment().spec.id == "Acrobot-v1"
    assert loaded.mean_return(3, max_steps=5).mean == -5


def test_a_factory_is_not_saved(tmp_path, make_target_env):
    factory = make_target_env()
    policy = make_policy(
        spaces.Box(-1, 1, (1,)), observation_space=spaces.Box(-9, 9, (2,)), env=factory
    )
    policy.save(tmp_path / "policy.safetensors")
    loaded = load_policy(tmp_path / "policy.safetensors")
    with pytest.raises(ValueError, match="env must be given: the policy does not know"):
        loaded.mean_return()
    fresh = loaded.mean_return(5, env=factory, seed=1)
    assert fresh == policy.mean_return(5, seed=1) != policy.mean_return(5, seed=2)
    assert fresh == loaded.mean_return(5, env=factory, seed=1, backend="processes", n_workers=2)
    with pytest.raises(ValueError, match=r"env=.*CartPole-v1.* has the observations"):
        loaded.mean_return(env="CartPole-v1")


def test_other_spaces_are_refused_before_anything_is_shown(tmp_path):
    policy = make_policy(spaces.Discrete(3), observation_space=spaces.Box(-1, 1, (4,)))
    for use in (policy.make_environment, lambda **env: policy.record(tmp_path / "x.gif", **env)):
        with pytest.raises(ValueError, match=r"env='CartPole-v1' has the actions .*'n': 2"):
            use(env="CartPole-v1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"max_steps": 0}, ValueError, "max_steps must be at least 1, got 0"),
        ({"max_steps": 2.5}, TypeError, "max_steps must be a whole number, got 2.5"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
    ],
)
def test_episodes_have_a_length_and_a_seed(tmp_path, changes, error, message):
    space = gymnasium.make("CartPole-v1").observation_space
    policy = make_policy(spaces.Discrete(2), observation_space=space, env="CartPole-v1")
    with pytest.raises(error, match=message):
        policy.mean_return(2, **changes)
    with pytest.raises(error, match=message):
        policy.record(tmp_path / "x.gif", **changes)


def test_files_without_a_policy_are_refused(tmp_path):
    network = Network(Architecture(2, (), 1), np.zeros(3))
    path = tmp_path / "network.safetensors"
    coevo.save_model(path, network)
    with pytest.raises(ModelError, match="holds a network, but no policy"):
        load_policy(path)
    good = {
        "observations": {"space": "Box", "shape": [2]}, "env": None, "env_kwargs": {},
        "actions": {"space": "Discrete", "n": 1, "start": 0}, "max_steps": None,
    }  # fmt: skip
    coevo.save_model(path, network, policy=good)
    load_policy(path)
    for change, message in [
        ({"observations": {"space": "Box", "shape": [3]}}, "does not take its observations"),
        ({"actions": {"space": "Discrete", "n": 2, "start": 0}}, "does not give its actions"),
        ({"actions": {"space": "?"}}, "is no space"),
        ({"env": 3}, "its env is not a name"),
        ({"env_kwargs": None}, "its env_kwargs are not a table"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"surprise": 1}, "surprise"),
    ]:
        coevo.save_model(path, network, policy=good | change)
        with pytest.raises(ModelError, match=message):
            load_policy(path)


def test_a_wrong_observation_is_refused():
    with pytest.raises(ValueError, match="observation has 2 numbers; the policy takes 3"):
        make_policy(spaces.Discrete(2)).act(np.zeros(2))


def test_the_interval_is_students():
    found = summarise(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2
    assert found.high - found.mean == pytest.approx(4.302653 / np.sqrt(3))
    assert summarise(np.array([5.0, 5.0])) == (5, 5, 5, 2)
