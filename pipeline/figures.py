"""Every plot: pure functions from the records of a run (lines of metrics.jsonl) to image bytes.

They keep nothing between calls, so any thread may call them. What a record lacks (generation 0
plays no games, evaluation may skip generations) is left out of the plot; a function whose subject
is missing from every record returns None. G is the number of generations.

Most draw with matplotlib on an Agg canvas, 60 to 120 ms of CPU each. `value_bars` is called once
per generation inside the training loop, and so draws its rectangles with PIL, in 6 ms.

Colours: M. Okabe and K. Ito, "Color Universal Design" (2008), told apart by colour-blind readers;
where these do not suffice, more from P. Tol, "Colour Schemes" (2021).
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter
from PIL import Image, ImageDraw, ImageFont

from games import Game, Solution
from pipeline.ratings import wilson

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY, PALE = "#CC79A7", "#56B4E9", "#222222", "#777777", "#DDDDDD"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, BLACK)
MARKERS = "osD^vPX"
# Of opponents; the policy itself is blue. The last are wine, olive, indigo, sand and magenta.
OPPONENTS = (*SERIES[1:], "#882255", "#999933", "#332288", "#DDCC77", "#EE3377")
PHASES = {"selfplay": BLUE, "learner": ORANGE, "gate": PURPLE, "evaluation": GREEN}
ANCESTORS = "ancestors (pooled)"
_DASHED, _DOTTED = (0, (2.0, 1.5)), (0, (1.0, 1.5))
_NAMED = 7  # generations that a legend names; of more, evenly chosen ones
MAX_BARS = 1000  # of positions with known values; of more, the last ones are drawn

Record = Mapping[str, Any]


def pooled(rows: Sequence[Mapping]) -> dict:
    """Matches against several opponents as one: counts added up, the 95% interval of their score
    from as many games as are distinct (see `pipeline.league.summarise_match`)."""
    total = {
        key: sum(row[key] for row in rows)
        for key in ("n", "wins", "draws", "losses", "distinct_games")
    }
    score = (total["wins"] + total["draws"] / 2) / total["n"]
    low, high = wilson(score * total["distinct_games"], total["distinct_games"])
    return {**total, "score": score, "low": low, "high": high}


def by_opponent(record: Record) -> dict[str, Mapping]:
    """Row of the evaluation by opponent, in order: baselines, the predecessor, the ancestors as
    one."""
    rows = record["evaluation"]
    found = {row["opponent"]: row for row in rows if row["opponent"] != "ancestor"}
    ancestors = [row for row in rows if row["opponent"] == "ancestor"]
    return {**found, ANCESTORS: pooled(ancestors)} if ancestors else found


def _opponent_looks(records: Sequence[Record], others: Iterable[str] = ()) -> dict[str, dict]:
    """How lines of each opponent look, in every figure of a run alike: baselines in the order of
    the evaluation, who learned behind them, then `others` who are not among them. Colours come
    again in dots."""
    names = dict.fromkeys(name for record in records for name in by_opponent(record))
    learned = [name for name in ("predecessor", ANCESTORS) if name in names]
    order = [name for name in names if name not in learned] + learned
    order += [name for name in others if name not in names]
    return {
        name: {
            "color": OPPONENTS[i % len(OPPONENTS)],
            "marker": MARKERS[(i + 1) % len(MARKERS)],
            "linestyle": "solid" if i < len(OPPONENTS) else _DOTTED,
        }
        for i, name in enumerate(order)
    }


# Values of solved positions.


def value_bars(solution: Solution | None, record: Record, name: str = "") -> bytes | None:
    """Figures 6 to 8 of the SumTo100 document: V of the solved afterstates in one generation.

    Bars are predictions, blue from 0 up and orange below 0, over the outline of the exact values.

    Args:
        solution: of the game; None if it has none.
        record: of the generation.
        name: of the game, for the title.

    Returns:
        PNG, 800 x 300 pixels for 101 positions; None without a solution or values in the record.
    """
    answers = record["solution"] or {}
    if solution is None or not answers.get("values"):
        return None
    title = f"generation {record['generation']}"
    if "optimal" in answers:
        title += f": {answers['optimal']} of {answers['of']} solved positions answered right"
    title = f"{name}, {title}" if name else title
    return _draw_bars(solution, np.array(answers["values"], float), title, exact=True)


def optimal_bars(solution: Solution | None, name: str = "") -> bytes | None:
    """Figure 1 of the SumTo100 document: the exact values. PNG as from `value_bars`."""
    if solution is None or not solution.labels:
        return None
    title = f"{name}, exact values" if name else "exact values"
    return _draw_bars(solution, solution.values, title, exact=False)


def _draw_bars(solution: Solution, values: np.ndarray, title: str, exact: bool) -> bytes:
    labels = solution.labels[-MAX_BARS:]
    values = np.clip(np.nan_to_num(values[-MAX_BARS:]), -1.05, 1.05)
    pitch = max(1, round(720 / len(labels)))  # pixels per bar: whole, so that all look alike
    thick = max(1, round(0.9 * pitch))
    left, zero, unit = 60, 142, 100
    right = left + pitch * len(labels)
    top, bottom = zero - 105, zero + 105
    image = Image.new("RGB", (max(800, right + 20), 300), "white")
    draw = ImageDraw.Draw(image)
    # matplotlib brings this font, so that it is the same everywhere.
    font_file = str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"))
    font, small = ImageFont.truetype(font_file, 14), ImageFont.truetype(font_file, 12)
    draw.text((left, 9), title, BLACK, font)
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        y = zero - round(tick * unit)
        draw.line((left, y, right, y), PALE)
        draw.text((left - 8, y), f"{tick:.1f}".replace("-", "−"), BLACK, small, anchor="rm")
    if exact:
        known = np.clip(solution.values[-MAX_BARS:], -1.05, 1.05)
        heights = zero - np.rint(unit * known)
        edges = left + pitch * np.arange(len(labels) + 1)
        steps = np.stack([edges[:-1], heights, edges[1:], heights], 1)
        draw.line(steps.ravel().tolist(), GREY)
    for i, value in enumerate(values):
        tip = zero - round(unit * value)
        box = (left + i * pitch, min(zero, tip), left + i * pitch + thick - 1, max(zero, tip))
        draw.rectangle(box, BLUE if value >= 0 else ORANGE)
    draw.line((left, zero, right, zero), BLACK)
    draw.line((left - 1, top, left - 1, bottom), BLACK)
    for i in range(0, len(labels), label_step(labels)):
        x = left + i * pitch + thick // 2
        draw.line((x, bottom, x, bottom + 4), BLACK)
        draw.text((x, bottom + 7), labels[i], BLACK, small, anchor="mt")
    rest = len(solution.labels) - len(labels)
    note = f" (the last {len(labels):,} of {len(solution.labels):,})" if rest else ""
    draw.text((left, 288), f"position right after an own action{note}", BLACK, small, anchor="lm")
    x = right
    for colour, word in ((ORANGE, "V < 0"), (BLUE, "V ≥ 0"), *([(GREY, "exact V")] * exact)):
        x -= round(small.getlength(word))
        draw.text((x, 288), word, BLACK, small, anchor="lm")
        draw.rectangle(
            (x - 16, 287, x - 6, 288) if colour == GREY else (x - 16, 283, x - 6, 293), colour
        )
        x -= 32
    return _encode(image)


def label_step(labels: Sequence[str]) -> int:
    """How many bars apart labels fit under an axis: 1, 2, 5, 10, 20, .."""
    room = max(2, min(12, 110 // (max(map(len, labels)) + 3)))
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    return next(step for step in steps if len(labels) <= room * step)


def animation(frames: Sequence[bytes], seconds: float = 0.4) -> bytes:
    """Figure 8 of the SumTo100 document: a GIF that repeats, from PNG frames of one size.

    Args:
        frames: PNG, at least one; equal frames in a row become one that is shown for longer.
        seconds: that a frame is shown; the last one stays five times as long.

    Returns:
        GIF; 25 frames of `value_bars` make about 90 kB.
    """
    if not frames:
        raise ValueError("an animation needs at least one frame, got none")
    images = [
        Image.open(io.BytesIO(frame)).convert("RGB").quantize(32, Image.Quantize.FASTOCTREE)
        for frame in frames
    ]
    milliseconds = round(1000 * seconds)
    sink = io.BytesIO()
    images[0].save(
        sink,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=[milliseconds] * (len(images) - 1) + [5 * milliseconds],
        loop=0,
    )
    return sink.getvalue()


def solved(records: Sequence[Record]) -> bytes | None:
    """Right answers to the solved positions, and right signs of V, over the generations.

    All solved positions are asked, so these shares have no sampling error.
    """
    asked = [record for record in records if record["solution"]]
    counts = _column(asked, "solution", "optimal")
    of = _column(asked, "solution", "of")
    lines = (
        ("right answers", counts / of, of),
        ("right sign of V", _column(asked, "solution", "sign_accuracy"), _lengths(asked)),
    )
    if not any(np.isfinite(share).any() for _, share, _ in lines):
        return None
    title = "Solved positions"
    if math.isfinite(counts[-1]):
        title += f" in generation {asked[-1]['generation']}: "
        title += f"{counts[-1]:,.0f} of {of[-1]:,.0f} answered right"
    figure, axes = _panel(title, "share of all solved positions")
    for i, (words, share, n) in enumerate(lines):
        if np.isfinite(share).any():
            label = f"{words}\nn = {_range(n)} positions"
            _line(axes, _column(asked, "generation"), share, i, label)
    _shares(axes)
    _legend(axes)
    return _png(figure)


# Learning.


def loss_curves(records: Sequence[Record]) -> bytes | None:
    """Figure 5 of the SumTo100 document: the loss over the epochs, a line per generation, on the
    rows that taught and on those held out; beside it the loss of the policy of each generation."""
    curves = {
        record["generation"]: record["learner"]["curve"]
        for record in records
        if (record["learner"].get("curve") or {}).get("train")
    }
    if not curves:
        return None
    first, last = min(curves), max(curves)
    shade = LinearSegmentedColormap.from_list("age", (SKY, BLUE, "#001A2C"))
    colour = {each: shade((each - first) / max(1, last - first)) for each in curves}
    learned = [record for record in records if record["generation"] in curves]
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    left = _axes(figure, (0.085, 0.15, 0.31, 0.74), "Loss while learning", "loss")
    right = _axes(figure, (0.485, 0.15, 0.31, 0.74), "Loss of the policy that came out", "loss")
    for part, style in (("train", _DASHED), ("held_out", "solid")):
        lines = {each: _numbers(curve[part]) for each, curve in curves.items() if curve.get(part)}
        if not lines:  # nothing was held out
            continue
        colours = [colour[each] for each in lines]
        paths = [np.stack([np.arange(1, len(line) + 1), line], 1) for line in lines.values()]
        left.add_collection(
            LineCollection(paths, colors=colours, linestyles=[style], linewidths=1.1)
        )
        x, y = zip(*(path[-1] for path in paths), strict=True)
        left.scatter(x, y, s=6, color=colours)
        losses = _column(learned, "learner", f"loss_{part}")
        right.plot(list(curves), losses, color=GREY, linestyle=style, linewidth=1.1)
        right.scatter(list(curves), losses, s=14, color=list(colour.values()), zorder=3)
    left.autoscale()
    _whole(left, "epoch")
    _whole(right, "generation")
    named = list(curves)
    if len(named) > _NAMED:
        named = [named[round(each)] for each in np.linspace(0, len(named) - 1, _NAMED)]
    _legend(
        right,
        handles=[
            *(Line2D([], [], color=colour[each], label=f"generation {each}") for each in named),
            Line2D([], [], color=GREY, label="held-out games"),
            Line2D([], [], color=GREY, label="training games", linestyle=_DASHED),
        ],
    )
    return _png(figure)


def calibration(records: Sequence[Record]) -> bytes | None:
    """Mean predicted value against the mean discounted return that followed, in bins, for the
    newest generation; the area of a point is the number of its decisions. The mean gap is the
    expected calibration error: the distance of the two, weighted by decisions (C. Guo et al., "On
    Calibration of Modern Neural Networks", 2017)."""
    measured = [record for record in records if record["learner"].get("calibration")]
    if not measured:
        return None
    newest = measured[-1]
    bins = newest["learner"]["calibration"]
    predicted, returned, n = (
        _numbers(each[key] for each in bins) for key in ("predicted", "returned", "n")
    )
    gap = float((n * abs(predicted - returned)).sum() / n.sum())
    kept = "held-out " if newest["learner"].get("loss_held_out") is not None else ""
    figure = Figure(figsize=(4.6, 4.4), dpi=100)
    title = (
        f"Calibration, generation {newest['generation']}\n"
        f"n = {int(n.sum()):,} {kept}decisions, mean gap {gap:.3f}"
    )
    axes = _axes(figure, (0.16, 0.12, 0.8, 0.76), title, "mean discounted return")
    reach = 1.1 * max(1.0, np.nanmax(np.abs([predicted, returned]), initial=0.0))
    axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8)
    axes.scatter(predicted, returned, s=260 * n / n.max() + 4, color=BLUE, alpha=0.75, linewidths=0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("mean predicted value", fontsize=9)
    note = (
        f"area: decisions in the bin, {_range(n)}\nline: predicted = returned\n"
        "gap: |predicted − returned|, mean over the decisions"
    )
    axes.text(0.98, 0.03, note, transform=axes.transAxes, ha="right", fontsize=8, color=BLACK)
    return _png(figure)


def tree_sizes(tables: Mapping[int, Sequence[Mapping]]) -> bytes | None:
    """Size and error of model trees over the generations: leaves and depth of each action's trees,
    and the root mean squared error on games that were held out, beside that on held-out rows of
    games that taught. The gap between these two is what the trees know by heart.

    Args:
        tables: rows of trees.parquet by generation, an action each; actions that share the pooled
            trees count once in sizes.
    """
    tables = {generation: rows for generation, rows in sorted(tables.items()) if rows}
    if not tables:
        return None
    at = np.array(list(tables), float)
    actions = sorted({row["action"] for rows in tables.values() for row in rows})
    names = {row["action"]: row.get("text") for rows in tables.values() for row in rows}
    figure = Figure(figsize=(11.0, 3.3), dpi=100)
    panels = (
        (0.055, 0.21, "Leaves of a tree", "leaves"),
        (0.315, 0.21, "Depth", "tests"),
        (0.73, 0.26, "Error (band: all actions)", "RMSE, in units of the targets"),
    )
    leaves, depth, error = (
        _axes(figure, (left, 0.15, width, 0.74), title, unit) for left, width, title, unit in panels
    )
    for axes, key in ((leaves, "leaves"), (depth, "depth")):
        every = np.full((len(actions), len(at)), math.nan)
        for g, rows in enumerate(tables.values()):
            alike = [row["action"] for row in rows if row["pooled"]][1:]
            for row in rows:
                if row["action"] not in alike:
                    every[actions.index(row["action"]), g] = row[key]
        if len(actions) <= len(SERIES):
            for i, line in enumerate(every):
                _line(axes, at, line, i, str(names[actions[i]]))
        else:
            for i, line in enumerate(every):
                label = "an action" if i == 0 else None
                axes.plot(at, line, color=GREY, alpha=0.35, linewidth=0.8, label=label)
            _line(axes, at, np.nanmean(every, axis=0), 0, "mean of all actions")
    _legend(depth)
    for i, (key, words) in enumerate((("rmse_games", "held-out games"), ("rmse_rows", "rows"))):
        low, mean, high = np.transpose([_pooled_error(rows, key) for rows in tables.values()])
        if np.isfinite(mean).any():
            error.fill_between(at, low, high, color=SERIES[i], alpha=0.15, linewidth=0)
            _line(error, at, mean, i, words)
            error.legend(fontsize=8, frameon=False, loc="lower left")
    for axes in (leaves, depth, error):
        axes.set_ylim(bottom=0.0)
        _whole(axes, "generation", 5)
    depth.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    return _png(figure)


def _pooled_error(rows: Sequence[Mapping], key: str) -> tuple[float, float, float]:
    """Least, pooled and largest error of the actions; in the pooled one an action weighs as many
    rows as taught it."""
    error, taught = _numbers(row.get(key) for row in rows), _numbers(row["rows"] for row in rows)
    known = np.isfinite(error) & (taught > 0)
    if not known.any():
        return math.nan, math.nan, math.nan
    error = error[known]
    square = np.average(error**2, weights=taught[known])
    return float(error.min()), math.sqrt(square), float(error.max())


def fitted_q(records: Sequence[Record]) -> bytes | None:
    """Does fitting Q to its own labels converge? The root mean squared Bellman residual and the
    mean absolute changes of Q and of the labels, over the generations, the residual sweep by sweep
    as a thin line; beside it the share of trees that had to be clipped. What diverges rises."""
    learned = [record for record in records if record["learner"].get("residual") is not None]
    if not learned:
        return None
    at = _column(learned, "generation")
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    left = _axes(figure, (0.085, 0.15, 0.33, 0.74), "Bellman residual, changes", "units of Q")
    right = _axes(figure, (0.66, 0.15, 0.33, 0.74), "Clipped", "share of the trees asked")
    for axes, parts in (
        (
            left,
            (
                ("residual", "Bellman residual"),
                ("drift", "change of Q"),
                ("label_drift", "change of labels"),
            ),
        ),
        (right, (("clipped", "share"),)),
    ):
        for i, (key, words) in enumerate(parts):
            values = _column(learned, "learner", key)
            if np.isfinite(values).any():
                _line(axes, at, values, i, words)
            for generation, record in zip(at, learned, strict=True):
                sweeps = _numbers(record["learner"]["curve"].get(key, ()))
                if len(sweeps) > 1:
                    steps = generation + np.linspace(-0.4, 0.4, len(sweeps))
                    axes.plot(steps, sweeps, color=SERIES[i], alpha=0.5, linewidth=0.8)
        axes.set_ylim(bottom=0.0)
        _whole(axes, "generation", 5)
    right.set_ylim(-0.03, 1.03)
    right.yaxis.set_major_formatter(PercentFormatter(1.0))
    _legend(left, title="thin: sweep by sweep", title_fontsize=8)
    return _png(figure)


# Strength.


def win_rates(records: Sequence[Record]) -> bytes | None:
    """Score (win 1, draw 1/2, loss 0) against every baseline, the predecessor and the ancestors as
    one, over the generations, with the 95% Wilson interval as a band."""
    rows: dict[str, list[tuple[int, Mapping]]] = {}
    for record in records:
        for opponent, row in by_opponent(record).items():
            rows.setdefault(opponent, []).append((record["generation"], row))
    if not rows:
        return None
    even = _even(next(row for record in records for row in record["evaluation"]))
    learned = [name for name in ("predecessor", ANCESTORS) if name in rows]
    order = [name for name in rows if name not in learned] + learned
    first = min(entries[0][0] for entries in rows.values())
    newest = max(entries[-1][0] for entries in rows.values())
    lines = math.ceil(len(order) / 5)
    across = math.ceil(len(order) / lines)
    height = 0.4 + 2.8 * lines  # inches
    figure = Figure(figsize=(8.0, height), dpi=100)
    title = "Score by opponent (a draw is ½) with its 95% interval; in words: the newest"
    figure.text(0.02, 1 - 0.25 / height, title, fontsize=10, va="center")
    # The panels of a line share one pair of axes, side by side: drawing axes is what takes time.
    width = 1.12 * (newest - first + 1)
    marks = np.unique([first, (first + newest) // 2, newest])
    for line in range(lines):
        names = order[line * across : (line + 1) * across]
        bottom = 1 - (2.8 * (line + 1) - 0.1) / height
        axes = _axes(figure, (0.075, bottom, 0.915, 1.6 / height), "", "score")
        for i, opponent in enumerate(names):
            each = [row for _, row in rows[opponent]]
            at = np.array([generation for generation, _ in rows[opponent]]) + width * i
            low, score, high = (
                _numbers(row[key] for row in each) for key in ("low", "score", "high")
            )
            colour = GREEN if opponent in learned else BLUE
            axes.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.plot(at, score, color=colour, linewidth=1.4, marker="o", markersize=_dot(at))
            words = (
                f"{opponent}\n{score[-1]:.0%} ({low[-1]:.0%} to {high[-1]:.0%})\n"
                f"n = {each[-1]['n']:,}\n{each[-1]['distinct_games']:,} distinct"
            )
            axes.text(first + width * i, 1.07, words, fontsize=8, linespacing=1.3, va="bottom")
        axes.axhline(even, color=GREY, linewidth=0.8)
        axes.set_xlim(first - 0.3, first - 0.3 + width * across)
        _shares(axes)
        every = [width * i + mark for i in range(len(names)) for mark in marks]
        axes.set_xticks(every, [str(mark) for mark in marks] * len(names))
    return _png(figure)


def _even(row: Mapping) -> float:
    """What equals score in a match of as many seats, but for draws: 1/P."""
    return 1 / len(row["by_seat"])


def score_matrix(
    names: Sequence[str],
    scores: np.ndarray,
    title: str,
    games: np.ndarray | None = None,
    even: float = 0.5,
) -> bytes:
    """Score of every player (row) against every other (column), a draw counting half.

    Args:
        names: of the players, [N].
        scores: float [N, N] within 0..1; NaN where two did not meet.
        games: int [N, N], how many each score is of.
        even: the score of equals, 1/P among P players; it is white.

    Returns:
        PNG; cells have numbers, the score in percent over n, for up to 25 players.
    """
    n = len(names)
    side = max(2.5, min(9.0, 0.4 * n))  # inches
    room = 0.3 + 0.075 * max(map(len, names))
    width, height = max(side + room + 0.9, 0.07 * len(title) + 0.2), side + room + 0.5
    figure = Figure(figsize=(width, height), dpi=100)
    axes = figure.add_axes((room / width, room / height, side / width, side / height))
    colours = LinearSegmentedColormap.from_list(
        "score", ((0.0, ORANGE), (even, "#FFFFFF"), (1.0, BLUE))
    )
    shade = colours.with_extremes(bad=PALE)
    image = axes.imshow(np.ma.masked_invalid(scores), cmap=shade, vmin=0.0, vmax=1.0)
    step = math.ceil(n / 60)
    axes.set_xticks(range(0, n, step), names[::step], rotation=90, fontsize=8)
    axes.set_yticks(range(0, n, step), names[::step], fontsize=8)
    axes.spines[:].set_visible(False)
    figure.text(0.02, 1 - 0.22 / height, title, fontsize=10, va="center")
    for row, column in np.argwhere(np.isfinite(scores)) if n <= 25 else ():
        value = scores[row, column]
        words = f"{100 * value:.0f}" + (f"\n{games[row, column]:,}" if games is not None else "")
        colour = "white" if value > 0.8 else BLACK
        axes.text(column, row, words, fontsize=6.5, ha="center", va="center", color=colour)
    place = ((room + side + 0.15) / width, room / height, 0.15 / width, side / height)
    bar = figure.colorbar(image, cax=figure.add_axes(place))
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return _png(figure)


def generation_matrix(records: Sequence[Record]) -> bytes | None:
    """Score of every generation's policy (row) against every other's (column) that it met in
    evaluation; blank where two did not meet.

    Beyond two players a cell is one against copies of the other, which the other's cell does not
    mirror.
    """
    generation = {record["policy"]: record["generation"] for record in records}
    points: dict[tuple[int, int], float] = {}
    games: dict[tuple[int, int], int] = {}
    even = 0.5
    for record in records:
        for row in record["evaluation"]:
            if row["policy"] not in generation or row["policy"] == record["policy"]:
                continue
            even = _even(row)
            pair = (record["generation"], generation[row["policy"]])
            won = row["wins"] + row["draws"] / 2
            sides = [(pair, won)]
            if len(row["by_seat"]) == 2:
                sides.append((pair[::-1], row["n"] - won))
            for each, value in sides:
                points[each] = points.get(each, 0.0) + value
                games[each] = games.get(each, 0) + row["n"]
    if not points:
        return None
    order = sorted({each for pair in points for each in pair})
    at = {each: index for index, each in enumerate(order)}
    scores = np.full((len(order), len(order)), math.nan)
    n = np.zeros(scores.shape, np.int64)
    for (row, column), value in points.items():
        n[at[row], at[column]] = games[row, column]
        scores[at[row], at[column]] = value / games[row, column]
    title = "Score of a generation (row) against others (a draw is ½)"
    title += ", in %, over n games" if len(order) <= 25 else f", n = {_range(n[n > 0])} games"
    return score_matrix([str(each) for each in order], scores, title, n, even)


def rating_curve(records: Sequence[Record]) -> bytes | None:
    """Rating of every generation's policy with its 95% interval as a band, and of every baseline
    as a line, from the newest fit to all evaluation matches."""
    rated = [record for record in records if record.get("ratings")]
    if not rated:
        return None
    ratings = rated[-1]["ratings"]
    generation = {record["policy"]: record["generation"] for record in records}
    known = [each for each in ratings["players"] if each["rating"] is not None]
    own = sorted(
        (each for each in known if each["player"] in generation),
        key=lambda each: generation[each["player"]],
    )
    if not own:
        return None
    newest = own[-1]
    anchor = ratings.get("anchor", "random")
    title = (
        f"Rating of generation {generation[newest['player']]}: {newest['rating']:.0f} "
        f"(95%: {newest['low']:.0f} to {newest['high']:.0f})"
    )
    figure, axes = _panel(title, f"Elo, {anchor} = 0")
    at = np.array([generation[each["player"]] for each in own], float)
    low, middle, high = (_numbers(each[key] for each in own) for key in ("low", "rating", "high"))
    games = _numbers(each["games"] for each in own)
    axes.fill_between(at, low, high, color=BLUE, alpha=0.25, linewidth=0)
    _line(axes, at, middle, 0, f"policy of a generation\nn = {_range(games)} games")
    baselines = [each for each in known if each["player"] not in generation]
    looks = _opponent_looks(records, [each["player"] for each in baselines])
    for each in baselines:
        label = f"{each['player']} {each['rating']:.0f}"
        if each["player"] != anchor:
            label += f"\n{each['low']:.0f} to {each['high']:.0f}, n = {each['games']:,}"
        look = looks[each["player"]]
        dash = _DASHED if look["linestyle"] == "solid" else _DOTTED
        colour = look["color"]
        axes.axhline(each["rating"], color=colour, linestyle=dash, linewidth=1.4, label=label)
    _whole(axes, "generation")
    _legend(axes)
    return _png(figure)


def seat_scores(records: Sequence[Record]) -> bytes | None:
    """Score by seat over the generations with its 95% Wilson interval: beside earlier generations,
    who are about as strong, the advantage of a seat itself; beside baselines what it is worth
    against them."""
    panels: dict[str, list[tuple[int, list]]] = {}
    for record in records:
        for past, words in ((True, "earlier generations"), (False, "baselines")):
            rows = [
                row
                for row in record["evaluation"]
                if row.get("results_by_seat")
                and (row["opponent"] in ("predecessor", "ancestor")) == past
            ]
            if rows:
                panels.setdefault(words, []).append((record["generation"], _by_seat(rows)))
    if not panels:
        return None
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    width = 0.74 / len(panels) - 0.07
    for i, (words, entries) in enumerate(sorted(panels.items(), reverse=True)):
        left = 0.085 + i * (width + 0.09)
        at = np.array([generation for generation, _ in entries], float)
        seats = np.array([each for _, each in entries])  # [G, P, 4]
        title = f"Against {words}\nn = {_range(seats[:, :, 3])} games in each seat"
        axes = _axes(figure, (left, 0.15, width, 0.69), title, "score")
        for seat in range(seats.shape[1]):
            score, low, high, _ = seats[:, seat].T
            colour = SERIES[seat % len(SERIES)]
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            _line(axes, at, score, seat, f"seat {seat}")
        axes.axhline(1 / seats.shape[1], color=GREY, linewidth=0.8)
        _shares(axes, 5)
        if i:
            axes.set_ylabel("")
    _legend(axes)
    return _png(figure)


def _by_seat(rows: Sequence[Mapping]) -> list[tuple[float, float, float, int]]:
    """Score, its interval and n of each seat over several matches; the interval takes the share
    of games that are distinct, as `pooled` does."""
    seats = []
    for seat in range(len(rows[0]["results_by_seat"])):
        results = [row["results_by_seat"][seat] for row in rows]
        n = sum(sum(each) for each in results)
        distinct = sum(
            sum(each) * row["distinct_games"] / row["n"]
            for each, row in zip(results, rows, strict=True)
        )
        score = sum(wins + draws / 2 for wins, draws, _ in results) / n
        low, high = wilson(score * distinct, distinct)
        seats.append((score, low, high, n))
    return seats


# Exact play.


def oracle_accuracy(records: Sequence[Record]) -> bytes | None:
    """How often a policy keeps the value of the game, by an exact solver: over the generations, on
    the solved positions and in its evaluation games, and on the solved positions by ply."""
    measured = [
        record
        for record in records
        if (record["solution"] or {}).get("weak") is not None or _oracle_of(record)
    ]
    if not measured:
        return None
    asked = [record for record in measured if (record["solution"] or {}).get("by_ply")]
    plies = sorted({each["ply"] for record in asked for each in record["solution"]["by_ply"]})
    figure = Figure(figsize=(11.0, 3.3), dpi=100)
    axes = _axes(figure, (0.06, 0.15, 0.29, 0.74), "Decisions as good as perfect play", "share")
    at = _column(measured, "generation")
    lines = (
        ("keeps the value", "weak", "of"),
        ("keeps it where it can be lost", "weak_contested", "contested"),
        ("keeps it by the fastest way", "strong", "of"),
    )
    for i, (words, key, of) in enumerate(lines):
        share = _column(measured, "solution", key)
        if np.isfinite(share).any():
            n = _column(measured, "solution", of)
            _line(axes, at, share, i, f"{words}\nn = {_range(n)} positions")
    played = [_oracle_of(record) for record in measured]
    for i, (words, key, of) in enumerate(
        (
            ("in evaluation games", "kept", "decisions"),
            ("in games, where it can be lost", "kept_contested", "contested"),
        ),
        3,
    ):
        n = _numbers((each or {}).get(of) or None for each in played)
        if np.isfinite(n).any():
            kept = _numbers((each or {}).get(key) for each in played)
            _line(axes, at, kept / n, i, f"{words}\nn = {_range(n)} decisions", linestyle=_DASHED)
    _shares(axes, 5)
    _legend(axes)
    if len(plies) > 1:
        _accuracy_by_ply(figure, asked, plies)
    return _png(figure)


def _oracle_of(record: Record) -> dict | None:
    """The counts of all evaluation matches of a generation whose decisions were solved."""
    rows = [row["oracle"] for row in record["evaluation"] if row.get("oracle")]
    keys = ("decisions", "kept", "contested", "kept_contested")
    return {key: sum(row[key] for row in rows) for key in keys} if rows else None


def _accuracy_by_ply(figure: Figure, asked: Sequence[Record], plies: Sequence[int]) -> None:
    """The heat map: a column per generation that was asked, a row per ply."""
    shares = np.full((len(plies), len(asked)), math.nan)
    counts = dict.fromkeys(plies, 0)
    for column, record in enumerate(asked):
        for each in record["solution"]["by_ply"]:
            shares[plies.index(each["ply"]), column] = each["weak"]
            counts[each["ply"]] = each["n"]
    n = _range(np.array(list(counts.values())))
    title = f"Keeps the value, by ply (n = {n} positions)"
    axes = _axes(figure, (0.635, 0.15, 0.29, 0.74), title, "ply")
    axes.grid(visible=False)
    colours = LinearSegmentedColormap.from_list("share", ("#FFFFFF", SKY, BLUE, "#001A2C"))
    shade = colours.with_extremes(bad=PALE)
    # From the worst on: what matters lies close to 1.
    worst = min(0.9, math.floor(10 * np.nanmin(shares)) / 10)
    image = axes.imshow(
        np.ma.masked_invalid(shares),
        cmap=shade,
        vmin=worst,
        vmax=1.0,
        aspect="auto",
        origin="lower",
    )
    for size, ticks, labels in (
        (12, axes.set_yticks, plies),
        (7, axes.set_xticks, [record["generation"] for record in asked]),
    ):
        shown = range(0, len(labels), math.ceil(len(labels) / size))
        ticks(shown, [str(labels[each]) for each in shown])
    axes.set_xlabel("generation", fontsize=9)
    bar = figure.colorbar(image, cax=figure.add_axes((0.935, 0.15, 0.013, 0.74)))
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


# Games.


def openings(game: Game, records: Sequence[Record]) -> bytes | None:
    """How the champion opens in self-play when it does not explore: share of every first action
    over the generations, and their entropy in bits."""
    played = [record for record in records if (record["selfplay"] or {}).get("openings")]
    if not played:
        return None
    at = _column(played, "generation")
    entropy = _column(played, "selfplay", "opening_entropy")
    tallies = [record["selfplay"]["openings"] for record in played]
    numbers = sorted({int(number) for tally in tallies for number in tally})
    counts = np.array([[tally.get(str(number), 0) for number in numbers] for tally in tallies])
    n = counts.sum(1)
    share = counts / n[:, None]
    often = np.sort(np.argsort(-share.sum(0), kind="stable")[: len(SERIES)])
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    title = f"First actions (n = {_range(n)} games)"
    left = _axes(figure, (0.085, 0.15, 0.34, 0.74), title, "share of games")
    base = np.zeros(len(at))
    parts = [
        (SERIES[i], game.action_to_text(game.rules, numbers[column]), share[:, column])
        for i, column in enumerate(often)
    ]
    if len(often) < len(numbers):
        rest = 1 - share[:, often].sum(1)
        parts.append((PALE, f"{len(numbers) - len(often)} others", rest))
    for colour, words, part in parts:
        _bars(left, at, base, base + part, colour, words)
        base = base + part
    left.set_xlim(at[0] - 0.6, at[-1] + 0.6)
    _shares(left, 5)
    left.set_ylim(0.0, 1.0)
    _legend(left, reverse=True)  # as they are stacked
    right = _axes(figure, (0.66, 0.15, 0.32, 0.74), "Their entropy", "bits")
    _line(right, at, entropy, 0, "")
    start = game.initial_states([0])
    choices = int(game.legal_of(start).sum())
    if choices > 1:
        most = math.log2(choices)
        right.axhline(most, color=GREY, linestyle=_DOTTED, linewidth=1.0)
        words = f"all {choices} alike"
        right.text(at[-1], most, words, fontsize=8, color=BLACK, ha="right", va="bottom")
    right.set_ylim(bottom=0.0)
    _whole(right, "generation", 5)
    return _png(figure)


def game_lengths(records: Sequence[Record]) -> bytes | None:
    """Plies per game over the generations: in self-play the mean, the longest and, as bands, the
    middle 50% and 90% of games; in evaluation the mean."""
    played = [record for record in records if record["selfplay"]]
    rows: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        for row in record["evaluation"]:
            if row["opponent"] != "ancestor":
                entry = (record["generation"], row["mean_plies"])
                rows.setdefault(row["opponent"], []).append(entry)
    if not played and not rows:
        return None
    figure, axes = _panel("Length of games; against opponents their mean", "plies per game")
    counted = [record for record in played if record["selfplay"].get("lengths")]
    if counted:
        ends = np.array([_quantiles(record["selfplay"]["lengths"]) for record in counted])
        at = _column(counted, "generation")
        for share, low, high, alpha in (("90%", 0, 3, 0.15), ("50%", 1, 2, 0.3)):
            label = f"self-play, middle {share}"
            axes.fill_between(
                at, ends[:, low], ends[:, high], label=label, color=BLUE, alpha=alpha, linewidth=0
            )
    if played:
        games = _column(played, "selfplay", "games")
        mean = _column(played, "selfplay", "plies") / games
        at = _column(played, "generation")
        _line(axes, at, mean, 0, f"self-play, mean\nn = {_range(games)} games")
        longest = _column(played, "selfplay", "longest")
        _line(axes, at, longest, 0, "self-play, longest", linestyle=_DOTTED)
    looks = _opponent_looks(records)
    for opponent, entries in rows.items():
        x, y = np.array(entries, float).T
        _line(axes, x, y, 0, f"against {opponent}", **looks[opponent])
    axes.set_ylim(bottom=0.0)
    _whole(axes, "generation")
    _legend(axes)
    return _png(figure)


def _quantiles(lengths: Mapping[str, int]) -> np.ndarray:
    """Float [4]: the 5%, 25%, 75% and 95% points of a tally of plies."""
    plies = np.array([int(each) for each in lengths])
    order = np.argsort(plies)
    below = np.cumsum(np.array(list(lengths.values()))[order])
    at = np.searchsorted(below, np.array([0.05, 0.25, 0.75, 0.95]) * below[-1])
    return plies[order][at].astype(float)


def exploration_and_duplicates(records: Sequence[Record]) -> bytes | None:
    """How varied the games of a generation are: share of decisions that explored, share of rows of
    the replay window whose state stood in it before, share of games unlike any other of their
    shard."""
    played = [record for record in records if record["selfplay"]]
    if not played:
        return None
    decisions = _column(played, "selfplay", "decisions")
    games = _column(played, "selfplay", "games")
    rows = _column(played, "learner", "rows")
    lines = (
        ("decisions that explored", "explored", decisions, "decisions"),
        ("states seen before", "duplicate_states", rows, "rows"),
        ("distinct games of a shard", "distinct_games", games, "games"),
    )
    figure, axes = _panel("Exploration and repetition", "share")
    at = _column(played, "generation")
    for i, (words, key, of, unit) in enumerate(lines):
        if key == "duplicate_states":
            share = _column(played, "learner", key)
        else:
            share = _column(played, "selfplay", key) / np.maximum(of, 1)  # no decisions at all
        if np.isfinite(share).any():
            _line(axes, at, share, i, f"{words}\nn = {_range(of)} {unit}")
    _shares(axes)
    _legend(axes)
    return _png(figure)


def throughput(records: Sequence[Record]) -> bytes | None:
    """Self-play games per second, and the wall time of a generation by phase, in seconds."""
    played = [record for record in records if record["selfplay"]]
    if not played:
        return None
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    left = _axes(figure, (0.095, 0.15, 0.37, 0.74), "Self-play", "games per second")
    rate = _column(played, "selfplay", "games_per_second")
    rate[rate == 0] = math.nan  # all shards were found on disk
    _line(left, _column(played, "generation"), rate, 0, "")
    left.set_ylim(bottom=0.0)
    left.yaxis.set_major_formatter("{x:,.0f}")
    _whole(left, "generation")
    right = _axes(figure, (0.575, 0.15, 0.41, 0.74), "Wall time of a generation", "seconds")
    at = _column(records, "generation")
    base = np.zeros(len(at))
    for phase, colour in PHASES.items():
        seconds = np.nan_to_num(_column(records, "seconds", phase))
        if seconds.any():
            _bars(right, at, base, base + seconds, colour, phase.replace("selfplay", "self-play"))
        base += seconds
    right.set_xlim(at[0] - 0.6, at[-1] + 0.6)
    right.set_ylim(0.0, 1.3 * max(base.max(), 1e-3))
    _whole(right, "generation")
    right.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")
    return _png(figure)


# All of them.


def run_figures(
    game: Game, records: Sequence[Record], trees: Mapping[int, Sequence[Mapping]] | None = None
) -> dict[str, bytes]:
    """Every figure that applies to the game and the records: PNG by file stem.

    About 1.5 s of CPU for 25 generations.

    Args:
        trees: rows of trees.parquet by generation, where the learner grows trees.
    """
    solution = game.solution() if game.solution else None
    name = game.title
    valued = [record for record in records if (record["solution"] or {}).get("values")]
    figures = {
        "optimal": optimal_bars(solution, name),
        "values": value_bars(solution, valued[-1], name) if valued else None,
        "solved": solved(records),
        "win_rates": win_rates(records),
        "ratings": rating_curve(records),
        "oracle": oracle_accuracy(records),
        "generations": generation_matrix(records),
        "seats": seat_scores(records),
        "loss": loss_curves(records),
        "calibration": calibration(records),
        "trees": tree_sizes(trees or {}),
        "fitted": fitted_q(records),
        "openings": openings(game, records),
        "game_lengths": game_lengths(records),
        "exploration": exploration_and_duplicates(records),
        "throughput": throughput(records),
    }
    return {stem: png for stem, png in figures.items() if png is not None}


# The figures of Pfeiffer (2004).


def in_words(count: int) -> str:
    """A small count as people write it."""
    return {1: "one", 2: "two", 3: "three"}.get(count, str(count))


def paper_wins(
    wins: Mapping[tuple[str, str], Any], order: Sequence[str], heroes: Sequence[str], rivals: int
) -> bytes:
    """Figure 2: share of games that each of `heroes` wins, alone against copies of every other.

    Args:
        wins: `study.Won` by (one, other).
        order: of all players.
        rivals: how many copies sit at a table.

    Returns:
        PNG; bars with their intervals, a line at the share of equals.
    """
    others = [name for name in order if any((hero, name) in wins for hero in heroes)]
    title = f"games won by one against {in_words(rivals)} of another kind"
    figure, axes = _panel(title, "share of games")
    width = 0.8 / max(len(heroes), 1)
    for k, hero in enumerate(heroes):
        met = [name for name in others if (hero, name) in wins]
        found = [wins[hero, name] for name in met]
        at = np.array([others.index(name) for name in met]) + (k - (len(heroes) - 1) / 2) * width
        shares = np.array([won.share for won in found])
        errors = np.array([[won.share - won.low, won.high - won.share] for won in found]).T
        axes.bar(
            at,
            shares,
            0.9 * width,
            yerr=errors if len(found) else None,
            color=SERIES[k],
            label=hero,
            capsize=2,
            error_kw={"linewidth": 0.8},
        )
    equal = 1 / (rivals + 1)
    axes.axhline(equal, color=BLACK, linewidth=0.8, linestyle="dashed", label="equals")
    axes.set_ylim(0.0, 1.0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xticks(range(len(others)), [name.replace("_", "\n") for name in others], fontsize=7)
    _legend(axes)
    return _png(figure)


def paper_points(
    together: Mapping[str, Any],
    order: Sequence[str],
    expert: str,
    points_to_win: float,
    rivals: int,
) -> bytes:
    """Figure 3: points of the worst, the mean and the best of a kind at a table with an expert.

    Args:
        together: `study.Points` by kind.
        order: of all players.
        rivals: how many of the kind sit at a table.

    Returns:
        PNG; three lines, with intervals.
    """
    kinds = [name for name in order if name in together]
    figure, axes = _panel(f"points of {in_words(rivals)} of a kind against one {expert}", "points")
    for k, name in enumerate(("worst", "mean", "best")):
        values = [together[kind].points[k] for kind in kinds]
        margins = [together[kind].margins[k] for kind in kinds]
        look: Any = {"color": SERIES[k], "marker": MARKERS[k], "capsize": 2, "linewidth": 1.2}
        axes.errorbar(range(len(kinds)), values, margins, label=name, **look)
    axes.set_ylim(0.0, points_to_win + 0.5)
    axes.set_xticks(range(len(kinds)), [name.replace("_", "\n") for name in kinds], fontsize=7)
    _legend(axes)
    return _png(figure)


# What the figures share.


def _axes(figure: Figure, box: tuple[float, float, float, float], title: str, unit: str) -> Axes:
    axes = figure.add_axes(box)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_ylabel(unit, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def _panel(title: str, unit: str) -> tuple[Figure, Axes]:
    """A wide figure with one axes, and room for the legend beside it."""
    figure = Figure(figsize=(8.0, 3.3), dpi=100)
    return figure, _axes(figure, (0.085, 0.15, 0.62, 0.74), title, unit)


def _legend(axes: Axes, **more: Any) -> None:
    """Beside the axes."""
    style = {"fontsize": 8, "frameon": False, "labelspacing": 0.8}
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.03), **style, **more)


def _line(axes: Axes, x: np.ndarray, y: np.ndarray, index: int, label: str, **style: Any) -> None:
    """The `index`-th series: x and y float [G], gaps where y is NaN. Colours come again, in
    dashes."""
    look = {
        "color": SERIES[index % len(SERIES)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": "solid" if index < len(SERIES) else _DASHED,
    }
    axes.plot(x, y, markersize=_dot(x), linewidth=1.4, label=label, **{**look, **style})


def _dot(x: Sized) -> float:
    """Size of a marker, in points: none where they would run into each other."""
    return 3.5 if len(x) <= 50 else 0.0


def _bars(
    axes: Axes, at: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, label: str
) -> None:
    """Bars, float [G] each, as one collection: many times faster than `Axes.bar`. Many touch: gaps
    of less than a pixel would look like stripes."""
    few = len(at) <= 50
    half = 0.45 if few else 0.5
    left, right = at - half, at + half
    corners = np.stack([left, low, left, high, right, high, right, low], 1).reshape(-1, 4, 2)
    axes.add_collection(
        PolyCollection(
            list(corners), facecolors=colour, linewidths=0, label=label, antialiaseds=[few]
        )
    )


def _whole(axes: Axes, words: str, ticks: int = 7) -> None:
    """The x axis counts something."""
    locator = MaxNLocator(ticks, integer=True, min_n_ticks=1, steps=(1, 2, 5, 10))
    axes.xaxis.set_major_locator(locator)
    axes.set_xlabel(words, fontsize=9)


def _shares(axes: Axes, ticks: int = 7) -> None:
    """y is a share, x the generation."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks((0.0, 0.25, 0.5, 0.75, 1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _whole(axes, "generation", ticks)


def _column(records: Iterable[Record], *path: str) -> np.ndarray:
    """float64 [G]: the number at a path into each record, NaN where there is none."""
    values = []
    for record in records:
        value: Any = record
        for key in path:
            value = (value or {}).get(key)
        values.append(value)
    return _numbers(values)


def _lengths(records: Iterable[Record]) -> np.ndarray:
    """float64 [G]: how many afterstates were valued, NaN where none was."""
    return _numbers(len(each["solution"].get("values") or ()) or None for each in records)


def _numbers(values: Iterable) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], float)


def _range(counts: np.ndarray) -> str:
    """Counts in words: "400", or "172–205" if they differ. NaN is passed over."""
    low, high = np.nanmin(counts), np.nanmax(counts)
    return f"{low:,.0f}" if low == high else f"{low:,.0f}–{high:,.0f}"


def _png(figure: Figure) -> bytes:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return _encode(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))


def _encode(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    image.save(sink, "PNG", compress_level=3)  # half the time of the default
    return sink.getvalue()
