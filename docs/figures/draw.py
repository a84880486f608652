"""Draws the figures that explain the algorithm and the architecture.

`make figures` runs it; the SVG files beside it are committed. The colours keep apart for
colour-blind readers and in print, and shapes or strokes always say the same as colours. The
background is clear; the site's style sheet turns dark lines into light ones in its dark theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

HERE = Path(__file__).parent
INK, MUTED, FAINT = "#1b2733", "#56626e", "#c3cbd3"
BLUE, PALE_BLUE = "#0072b2", "#d3e6f4"
VERMILION, PALE_VERMILION = "#c65200", "#f9dcc8"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "svg.hashsalt": "coevo",  # the same file each time
}

Point = tuple[float, float]


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure whose coordinates are inches, with nothing on it."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def save(figure: Figure, name: str) -> None:
    """Write a figure beside this file."""
    figure.savefig(
        HERE / f"{name}.svg", transparent=True, bbox_inches="tight", pad_inches=0.08,
        metadata={"Date": None},
    )  # fmt: skip


def arrow(axes: Axes, start: Point, stop: Point, color: str = MUTED) -> None:
    """Draw a straight arrow."""
    axes.annotate(
        "", stop, start,
        arrowprops={
            "arrowstyle": "-|>,head_width=0.25,head_length=0.5", "color": color, "lw": 1.3,
            "shrinkA": 0, "shrinkB": 0,
        },
    )  # fmt: skip


def badge(axes: Axes, place: Point, text: str) -> None:
    """Draw a number in a disc, which the text refers to."""
    axes.add_patch(Circle(place, 0.125, color=VERMILION, zorder=6))
    axes.text(*place, text, color="white", ha="center", va="center", size=9, weight="bold",
              zorder=7)  # fmt: skip


class Net:
    """A drawing of a network: where its neurons are, and the lines between them."""

    def __init__(
        self, axes: Axes, left: float, middle: float, sizes: Sequence[int], gaps: Point
    ) -> None:
        across, down = gaps
        self.axes = axes
        self.layers = [
            [(left + across * depth, middle + down * ((size - 1) / 2 - n)) for n in range(size)]
            for depth, size in enumerate(sizes)
        ]

    def connect(self, depth: int, to: Sequence[int], color: str, width: float) -> None:
        """Draw the lines into some neurons of a layer."""
        for start in self.layers[depth - 1]:
            for neuron in to:
                xs, ys = zip(start, self.layers[depth][neuron], strict=True)
                self.axes.plot(xs, ys, color=color, lw=width, zorder=1, solid_capstyle="round")

    def connect_from(self, depth: int, neuron: int, color: str, width: float) -> None:
        """Draw the lines out of a neuron."""
        for stop in self.layers[depth + 1]:
            xs, ys = zip(self.layers[depth][neuron], stop, strict=True)
            self.axes.plot(xs, ys, color=color, lw=width, zorder=2, solid_capstyle="round")

    def place(self, fills: dict[Point, str], edges: dict[Point, str], radius: float) -> None:
        """Draw all neurons; (layer, number) may have colours of their own."""
        for depth, layer in enumerate(self.layers):
            for n, place in enumerate(layer):
                self.axes.add_patch(
                    Circle(
                        place, radius, facecolor=fills.get((depth, n), "white"),
                        edgecolor=edges.get((depth, n), MUTED), lw=1.5, zorder=4,
                    )
                )  # fmt: skip

    def label(self, depth: int, texts: Sequence[str], color: str = INK) -> None:
        """Write into the neurons of a layer."""
        for place, text in zip(self.layers[depth], texts, strict=True):
            self.axes.text(*place, text, ha="center", va="center", size=9.5, color=color, zorder=5)


# ------------------------------------------------------------ subpopulations and global solution


def draw_subpopulations() -> None:
    """Each neuron's genes have a subpopulation; the global solution takes the best of each."""
    figure, axes = blank(9.4, 4.9)
    rng = np.random.default_rng(4)
    n_inputs, n_hidden, n_outputs, n_individuals, changed = 4, 3, 2, 5, 1
    n_neurons = n_hidden + n_outputs

    axes.text(0.25, 4.62, "a network", weight="bold")
    axes.text(3.75, 4.62, "one subpopulation for each neuron", weight="bold")
    net = Net(axes, 0.45, 2.75, (n_inputs, n_hidden, n_outputs), (1.2, 0.85))
    net.connect(1, range(n_hidden), FAINT, 1.1)
    net.connect(2, range(n_outputs), FAINT, 1.1)
    net.connect(1, [changed], VERMILION, 2.2)
    is_changed = {(1, changed): VERMILION}
    net.place({(1, changed): PALE_VERMILION}, is_changed, 0.2)
    net.label(0, [""] * n_inputs)
    net.label(1, [str(i + 1) for i in range(n_hidden)])
    net.label(2, [str(n_hidden + i + 1) for i in range(n_outputs)])
    axes.text(0.45, 0.98, "inputs", ha="center", color=MUTED, size=9)
    axes.text(1.65, 0.98, "hidden\nneurons", ha="center", va="center", color=MUTED, size=9)
    axes.text(2.85, 0.98, "output\nneurons", ha="center", va="center", color=MUTED, size=9)

    left, gap, top, y_global, y_measured = 4.15, 0.29, 4.02, 1.62, 0.72
    champions = (2, 0, 3, 1, 2)
    x = left
    for i in range(n_neurons):
        n_genes = (n_inputs if i < n_hidden else n_hidden) + 1
        middle, is_here = x + n_genes * CELL / 2, i == changed
        axes.text(middle, 4.34, f"$P_{i + 1}$", ha="center", size=11,
                  color=VERMILION if is_here else INK)  # fmt: skip
        individuals = rng.uniform(size=(n_individuals, n_genes))
        for j, genes in enumerate(individuals):
            draw_genes(axes, x, top - 0.3 * j, genes, INK if j == champions[i] else None)
        bottom = top - 0.3 * (n_individuals - 1)
        draw_genes(axes, x, y_global, individuals[champions[i]], INK)
        if is_here:
            draw_genes(axes, x, bottom, individuals[-1], VERMILION, is_new=True)
            draw_genes(axes, x, y_measured, individuals[-1], VERMILION, is_new=True)
            turn, y = x - gap / 2, bottom + STRIP / 2
            axes.plot([x - 0.03, turn, turn], [y, y, y_measured + STRIP / 2], color=VERMILION,
                      lw=1.6, solid_joinstyle="round")  # fmt: skip
            arrow(axes, (turn, y_measured + STRIP / 2), (x - 0.02, y_measured + STRIP / 2),
                  VERMILION)  # fmt: skip
        else:
            draw_genes(axes, x, y_measured, individuals[champions[i]], FAINT)
        arrow(axes, (middle, bottom - 0.08), (middle, y_global + STRIP + 0.05))
        x += n_genes * CELL + gap
    right = x - gap
    axes.text(left - 0.14, top - 0.5, "individuals", ha="right", va="center", color=MUTED,
              size=9, rotation=90)  # fmt: skip
    axes.text(right, y_global - 0.12, "global solution $X$: the fittest individual of each",
              va="top", ha="right", size=9.5)  # fmt: skip
    axes.text(right, y_measured - 0.12, "measured: the individual takes its place in $X$, "
              "the rest stays", va="top", ha="right", size=9.5, color=VERMILION)  # fmt: skip
    save(figure, "subpopulations")


