"""An evolved network as an ONNX graph, for programs that know nothing of Python.

Needs the extra `coevo[onnx]`. The graph computes in the network's own dtype and takes any number of
instances at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

import coevo
from coevo.files import StrPath, write_atomically
from coevo.network import Array, Network

if TYPE_CHECKING:
    import onnx
    from sklearn.base import BaseEstimator

OPSET = 17
"""The version of ONNX's operators that graphs use."""

_IR_VERSION = 8  # of the same age as the operators, so that runtimes of that age can read it
_OPERATORS = {
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "sign": "Sign",
    "identity": "Identity",
}


@dataclass
class GraphParts:
    """Nodes, and the constants they use, to be put into a graph.

    Parameters
    ----------
    nodes
        In the order in which they are computed.
    constants
        The graph's initializers.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)


@runtime_checkable
class Trained(Protocol):
    """A network and its classes, such as a run's result or a model read from a file."""

    @property
    def network(self) -> Network:
        """The network."""
        ...

    @property
    def classes(self) -> Array | None:
        """The label that each output stands for, if the outputs are not the answer."""
        ...


def export_onnx(
    network: Network | Trained | BaseEstimator,
    path: StrPath | None = None,
    *,
    classes: ArrayLike | None = None,
) -> onnx.ModelProto:
    """Return a network as an ONNX model, and write it to a file if there is a path.

    The graph's input is `input`, of shape (n_instances, n_inputs). With classes its outputs are
    `label`, of shape (n_instances,), the class of the largest output, the first one if tied, and
    `probabilities`, of shape (n_instances, n_classes), the softmax of the outputs. Without classes
    it has one output, `output`, of shape (n_instances, n_outputs).

    Parameters
    ----------
    network
        The network, or a run's result, a model read from a file or a fitted estimator, which know
        their classes. A scikit-learn pipeline that ends in one of our estimators will do as well if
        skl2onnx is installed; its input is in float32.
    path
        The file, by custom ending in .onnx.
    classes : array of shape (n_outputs,)
        The label that each output stands for: whole numbers, numbers, booleans or texts.

    Raises
    ------
    ImportError
        If onnx is not installed.
    """
    library = _import_onnx()
    if not isinstance(network, Network | Trained):
        if not hasattr(network, "network_"):
            from coevo.estimators.onnx import export_pipeline  # noqa: PLC0415  (brings in skl2onnx)

            return export_pipeline(network, path)
        classes = getattr(network, "classes_", None) if classes is None else classes
        network = network.network_
    elif not isinstance(network, Network):
        classes = network.classes if classes is None else classes
        network = network.network
    assert isinstance(network, Network)
    architecture = network.architecture
    number = library.helper.np_dtype_to_tensor_dtype(network.genotype.dtype)

    def declare(name: str, dtype: int, *shape: int) -> Any:
        return library.helper.make_tensor_value_info(name, dtype, ["n_instances", *shape])

    if classes is None:
        parts = network_parts(network, "input", "output")
        outputs = [declare("output", number, architecture.n_outputs)]
    else:
        labels = _check_classes(np.asarray(classes), architecture.n_outputs)
        parts = network_parts(network, "input", "sums")
        ending = class_parts(labels, "sums", "label", "probabilities")
        parts.nodes += ending.nodes
        parts.constants += ending.constants
        outputs = [
            declare("label", ending.constants[0].data_type),
            declare("probabilities", number, architecture.n_outputs),
        ]
    graph = library.helper.make_graph(
        parts.nodes,
        "network",
        [declare("input", number, architecture.n_inputs)],
        outputs,
        parts.constants,
    )
    model: onnx.ModelProto = library.helper.make_model(
        graph,
        producer_name="coevo",
        producer_version=coevo.__version__,
        ir_version=_IR_VERSION,
        opset_imports=[library.helper.make_opsetid("", OPSET)],
    )
    library.checker.check_model(model, full_check=True)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def network_parts(
    network: Network, input_name: str, output_name: str, prefix: str = ""
) -> GraphParts:
    """Return the network's layers as parts of a graph.

    Parameters
    ----------
    network
        The network.
    input_name, output_name
        What the graph calls the inputs and is to call the outputs.
    prefix
        What the names of everything in between begin with, so that parts do not clash.
    """
    library = _import_onnx()
    architecture = network.architecture
    parts = GraphParts()
    below = input_name
    layers = list(zip(network.weights, network.biases, strict=True))
    for layer, (weights, biases) in enumerate(layers):
        is_output = layer == len(layers) - 1
        activation = architecture.output_activation if is_output else architecture.activation
        names = [f"{prefix}layers.{layer}.{part}" for part in ("weight", "bias", "sums")]
        above = output_name if is_output else f"{prefix}layers.{layer}.activations"
        parts.constants += [
            library.numpy_helper.from_array(np.ascontiguousarray(array), name)
            for array, name in zip((weights, biases), names, strict=False)
        ]
        parts.nodes += [
            library.helper.make_node("Gemm", [below, *names[:2]], names[2:], transB=1),
            library.helper.make_node(_OPERATORS[activation], names[2:], [above]),
        ]
        below = above
    return parts


def class_parts(
    classes: Array, input_name: str, label_name: str, probabilities_name: str, prefix: str = ""
) -> GraphParts:
    """Return what turns outputs into labels and probabilities, as parts of a graph.

    Parameters
    ----------
    classes : array of shape (n_outputs,)
        The label that each output stands for.
    input_name, label_name, probabilities_name
        What the graph calls the outputs, and is to call the labels and the probabilities.
    prefix
        What the names of everything in between begin with.
    """
    library = _import_onnx()
    names = [f"{prefix}classes", f"{prefix}class_index"]
    nodes = [
        library.helper.make_node("Softmax", [input_name], [probabilities_name], axis=-1),
        # ArgMax takes the first of equal ones unless told otherwise, as the network does.
        library.helper.make_node("ArgMax", [input_name], names[1:], axis=-1, keepdims=0),
        library.helper.make_node("Gather", names, [label_name], axis=0),
    ]
    return GraphParts(nodes, [library.numpy_helper.from_array(_as_tensor(classes), names[0])])


def _check_classes(classes: Array, n_outputs: int) -> Array:
    if classes.shape != (n_outputs,):
        raise ValueError(
            f"classes must have shape ({n_outputs},), one label for each output, got shape "
            f"{classes.shape}"
        )
    return classes


def _as_tensor(classes: Array) -> Array:
    """Return labels with a dtype that ONNX knows; texts are objects there."""
    if classes.dtype.kind in "biuf":
        return classes
    if all(isinstance(label, str) for label in classes):
        return np.array([str(label) for label in classes], dtype=object)
    if classes.dtype.kind == "O":
        alike = np.array(classes.tolist())
        if alike.dtype.kind in "biuf" and len({type(label) for label in classes}) == 1:
            return alike
    raise TypeError(f"ONNX needs labels that are all numbers or all texts, got {classes!r:.200}")


def _import_onnx() -> Any:
    try:
        import onnx  # noqa: PLC0415  (an extra, and slow to import)
        import onnx.checker  # noqa: PLC0415
        import onnx.helper  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the package onnx: pip install 'coevo[onnx]'"
        ) from error
    return onnx
