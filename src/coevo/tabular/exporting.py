"""A model with its preprocessing as one ONNX graph that takes a table's columns.

Each column is an input of its own, by its own name and of shape (n_instances, 1): numbers as
float64, NaN where missing, and texts, empty where missing. The outputs are those of
`coevo.onnx_export`. Needs the extra `coevo[onnx]`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coevo
from coevo.files import write_atomically
from coevo.network import Network
from coevo.onnx_export import OPSET, class_parts, network_parts
from coevo.tabular.using import TableModel

_ML_OPSET = 3
_IR_VERSION = 8


def export(model: TableModel, path: Path) -> list[str]:
    """Write the graph and return a line about each of its inputs and outputs.

    Parameters
    ----------
    model
        The model.
    path
        The file, by custom ending in .onnx.
    """
    onnx = _import_onnx()
    helper, numpy_helper, proto = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    nodes: list[Any] = []
    constants: list[Any] = []
    inputs: list[Any] = []
    parts: list[str] = []

    def node(kind: str, taken: list[str], given: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, taken, [given], **attributes))
        return given

    # What is ours has a colon in its name; a number keeps columns apart whatever they are called.
    for number, (name, median) in enumerate(model.preprocessing.medians.items()):
        inputs.append(helper.make_tensor_value_info(name, proto.DOUBLE, ["n_instances", 1]))
        if median is None:
            parts.append(name)
            continue
        constant = f"number:{number}:median"
        constants.append(numpy_helper.from_array(np.array([[median]]), constant))
        missing = node("IsNaN", [name], f"number:{number}:missing")
        parts.append(node("Where", [missing, constant, name], f"number:{number}"))
    for number, (name, known) in enumerate(model.preprocessing.categories.items()):
        inputs.append(helper.make_tensor_value_info(name, proto.STRING, ["n_instances", 1]))
        # Of shape (n_instances, 1, n_categories) and float32, as the standard has it.
        encoded = node(
            "OneHotEncoder",
            [name],
            f"text:{number}:encoded",
            domain="ai.onnx.ml",
            cats_strings=list(known),
            zeros=1,
        )
        shape = f"text:{number}:shape"
        constants.append(numpy_helper.from_array(np.array([-1, len(known)]), shape))
        flat = node("Reshape", [encoded, shape], f"text:{number}:flat")
        parts.append(node("Cast", [flat], f"text:{number}", to=proto.DOUBLE))
    node("Concat", parts, "network:input", axis=1)
    network = model.model.network
    wide = Network(network.architecture, network.genotype.astype(np.float64))
    graphs = [network_parts(wide, "network:input", "network:sums", "network:")]
    n_outputs = network.architecture.n_outputs
    if model.model.classes is None:
        node_names = ["output"]
        graphs[0].nodes.append(helper.make_node("Identity", ["network:sums"], ["output"]))
        outputs = [
            helper.make_tensor_value_info("output", proto.DOUBLE, ["n_instances", n_outputs])
        ]
    else:
        classes = model.model.classes
        node_names = ["label", "probabilities"]
        graphs.append(class_parts(classes, "network:sums", "label", "probabilities", "network:"))
        kind = graphs[1].constants[0].data_type
        outputs = [
            helper.make_tensor_value_info("label", kind, ["n_instances"]),
            helper.make_tensor_value_info(
                "probabilities", proto.DOUBLE, ["n_instances", n_outputs]
            ),
        ]
    taken = set(model.preprocessing.columns) & set(node_names)
    if taken:
        raise ValueError(f"a column called {taken.pop()!r} cannot be told from the graph's output")
    for graph in graphs:
        nodes += graph.nodes
        constants += graph.constants
    made = helper.make_model(
        helper.make_graph(nodes, "table", inputs, outputs, constants),
        producer_name="coevo",
        producer_version=coevo.__version__,
        ir_version=_IR_VERSION,
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
    )
    onnx.checker.check_model(made, full_check=True)
    write_atomically(path, [made.SerializeToString()])
    numbers, texts = model.preprocessing.medians, model.preprocessing.categories
    return [
        *(f"input {name!r}: float64, NaN if missing" for name in numbers),
        *(f"input {name!r}: text, empty if missing" for name in texts),
        f"output: {' and '.join(node_names)}",
    ]


def _import_onnx() -> Any:
    try:
        return import_module("onnx")  # an extra, and slow to import
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the package onnx: pip install 'coevo[onnx]'"
        ) from error
