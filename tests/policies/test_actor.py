"""A network on one observation after the other."""

import numpy as np
import pytest

from coevo.core.network import ACTIVATIONS, Architecture
from coevo.policies.actor import Actor

pytestmark = pytest.mark.without_jit


def box(n, **further):
    return {"space": "Box", "shape": [n], **further}


def discrete(n, start=0):
    return {"space": "Discrete", "n": n, "start": start}


def bounded(low, high, bounds, dtype="float32", shape=None):
    ends = {"low": list(map(float, low)), "high": list(map(float, high))}
    return {"space": "Box", "shape": shape or [len(low)], "dtype": dtype, "bounds": bounds, **ends}


def pass_on(actions, outputs):
    """Return the action for outputs: each output neuron has one of them as its bias."""
    architecture = Architecture(1, (), len(outputs))
    actor = Actor(architecture, box(1), actions)
    actor.load(np.ravel([[0.0, output] for output in outputs]))
    return actor.act(np.zeros(1))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (5,), (3, 4)])
def test_the_outputs_are_those_of_the_network(rng, activation, hidden):
    architecture = Architecture(3, hidden, 2, activation)
    genotype, centre = rng.normal(size=architecture.n_genes), rng.normal(size=3)
    open_box = bounded([-np.inf] * 2, [np.inf] * 2, "clip", "float64")
    steering = Actor(architecture, box(3), open_box)
    choosing = Actor(architecture, box(3), discrete(2, start=5))
    for actor in (steering, choosing):
        actor.load(rng.normal(size=architecture.n_genes), centre)  # leaves nothing behind
        actor.act(rng.normal(size=3))
        actor.load(genotype, centre)
        actor.statistics.fill(0)
    observations = rng.normal(size=(4, 3)).astype(np.float32)
    for observation in observations:
        expected = architecture.forward(genotype, observation[np.newaxis].astype(float))[0]
        np.testing.assert_allclose(steering.act(observation), expected, rtol=1e-12)
        assert choosing.act(observation) == 5 + expected.argmax()
    differences = observations - centre
    for actor in (steering, choosing):
        np.testing.assert_allclose(actor.statistics[0], differences.sum(axis=0))
        np.testing.assert_allclose(actor.statistics[1], (differences**2).sum(axis=0))


def test_the_first_of_equal_outputs_is_chosen():
    assert pass_on(discrete(3), [1.0, 2.0, 2.0]) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_outputs_of_one_stand_for_the_ends_of_a_box(dtype):
    low, high, outputs = [-1, -1, -1, -np.inf], [3, 3, 3, np.inf], [-1.0, 0.5, 3.0, 3.0]
    clipped = pass_on(bounded(low, high, "clip", dtype), outputs)
    assert clipped.dtype == dtype
    np.testing.assert_allclose(clipped, [-1, 2, 3, 3])
    squashed = pass_on(bounded(low, high, "squash", dtype), outputs)
    within = [1 + 2 * np.tanh(output) for output in outputs[:3]]
    np.testing.assert_allclose(squashed, [*within, 3.0], rtol=1e-6)


def test_an_action_is_an_array_of_its_own():
    actor = Actor(Architecture(1, (), 4), box(1), bounded([-1] * 4, [1] * 4, "clip", shape=[2, 2]))
    actor.load(np.ones(8))
    first = actor.act(np.zeros(1))
    assert first.shape == (2, 2)
    actor.act(np.full(1, -9.0))
    np.testing.assert_array_equal(first, np.ones((2, 2)))


def test_bad_observations_are_refused_and_not_added_up():
    for actions in (discrete(2), bounded([-1, -1], [1, 1], "clip")):
        actor = Actor(Architecture(3, (), 2), box(3), actions)
        for n in (0, 2, 4):
            with pytest.raises(ValueError, match=f"observation has {n} numbers; .* takes 3"):
                actor.act(np.zeros(n))
        assert actor.statistics.tolist() == [[0, 0, 0]] * 2
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="an observation holds NaN or infinity"):
                actor.act(np.array([bad, 0, 0]))