CELL, STRIP = 0.165, 0.2  # width of a gene, height of an individual


def draw_genes(
    axes: Axes, x: float, y: float, genes: np.ndarray, edge: str | None, *, is_new: bool = False
) -> None:
    """Draw an individual as a strip of genes from 0 to 1."""
    low, high = ("#fbe9de", "#dd7a3a") if is_new else ("#e4f0f9", "#4f9fd0")
    shades = mpl.colors.LinearSegmentedColormap.from_list("genes", [low, high])
    for g, gene in enumerate(genes):
        axes.add_patch(Rectangle((x + g * CELL, y), CELL, STRIP, facecolor=shades(gene),
                                 edgecolor="white", lw=0.7, zorder=3))  # fmt: skip
    if edge is not None:
        axes.add_patch(Rectangle((x, y), len(genes) * CELL, STRIP, fill=False, edgecolor=edge,
                                 lw=1.8, zorder=5))  # fmt: skip


# ------------------------------------------------------------------- limited evaluation


def draw_inheritance() -> None:
    """A contest with inherited fitness, and how much each batch counts in a fitness."""
    figure = Figure(figsize=(9.4, 3.5), layout="constrained")
    contest, memory = figure.subplots(1, 2, width_ratios=(1.15, 1))
    decay = 0.2
    target, mutant = 3.9, 3.5
    inherited = np.array([target * (1 - decay), (target + mutant) / 2 * (1 - decay)])
    measured = np.array([0.82, 0.90])
    places = [1, 0]
    contest.barh(places, inherited, 0.5, color=PALE_BLUE, edgecolor=BLUE, hatch="///", lw=1.2)
    contest.barh(places, measured, 0.5, inherited, color=BLUE, edgecolor=BLUE, lw=1.2)
    for place, old, new in zip(places, inherited, measured, strict=True):
        contest.text(old / 2, place, f"inherited {old:.2f}", ha="center", va="center", size=9.5,
                     bbox={"facecolor": "white", "edgecolor": "none", "pad": 2})  # fmt: skip
        contest.text(old + new / 2, place, f"measured\n{new:.2f}", ha="center", va="center",
                     color="white", size=9)  # fmt: skip
        contest.text(old + new + 0.06, place, f"{old + new:.2f}", va="center", weight="bold")
    contest.text(0, 1.36, r"target:  0.8 · $Ft_j$,  plus its fitness on this batch", size=9.5)
    contest.text(0, 0.36, r"trial:  0.8 · ($Ft_j$ + $Ft_v$) / 2,  plus its fitness on this batch",
                 size=9.5)  # fmt: skip
    contest.text(0, -0.5, "The trial does better on this batch. The target stays.", size=9.5,
                 color=VERMILION)  # fmt: skip
    contest.set(xlim=(0, 4.6), ylim=(-0.62, 1.75), yticks=[], xticks=range(5))
    contest.set_xlabel("adjusted fitness")
    contest.set_title("a contest on one batch, decay 0.2")
    contest.spines.left.set_visible(False)

    steps = np.arange(12)
    weights = (1 - decay) ** steps
    colors = [BLUE if step < 3 else PALE_BLUE for step in steps]
    memory.bar(steps, weights, 0.72, color=colors, edgecolor=BLUE, lw=1)
    share = 1 - (1 - decay) ** 3
    memory.plot([-0.36, -0.36, 2.36, 2.36], [1.04, 1.08, 1.08, 1.04], color=MUTED, lw=1.2)
    memory.text(2.6, 1.08, f"{share:.0%} of the sum", size=9.5, va="center")
    memory.text(11.45, 0.6, "the sum over all batches: 1 / decay = 5", size=9.5, ha="right")
    memory.set(xticks=[0, 3, 6, 9], xlabel="batches ago", yticks=[0, 0.5, 1], ylim=(0, 1.2))
    memory.set_title("how much each batch counts in a fitness")
    save(figure, "inheritance")


