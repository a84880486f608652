"""Draws a study's figures: the paper's four, accuracy against seconds, and box plots.

Rows have colours of the Okabe-Ito palette, which is safe for colour-blind readers, and differ in
dashes and markers for print in black and white.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coevo._plotting import LOOK
from coevo._rendering import data_uri
from coevo._typing import Array
from coevo.core.history import Generation
from coevo.study.exchange import thin
from coevo.study.run import BACKPROP, Outcome
from coevo.study.statistics import UNIT, Summary, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Runtimes = Mapping[str, tuple[float, float | None]]
"""Runtime of each row as a multiple of LECCDE's: ours, and the paper's if it reports one."""

_COLUMN = {name: position for position, name in enumerate(Generation._fields)}
_STYLES: dict[str, tuple[str, Any, str]] = {
    "DE": ("#D55E00", (0, (1, 1.2)), "s"),
    "LEDE": ("#E69F00", (0, (5, 2)), "^"),
    "CCDE": ("#009E73", (0, (6, 1.5, 1, 1.5)), "D"),
    "LECCDE": ("#0072B2", "solid", "o"),
    BACKPROP: ("#444444", (0, (3, 1, 1, 1, 1, 1)), "v"),
}
_SPARE_STYLES = (
    ("#CC79A7", (0, (4, 1, 1, 1)), "P"),
    ("#56B4E9", (0, (2, 1)), "X"),
    ("#8A6FBF", (0, (8, 2)), "*"),
    ("#6B8E23", (0, (1, 2)), "h"),
)
_WIDE, _NARROW = (9.0, 3.4), (5.2, 3.4)


@dataclass(frozen=True)
class Drawing:
    """A finished figure.

    Parameters
    ----------
    name
        Its file name, without the suffix.
    caption
        What it shows; also the text for readers who cannot see it.
    experiment
        The experiment it belongs to; None for the paper's figures.
    is_wide
        Whether it takes the whole width of the page.
    """

    name: str
    caption: str
    svg: bytes
    experiment: str | None = None
    is_wide: bool = False

    @property
    def data_uri(self) -> str:
        """The figure as the source of an image element."""
        return data_uri(self.svg, "svg+xml")

    def save(self, folder: Path) -> Path:
        """Write the figure to a folder and return its path."""
        path = folder / f"{self.name}.svg"
        path.write_bytes(self.svg)
        return path


def draw_figures(tables: Sequence[Table]) -> list[Drawing]:
    """Draw all figures for which there are results."""
    import matplotlib  # noqa: PLC0415 - slow to import

    with matplotlib.rc_context(LOOK):
        return [*_paper_figures(tables), *_experiment_figures(tables)]


def _paper_figures(tables: Sequence[Table]) -> Iterator[Drawing]:
    compared = {
        table.experiment.name: found for table in tables if len(found := _runtimes(table)) > 1
    }
    if compared:
        yield Drawing(
            "figure-1-runtime",
            "The paper's figure 1. Runtime as a multiple of LECCDE's: ours (filled) and the "
            "paper's (hatched, where it reports one), in the order of the legend.",
            draw_runtimes(compared),
            is_wide=len(compared) > 3,
        )
    traced = _first(tables, "HAR", lambda table: _traced(table) is not None)
    if traced is not None:
        outcome = _traced(traced)
        assert outcome is not None
        yield Drawing(
            "figure-2-one-run",
            f"The paper's figure 2. Accuracy of the global solution on the training, validation "
            f"and test parts along one run of LECCDE ({traced.experiment.title}).",
            _trace_plot(outcome),
        )
    by_accuracy = [table for table in tables if _fitness(table) == "accuracy"]
    four = _first(by_accuracy, "HAR", lambda table: len(_evolved(table)) > 1)
    if four is not None:
        yield Drawing(
            "figure-3-variants",
            "The paper's figure 3. Validation accuracy of the global solution against evaluations "
            f"along one run of each variant ({four.experiment.title}).",
            _validation_plot([(s, s.outcomes[0]) for s in _evolved(four)]),
        )
    mnist = next((t for t in by_accuracy if t.experiment.dataset == "MNIST" and _unit(t)), None)
    if mnist is not None:
        unit = _unit(mnist)
        assert unit is not None
        yield Drawing(
            "figure-4-mnist",
            "The paper's figure 4. Validation accuracy of the global solution along one run of "
            f"LECCDE on MNIST ({mnist.experiment.title}).",
            _validation_plot([(unit, unit.outcomes[0])]),
        )


def _experiment_figures(tables: Sequence[Table]) -> Iterator[Drawing]:
    for table in tables:
        finished = [summary for summary in table.summaries if summary.outcomes]
        if not finished:
            continue
        name, title = table.experiment.name, table.experiment.title
        yield Drawing(
            f"boxes-{name}",
            f"{title}: test accuracy of the runs. Box: quartiles and median; whiskers: 1.5 times "
            "the box at most; dots: the runs; open diamond: the paper's median.",
            _box_plot(finished),
            name,
            is_wide=len(finished) > 6,
        )
        fitness = _fitness(table)
        yield Drawing(
            f"seconds-{name}",
            f"{title}: validation {_words(fitness)} of the best network so far against seconds of "
            "searching, median over the runs; the band covers the middle half of them.",
            _seconds_plot([s for s in finished if _fitness_of(s) == fitness], fitness),
            name,
        )


def _first(tables: Sequence[Table], favourite: str, suits: Any) -> Table | None:
    """Return the favourite experiment if it suits, or else the first that does."""
    fitting = [table for table in tables if suits(table)]
    return next((t for t in fitting if t.experiment.name == favourite), next(iter(fitting), None))


def _evolved(table: Table) -> list[Summary]:
    return [s for s in table.summaries if s.outcomes and s.row.variant != BACKPROP]


def _runtimes(table: Table) -> Runtimes:
    return {
        s.row.label: (s.relative_runtime, s.paper_runtime)
        for s in _evolved(table)
        if s.relative_runtime is not None
    }


def _fitness_of(summary: Summary) -> str:
    """Return the metric in the history of a row's runs."""
    if summary.row.variant == BACKPROP:
        return "accuracy"
    return str(summary.row.runs[0].settings["fitness"])


