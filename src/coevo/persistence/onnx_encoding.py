"""Adds the encoding of columns to an ONNX graph.

If all columns are numeric, the graph has one input, a matrix with NaN for missing values. Otherwise
each column is an input under its own name, of shape (n_instances, 1): numeric columns as float64
with NaN for missing values, categorical ones as text with "" for missing values.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coevo.persistence.encoding import Encoding
from coevo.persistence.onnx import GraphBuilder


def add_matrix_encoding(builder: GraphBuilder, encoding: Encoding, source: str) -> str:
    """Encode a matrix of numeric columns, float64; return the name of the network's inputs."""
    if encoding.categories:
        raise ValueError("categorical columns are inputs of their own and cannot share a matrix")
    medians = list(encoding.medians.values())
    if None in medians:
        return source
    name = builder.prefix + "columns"
    constant = builder.add_constant(f"{name}.medians", np.array([medians], dtype=np.float64))
    missing = builder.add("IsNaN", [source], f"{name}.missing")
    imputed = builder.add("Where", [missing, constant, source], f"{name}.imputed")
    if not encoding.indicators:
        return imputed
    which = [k for k, column in enumerate(encoding.medians) if column in encoding.indicators]
    places = builder.add_constant(f"{name}.indicated", np.array(which))
    flags = builder.add("Gather", [missing, places], f"{name}.flags", axis=1)
    number = builder.tensor_type(np.float64)
    indicators = builder.add("Cast", [flags], f"{name}.indicators", to=number)
    return builder.add("Concat", [imputed, indicators], f"{name}.inputs", axis=1)


def add_columns(
    builder: GraphBuilder, encoding: Encoding, computed: Mapping[str, str] | None = None
) -> str:
    """Declare an input for each column and encode it; return the name of the network's inputs.

    `computed` has the names in the graph of numeric columns that the graph computes itself.
    """
    number, text = builder.tensor_type(np.float64), builder.tensor_type(object)
    # Names in the graph contain a colon and a number, to differ from the names of columns.
    parts: list[str] = []
    flags: list[str] = []
    for k, (name, median) in enumerate(encoding.medians.items()):
        source = (computed or {}).get(name, name)
        if source == name:
            builder.declare_input(name, number, 1)
        if median is None:
            parts.append(source)
            continue
        constant = builder.add_constant(f"numeric:{k}:median", np.array([[median]]))
        missing = builder.add("IsNaN", [source], f"numeric:{k}:missing")
        parts.append(builder.add("Where", [missing, constant, source], f"numeric:{k}"))
        if name in encoding.indicators:
            flags.append(builder.add("Cast", [missing], f"numeric:{k}:indicator", to=number))
    parts += flags
    for k, (name, known) in enumerate(encoding.categories.items()):
        builder.declare_input(name, text, 1)
        # By ONNX's standard, float32 of shape (n_instances, 1, n_categories).
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
    return builder.add("Concat", parts, f"{builder.prefix}input", axis=1)
