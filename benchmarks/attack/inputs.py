"""Arguments and data that make no sense: refused by name, or the answer is right."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import os
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from attack.files import alarm
from attack.tally import Tally, rounds
from coevo import CoevoClassifier, CoevoRegressor, Settings, evolve

BASE: dict[str, Any] = {
    "hidden_layer_sizes": (3,), "max_evaluations": 400, "max_generations": 3, "n_threads": 1,
    "population_size": 6, "batch_size": 20,
}  # fmt: skip

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 0.0, -0.5, 0.5, 0.999, 1.0, 1e-320, 1e39, 1e160, 1e308,
    10**9, 2**31, 2**63, 10**30, 10**400, float("nan"), float("inf"), -float("inf"), 1j, "", " ",
    "auto", "x", "x(y=1)", "rand/1(", "\ud800", "\x00", "\x1b[31m", "a" * 5000, b"a", [], (), {},
    set(), [None], [[]], [1, "a"], (10**9,), (0,), (3, -1), [3.5], {"a": 1}, {0: float("nan")},
    {0: -1, 1: 1}, {0: float("inf"), 1: 1}, np.float32(2), np.int64(3), np.array(2), np.array([]),
    np.array([1.0, 2.0]), np.bool_(True), pd.NA, pd.NaT, pd.Timestamp("2018-07-15"), Decimal("2"),
    Fraction(1, 2), object(), len, lambda: 1, lambda *_: float("nan"), lambda *_: "high",
    lambda a, b: a.fill(0), Exception, range(3), iter([1]), np.random.default_rng(1), Settings,
    Settings(), np.datetime64("2018-07-15"), np.full(3, np.nan),
]  # fmt: skip

DOORS = ("classifier", "regressor", "evolve")
ALLOWED = (ValueError, TypeError, MemoryError, OSError)
ENDLESS = {"sampling_rounds": 10**6}
"""Arguments by which a user may ask for work without end, and from which value on."""


def make_table(rng: Any) -> tuple[Any, Any]:
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def _as_object(X: Any, value: Any) -> Any:
    changed = X.astype(object)
    changed[0] = value
    return changed


INPUTS: list[Callable[[Any], Any]] = [
    lambda X: X * np.nan, lambda X: X * np.inf, lambda X: X * 1e300, lambda X: X * 1e308,
    lambda X: X * 1e38, lambda X: X * 1e-320, lambda X: X + 1j, lambda X: X[:0], lambda X: X[:, :0],
    lambda X: X[0], lambda X: X[np.newaxis], lambda X: X[:1], lambda X: X[:2], lambda X: None,
    lambda X: "X", lambda X: X.astype(str), lambda X: X.astype("M8[s]"), lambda X: X > 0,
    lambda X: X.astype(np.float16), lambda X: X[::-1, ::-1], np.asfortranarray,
    lambda X: X.tolist(), lambda X: [[1.0], [2.0, 3.0]], lambda X: _as_object(X, pd.NA),
    lambda X: _as_object(X, "a"), lambda X: _as_object(X, None), lambda X: _as_object(X, [1]),
    lambda X: np.ma.masked_array(X, X > 0), sparse.csr_matrix, pd.DataFrame,
    lambda X: pd.DataFrame(X, columns=["a", "a", "b"]), lambda X: pd.DataFrame({"a": [pd.NA] * 60}),
    lambda X: pd.DataFrame(X).assign(d=pd.Timestamp("2018-07-15")), np.zeros_like,
    lambda X: np.full_like(X, 7.0), lambda X: (X * 1e9).astype(np.int64), lambda X: iter(list(X)),
    lambda X: X * np.longdouble("1e4000"), lambda X: np.broadcast_to(1.0, X.shape),
    lambda X: np.where(X > 2, 1e30, X), lambda X: np.tile(X, (1, 300)),
]  # fmt: skip

LABELS: list[Callable[[Any], Any]] = [
    lambda y: y * np.nan, lambda y: y[:-1], lambda y: y[:, np.newaxis], lambda y: np.eye(2)[y],
    lambda y: y * 0, lambda y: None, lambda y: "y", lambda y: y.astype(str), lambda y: y > 0,
    lambda y: _as_object(y, "a"), lambda y: _as_object(y, None), lambda y: _as_object(y, pd.NA),
    lambda y: _as_object(y, np.nan), lambda y: _as_object(y, 1.5), lambda y: y + 0.5,
    lambda y: np.arange(len(y)), lambda y: y * 1e160, lambda y: y * 1e308, lambda y: y * np.inf,
    lambda y: np.where(np.arange(len(y)) == 5, 9, y), lambda y: np.array(["\ud800", "b"])[y],
    lambda y: np.array(["\x1b[31m", ""])[y], lambda y: pd.Categorical(np.array(["a", "b"])[y]),
    lambda y: pd.Series(y, dtype="Int64"), lambda y: np.ma.masked_array(y, y > 0), lambda y: y + 1j,
    lambda y: y.astype("M8[s]"), lambda y: [y], lambda y: [[1], [2, 3]], lambda y: {0: 1},
    lambda y: y.astype(bytes), lambda y: y * 2**62, lambda y: (y - 0.5) * 1e-300,
]  # fmt: skip

WEIGHTS: list[Callable[[Any], Any]] = [
    lambda y: 0.0 * y - 1, lambda y: y * np.nan, lambda y: np.full(len(y), np.inf),
    lambda y: np.zeros(len(y)), lambda y: np.ones(3), lambda y: "w", lambda y: 2.0, lambda y: y,
    lambda y: np.ones((len(y), 2)), lambda y: 0 * y + 1e308, lambda y: 0 * y + 1e-320,
    lambda y: _as_object(np.ones(len(y)), None), lambda y: y + 1j, lambda y: 1 + 1e9 * y,
]  # fmt: skip


def attack(seconds: float, seed: int, folder: Path) -> Tally:
    """Fit with one argument or array that makes no sense."""
    tally, generator = Tally(), random.Random(seed)
    rng = np.random.default_rng(seed)
    arguments = [list_arguments(door) for door in range(len(DOORS))]
    with _inside(folder):
        for _ in rounds(seconds):
            X, y = make_table(rng)
            door = generator.randrange(len(DOORS))
            if generator.random() < 0.6:
                name, value = generator.choice(arguments[door])
                _try(tally, door, name, value, X, y, {name: value}, None)
                continue
            which = generator.choice(("X", "y", "sample_weight"))
            number = generator.randrange(len({"X": INPUTS, "y": LABELS}.get(which, WEIGHTS)))
            change = {"X": INPUTS, "y": LABELS, "sample_weight": WEIGHTS}[which][number]
            weights = change(y) if which == "sample_weight" else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                X, y = change(X) if which == "X" else X, change(y) if which == "y" else y
            _try(tally, door, f"{which} {number}", None, X, y, {}, weights)
    return tally


def try_every_argument(door: int, folder: Path) -> Tally:
    """Fit once with each value for each argument."""
    tally = Tally()
    X, y = make_table(np.random.default_rng(1))
    with _inside(folder):
        for name, value in list_arguments(door):
            _try(tally, door, name, value, X, y, {name: value}, None)
    return tally


def list_arguments(door: int) -> list[tuple[str, Any]]:
    """Return each argument of the classifier, the regressor or `evolve` with each value."""
    if DOORS[door] == "evolve":
        names = [field.name for field in fields(Settings)]
    else:
        names = list(inspect.signature(CoevoClassifier).parameters)
    return [
        (name, value)
        for name in names
        for value in VALUES
        if not (isinstance(value, int) and value >= ENDLESS.get(name, math.inf))
    ]


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder, as some values are the names of files."""
    where = os.getcwd()
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(where)


