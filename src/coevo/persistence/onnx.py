"""Exports networks as ONNX graphs; needs the extra `coevo[onnx]`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from coevo._typing import Array, StrPath
from coevo._version import __version__
from coevo.core.network import Network
from coevo.persistence.atomic import write_atomically
from coevo.persistence.encoding import Encoding, read_encoding
from coevo.persistence.model import Model

if TYPE_CHECKING:
    import onnx
    from sklearn.base import BaseEstimator

OPSET = 17
"""The version of ONNX's operator set."""

MULTILABEL = "multilabel"
"""Takes the place of the classes if targets are multilabel."""

_ML_DOMAIN, _ML_OPSET = "ai.onnx.ml", 3
_IR_VERSION = 8  # of the same age as the operator set, for old runtimes
_OPERATORS = {
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "sign": "Sign",
    "identity": "Identity",
}


@runtime_checkable
class Trained(Protocol):
    """A network and its classes, such as the result of a run or a model read from a file."""

    @property
    def network(self) -> Network:
        """The network."""
        ...

    @property
    def classes(self) -> Array | None:
        """The label of each output; None for regression."""
        ...


def export_onnx(
    network: Network | Trained | BaseEstimator,
    path: StrPath | None = None,
    *,
    classes: ArrayLike | None = None,
) -> onnx.ModelProto:
    """Return a network as an ONNX model, and write it to a file if a path is given.

    The graph computes in the dtype of the network. Its input is `input`, of shape (n_instances,
    n_inputs); that of an estimator may contain NaN. If an estimator or a model has categorical
    columns, each column is an input under its own name, of shape (n_instances, 1): float64 with NaN
    for missing values, or text with "" for missing values.

    With classes, the outputs are `label` of shape (n_instances,), the class of the largest logit,
    the first one if tied, and `probabilities` of shape (n_instances, n_classes), the softmax of the
    logits. Multilabel models have `labels`, 0 or 1, and `probabilities`, the sigmoid of the logits,
    both of shape (n_instances, n_labels). Others have one output, `output`, of shape (n_instances,
    n_outputs).

    Parameters
    ----------
    network
        The network; or the result of a run, a model read from a file or a fitted estimator, which
        have classes of their own. A scikit-learn pipeline that ends in one of coevo's estimators is
        exported if skl2onnx is installed; its input is float32.
    path
        The file, usually ending in .onnx.
    classes : array of shape (n_outputs,)
        The label of each output: whole numbers, numbers, booleans or texts.

    Raises
    ------
    ImportError
        If onnx is not installed.
    """
    encoding, is_multilabel = None, False
    if not isinstance(network, Network | Trained):
        if not hasattr(network, "network_"):
            from coevo.persistence.onnx_pipeline import export_pipeline  # noqa: PLC0415 - an extra

            return export_pipeline(network, path)
        classes = getattr(network, "classes_", None) if classes is None else classes
        is_multilabel = isinstance(classes, list) and classes is network.classes_
        encoding = network.encoding_
        network = network.network_
    elif not isinstance(network, Network):
        classes = network.classes if classes is None else classes
        if isinstance(network, Model):
            is_multilabel = network.labels is not None
            encoding = None if network.preprocessing is None else read_encoding(network)
        network = network.network
    assert isinstance(network, Network)
    if is_multilabel:
        answer: Array | str | None = MULTILABEL
    else:
        answer = None if classes is None else np.asarray(classes)
    if encoding is not None:
        return _export_encoded(network, encoding, answer, path)
    builder = GraphBuilder()
    number = builder.tensor_type(network.genotype.dtype)
    builder.declare_input("input", number, network.architecture.n_inputs)
    builder.add_answer(network, "input", answer)
    return builder.build("network", path)


def _export_encoded(
    network: Network, encoding: Encoding, answer: Array | str | None, path: StrPath | None
) -> onnx.ModelProto:
    """Return a network with the encoding of its columns as an ONNX model."""
    from coevo.persistence.onnx_encoding import (  # noqa: PLC0415 - which needs the builder
        add_columns,
        add_matrix_encoding,
    )

    builder = GraphBuilder("network:" if encoding.categories else "")
    if encoding.categories:
        inputs = add_columns(builder, encoding)
    else:
        builder.declare_input("input", builder.tensor_type(np.float64), len(encoding.columns))
        inputs = add_matrix_encoding(builder, encoding, "input")
    wide = Network(network.architecture, network.genotype.astype(np.float64))
    builder.add_answer(wide, inputs, answer)
    return builder.build("network", path)


