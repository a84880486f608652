"""Predictions of a saved model for the rows of a table, a chunk at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.responses import LabelResponses, softmax
from coevo.estimators.inputs import Inputs
from coevo.estimators.range_check import RangeCheck
from coevo.estimators.scaling import run
from coevo.persistence import model
from coevo.persistence.encoding import read_encoding
from coevo.persistence.model import Model, ModelError
from coevo.tabular.columns import advise_missing, as_numbers, as_texts, check_dates, check_finite
from coevo.tabular.dates import parse_dates
from coevo.tabular.notation import Notation
from coevo.tabular.preprocessing import Preprocessing
from coevo.tabular.run_folder import find_model
from coevo.tabular.table import Table, TableError, import_pandas

CHUNK = 20_000
"""Rows of a table that are held at once."""


class UnknownCategories:
    """Counts the categories in a table that a model has no input for."""

    def __init__(self) -> None:
        self._n_rows: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def count(self, name: str, texts: Array, known: tuple[str, ...]) -> None:
        """Count the rows of a column, NaN where missing, whose category is not known."""
        unknown = Counter(texts.tolist())
        for text in (np.nan, *known):
            del unknown[text]
        if unknown:
            self._n_rows[name] += unknown.total()
            self._examples.setdefault(name, next(iter(unknown)))

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each column that has some."""
        for name, n_rows in self._n_rows.items():
            rows, are = ("1 row has", "is") if n_rows == 1 else (f"{n_rows} rows have", "are")
            yield (
                f"{rows} an unknown category in column {name!r}, such as "
                f"{self._examples[name]!r}, and {are} predicted without it"
            )


