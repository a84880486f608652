"""Exports scikit-learn pipelines that end in one of coevo's estimators as ONNX graphs.

The package skl2onnx converts the other steps. The network computes in float64; its inputs and
outputs are cast from and to the graph's float32.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from coevo._typing import Array, StrPath
from coevo.persistence.atomic import write_atomically
from coevo.persistence.onnx import OPSET, GraphBuilder
from coevo.persistence.onnx_encoding import add_matrix_encoding

if TYPE_CHECKING:
    import onnx


def export_pipeline(pipeline: Any, path: StrPath | None = None) -> onnx.ModelProto:
    """Return a fitted pipeline as an ONNX model.

    The graph's input is `input`, float32 of shape (n_instances, n_features). A classifier's outputs
    are `label` and `probabilities`, a regressor's is `output`, as in `coevo.persistence.onnx`. The
    pipeline may also be another estimator that skl2onnx can convert, with one of coevo's inside.
    """
    skl2onnx = _import_skl2onnx()
    _register_estimators(pipeline)
    names = ["label", "probabilities"] if hasattr(pipeline, "classes_") else ["output"]
    if isinstance(getattr(pipeline, "classes_", None), list):
        names[0] = "labels"
    number = _data_types().FloatTensorType
    model: onnx.ModelProto = skl2onnx.to_onnx(
        pipeline,
        initial_types=[("input", number([None, pipeline.n_features_in_]))],
        options={"zipmap": False} if len(names) == 2 else None,
        target_opset=OPSET,
    )
    _rename_outputs(model, names)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def _register_estimators(pipeline: Any) -> None:
    """Register coevo's estimators that occur in a pipeline with skl2onnx."""
    for step in pipeline.get_params(deep=True).values():
        kind = type(step)
        if any(base.__module__.startswith("coevo.estimators") for base in kind.__mro__):
            # By this option skl2onnx knows that there are labels and probabilities.
            options = {"zipmap": [False]} if is_classifier(step) else None
            _import_skl2onnx().update_registered_converter(
                kind, f"Coevo{kind.__name__}", _declare_outputs, _convert, options=options
            )


def _rename_outputs(model: onnx.ModelProto, names: list[str]) -> None:
    new = dict(zip((output.name for output in model.graph.output), names, strict=True))
    for node in model.graph.node:
        for part in (node.input, node.output):
            part[:] = [new.get(name, name) for name in part]
    for output in model.graph.output:
        output.name = new[output.name]


def _declare_outputs(operator: Any) -> None:
    """Set the types and shapes of the outputs of an estimator."""
    estimator = operator.raw_operator
    number = type(operator.inputs[0].type)
    n_instances = operator.inputs[0].get_first_dimension()
    *labels, values = operator.outputs
    values.type = number([n_instances, estimator.network_.architecture.n_outputs])
    for label in labels:
        if isinstance(estimator.classes_, list):
            label.type = _data_types().Int64TensorType([n_instances, len(estimator.classes_)])
            continue
        is_whole = _plain_classes(estimator).dtype == np.int64
        kind = _data_types().Int64TensorType if is_whole else _data_types().StringTensorType
        label.type = kind([n_instances])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add an estimator to a graph."""
    estimator = operator.raw_operator
    prefix = scope.get_unique_operator_name("coevo") + "."
    builder = GraphBuilder(prefix)
    *labels, values = [output.full_name for output in operator.outputs]
    wide = builder.tensor_type(np.float64)
    builder.add("Cast", [operator.inputs[0].full_name], prefix + "input", to=wide)
    answer = prefix + "logits"
    inputs = add_matrix_encoding(builder, estimator.encoding_, prefix + "input")
    builder.add_network(estimator.network_, inputs, answer)
    if labels and isinstance(estimator.classes_, list):
        answer = prefix + "probabilities"
        builder.add_labels(prefix + "logits", labels[0], answer)
    elif labels:
        classes = _plain_classes(estimator)
        answer = prefix + "probabilities"
        builder.add_classes(classes, prefix + "logits", labels[0], answer)
    number = _data_types().guess_proto_type(operator.inputs[0].type)
    builder.add("Cast", [answer], values, to=number)
    container.nodes.extend(builder.nodes)
    container.initializers.extend(builder.constants)


def _plain_classes(estimator: Any) -> Array:
    """Return the classes as whole numbers or texts, the labels that skl2onnx supports."""
    classes: Array = estimator.classes_
    if classes.dtype.kind == "f" and not (classes == np.rint(classes)).all():
        raise TypeError("a pipeline's labels must be whole numbers or texts to be exported")
    return classes.astype(np.int64) if classes.dtype.kind in "biuf" else classes


def _import_skl2onnx() -> Any:
    try:
        return import_module("skl2onnx")  # optional
    except ImportError as error:
        raise ImportError(
            "exporting a pipeline to ONNX needs the package skl2onnx: pip install skl2onnx"
        ) from error


def _data_types() -> Any:
    return import_module("skl2onnx.common.data_types")
