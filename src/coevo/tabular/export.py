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
from coevo.persistence.onnx import GraphBuilder
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
    # Names of our own hold a colon and a number, which keeps them apart from the columns' names.
    builder = GraphBuilder("network:")
    number, text = builder.tensor_type(np.float64), builder.tensor_type(object)
    parts: list[str] = []
    numeric, categorical = model.preprocessing.medians, model.preprocessing.categories
    read = {name: name for name in model.preprocessing.numeric}
    for name in (*read, *model.preprocessing.dates):
        builder.declare_input(name, number, 1)
    for k, (name, date) in enumerate(model.preprocessing.dates.items()):
        moments = split_date(builder, name, date, f"date:{k}")
        read |= dict(zip(date.names(name), moments, strict=True))
    for k, (part, median) in enumerate(numeric.items()):
        name = read[part]
        if median is None:
            parts.append(name)
            continue
        constant = builder.add_constant(f"numeric:{k}:median", np.array([[median]]))
        missing = builder.add("IsNaN", [name], f"numeric:{k}:missing")
        parts.append(builder.add("Where", [missing, constant, name], f"numeric:{k}"))
    for k, (name, known) in enumerate(categorical.items()):
        builder.declare_input(name, text, 1)
        # Of shape (n_instances, 1, n_categories) and float32, as the standard has it.
        encoded = builder.add(
            "OneHotEncoder",
            [name],
            f"categorical:{k}:encoded",
            domain="ai.onnx.ml",
            cats_strings=list(known),
            zeros=1,
        )
        shape = builder.add_constant(f"categorical:{k}:shape", np.array([-1, len(known)]))
        flat = builder.add("Reshape", [encoded, shape], f"categorical:{k}:flat")
        parts.append(builder.add("Cast", [flat], f"categorical:{k}", to=number))
    builder.add("Concat", parts, "network:input", axis=1)
    network = model.model.network
    wide = Network(network.architecture, network.genotype.astype(np.float64))
    outputs = builder.add_answer(wide, "network:input", model.model.classes)
    taken = set(model.preprocessing.columns) & set(outputs)
    if taken:
        raise ValueError(f"a column called {taken.pop()!r} cannot be told from the graph's output")
    builder.build("table", path)
    return [
        *(f"input {name!r}: float64, NaN if missing" for name in model.preprocessing.numeric),
        *(
            f"input {name!r}: seconds since 1970 (UTC) as float64, NaN if missing"
            for name in model.preprocessing.dates
        ),
        *(f"input {name!r}: text, empty if missing" for name in categorical),
        f"output: {' and '.join(outputs)}",
    ]
