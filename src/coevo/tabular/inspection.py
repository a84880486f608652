"""Describes a model: settings, columns, layers and the distribution of its weights."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coevo._typing import Array
from coevo.core.network import Network
from coevo.persistence.atomic import write_atomically
from coevo.persistence.model import Model
from coevo.tabular.dates import ISO
from coevo.tabular.figures import draw_model
from coevo.tabular.preprocessing import Preprocessing
from coevo.tabular.run_folder import RunFolder

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 40
_MOST_COLUMNS, _MOST_ITEMS, _LONGEST_NAME = 20, 12, 40
SMALL = 0.01
"""A weight is small if it is below this fraction of the largest of its layer."""


def describe(
    path: Path, model: Model, importance: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Yield the lines that describe a model; importance is as `metrics.json` has it, if known."""
    architecture = model.network.architecture
    sizes = (architecture.n_inputs, *architecture.hidden_layer_sizes, architecture.n_outputs)
    yield f"{path}, written by coevo {model.coevo_version}"
    yield (
        f"network {'-'.join(map(str, sizes))}, {architecture.activation} hidden neurons, "
        f"{architecture.n_genes:,} weights and biases, {model.network.genotype.dtype}"
    )
    if model.classes is not None:
        yield f"classes: {_list(model.classes.tolist())}"
    if model.labels is not None:
        yield f"labels, any number of them at once: {_list(model.labels)}"
    if model.fitness:
        chosen = "" if "validation" in model.fitness else " (no validation rows: chosen on these)"
        yield f"fitness: {', '.join(f'{k} {v:.4g}' for k, v in model.fitness.items())}{chosen}"
    if model.preprocessing is not None:
        yield ""
        yield from _describe_columns(Preprocessing.from_json(model.preprocessing))
    elif model.feature_names is not None:
        yield f"inputs: {_list(model.feature_names)}"
    if importance is not None:
        yield ""
        yield from describe_importance(importance)
    if model.settings:
        yield ""
        yield "settings:"
        width = max(map(len, model.settings))
        yield from (f"  {name:<{width}}  {_show(v)}" for name, v in model.settings.items())
    yield ""
    network = scale_to_inputs(model)
    yield "layers" + (":" if network is model.network else ", weights for inputs scaled to ±1:")
    yield from describe_layers(network)


def scale_to_inputs(model: Model) -> Network:
    """Return the network as it would be for inputs scaled to [−1, 1], if their ranges are known.

    The saved weights are for the table's own units: small for incomes, large for rates.
    """
    if model.preprocessing is None:
        return model.network
    ranges = Preprocessing.from_json(model.preprocessing).encoding.input_ranges
    if ranges is None:
        return model.network
    low, high = ranges
    network = Network(model.network.architecture, model.network.genotype.copy())
    # What an input adds at its centre belongs to the bias.
    network.biases[0][:] += network.weights[0] @ (low / 2 + high / 2)
    network.weights[0][:] *= high / 2 - low / 2
    return network


def _describe_columns(preprocessing: Preprocessing) -> Iterator[str]:
    if preprocessing.target is not None:
        yield f"predicts {preprocessing.target!r} from"
    for name, date in preprocessing.dates.items():
        how = "ISO format" if date.format == ISO else f"format {date.format}"
        yield f"  {name!r}: dates in {how}: {', '.join(date.parts)}"
    encoding = preprocessing.encoding
    for name, median in encoding.medians.items():
        low, high = encoding.ranges.get(name, (None, None))
        seen = "" if low is None else f" from {low:g} to {high:g}"
        filled = "" if median is None else f", {median:g} if missing"
        told = ", with an input that says so" if name in encoding.indicators else ""
        yield f"  {name!r}: numeric{seen}{filled}{told}"
    for name, known in encoding.categories.items():
        shown = [text or "(missing)" for text in known]
        yield f"  {name!r}: {len(known)} categories: {_list(shown)}"
    if preprocessing.missing:
        yield f"  missing, as said in training: {', '.join(map(repr, preprocessing.missing))}"


def describe_importance(importance: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about permutation importance, the most important columns first."""
    yield (
        f"importance, the loss of {importance['metric']} on {importance['rows']} "
        f"{importance['part']} rows if a column is shuffled among them:"
    )
    columns = importance["columns"]
    names = [_shorten(name) for name in columns][:_MOST_COLUMNS]
    largest = max((loss["mean"] for loss in columns.values()), default=0.0)
    for name, loss in zip(names, columns.values(), strict=False):
        bar = "█" * round(20 * max(0.0, loss["mean"]) / largest) if largest > 0 else ""
        yield f"  {name:<{max(map(len, names))}} {loss['mean']:>8.4f} ± {loss['sd']:<8.4f} {bar}"
    if len(columns) > _MOST_COLUMNS:
        yield f"  and {len(columns) - _MOST_COLUMNS} more"


def describe_layers(network: Network) -> Iterator[str]:
    """Yield the lines about each layer: size, sparsity and a histogram of its weights."""
    layers = network.architecture.layers
    for number, (layer, weights, biases) in enumerate(
        zip(layers, network.weights, network.biases, strict=True), start=1
    ):
        name = "output" if number == len(layers) else f"hidden {number}"
        largest = np.abs(weights).max(initial=0.0)
        is_zero, is_small = weights == 0, np.abs(weights) < SMALL * largest
        yield (
            f"  {name}: {layer.n_inputs} inputs, {layer.n_neurons} neurons; {is_zero.mean():.1%} "
            f"of the weights are 0, {is_small.mean():.1%} below {SMALL:.0%} of the largest"
        )
        for what, values in (("weights", weights), ("biases", biases)):
            low, high = float(values.min()), float(values.max())
            yield f"    {what:<8}{low:>11.4g} {histogram(values)} {high:<.4g}"


def histogram(values: Array) -> str:
    """Return a histogram as a line of bars, from the smallest value to the largest."""
    counts, _ = np.histogram(values, bins=_BINS)
    heights = np.ceil(counts / max(1, counts.max()) * (len(_BARS) - 1)).astype(int)
    return "".join(_BARS[height] for height in heights)


def plot_model(path: Path, model: Model, folder: Path) -> None:
    """Draw a model's weights; history and importance too if the model's folder has them."""
    metrics = RunFolder(folder).read_metrics() or {}
    metric = metrics.get("fitness", {}).get("metric") or (model.settings or {}).get("fitness")
    # A model that was chosen without validation rows has no fitness on them.
    is_validated = model.fitness is None or "validation" in model.fitness
    chosen_on = "validation" if is_validated else "training"
    figure = draw_model(
        scale_to_inputs(model),
        read_history(folder),
        read_importance(folder),
        str(metric or "fitness"),
        chosen_on,
    )
    write_atomically(path, [figure])


def read_importance(folder: Path) -> Mapping[str, Any] | None:
    """Return the importance of columns in a run folder; None if it is not known."""
    metrics = RunFolder(folder).read_metrics()
    return metrics and metrics.get("importance")


def read_history(folder: Path) -> Mapping[str, Array] | None:
    """Return the history in a run folder, by column; None if there is none."""
    path = RunFolder(folder).history
    if not path.is_file():
        return None
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    try:
        columns = np.array(rows, dtype=np.float64).T
        return dict(zip(names, columns, strict=True))
    except ValueError:
        raise ValueError(f"{path} is not a history as coevo writes it") from None


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _list(items: Sequence[Any]) -> str:
    shown = ", ".join(map(str, items[:_MOST_ITEMS]))
    return shown + (f" and {len(items) - _MOST_ITEMS} more" if len(items) > _MOST_ITEMS else "")


def _show(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
