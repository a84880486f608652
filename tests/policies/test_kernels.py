import numpy as np
import pytest

from coevo.core.network import ACTIVATIONS, Architecture
from coevo.engines.kernels.activations import ACTIVATION_CODES
from coevo.policies.kernels import respond, steer

pytestmark = pytest.mark.without_jit


def run(architecture, genotype, observation, centre):
    sizes = np.array(
        [architecture.n_inputs, *architecture.hidden_layer_sizes, architecture.n_outputs]
    )
    statistics = np.stack([centre, np.zeros_like(centre), np.zeros_like(centre)])
    outputs = np.empty(architecture.n_outputs)
    largest = respond(
        genotype, sizes, ACTIVATION_CODES[architecture.activation], observation, statistics,
        np.empty((2, sizes.max())), outputs,
    )  # fmt: skip
    return largest, outputs, *statistics[1:]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (5,), (3, 4)])
def test_a_network_on_one_observation(rng, activation, hidden):
    architecture = Architecture(3, hidden, 2, activation)
    genotype = rng.normal(size=architecture.n_genes)
    observation, centre = rng.normal(size=3).astype(np.float32), rng.normal(size=3)
    largest, outputs, sums, squares = run(architecture, genotype, observation, centre)
    expected = architecture.forward(genotype, observation[np.newaxis].astype(float))[0]
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)
    assert largest == expected.argmax()
    np.testing.assert_allclose(sums, observation - centre)
    np.testing.assert_allclose(squares, (observation - centre) ** 2)


def test_the_first_of_equal_outputs_is_the_largest():
    architecture = Architecture(1, (), 3)
    assert run(architecture, np.zeros(6), np.zeros(1), np.zeros(1))[0] == 0


def test_an_observation_of_another_length_is_refused_and_not_read():
    architecture = Architecture(3, (), 2)
    for n in (0, 2, 4):
        assert run(architecture, np.zeros(8), np.zeros(n), np.zeros(3))[0] == -1


def test_steering():
    outputs = np.array([0.5, 0.5, 3.0, 3.0, 3.0])
    centre, half = np.array([1.0, 1.0, 1.0, 1.0, 0.0]), np.array([2.0, 2.0, 2.0, 2.0, 1.0])
    squashed = np.array([False, True, False, True, False])
    low, high = np.array([-1.0] * 4 + [-np.inf]), np.array([3.0] * 4 + [np.inf])
    expected = [2.0, 1 + 2 * np.tanh(0.5), 3.0, 1 + 2 * np.tanh(3.0), 3.0]
    for dtype in (np.float32, np.float64):
        actions = steer(outputs, np.array([low, high, centre, half, squashed], dtype=dtype))
        assert actions.dtype == dtype
        np.testing.assert_allclose(actions, expected, rtol=1e-6)
