"""A saved model together with its preprocessing: from a table to answers, a chunk at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

from coevo import model
from coevo.estimators.scaling import run
from coevo.estimators.scoring import softmax
from coevo.model import Model, ModelError
from coevo.network import Array
from coevo.tabular.columns import as_numbers, as_texts, check_finite, frame_of
from coevo.tabular.preprocessing import Preprocessing, inputs_of
from coevo.tabular.run_folder import find_model
from coevo.tabular.table import Table, TableError, import_pandas

CHUNK = 20_000
"""Rows of a table that are held at once."""


class Strangers:
    """Texts of a table that a model knows no category for: rows of each column, and an example."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def look_for(self, name: str, texts: Array, known: tuple[str, ...]) -> None:
        """Count the texts of a column, NaN where there is none, that are not known."""
        unknown = Counter(texts.tolist())
        for text in (np.nan, *known):
            del unknown[text]
        if unknown:
            self._rows[name] = self._rows.get(name, 0) + unknown.total()
            self._examples.setdefault(name, next(iter(unknown)))

    def __iter__(self) -> Iterator[str]:
        """Yield a sentence for each column."""
        for name, n_rows in self._rows.items():
            rows = "1 row holds" if n_rows == 1 else f"{n_rows} rows hold"
            yield (
                f"{rows} a text in column {name!r} that the model has no input for, "
                f"{self._examples[name]!r} for one, and {'is' if n_rows == 1 else 'are'} "
                "predicted without it"
            )


@dataclass(frozen=True)
class TableModel:
    """A model that takes tables.

    Parameters
    ----------
    path
        Where it was read from.
    model
        The network, its classes and so on.
    preprocessing
        From columns to the network's inputs.
    """

    path: Path
    model: Model
    preprocessing: Preprocessing

    @classmethod
    def load(cls, given: Path) -> TableModel:
        """Read a model file, or the one in a run folder."""
        path = find_model(given)
        loaded = model.load(path)
        n_inputs = loaded.network.architecture.n_inputs
        if loaded.preprocessing is not None:
            try:
                preprocessing = Preprocessing.from_json(loaded.preprocessing)
                if len(preprocessing.feature_names) != n_inputs:
                    raise ModelError("its preprocessing does not fit its network")
            except ModelError as error:
                raise ModelError(f"{path} is not a good model file: {error}") from None
        elif loaded.feature_names is not None:
            # Saved by an estimator that was trained on a data frame of numbers.
            preprocessing = Preprocessing(dict.fromkeys(loaded.feature_names), {})
        else:
            raise ValueError(
                f"{path} does not know the names of its {n_inputs} inputs, so that no table can be "
                "put to it; coevo.model.load reads it in Python"
            )
        return cls(path, loaded, preprocessing)

    @cached_property
    def _transformer(self) -> ColumnTransformer:
        return self.preprocessing.transformer()

    def check(self, table: Table) -> None:
        """Raise unless a table has the columns that are needed."""
        table.check_columns(self.preprocessing.columns, f"which {self.path} needs")

    def inputs(
        self, frame: Any, path: object, first_row: int = 0, strangers: Strangers | None = None
    ) -> Array:
        """Return the network's inputs, (n_rows, n_inputs), of a frame of a table.

        Parameters
        ----------
        frame
            Some rows of the table.
        path, first_row
            The table's file and the number of rows before these, for messages.
        strangers
            Told of texts that the model knows no category for.
        """
        columns: dict[str, Array] = {}
        for name, median in self.preprocessing.medians.items():
            numbers, is_wrong = as_numbers(frame[name])
            if is_wrong.any():
                row = int(is_wrong.argmax())
                raise TableError(
                    f"column {name!r} of {path} must hold numbers and holds "
                    f"{frame[name].iloc[row]!r} in row {first_row + row + 1}"
                )
            check_finite(numbers, name, path)
            if median is None and np.isnan(numbers).any():
                row = int(np.isnan(numbers).argmax())
                raise TableError(
                    f"column {name!r} of {path} has no value in row {first_row + row + 1}, and the "
                    "model does not know what to put there"
                )
            columns[name] = numbers
        for name, known in self.preprocessing.categories.items():
            columns[name] = as_texts(frame[name])
            if strangers is not None:
                strangers.look_for(name, columns[name], known)
        return inputs_of(self._transformer, frame_of(columns))

    def answers(
        self,
        table: Table,
        keep: Sequence[str] = (),
        with_probabilities: bool = False,
        strangers: Strangers | None = None,
    ) -> Iterator[Any]:
        """Yield data frames of answers, as many rows at a time as `CHUNK` says.

        Parameters
        ----------
        table
            The table.
        keep
            Columns of it to go along with the answers.
        with_probabilities
            Whether a column for each class follows, the softmax of the outputs.
        strangers
            Told of texts that the model knows no category for.
        """
        pandas = import_pandas()
        classes = self.model.classes
        if with_probabilities and classes is None:
            raise ValueError(f"{self.path} predicts numbers, which have no probabilities")
        name = "prediction"
        texts = {*self.preprocessing.categories, *keep} - set(self.preprocessing.medians)
        needed = list(dict.fromkeys([*self.preprocessing.columns, *keep]))
        n_rows = 0
        for frame in table.frames(needed, texts, CHUNK):
            if len(frame) == 0:
                continue
            outputs = run(self.model.network, self.inputs(frame, table.path, n_rows, strangers))
            n_rows += len(frame)
            columns: dict[str, Any] = {kept: frame[kept].to_numpy() for kept in keep}
            if classes is not None:
                columns[name] = classes[outputs.argmax(axis=1)]
                if with_probabilities:
                    values = softmax(outputs).T
                    columns |= {f"probability {c}": v for c, v in zip(classes, values, strict=True)}
            elif outputs.shape[1] == 1:
                columns[name] = outputs[:, 0]
            else:
                columns |= {f"{name} {k}": v for k, v in enumerate(outputs.T, start=1)}
            yield pandas.DataFrame(columns)
        if n_rows == 0:
            raise TableError(f"{table.path} has column names but no rows")


def csv_parts(frames: Iterator[Any]) -> Iterator[bytes]:
    """Yield the bytes of a CSV file, made from data frames, with one line of names."""
    for number, frame in enumerate(frames):
        yield frame.to_csv(index=False, header=number == 0, lineterminator="\n").encode()
