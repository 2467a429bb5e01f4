"""Draws the figures of model trees in docs/results.md.

    python benchmarks/draw_trees.py overfitting     -> docs/overfitting.png (half a minute)
    python benchmarks/draw_trees.py growth ROOT     -> docs/tree_growth.png

`growth` reads the runs that docs/results.md names, from the root folder of runs that is given.
"""

import sys
from pathlib import Path

import numpy as np
from bench_m5 import REMEDIES, Games, rmse
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeline.figures import BLUE, GREEN, GREY, MARKERS, PALE, SERIES, VERMILION
from pipeline.run import Run

DOCS = Path(__file__).resolve().parents[1] / "docs"
GROWTH = {
    "SumTo100": ["sumto-1", "sumto-2", "sumto-3"],
    "Connect Three": ["three-1"],
    "Connect Four": ["four-1"],
}


def axes_of(figure, box, title, unit):
    axes = figure.add_axes(box)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_ylabel(unit, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def save(figure, name):
    FigureCanvasAgg(figure).print_png(DOCS / name)
    print(DOCS / name)


def overfitting():
    """The error to the true value, on new games, of trees that learned from 2,000 games."""
    games = Games.make()
    constant = rmse(0.5, games.truth)
    rows = []
    for name, options in REMEDIES.items():
        _, bag, error = games.fit(games.outcome, **options)
        rows.append((name, error, sum(tree.num_leaves for tree in bag)))
    curves = {
        f"{rule}, lambda {decay:g}": games.sweeps(12, decay, split=rule)
        for rule, decay in (("score", 0.8), ("sdr", 0.8), ("score", 0.0), ("score", 1.0))
    }
    fifth = curves["score, lambda 0.8"][4]
    rows.append(("defaults, lambda-returns, sweep 5", fifth, None))
    figure = Figure(figsize=(10.0, 3.7), dpi=90)
    left = axes_of(figure, (0.245, 0.14, 0.32, 0.74), "Error to the true value by remedy", "")
    right = axes_of(figure, (0.665, 0.14, 0.325, 0.74), "Defaults, sweep by sweep", "")
    for place, (_, error, leaves) in enumerate(rows):
        colour = VERMILION if error > constant else BLUE if error > 0.085 else GREEN
        left.barh(-place, error, color=colour, height=0.7)
        words = f"{error:.3f}"
        if leaves:
            words += f", {leaves:,} {'leaf' if leaves == 1 else 'leaves'}"
        inside = error > 0.45
        left.text(
            error - 0.005 if inside else error + 0.005,
            -place,
            words,
            fontsize=8,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
        )
    left.set_yticks(-np.arange(len(rows)), [name for name, _, _ in rows])
    left.axvline(constant, color=GREY, linewidth=1.0, linestyle="--")
    left.text(constant + 0.006, 1 - len(rows), "a constant", fontsize=8, color=GREY, va="center")
    left.grid(axis="y", visible=False)
    left.set_xlabel("root mean squared error, new games", fontsize=9)
    for i, (name, errors) in enumerate(curves.items()):
        sweeps = np.arange(1, len(errors) + 1)
        style = {"color": SERIES[i], "marker": MARKERS[i], "markersize": 3.5, "linewidth": 1.3}
        right.plot(sweeps, errors, label=name, **style)
    right.axhline(0.072, color=GREY, linewidth=1.0, linestyle="--")
    right.text(12.2, 0.0722, "goal", fontsize=8, color=GREY, va="bottom", ha="right")
    right.set_xlabel("sweep (1: outcomes as labels)", fontsize=9)
    right.legend(fontsize=8, frameon=False)
    right.set_ylim(0.055, 0.105)
    save(figure, "overfitting.png")


def growth(root):
    """Leaves of a tree, rows of the window and held-out error over the generations, by preset."""
    figure = Figure(figsize=(10.0, 5.6), dpi=80)
    for column, (title, names) in enumerate(GROWTH.items()):
        left, width = 0.075 + 0.325 * column, 0.245
        leaves = axes_of(figure, (left, 0.69, width, 0.26), title, "leaves of a tree")
        window = axes_of(figure, (left, 0.44, width, 0.17), "", "thousand rows")
        error = axes_of(figure, (left, 0.09, width, 0.27), "", "RMSE to the labels")
        for i, name in enumerate(names):
            run = Run.open(root, name)
            records = run.records()[1:]
            at = [record["generation"] for record in records]
            sizes = [
                [row["leaves"] for row in run.table(record["generation"], "trees")]
                for record in records
            ]
            learned = [record["learner"] for record in records]
            style = {"color": SERIES[i], "linewidth": 1.4}
            seed = name.split("-")[-1]
            leaves.plot(at, [np.mean(each) for each in sizes], label=f"seed {seed}", **style)
            leaves.plot(at, [max(each) for each in sizes], color=SERIES[i], linewidth=0.7)
            window.plot(at, [each["rows"] / 1000 for each in learned], **style)
            for part, line in (("held_out", "solid"), ("train", "dashed")):
                errors = [each[f"loss_{part}"] ** 0.5 for each in learned]
                error.plot(at, errors, label=f"seed {seed}", linestyle=line, **style)
        for axes in (leaves, window, error):
            axes.set_ylim(bottom=0.0)
        error.set_xlabel("generation", fontsize=9)
        leaves.legend(fontsize=8, frameon=False, loc="lower right")
    save(figure, "tree_growth.png")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["overfitting"]:
            overfitting()
        case ["growth", root]:
            growth(root)
        case _:
            sys.exit(__doc__)
