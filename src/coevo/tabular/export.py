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
from coevo.tabular.dates import DateColumn
from coevo.tabular.prediction import TableModel


def export_table_model(model: TableModel, path: Path) -> list[str]:
    """Write the graph and return a line about each of its inputs and outputs."""
    builder = GraphBuilder("network:")
    number = builder.tensor_type(np.float64)
    computed: dict[str, str] = {}
    for k, (name, date) in enumerate(model.preprocessing.dates.items()):
        builder.declare_input(name, number, 1)
        parts = _split_date(builder, name, date, f"date:{k}")
        computed |= dict(zip(date.names(name), parts, strict=True))
    encoding = model.preprocessing.encoding
    inputs = add_columns(builder, encoding, computed)
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
        *(f"input {name!r}: text, empty if missing" for name in encoding.categories),
        f"output: {' and '.join(outputs)}",
    ]


def _split_date(builder: GraphBuilder, name: str, date: DateColumn, prefix: str) -> list[str]:
    """Compute the parts of a date from seconds since 1970; return the names of the results."""
    return [part.name for part in date.split(_Tensor(builder, prefix, name)).values()]


class _Tensor:
    """A tensor of a graph; arithmetic adds nodes."""

    def __init__(self, builder: GraphBuilder, prefix: str, name: str) -> None:
        self._builder = builder
        self._prefix = prefix
        self.name = name

    def _compute(self, operator: str, *operands: _Tensor | float) -> _Tensor:
        number = len(self._builder.nodes)
        names = [self.name]
        for operand in operands:
            if isinstance(operand, _Tensor):
                names.append(operand.name)
            else:
                constant = np.array([[float(operand)]])
                names.append(
                    self._builder.add_constant(f"{self._prefix}:constant:{number}", constant)
                )
        result = self._builder.add(operator, names, f"{self._prefix}:{number}")
        return _Tensor(self._builder, self._prefix, result)

    def __add__(self, other: _Tensor | float) -> _Tensor:
        return self._compute("Add", other)

    def __sub__(self, other: _Tensor | float) -> _Tensor:
        return self._compute("Sub", other)

    def __mul__(self, other: _Tensor | float) -> _Tensor:
        return self._compute("Mul", other)

    def __truediv__(self, other: _Tensor | float) -> _Tensor:
        return self._compute("Div", other)

    def __floordiv__(self, other: _Tensor | float) -> _Tensor:
        return self._compute("Div", other)._compute("Floor")