@dataclass(frozen=True)
class TableModel:
    """A model with its preprocessing, and the file it was read from."""

    path: Path
    model: Model
    preprocessing: Preprocessing

    @classmethod
    def load(cls, given: Path) -> TableModel:
        """Read a model file, or the one in a run folder."""
        path = find_model(given)
        loaded = model.load(path)
        n_inputs = loaded.network.architecture.n_inputs
        if loaded.feature_names is None:
            raise ValueError(
                f"{path} does not know the names of its {n_inputs} inputs, so it cannot predict a "
                "table; coevo.load_model reads it in Python"
            )
        try:
            if loaded.preprocessing is not None:
                preprocessing = Preprocessing.from_json(loaded.preprocessing)
            else:  # saved by an estimator before version 0.2
                preprocessing = Preprocessing(read_encoding(loaded))
            if len(preprocessing.encoding.input_names) != n_inputs:
                raise ModelError("its preprocessing does not fit its network")
        except ModelError as error:
            raise ModelError(f"{path} is not a good model file: {error}") from None
        return cls(path, loaded, preprocessing)

    def check(self, table: Table) -> None:
        """Raise unless a table has the columns that are needed."""
        table.check_columns(self.preprocessing.columns, f"which {self.path} needs")

    def inputs(
        self,
        frame: Any,
        table: Table,
        first_row: int = 0,
        unknown: UnknownCategories | None = None,
        far: RangeCheck | None = None,
    ) -> Array:
        """Return the network's inputs, (n_rows, n_inputs), of a frame of a table.

        `first_row`, the number of rows before these, is for messages. `unknown` and `far` are told
        about these rows.
        """
        path, encoding = table.path, self.preprocessing.encoding
        columns: dict[str, Array] = {}
        frame = frame.reset_index(drop=True)
        for name in self.preprocessing.numeric:
            numbers, is_wrong = self._read_numbers(frame[name], table.decimal)
            if is_wrong.any():
                row = int(is_wrong.argmax())
                raise TableError(
                    f"column {name!r} of {path} must hold numbers and holds "
                    f"{frame[name].iloc[row]!r} in row {first_row + row + 1}"
                    + advise_missing(frame[name].iloc[row])
                )
            check_finite(numbers, frame[name], path, first_row)
            if encoding.medians[name] is None and np.isnan(numbers).any():
                row = int(np.isnan(numbers).argmax())
                raise TableError(
                    f"column {name!r} of {path} has no value in row {first_row + row + 1}, and the "
                    "model does not know what to put there"
                )
            columns[name] = numbers
        for name, date in self.preprocessing.dates.items():
            moments = parse_dates(frame[name], date.format)
            check_dates(moments, frame[name], date.format, path, first_row)
            columns |= date.expand(name, moments)
        for name, known in encoding.categories.items():
            columns[name] = as_texts(frame[name])
            if unknown is not None:
                unknown.count(name, columns[name], known)
        gathered = self.preprocessing.gather(columns)
        if far is not None:
            far.look_at(gathered)
        return Inputs(gathered, encoding)[slice(None)]

    def _read_numbers(self, column: Any, decimal: str) -> tuple[Array, Array]:
        """Return the numbers of a column and which values are none."""
        notation = self.preprocessing.notations.get(column.name)
        if notation is None:
            numbers, is_wrong = as_numbers(column)
            if not is_wrong.any():
                return numbers, is_wrong
        return (notation or Notation(decimal)).read(column)

    def predict(
        self,
        table: Table,
        keep: Sequence[str] = (),
        with_probabilities: bool = False,
        unknown: UnknownCategories | None = None,
        far: RangeCheck | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of predictions, `CHUNK` rows at a time.

        They begin with the columns to `keep`, and end with the probability of each class or label,
        if these are asked for. `unknown` and `far` are told about all rows.
        """
        pandas = import_pandas()
        classes, labels = self.model.classes, self.model.labels
        if with_probabilities and classes is None and labels is None:
            raise ValueError(f"{self.path} predicts numbers, which have no probabilities")
        name = "prediction"
        how = self.preprocessing
        as_text = {*how.encoding.categories, *how.dates, *how.notations, *keep}
        as_text -= {*how.numeric} - {*how.notations}
        table = table.with_missing(how.missing)
        needed = list(dict.fromkeys([*how.columns, *keep]))
        n_rows = 0
        for frame in table.frames(needed, as_text, CHUNK):
            if len(frame) == 0:
                continue
            outputs = run(self.model.network, self.inputs(frame, table, n_rows, unknown, far))
            n_rows += len(frame)
            columns: dict[str, Any] = {kept: frame[kept].to_numpy() for kept in keep}
            if classes is not None:
                columns[name] = classes[outputs.argmax(axis=1)]
                if with_probabilities:
                    values = softmax(outputs).T
                    columns |= {f"probability {c}": v for c, v in zip(classes, values, strict=True)}
            elif labels is not None:
                answers = LabelResponses(len(labels))
                found = answers.predict(outputs).T
                columns |= {f"{name} {c}": v for c, v in zip(labels, found, strict=True)}
                if with_probabilities:
                    values = answers.predict_proba(outputs).T
                    columns |= {f"probability {c}": v for c, v in zip(labels, values, strict=True)}
            elif outputs.shape[1] == 1:
                columns[name] = outputs[:, 0]
            else:
                columns |= {f"{name} {k}": v for k, v in enumerate(outputs.T, start=1)}
            yield pandas.DataFrame(columns)
        if n_rows == 0:
            raise TableError(f"{table.path} has column names but no rows")


def csv_chunks(frames: Iterator[Any], escape_formulas: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a CSV file with one header, made of data frames of the same columns.

    Texts that a spreadsheet would run as a formula may be escaped by an apostrophe.
    """
    for number, frame in enumerate(frames):
        if escape_formulas:
            frame = frame.rename(columns=_escape_formula).map(_escape_formula)  # noqa: PLW2901
        yield frame.to_csv(index=False, header=number == 0, lineterminator="\n").encode()


def _escape_formula(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)  # a negative number
    except ValueError:
        return f"'{value}"
    return value
