"""The network: layout, activations and forward pass."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.core.network import ACTIVATIONS, Architecture, Network

# The paper's appendix: i1 i2 i3 → h1 h2 → o1, biases last.
APPENDIX = Architecture(3, (2,), 1, output_activation="tanh")
APPENDIX_GENOTYPE = np.array([0.7, 0.8, 0.1, 0.4, 2.1, 0.6, 1.2, 1.4, 0.3, 0.5, 1.3])


def psi(x):
    return 2 / (1 + math.exp(-2 * x)) - 1


@pytest.mark.parametrize(
    ("inputs", "h1", "h2"),
    [
        ((0, 0, 0), 0.4, 1.4),
        ((1, 0, 0), 0.7 + 0.4, 2.1 + 1.4),
        ((1, -1, 0.5), 0.7 - 0.8 + 0.05 + 0.4, 2.1 - 0.6 + 0.6 + 1.4),
        ((-2, 0.5, -1), -1.4 + 0.4 - 0.1 + 0.4, -4.2 + 0.3 - 1.2 + 1.4),
    ],
)
def test_appendix_network_by_hand(inputs, h1, h2):
    expected = psi(0.3 * psi(h1) + 0.5 * psi(h2) + 1.3)
    outputs = Network(APPENDIX, APPENDIX_GENOTYPE).outputs(np.array([inputs]))
    assert outputs == pytest.approx(np.array([[expected]]), rel=1e-12)


def test_appendix_network_at_zero_is_the_number_on_paper():
    # ψ(0.4) = 0.379949 and ψ(1.4) = 0.885352, so o1 sums 0.113985 + 0.442676 + 1.3 = 1.856661;
    # exp(−3.713322) = 0.024396, and 2 / 1.024396 − 1 = 0.952369.
    outputs = Network(APPENDIX, APPENDIX_GENOTYPE).outputs(np.zeros((1, 3)))
    assert outputs[0, 0] == pytest.approx(0.952369, abs=1e-6)


def test_genotype_is_grouped_by_post_synaptic_neuron():
    hidden, output = APPENDIX.matrices(APPENDIX_GENOTYPE)
    np.testing.assert_array_equal(hidden, [[0.7, 0.8, 0.1, 0.4], [2.1, 0.6, 1.2, 1.4]])
    np.testing.assert_array_equal(output, [[0.3, 0.5, 1.3]])
    network = Network(APPENDIX, APPENDIX_GENOTYPE)
    np.testing.assert_array_equal(network.biases[0], [0.4, 1.4])
    np.testing.assert_array_equal(network.weights[1], [[0.3, 0.5]])


@pytest.mark.parametrize(
    ("shape", "n_genes", "n_neurons"),
    [((30, 50, 2), 1652, 52), ((178, 50, 2), 9052, 52), ((561, 50, 6), 28406, 56),
     ((784, 60, 10), 47710, 70)],
)  # fmt: skip
def test_number_of_parameters_is_the_papers(shape, n_genes, n_neurons):
    architecture = Architecture(shape[0], (shape[1],), shape[2])
    assert architecture.n_genes == n_genes
    assert architecture.n_neurons == n_neurons


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_layout_round_trips_through_views(architectures, data, seed):
    architecture = data.draw(architectures)
    genotype = np.random.default_rng(seed).normal(size=(2, architecture.n_genes))
    matrices = architecture.matrices(genotype)
    assert all(np.shares_memory(matrix, genotype) for matrix in matrices)
    np.testing.assert_array_equal(architecture.genotype(matrices), genotype)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_many_networks_at_once_are_each_network_alone(architectures, data, seed):
    architecture = data.draw(architectures)
    rng = np.random.default_rng(seed)
    genotypes = rng.normal(size=(3, architecture.n_genes))
    inputs = rng.normal(size=(7, architecture.n_inputs))
    together = architecture.forward(genotypes, inputs)
    assert together.shape == (3, 7, architecture.n_outputs)
    for genotype, outputs in zip(genotypes, together, strict=True):
        np.testing.assert_allclose(architecture.forward(genotype, inputs), outputs, atol=1e-12)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_forward_pass_is_equation_3_neuron_by_neuron(architectures, data, seed):
    architecture = data.draw(architectures)
    rng = np.random.default_rng(seed)
    genotype = rng.normal(size=architecture.n_genes)
    inputs = rng.normal(size=(2, architecture.n_inputs))
    for instance, outputs in zip(inputs, architecture.forward(genotype, inputs), strict=True):
        activations, genes = list(instance), iter(genotype)
        for depth, layer in enumerate(architecture.layers, start=1):
            sums = []
            for _ in range(layer.n_neurons):
                total = sum(next(genes) * activation for activation in activations)
                sums.append(total + next(genes))
            is_output = depth == len(architecture.layers)
            name = architecture.output_activation if is_output else architecture.activation
            activations = [float(ACTIVATIONS[name](np.array(s))) for s in sums]
        np.testing.assert_allclose(outputs, activations, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_dtype_is_kept(activation, dtype):
    architecture = Architecture(3, (4, 2), 2, activation)
    genotype = np.linspace(-1, 1, architecture.n_genes).astype(dtype)
    assert architecture.forward(genotype, np.ones((5, 3), dtype=dtype)).dtype == dtype
    assert Network(architecture, genotype).outputs([[1, 2, 3]]).dtype == dtype


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("tanh", [psi(-2.0), 0.0, psi(0.5)]),
        ("sigmoid", [1 / (1 + math.exp(2)), 0.5, 1 / (1 + math.exp(-0.5))]),
        ("relu", [0.0, 0.0, 0.5]),
        ("sign", [-1.0, 0.0, 1.0]),
        ("identity", [-2.0, 0.0, 0.5]),
    ],
)
def test_activations(activation, expected):
    function = ACTIVATIONS[activation]
    np.testing.assert_allclose(function(np.array([-2.0, 0.0, 0.5])), expected, rtol=1e-12)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_activations_never_decrease_and_never_overflow(activation):
    sums = np.array([-1e30, -800, -20, -1e-3, 0, 1e-30, 2, 90, 1e30], dtype=np.float32)
    values = ACTIVATIONS[activation](sums)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()


def test_class_is_the_first_of_the_largest_outputs():
    network = Network(Architecture(1, (), 3), np.array([0.0, 1, 1, 0, 0, 1]))
    np.testing.assert_array_equal(network.predict([[0.0], [1.0], [2.0]]), [0, 0, 1])