# -------------------------------------------------------------------------- delta evaluation


def draw_delta() -> None:
    """What is computed for one candidate, by a full pass and by delta evaluation."""
    figure, axes = blank(9.4, 4.9)
    sizes, changed, middle = (5, 4, 3), 1, 3.0
    for left, title in ((0.55, "a full pass"), (5.15, "delta evaluation")):
        axes.text(left - 0.2, 4.62, title, weight="bold", size=11)
    full = Net(axes, 0.55, middle, sizes, (1.6, 0.63))
    full.connect(1, range(4), BLUE, 1.2)
    full.connect(2, range(3), BLUE, 1.2)
    computed = {(1, n): PALE_BLUE for n in range(4)} | {(2, n): PALE_BLUE for n in range(3)}
    full.place(computed, dict.fromkeys(computed, BLUE), 0.19)
    axes.text(0.35, 1.23, "every weight meets every instance", va="center", size=9.5)
    axes.text(0.35, 0.22, "HAR: 561 · 50 + 50 · 6 = 28 350 products", weight="bold")

    delta = Net(axes, 5.15, middle, sizes, (1.6, 0.63))
    delta.connect(1, range(4), FAINT, 0.9)
    delta.connect(2, range(3), FAINT, 0.9)
    delta.connect(1, [changed], VERMILION, 2)
    delta.connect_from(1, changed, VERMILION, 2)
    moved = {(1, changed): PALE_VERMILION} | {(2, n): PALE_VERMILION for n in range(3)}
    delta.place(moved, dict.fromkeys(moved, VERMILION), 0.19)
    here, first_input, first_output = (
        np.array(delta.layers[depth][n]) for depth, n in ((1, changed), (0, 0), (2, 0))
    )
    badge(axes, tuple(0.5 * (here + first_input)), "1")
    badge(axes, tuple(here), "2")
    badge(axes, tuple(0.45 * here + 0.55 * first_output), "3")
    steps = ("its pre-activation is new", r"its activation goes from $a$ to $a^\prime$",
             r"each output moves by $w\,(a^\prime - a)$")  # fmt: skip
    for number, text in enumerate(steps, start=1):
        y = 1.54 - 0.31 * number
        badge(axes, (5.08, y), str(number))
        axes.text(5.3, y, text, va="center", size=9.5)
    axes.text(8.75, middle, "grey:\nkept", color=MUTED, size=9.5, va="center")
    axes.text(4.95, 0.22, "HAR: 561 + 6 = 567 products", weight="bold")
    axes.plot([4.55, 4.55], [0.2, 4.75], color=FAINT, lw=1)
    save(figure, "delta")


