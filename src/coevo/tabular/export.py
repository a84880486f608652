"""A model with its preprocessing as one ONNX graph that takes a table's columns.

Each column is an input of its own, by its own name and of shape (n_instances, 1): numeric columns
as float64, NaN where missing, categorical ones as text, empty where missing, dates as seconds since
1970 (UTC) in float64, NaN where missing. The outputs are those of `coevo.persistence.onnx`. Needs
the extra `coevo[onnx]`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coevo.core.network import Network
from coevo.persistence.onnx import MULTILABEL, GraphBuilder
from coevo.persistence.onnx_encoding import add_columns
from coevo.tabular.onnx_dates import split_date
from coevo.tabular.prediction import TableModel


def export_table_model(model: TableModel, path: Path) -> list[str]:
    """Write the graph and return a line about each of its inputs and outputs.

    Parameters
    ----------
    model
        The model.
    path
        The file, by custom ending in .onnx.
    """
    builder = GraphBuilder("network:")
    number = builder.tensor_type(np.float64)
    computed: dict[str, str] = {}
    for k, (name, date) in enumerate(model.preprocessing.dates.items()):
        builder.declare_input(name, number, 1)
        parts = split_date(builder, name, date, f"date:{k}")
        computed |= dict(zip(date.names(name), parts, strict=True))
    inputs = add_columns(builder, model.preprocessing.encoding, computed)
    network = model.model.network
    wide = Network(network.architecture, network.genotype.astype(np.float64))
    answer = model.model.classes if model.model.labels is None else MULTILABEL
    outputs = builder.add_answer(wide, inputs, answer)
    builder.build("table", path)
    return [
        *(f"input {name!r}: float64, NaN if missing" for name in model.preprocessing.numeric),
        *(
            f"input {name!r}: seconds since 1970 (UTC) as float64, NaN if missing"
            for name in model.preprocessing.dates
        ),
        *(f"input {name!r}: text, empty if missing" for name in model.preprocessing.categories),
        f"output: {' and '.join(outputs)}",
    ]
