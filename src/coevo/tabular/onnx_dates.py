"""The parts of a date in an ONNX graph, computed from seconds since 1970."""

from __future__ import annotations

import numpy as np

from coevo.persistence.onnx import GraphBuilder
from coevo.tabular.dates import DateColumn


def split_date(builder: GraphBuilder, name: str, date: DateColumn, prefix: str) -> list[str]:
    """Add what computes the parts of a date to a graph, and return the names of the results.

    Parameters
    ----------
    builder
        The graph.
    name
        The input with seconds since 1970.
    date
        Which parts.
    prefix
        What the names of nodes and constants begin with.
    """
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