def draw_interval() -> None:
    """Outputs are straight lines in one activation, so being right is an interval."""
    figure = Figure(figsize=(9.4, 3.9), layout="constrained")
    lines, bars = figure.subplots(1, 2, width_ratios=(1, 1.1))

    activation = np.linspace(-1, 1, 201)
    own = 0.55 + 0.25 * activation
    rivals = {"another class": 0.1 + 1.05 * activation, "a third class": 0.05 - 0.95 * activation}
    is_right = own > np.max(list(rivals.values()), axis=0)
    low, high = activation[is_right][[0, -1]]
    lines.axvspan(low, high, color=PALE_BLUE, lw=0)
    lines.plot(activation, own, color=BLUE, lw=2.6)
    rotation = {"transform_rotates_text": True, "rotation_mode": "anchor", "size": 9}
    for (name, values), dash in zip(rivals.items(), ((0, (5, 2)), (0, (1.5, 1.5))), strict=True):
        lines.plot(activation, values, color=MUTED, lw=1.6, ls=dash)
        slope = np.degrees(np.arctan2(values[-1] - values[0], 2))
        at = -0.62 if slope > 0 else 0.62
        lines.text(at, np.interp(at, activation, values) + 0.07, name, ha="center", color=MUTED,
                   rotation=slope, **rotation)  # fmt: skip
    slope = np.degrees(np.arctan2(own[-1] - own[0], 2))
    lines.text((low + high) / 2, 0.66, "the instance's class", color=BLUE, ha="center",
               rotation=slope, **rotation | {"size": 10})  # fmt: skip
    for place, is_in in ((-0.82, False), (-0.1, True), (0.2, True), (0.86, False)):
        lines.plot(place, -1.62, "o" if is_in else "x", ms=8, mew=2.2, zorder=5,
                   color=BLUE if is_in else VERMILION)  # fmt: skip
    for place, word in (((low + high) / 2, "right"), (-0.82, "wrong"), (0.86, "wrong")):
        lines.text(place, -1.42, word, ha="center", weight="bold",
                   color=BLUE if word == "right" else VERMILION)  # fmt: skip
    lines.set(xlim=(-1.08, 1.08), ylim=(-1.8, 1.3), yticks=[], xticks=[-1, low, high, 1])
    lines.set_xticklabels(["−1", "low", "high", "1"])
    lines.set(xlabel="activation $a$ of the changed neuron", ylabel="logits")
    lines.set_title("one instance, any candidate")

    # Interval ends and a candidate's sums, as they might be in a search.
    edges = [(-0.9, 1.3), (0.4, 3), (-3, 0.7), (-1.9, -0.3), (-3, 3), None, (-0.4, 1.9), (-3, -0.8)]
    sums = [0.35, 1.2, 1.35, -1.2, -2.0, 0.5, 1.0, -1.7]
    right = 0
    for row, (interval, value) in enumerate(zip(edges, sums, strict=True)):
        is_in = interval is not None and interval[0] < value < interval[1]
        right += is_in
        bars.plot([-3, 3], [row, row], color=FAINT, lw=1, zorder=1)
        if interval is not None:
            bars.add_patch(Rectangle((interval[0], row - 0.26), interval[1] - interval[0], 0.52,
                                     facecolor=PALE_BLUE, edgecolor=BLUE, lw=1.2))  # fmt: skip
        bars.plot(value, row, "o" if is_in else "x", ms=8, mew=2.2, zorder=5,
                  color=BLUE if is_in else VERMILION)  # fmt: skip
    bars.text(3.08, 4, "settled:\nalways right", size=8.5, va="center", color=MUTED)
    bars.text(3.08, 5, "settled:\nnever right", size=8.5, va="center", color=MUTED)
    bars.set(xlim=(-3, 4.25), ylim=(7.6, -0.7), yticks=range(8), xticks=[-2, 0, 2])
    bars.set_yticklabels([str(n + 1) for n in range(8)])
    bars.set(xlabel=r"pre-activation $s$ of the changed neuron, $a = \psi(s)$", ylabel="instance")
    bars.set_title(f"one candidate, all instances: {right} of {len(sums)} right")
    save(figure, "interval")