def _try(
    tally: Tally, door: int, name: str, value: Any, X: Any, y: Any, changes: dict[str, Any],
    weights: Any,
) -> None:  # fmt: skip
    """Fit, and see that it works or is refused by the argument's name."""
    tally.counts["arguments" if changes else "arrays"] += 1
    what = f"{DOORS[door]}: {name}={value!r}"[:120]
    quiet = io.StringIO()
    try:
        with (
            alarm(20), warnings.catch_warnings(), contextlib.redirect_stderr(quiet),
            contextlib.redirect_stdout(quiet),
        ):  # fmt: skip
            warnings.simplefilter("ignore")
            if door == 2:
                result = evolve(X, y, X, y, **BASE | {"seed": 1} | changes)
                fitness, predicted = result.train_fitness, result.predict(X)
            else:
                estimator = (CoevoClassifier, CoevoRegressor)[door]
                changes = {k: v for k, v in changes.items() if k != "class_weight" or not door}
                model = estimator(**BASE | {"random_state": 1} | changes)
                model.fit(X, y, sample_weight=weights)
                fitness, predicted = model.train_fitness_, model.predict(X)
    except ALLOWED as error:
        tally.counts["refused"] += 1
        text = str(error)
        # What a user's own function raises is the user's, and the system names the file.
        is_excused = not changes or callable(value) or isinstance(error, OSError)
        is_named = is_excused or any(part in text for part in _names(name))
        tally.expect(bool(text) and is_named, f"{what}: {type(error).__name__}: {text}"[:400])
    except BaseException as error:
        tally.expect(False, f"{what}: {type(error).__name__}: {error}"[:400])
    else:
        tally.counts["served"] += 1
        is_number = np.asarray(predicted).dtype.kind in "fiu"
        is_finite = not is_number or np.isfinite(np.asarray(predicted, dtype=float)).all()
        tally.expect(bool(is_finite), f"{what}: predicts what is not finite")
        tally.expect(not np.isnan(fitness), f"{what}: fitness is {fitness}")
    for file in Path().iterdir():
        if file.is_file():
            file.unlink()


def _names(name: str) -> tuple[str, ...]:
    """Return the words by which an error may name an argument."""
    return (name, *{"random_state": ("seed",), "initial_range": ("initial weights",)}.get(name, ()))