def _fitness(table: Table) -> str:
    """Return the metric that a table's runs are compared by: that of its first evolved row."""
    return next(map(_fitness_of, _evolved(table)), "accuracy")


def _words(fitness: str) -> str:
    return fitness.replace("_", " ")


def _unit(table: Table) -> Summary | None:
    return next((s for s in table.summaries if s.row.label == UNIT and s.outcomes), None)


def _traced(table: Table) -> Outcome | None:
    outcomes = (outcome for summary in table.summaries for outcome in summary.outcomes)
    return next((o for o in outcomes if o.trace is not None and len(o.trace)), None)


def _style(label: str, position: int) -> tuple[str, Any, str]:
    return _STYLES.get(label, _SPARE_STYLES[position % len(_SPARE_STYLES)])


def _plain(text: str) -> str:
    """Return a text that Matplotlib shows as it is: no mathematics, no hidden legend entry."""
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def _axes(size: tuple[float, float]) -> tuple[Any, Axes]:
    # Not pyplot, which keeps figures in memory and may need a display.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "coevo"})
    return buffer.getvalue()


def draw_runtimes(runtimes: Mapping[str, Runtimes]) -> bytes:
    """Return bars of relative runtimes, by experiment, as an SVG."""
    figure, axes = _axes(_WIDE if len(runtimes) > 3 else _NARROW)
    labels = list(dict.fromkeys(label for rows in runtimes.values() for label in rows))
    width = 0.8 / len(labels)
    heights = []
    keys: dict[str, Any] = {}
    for position, label in enumerate(labels):
        colour = _style(label, position)[0]
        for place, rows in enumerate(runtimes.values()):
            if label not in rows:
                continue
            left = place - 0.4 + width * position
            ours, paper = rows[label]
            bars = axes.bar(left, ours, width * 0.46, align="edge", color=colour)
            keys.setdefault(label, bars[0])
            heights.append(ours)
            if paper is not None:
                axes.bar(
                    left + width * 0.46, paper, width * 0.46, align="edge",
                    facecolor="white", edgecolor=colour, hatch="////",
                )  # fmt: skip
                heights.append(paper)
    if max(heights) > 12 * min(heights):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.axhline(1, color="#555555", linewidth=0.8)
    axes.set_xticks(range(len(runtimes)), list(map(_plain, runtimes)))
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("runtime, LECCDE = 1")
    axes.legend(
        list(keys.values()), list(map(_plain, keys)), ncols=len(keys), loc="lower left",
        bbox_to_anchor=(0, 1),
    )  # fmt: skip
    return _svg(figure)


def _trace_plot(outcome: Outcome) -> bytes:
    figure, axes = _axes(_NARROW)
    assert outcome.trace is not None
    evaluations, *accuracies = outcome.trace.T
    looks = (
        ("training", "#0072B2", "solid"),
        ("validation", "#D55E00", (0, (5, 1.5))),
        ("test", "#009E73", (0, (1.2, 1.2))),
    )
    for values, (label, colour, dashes) in zip(accuracies, looks, strict=True):
        axes.plot(evaluations, 100 * values, color=colour, linestyle=dashes, label=label, lw=1.5)
    _finish_accuracy(axes, np.concatenate(accuracies))
    axes.set_xlabel("evaluations")
    axes.legend(loc="lower right")
    return _svg(figure)