# ---------------------------------------------------------------------------------- architecture

PACKAGES = (
    ("cli", "commands, options, error messages"),
    ("study", "many runs: plan, store, tables, report"),
    ("tabular", "from a table in a file to a model and back"),
    ("policies", "simulators and black boxes"),
    ("diagnostics", "coevo bench, coevo doctor"),
    ("estimators", "the scikit-learn interface"),
    ("training", "one way to run a search; the paper's settings"),
    ("persistence", "checkpoints, models, ONNX"),
    ("engines", "measure fitness: delta, batched, reference"),
    ("core", "the paper: Algorithm 1, and extensions"),
    ("datasets", "the paper's data sets"),
    ("runtime", "compilation, threads, random streams"),
)


def draw_architecture() -> None:
    """The packages, each importing only those below it, and the way of a run through them."""
    height, width = 0.5, 10.2
    figure, axes = blank(width, height * len(PACKAGES) + 0.5)
    middles = {
        name: height * (len(PACKAGES) - n - 0.5) + 0.08 for n, (name, _) in enumerate(PACKAGES)
    }
    for name, text in PACKAGES:
        y = middles[name]
        fill = PALE_BLUE if name in ("training", "engines", "core") else "#eef2f5"
        axes.add_patch(Rectangle((0.35, y - 0.215), width - 0.5, 0.43, color=fill, zorder=0))
        axes.text(0.5, y, name, weight="bold", va="center")
        axes.text(1.68, y, text, va="center", size=9.5, color=INK)
    top = height * len(PACKAGES) + 0.22
    axes.text(0.35, top, "packages of src/coevo", weight="bold")
    axes.text(5.75, top, "the way of a run", weight="bold")
    arrow(axes, (0.17, middles["cli"]), (0.17, middles["runtime"]))
    axes.text(0.06, middles["training"], "imports", rotation=90, va="center", ha="center",
              size=9, color=MUTED)  # fmt: skip

    def box(x: float, package: str, text: str, is_main: bool = False) -> None:
        axes.text(
            x, middles[package], text, ha="center", va="center", size=9.5, zorder=5,
            color="white" if is_main else INK, family="DejaVu Sans Mono",
            bbox={
                "boxstyle": "round,pad=0.28", "lw": 1.3,
                "facecolor": BLUE if is_main else "white", "edgecolor": BLUE,
            },
        )  # fmt: skip

    def down(x: float, start: str, stop: str) -> None:
        arrow(axes, (x, middles[start] - 0.16), (x, middles[stop] + 0.17), BLUE)

    left, middle, right = 6.45, 8.05, 9.4
    box(left, "cli", "coevo train")
    box(left, "tabular", "train")
    box(left, "estimators", "fit")
    box(left, "training", "run_search", is_main=True)
    box(left, "core", "Search", is_main=True)
    for start, stop in (("cli", "tabular"), ("tabular", "estimators"), ("estimators", "training"),
                        ("training", "core")):  # fmt: skip
        down(left, start, stop)
    box(right, "cli", "coevo study")
    box(right, "study", "run_study")
    box(right, "training", "evolve")
    down(right, "cli", "study")
    down(right, "study", "training")
    arrow(axes, (right - 0.36, middles["training"]), (left + 0.55, middles["training"]), BLUE)
    box(middle, "persistence", "Checkpoint")
    arrow(axes, (left + 0.5, middles["training"] - 0.14),
          (middle - 0.5, middles["persistence"] + 0.1), BLUE)  # fmt: skip
    axes.text(left + 0.62, middles["persistence"] - 0.07, "hooks", size=9, color=MUTED)
    box(middle, "engines", "Evaluator")
    box(right, "engines", "kernels")
    arrow(axes, (middle + 0.47, middles["engines"]), (right - 0.42, middles["engines"]), BLUE)
    box(middle, "core", "extensions")
    arrow(axes, (left + 0.36, middles["core"]), (middle - 0.52, middles["core"]), BLUE)
    arrow(axes, (left + 0.3, middles["core"] + 0.15),
          (middle - 0.48, middles["engines"] - 0.05), BLUE)  # fmt: skip
    axes.text(left + 0.12, middles["engines"] - 0.03, "evaluate", size=9, color=MUTED)
    save(figure, "architecture")


def main() -> None:
    """Draw them all."""
    with mpl.rc_context(STYLE):
        draw_subpopulations()
        draw_inheritance()
        draw_delta()
        draw_interval()
        draw_architecture()


if __name__ == "__main__":
    main()
