"""ONNX export: onnx's checker agrees, and onnxruntime gives the same answers."""

import sys

import numpy as np
import pytest

from coevo import Architecture, Network, evolve
from coevo.core.network import ACTIVATIONS
from coevo.persistence import model
from coevo.persistence.onnx import GraphBuilder, export_onnx

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5


def make_network(rng, sizes, activation="tanh", output_activation="identity", dtype=np.float32):
    architecture = Architecture(
        sizes[0], tuple(sizes[1:-1]), sizes[-1], activation, output_activation
    )
    return Network(architecture, rng.uniform(-1, 1, architecture.n_genes).astype(dtype))


def run(exported, inputs, names=None):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(names, {"input": inputs})


def softmax(outputs):
    powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(3, 2), (5, 7, 3), (4, 6, 5, 1)], ids=str)
def test_outputs_are_the_networks(rng, sizes, activation, dtype):
    network = make_network(rng, sizes, activation, dtype=dtype)
    exported = export_onnx(network)
    for n_instances in (1, 500):
        inputs = rng.normal(size=(n_instances, sizes[0])).astype(dtype)
        (outputs,) = run(exported, inputs)
        assert outputs.dtype == dtype
        assert outputs.shape == (n_instances, sizes[-1])
        np.testing.assert_allclose(outputs, network.outputs(inputs), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_output_activation_is_applied(rng, activation):
    network = make_network(rng, (4, 5, 3), output_activation=activation)
    inputs = rng.normal(size=(200, 4)).astype(np.float32)
    (outputs,) = run(export_onnx(network), inputs)
    np.testing.assert_allclose(outputs, network.outputs(inputs), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    "classes",
    [
        [0, 1, 2],
        np.array([-5, 7, 2**40]),
        np.array([3, 4, 250], dtype=np.uint8),
        [0.5, 1.25, -3.0],
        ["ash", "birch", "Äpfel 🍎"],
        np.array(["ash", "birch", "cedar"], dtype=object),
        np.array([3, 1, 2], dtype=object),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_and_probabilities(rng, classes, dtype):
    network = make_network(rng, (4, 8, 3), dtype=dtype)
    inputs = rng.normal(size=(1000, 4)).astype(dtype)
    labels, probabilities = run(
        export_onnx(network, classes=classes), inputs, ["label", "probabilities"]
    )
    expected = np.asarray(classes)[network.predict(inputs)]
    outputs = network.outputs(inputs)
    is_clear = np.diff(np.sort(outputs, axis=1)[:, -2:]).ravel() > TOLERANCE
    assert is_clear.mean() > 0.99
    assert labels[is_clear].tolist() == expected[is_clear].tolist()
    np.testing.assert_allclose(probabilities, softmax(outputs), rtol=0, atol=TOLERANCE)


def test_boolean_labels(rng):
    network = make_network(rng, (4, 5, 2))
    inputs = rng.normal(size=(50, 4)).astype(np.float32)
    labels, _ = run(export_onnx(network, classes=[False, True]), inputs)
    assert labels.dtype == bool
    np.testing.assert_array_equal(labels, network.predict(inputs) == 1)


def test_ties_go_to_the_first_class(rng):
    network = make_network(rng, (2, 3))
    network.genotype[:] = 0
    labels, probabilities = run(
        export_onnx(network, classes=["b", "a", "c"]), np.ones((4, 2), dtype=np.float32)
    )
    assert labels.tolist() == ["b"] * 4
    np.testing.assert_allclose(probabilities, 1 / 3, atol=TOLERANCE)


def test_from_a_run_by_way_of_files(rng, tmp_path):
    inputs = rng.uniform(-1, 1, (120, 3))
    labels = np.where(inputs.sum(axis=1) > 0, "more", "less")
    result = evolve(
        inputs[:60], labels[:60], inputs[60:], labels[60:],
        hidden_layer_sizes=(4,), batch_size=20, max_generations=10, seed=1,
    )  # fmt: skip
    result.save(tmp_path / "model.safetensors")
    export_onnx(model.load(tmp_path / "model.safetensors"), tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == export_onnx(result).SerializeToString()
    exported = onnx.load(str(tmp_path / "model.onnx"))
    onnx.checker.check_model(exported, full_check=True)
    assert exported.producer_name == "coevo"
    got, _ = run(exported, inputs.astype(np.float32))
    np.testing.assert_array_equal(got, result.predict(inputs))


def test_parts_serve_larger_graphs(rng):
    # Two networks in one graph, the second on top of the first.
    first, second = make_network(rng, (4, 5, 3)), make_network(rng, (3, 2))
    lower, upper = GraphBuilder("first."), GraphBuilder("second.")
    lower.add_network(first, "input", "middle")
    assert upper.add_answer(second, "middle", None) == ["output"]
    upper.nodes[:0], upper.constants[:0] = lower.nodes, lower.constants
    upper.declare_input("input", upper.tensor_type(np.float32), 4)
    inputs = rng.normal(size=(20, 4)).astype(np.float32)
    expected = second.outputs(first.outputs(inputs))
    (found,) = run(upper.build("both"), inputs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def test_wrong_classes_are_named(rng):
    network = make_network(rng, (4, 5, 3))
    with pytest.raises(ValueError, match=r"classes must have shape \(3,\).*got shape \(2,\)"):
        export_onnx(network, classes=[0, 1])
    for mixed in ([1, "a", 2.0], [True, 2, 3]):
        with pytest.raises(TypeError, match="all numbers or all texts"):
            export_onnx(network, classes=np.array(mixed, dtype=object))


def test_without_onnx_the_extra_is_named(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'coevo\[onnx\]'"):
        export_onnx(make_network(rng, (2, 2)))