class GraphBuilder:
    """Collects the nodes and constants (initializers) of a graph.

    The names of nodes and constants begin with the prefix, to keep parts of a graph apart.
    """

    def __init__(self, prefix: str = "") -> None:
        self._onnx = _import_onnx()
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def tensor_type(self, dtype: Any) -> int:
        """Return ONNX's code of a NumPy dtype; text has the dtype object."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def add(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its first output."""
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0]

    def add_constant(self, name: str, values: Array) -> str:
        """Add a constant and return its name."""
        array = np.ascontiguousarray(values)
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def declare_input(self, name: str, tensor_type: int, *shape: int) -> None:
        """Declare an input of shape (n_instances, *shape)."""
        self._inputs.append(self._declare(name, tensor_type, *shape))

    def declare_output(self, name: str, tensor_type: int, *shape: int) -> None:
        """Declare an output of shape (n_instances, *shape)."""
        self._outputs.append(self._declare(name, tensor_type, *shape))

    def add_network(self, network: Network, input_name: str, output_name: str) -> None:
        """Add the layers of a network, from its inputs to its logits."""
        below = input_name
        for layer, (weights, biases) in enumerate(
            zip(network.weights, network.biases, strict=True)
        ):
            is_output = layer == len(network.weights) - 1
            architecture = network.architecture
            activation = architecture.output_activation if is_output else architecture.activation
            name = f"{self.prefix}layers.{layer}"
            constants = [
                self.add_constant(f"{name}.weight", weights),
                self.add_constant(f"{name}.bias", biases),
            ]
            self.add("Gemm", [below, *constants], f"{name}.pre_activation", transB=1)
            below = self.add(
                _OPERATORS[activation],
                [f"{name}.pre_activation"],
                output_name if is_output else f"{name}.activation",
            )

    def add_classes(self, classes: Array, logits: str, label: str, probabilities: str) -> int:
        """Compute the label and the probabilities from logits; return the label's tensor type."""
        labels = self.add_constant(f"{self.prefix}classes", _as_tensor(classes))
        self.add("Softmax", [logits], probabilities, axis=-1)
        # By default ArgMax takes the first of equal values, as the network does.
        index = f"{self.prefix}class_index"
        self.add("ArgMax", [logits], index, axis=-1, keepdims=0)
        self.add("Gather", [labels, index], label, axis=0)
        return self.constants[-1].data_type

    def add_labels(self, logits: str, labels: str, probabilities: str) -> int:
        """Compute multilabel predictions from logits; return the labels' tensor type."""
        self.add("Sigmoid", [logits], probabilities)
        self.add("Sign", [logits], f"{self.prefix}sign")
        self.add("Relu", [f"{self.prefix}sign"], f"{self.prefix}is_above")  # 1 above 0, else 0
        kind = self.tensor_type(np.int64)
        self.add("Cast", [f"{self.prefix}is_above"], labels, to=kind)
        return kind

    def add_answer(
        self, network: Network, input_name: str, classes: Array | str | None
    ) -> list[str]:
        """Add a network and declare the graph's outputs; return their names.

        These are `label` and `probabilities`, `labels` and `probabilities` if classes is
        `MULTILABEL`, or `output` if there are no classes.
        """
        number = self.tensor_type(network.genotype.dtype)
        n_outputs = network.architecture.n_outputs
        if classes is None:
            self.add_network(network, input_name, "output")
            self.declare_output("output", number, n_outputs)
            return ["output"]
        logits = f"{self.prefix}logits"
        self.add_network(network, input_name, logits)
        if isinstance(classes, str):
            answer = "labels"
            kind = self.add_labels(logits, answer, "probabilities")
            self.declare_output(answer, kind, n_outputs)
        else:
            if classes.shape != (n_outputs,):
                raise ValueError(
                    f"classes must have shape ({n_outputs},), one label for each output, got shape "
                    f"{classes.shape}"
                )
            answer = "label"
            kind = self.add_classes(classes, logits, answer, "probabilities")
            self.declare_output(answer, kind)
        self.declare_output("probabilities", number, n_outputs)
        return [answer, "probabilities"]

    def build(self, name: str, path: StrPath | None = None) -> onnx.ModelProto:
        """Return the model, checked by ONNX, and write it to a file if a path is given."""
        helper = self._onnx.helper
        taken = {i.name for i in self._inputs} & {o.name for o in self._outputs}
        if taken:
            raise ValueError(
                f"a column called {taken.pop()!r} cannot be told from the graph's output"
            )
        opsets = [helper.make_opsetid("", OPSET)]
        if any(node.domain == _ML_DOMAIN for node in self.nodes):
            opsets.append(helper.make_opsetid(_ML_DOMAIN, _ML_OPSET))
        model: onnx.ModelProto = helper.make_model(
            helper.make_graph(self.nodes, name, self._inputs, self._outputs, self.constants),
            producer_name="coevo",
            producer_version=__version__,
            ir_version=_IR_VERSION,
            opset_imports=opsets,
        )
        self._onnx.checker.check_model(model, full_check=True)
        if path is not None:
            write_atomically(path, [model.SerializeToString()])
        return model

    def _declare(self, name: str, tensor_type: int, *shape: int) -> Any:
        helper = self._onnx.helper
        return helper.make_tensor_value_info(name, tensor_type, ["n_instances", *shape])


def _as_tensor(classes: Array) -> Array:
    """Return labels with a dtype that ONNX supports; text has the dtype object."""
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
        for part in ("checker", "helper", "numpy_helper"):
            import_module(f"onnx.{part}")  # an extra
        return import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the package onnx: pip install 'coevo[onnx]'"
        ) from error
