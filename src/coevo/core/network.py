"""Shape, genotype layout and forward pass of a feed-forward network.

The genotype is one vector that lists the post-synaptic neurons layer by layer; each neuron owns its
incoming weights followed by its bias (the paper's appendix, figure "genotype representation").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coevo._typing import Array


def _sigmoid(pre_activations: Array, out: Array | None = None) -> Array:
    # σ(x) = (1 + tanh(x / 2)) / 2, which does not overflow.
    half = pre_activations.dtype.type(0.5)
    activations = np.multiply(pre_activations, half, out=out)
    activations = np.tanh(activations, out=out)
    activations = np.multiply(activations, half, out=out)
    return np.asarray(np.add(activations, half, out=out))


def _relu(pre_activations: Array, out: Array | None = None) -> Array:
    zero = pre_activations.dtype.type(0)
    return np.asarray(np.maximum(pre_activations, zero, out=out))


ACTIVATIONS: dict[str, Callable[..., Array]] = {
    "tanh": np.tanh,  # the paper's ψ(x) = 2 / (1 + exp(-2x)) - 1
    "sigmoid": _sigmoid,
    "relu": _relu,
    "sign": np.sign,
    "identity": np.positive,
}
"""The activation functions by name; every one of them is non-decreasing. Like NumPy's own functions
they write into `out` if that is given, which may be the pre-activations themselves."""


@dataclass(frozen=True)
class Layer:
    """One layer of post-synaptic neurons and the position of its genes in the genotype."""

    n_inputs: int
    n_neurons: int
    start: int

    @property
    def genes_per_neuron(self) -> int:
        """Incoming weights and one bias."""
        return self.n_inputs + 1

    @property
    def stop(self) -> int:
        """One past the layer's last gene."""
        return self.start + self.n_neurons * self.genes_per_neuron


@dataclass(frozen=True)
class Architecture:
    """The fixed topology of a fully connected feed-forward network.

    Parameters
    ----------
    n_inputs, n_outputs
        Number of input and of output neurons.
    hidden_layer_sizes
        Number of neurons of each hidden layer; empty for a network without hidden layers.
    activation
        Name of the hidden neurons' activation ψ, a key of `ACTIVATIONS`.
    output_activation
        Name of the output neurons' activation. The default leaves the pre-activations as they
        are: the class is the largest output, and ψ would not change which one that is.
    """

    n_inputs: int
    hidden_layer_sizes: tuple[int, ...]
    n_outputs: int
    activation: str = "tanh"
    output_activation: str = "identity"

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that own genes, first hidden layer to output layer."""
        layers: list[Layer] = []
        n_inputs, start = self.n_inputs, 0
        for n_neurons in (*self.hidden_layer_sizes, self.n_outputs):
            layers.append(Layer(n_inputs, n_neurons, start))
            n_inputs, start = n_neurons, layers[-1].stop
        return tuple(layers)

    @property
    def n_genes(self) -> int:
        """Length of the genotype."""
        return self.layers[-1].stop

    @property
    def n_neurons(self) -> int:
        """Number of post-synaptic neurons, hidden and output."""
        return sum(layer.n_neurons for layer in self.layers)

    def matrices(self, genotypes: Array) -> list[Array]:
        """View genotypes as one matrix a layer, a neuron a row, the bias in the last column.

        Parameters
        ----------
        genotypes : array of shape (..., n_genes)

        Returns
        -------
        list of views of shape (..., n_neurons, n_inputs + 1), one for each layer
        """
        return [
            genotypes[..., layer.start : layer.stop].reshape(
                *genotypes.shape[:-1], layer.n_neurons, layer.genes_per_neuron
            )
            for layer in self.layers
        ]

    def genotype(self, matrices: list[Array]) -> Array:
        """Join matrices, as `matrices` gives them, into a new genotype."""
        flat = [matrix.reshape(*matrix.shape[:-2], -1) for matrix in matrices]
        return np.concatenate(flat, axis=-1)

    def forward(self, genotypes: Array, inputs: Array) -> Array:
        """Run one network, or many, on the same instances.

        Parameters
        ----------
        genotypes : array of shape (..., n_genes)
        inputs : array of shape (n_instances, n_inputs)

        Returns
        -------
        array of shape (..., n_instances, n_outputs)
        """
        activations = inputs
        matrices = self.matrices(genotypes)
        for depth, matrix in enumerate(matrices, start=1):
            weights, biases = matrix[..., :-1], matrix[..., -1]
            pre_activations = (
                activations @ np.swapaxes(weights, -1, -2) + biases[..., np.newaxis, :]
            )
            is_output = depth == len(matrices)
            activations = ACTIVATIONS[self.output_activation if is_output else self.activation](
                pre_activations
            )
        return activations


@dataclass(frozen=True)
class Network:
    """An architecture with the weights that make it a particular network.

    Parameters
    ----------
    architecture
        The topology.
    genotype : array of shape (n_genes,)
        Every weight and bias.
    """

    architecture: Architecture
    genotype: Array

    def outputs(self, inputs: Array) -> Array:
        """Run the network: (n_instances, n_inputs) in, (n_instances, n_outputs) out."""
        return self.architecture.forward(
            self.genotype, np.asarray(inputs, dtype=self.genotype.dtype)
        )

    def predict(self, inputs: Array) -> Array:
        """Return the class index of each instance: its largest output, the first one if tied."""
        return np.asarray(self.outputs(inputs).argmax(axis=-1))

    @property
    def weights(self) -> list[Array]:
        """Views of shape (n_neurons, n_inputs), one for each layer."""
        return [matrix[:, :-1] for matrix in self.architecture.matrices(self.genotype)]

    @property
    def biases(self) -> list[Array]:
        """Views of shape (n_neurons,), one for each layer."""
        return [matrix[:, -1] for matrix in self.architecture.matrices(self.genotype)]
