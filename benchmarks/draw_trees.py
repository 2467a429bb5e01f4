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
    "Connect Three": ["three-1", "three-2", "three-3"],
    "Connect Four": ["four-1", "four-2", "four-3"],
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
    """Leaves of a tree and held-out error over the generations, a column per preset."""
    figure = Figure(figsize=(10.0, 5.0), dpi=90)
    for column, (title, names) in enumerate(GROWTH.items()):
        box = (0.065 + 0.325 * column, 0.57, 0.255, 0.36)
        upper = axes_of(figure, box, title, "leaves of a tree")
        lower = axes_of(figure, (box[0], 0.1, *box[2:]), "", "RMSE to the labels")
        for i, name in enumerate(names):
            run = Run.open(root, name)
            at, leaves, most, errors = [], [], [], []
            for record in run.records()[1:]:
                table = run.table(record["generation"], "trees")
                at.append(record["generation"])
                leaves.append(np.mean([row["leaves"] for row in table]))
                most.append(max(row["leaves"] for row in table))
                learner = record["learner"]
                errors.append(np.sqrt([learner["loss_held_out"], learner["loss_train"]]))
            games, rows = np.transpose(errors)
            colour = SERIES[i]
            upper.plot(
                at, leaves, color=colour, linewidth=1.4, label=f"mean of actions, run {i + 1}"
            )
            upper.plot(at, most, color=colour, linewidth=0.8, alpha=0.5)
            lower.plot(at, games, color=colour, linewidth=1.4, label=f"held-out games, run {i + 1}")
            lower.plot(at, rows, color=colour, linewidth=0.8, linestyle="--")
        upper.set_ylim(bottom=0.0)
        lower.set_ylim(bottom=0.0)
        lower.set_xlabel("generation", fontsize=9)
        if column == 0:
            upper.legend(fontsize=7, frameon=False, title="thin: the largest", title_fontsize=7)
            lower.legend(fontsize=7, frameon=False, title="dashed: rows", title_fontsize=7)
    save(figure, "tree_growth.png")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["overfitting"]:
            overfitting()
        case ["growth", root]:
            growth(root)
        case _:
            sys.exit(__doc__)