def _validation_plot(chosen: Sequence[tuple[Summary, Outcome]]) -> bytes:
    figure, axes = _axes(_NARROW)
    seen = []
    for position, (summary, outcome) in enumerate(chosen):
        colour, dashes, marker = _style(summary.row.label, position)
        rows = thin(outcome.history, 300)
        values = rows[:, _COLUMN["validation_fitness"]]
        axes.plot(
            rows[:, _COLUMN["evaluations"]], 100 * values, color=colour, linestyle=dashes,
            marker=marker, markevery=(0.05 + 0.03 * position, 0.15), markersize=4.5, lw=1.4,
            label=_plain(summary.row.label),
        )  # fmt: skip
        seen.append(values)
    _finish_accuracy(axes, np.concatenate(seen))
    axes.set_xlabel("evaluations")
    axes.legend(loc="lower right", ncols=2)
    return _svg(figure)


def _seconds_plot(summaries: Sequence[Summary], fitness: str) -> bytes:
    figure, axes = _axes(_NARROW)
    unit = 100 if fitness == "accuracy" else 1
    seen = []
    for position, summary in enumerate(summaries):
        colour, dashes, marker = _style(summary.row.label, position)
        seconds, low, middle, high = _over_time(summary.outcomes)
        axes.fill_between(seconds, unit * low, unit * high, color=colour, alpha=0.13, linewidth=0)
        axes.plot(
            seconds, unit * middle, color=colour, linestyle=dashes, marker=marker,
            markevery=(0.1, 0.2), markersize=4.5, lw=1.5,
            label=_plain(summary.row.label),
        )  # fmt: skip
        seen.append(middle)
    axes.set_xscale("log")
    if fitness == "accuracy":
        _finish_accuracy(axes, np.concatenate(seen))
    else:
        axes.set_ylabel(_words(fitness))
    axes.set_xlabel("seconds of searching")
    axes.legend(loc="lower right", fontsize="small" if len(summaries) > 6 else None)
    return _svg(figure)


def _over_time(outcomes: Sequence[Outcome]) -> tuple[Array, Array, Array, Array]:
    """Return times, and quartiles and median of the best validation accuracy at each of them."""
    runs = [
        (o.history[:, _COLUMN["seconds"]], o.history[:, _COLUMN["best_validation"]])
        for o in outcomes
    ]
    # From the first point of the latest run to the median end.
    first = max(1e-4, *(float(seconds[0]) for seconds, _ in runs))
    last = max(float(np.median([seconds[-1] for seconds, _ in runs])), first * 1.001)
    times = np.geomspace(first, last, 160)
    values = [best[np.searchsorted(seconds, times, side="right") - 1] for seconds, best in runs]
    low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
    return times, low, middle, high


def _box_plot(summaries: Sequence[Summary]) -> bytes:
    is_crowded = len(summaries) > 6
    figure, axes = _axes(_WIDE if is_crowded else _NARROW)
    values = [100 * np.array([o.test for o in summary.outcomes]) for summary in summaries]
    boxes = axes.boxplot(values, widths=0.5, showfliers=False, patch_artist=True)
    for line in boxes["medians"]:
        line.set(color="black", linewidth=1.6)
    for position, (summary, box) in enumerate(zip(summaries, boxes["boxes"], strict=True)):
        colour = _style(summary.row.label, position)[0]
        box.set(facecolor=colour, alpha=0.35, edgecolor="#333333")
        # Spread sideways by a fixed pattern, so that the figure is the same each time.
        sideways = 0.14 * np.sin(2.4 * np.arange(len(values[position])))
        axes.plot(
            position + 1 + sideways, values[position], "o", color=colour, markersize=3.6,
            markeredgecolor="#222222", markeredgewidth=0.4,
        )  # fmt: skip
        cell = summary.cells["test"]
        if cell.paper is not None:
            axes.errorbar(
                position + 1.36, cell.paper.value, cell.paper.spread or None, fmt="D",
                color="#333333", markerfacecolor="white", markersize=5, capsize=3, linewidth=1,
            )  # fmt: skip
    axes.set_xticks(range(1, len(summaries) + 1), [_plain(s.row.label) for s in summaries])
    if is_crowded:
        axes.tick_params(axis="x", rotation=90)
    spare = max(0, 4 - len(summaries)) / 2  # keeps few boxes narrow
    axes.set_xlim(0.4 - spare, len(summaries) + 0.7 + spare)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("test accuracy, %")
    return _svg(figure)


def _finish_accuracy(axes: Axes, values: Array) -> None:
    """Label the axis and cut off the steep beginning, as the paper does."""
    finite = values[np.isfinite(values)]
    low = np.floor(20 * np.percentile(finite, 8)) * 5 - 5
    axes.set_ylim(max(0.0, float(low)), min(100.5, 100 * float(finite.max()) + 2))
    axes.set_ylabel("accuracy, %")
