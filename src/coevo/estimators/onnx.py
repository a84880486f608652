"""Teaches skl2onnx the estimators, so that a pipeline with one of them exports to ONNX whole.

Needs the package skl2onnx. The scaler in front is skl2onnx's business; the network is written by
`coevo.onnx_export`, in float64 as it is, with the numbers that go in and out cast to the graph's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from coevo.estimators.classifier import CoevoClassifier
from coevo.estimators.regressor import CoevoRegressor
from coevo.files import StrPath, write_atomically
from coevo.network import Array
from coevo.onnx_export import OPSET, GraphParts, class_parts, network_parts

if TYPE_CHECKING:
    import onnx


def register() -> None:
    """Make skl2onnx able to convert the estimators; calling it again does no harm."""
    library = _import_skl2onnx()
    # The option is what tells skl2onnx that there are labels and probabilities.
    for estimator, options in ((CoevoClassifier, {"zipmap": [False]}), (CoevoRegressor, None)):
        library.update_registered_converter(
            estimator, estimator.__name__, _declare_outputs, _convert, options=options
        )


def export_pipeline(pipeline: Any, path: StrPath | None = None) -> onnx.ModelProto:
    """Return a fitted pipeline whose last step is one of the estimators as an ONNX model.

    The graph's input is `input`, float32 of shape (n_instances, n_features). A classifier's outputs
    are `label` and `probabilities`, a regressor's is `output`, as in `coevo.onnx_export`.

    Parameters
    ----------
    pipeline
        A `sklearn.pipeline.Pipeline`, or any estimator that skl2onnx knows with one of ours inside.
    path
        The file, by custom ending in .onnx.
    """
    library = _import_skl2onnx()
    register()
    number = _data_types().FloatTensorType
    names = ["label", "probabilities"] if hasattr(pipeline, "classes_") else ["output"]
    model: onnx.ModelProto = library.to_onnx(
        pipeline,
        initial_types=[("input", number([None, pipeline.n_features_in_]))],
        options={"zipmap": False} if len(names) == 2 else None,
        target_opset=OPSET,
    )
    rename(model, names)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def rename(model: onnx.ModelProto, names: list[str]) -> None:
    """Call a graph's outputs by these names."""
    new = dict(zip((output.name for output in model.graph.output), names, strict=True))
    for node in model.graph.node:
        for part in (node.input, node.output):
            part[:] = [new.get(name, name) for name in part]
    for output in model.graph.output:
        output.name = new[output.name]


def _declare_outputs(operator: Any) -> None:
    """Say which types and shapes the outputs of an estimator have."""
    data_types = _data_types()
    estimator = operator.raw_operator
    numbers = type(operator.inputs[0].type)
    n_instances = operator.inputs[0].get_first_dimension()
    *labels, values = operator.outputs
    values.type = numbers([n_instances, estimator.network_.architecture.n_outputs])
    for label in labels:
        are_numbers = _plain_classes(estimator).dtype == np.int64
        kind = data_types.Int64TensorType if are_numbers else data_types.StringTensorType
        label.type = kind([n_instances])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write an estimator into a graph."""
    estimator = operator.raw_operator
    import onnx as library  # noqa: PLC0415  (skl2onnx has brought it in)

    number = _data_types().guess_proto_type(operator.inputs[0].type)
    prefix = scope.get_unique_operator_name("coevo") + "."
    wide, sums, answer = prefix + "input", prefix + "sums", prefix + "answer"
    parts = GraphParts()
    double = library.TensorProto.DOUBLE
    source = operator.inputs[0].full_name
    parts.nodes.append(library.helper.make_node("Cast", [source], [wide], to=double))
    further = [network_parts(estimator.network_, wide, sums, prefix)]
    *labels, values = [output.full_name for output in operator.outputs]
    if labels:
        further.append(class_parts(_plain_classes(estimator), sums, labels[0], answer, prefix))
    for part in further:
        parts.nodes += part.nodes
        parts.constants += part.constants
    parts.nodes.append(
        library.helper.make_node("Cast", [answer if labels else sums], [values], to=number)
    )
    container.nodes.extend(parts.nodes)
    container.initializers.extend(parts.constants)


def _plain_classes(estimator: Any) -> Array:
    """Return the classes as whole numbers or texts, all that skl2onnx knows of labels."""
    classes: Array = estimator.classes_
    if classes.dtype.kind == "f" and not (classes == np.rint(classes)).all():
        raise TypeError("a pipeline's labels must be whole numbers or texts to be exported")
    return classes.astype(np.int64) if classes.dtype.kind in "biuf" else classes


def _import_skl2onnx() -> Any:
    try:
        return import_module("skl2onnx")  # an extra, and slow to import
    except ImportError as error:
        raise ImportError(
            "exporting a pipeline to ONNX needs the package skl2onnx: pip install skl2onnx"
        ) from error


def _data_types() -> Any:
    return import_module("skl2onnx.common.data_types")
