import json

import numpy as np
import pytest

from coevo.core.network import Architecture
from coevo.policies.actor import Actor
from coevo.policies.spaces import (
    Actions,
    Observations,
    check_plain,
    describe_actions,
    describe_space,
)

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
spaces = gymnasium.spaces

OBSERVATIONS = {
    "box": spaces.Box(-1, 1, (3,)),
    "image": spaces.Box(0, 255, (2, 3), np.uint8),
    "discrete": spaces.Discrete(4, start=-1),
    "multi": spaces.MultiDiscrete([2, 3]),
    "binary": spaces.MultiBinary((2, 2)),
    "dict": spaces.Dict(b=spaces.Discrete(2), a=spaces.Dict(x=spaces.Box(-1, 1, (2,)))),
    "tuple": spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1, (1, 2))]),
}
ACTIONS = {
    "discrete": spaces.Discrete(3, start=2),
    "multi": spaces.MultiDiscrete([2, 3]),
    "binary": spaces.MultiBinary(4),
    "box": spaces.Box(np.float32([-2, 0]), np.float32([2, 5])),
    "open box": spaces.Box(np.float32([[-np.inf, 0]]), np.float32([[np.inf, np.inf]])),
}


@pytest.mark.parametrize("space", OBSERVATIONS.values(), ids=OBSERVATIONS)
def test_observations_are_flattened_as_gymnasium_does(space):
    plain = json.loads(json.dumps(describe_space(space)))
    check_plain(plain, is_action=False)
    observations = Observations(plain)
    space.seed(1)
    for _ in range(5):
        value = space.sample()
        expected = spaces.flatten(space, value)
        assert observations.n_inputs == len(expected)
        np.testing.assert_allclose(observations.flatten(value), expected)


@pytest.mark.parametrize("bounds", ["squash", "clip"])
@pytest.mark.parametrize("space", ACTIONS.values(), ids=ACTIONS)
def test_actions_lie_in_their_space(rng, space, bounds):
    plain = json.loads(json.dumps(describe_actions(space, bounds)))
    check_plain(plain, is_action=True)
    actions = Actions(plain)
    assert (
        actions.n_outputs == len(spaces.flatten(space, space.sample())) or "Multi" in plain["space"]
    )
    for _ in range(20):
        outputs = rng.normal(scale=3, size=actions.n_outputs)
        actor = Actor(Architecture(1, (), actions.n_outputs), {"space": "Box", "shape": [1]}, plain)
        actor.load(np.ravel([[0.0, output] for output in outputs]))
        assert space.contains(actor.act(np.zeros(1)))


def test_choices_are_the_largest_outputs():
    outputs = np.array([0.1, 0.3, 0.2, 0.9, -1.0])
    multi = Actions(describe_actions(spaces.MultiDiscrete([2, 3]), "clip"))
    assert multi.decode(outputs).tolist() == [1, 1]
    binary = Actions(describe_actions(spaces.MultiBinary(5), "clip"))
    assert binary.decode(outputs).tolist() == [1, 1, 1, 1, 0]


def test_spaces_without_a_fixed_size_are_refused():
    with pytest.raises(ValueError, match=r"env.observation_space is Text.*accepted are Box"):
        describe_space(spaces.Text(5))
    with pytest.raises(ValueError, match=r"env.observation_space\['a'\] is Sequence"):
        describe_space(spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))))
    with pytest.raises(ValueError, match=r"env.action_space is Tuple.*accepted are Discrete"):
        describe_actions(spaces.Tuple([spaces.Discrete(2)]), "clip")
    with pytest.raises(ValueError, match=r"env.action_space is Box.*must be float32 or float64"):
        describe_actions(spaces.Box(0, 255, (2,), np.uint8), "clip")
    with pytest.raises(ValueError, match=r"(?s)env.action_space is Multi.*must have one dim"):
        describe_actions(spaces.MultiDiscrete(np.full((2, 2), 3)), "clip")
    with pytest.raises(ValueError, match="bounds='cut' is unknown; choose one of squash, clip"):
        describe_actions(spaces.Discrete(2), "cut")


@pytest.mark.parametrize(
    "plain",
    [
        None, {}, {"space": "Discrete"}, {"space": "Discrete", "n": 0, "start": 0},
        {"space": "Box", "shape": [2.5]}, {"space": "Box", "shape": [1]},
        {"space": "Box", "shape": [1], "low": [0.0], "high": [float("nan")], "dtype": "float32",
         "bounds": "clip"},
        {"space": "MultiDiscrete", "nvec": [2], "start": []},
        {"space": "Dict", "parts": {"a": {"space": "Discrete", "n": 2, "start": 0}}},
        {"space": "Tuple", "parts": {}},
    ],
)  # fmt: skip
def test_what_is_no_action_space_is_refused(plain):
    with pytest.raises(ValueError, match="is no space"):
        check_plain(plain, is_action=True)


def test_what_is_no_observation_space_is_refused():
    for plain in ({"space": "Dict", "parts": []}, {"space": "Tuple", "parts": [{"space": "?"}]}):
        with pytest.raises(ValueError, match="is no space"):
            check_plain(plain, is_action=False)
