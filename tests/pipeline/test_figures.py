"""Figures: what is drawn, by pixels and by the numbers in it; records with missing parts."""

import io
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from games import make_game
from pipeline import figures
from pipeline.ratings import wilson

BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)
SUMTO = make_game("sumto")
OF_RECORDS = (
    figures.solved,
    figures.win_rates,
    figures.loss_curves,
    figures.calibration,
    figures.game_lengths,
    figures.exploration_and_duplicates,
    figures.throughput,
)


def match(opponent: str, wins: int, draws: int = 0, n: int = 40, distinct: int = 30) -> dict:
    score = (wins + draws / 2) / n
    low, high = wilson(score * distinct, distinct)
    return {
        "opponent": opponent,
        "policy": opponent,
        "n": n,
        "wins": wins,
        "draws": draws,
        "losses": n - wins - draws,
        "score": score,
        "low": low,
        "high": high,
        "distinct_games": distinct,
        "mean_plies": 10.0 + wins,
        "by_seat": [0.5, 0.5],
    }


def record(generation: int, values=None, **parts) -> dict:
    """A line of metrics.jsonl as the loop writes it; generation 0 has played nothing."""
    played = generation > 0
    values = [(-1) ** i * 0.5 for i in range(101)] if values is None else values
    line = {
        "generation": generation,
        "time": 1.7e9 + generation,
        "policy": f"g{generation:04d}",
        "champion": f"g{generation:04d}",
        "selfplay": {
            "games": 50,
            "decisions": 600,
            "plies": 610,
            "explored": 60 + generation,
            "distinct_games": 45,
            "illegal": 0,
            "longest": 20,
            "bytes": 1000,
            "games_per_second": 100.0 + generation,
            "decisions_per_second": 1000.0,
            "shards_found": 0,
        },
        "learner": {
            "curve": {"train": [0.9, 0.5 / generation], "held_out": [0.8, 0.6 / generation]}
            if played
            else {},
            "loss_train": 0.5 / max(1, generation),
            "loss_held_out": 0.6 / max(1, generation),
            "calibration": [
                {"predicted": -0.5, "returned": -0.4, "n": 30},
                {"predicted": 1.02, "returned": 1.0, "n": 10},
            ],
            "rows": 600,
            "duplicate_states": 0.25,
            "seconds": 0.5,
        },
        "evaluation": [match("random", 30 + generation % 10, 2), match("perfect", 5)],
        "solution": {
            "of": 91,
            "optimal": min(91, 10 + generation),
            "sign_accuracy": 0.5,
            "values": values,
        },
        "seconds": {"selfplay": 0.5, "learner": 1.0, "gate": 0.0, "evaluation": 0.25},
    }
    if played:
        line["evaluation"].append(match("predecessor", 25))
    else:
        line |= {"selfplay": None, "learner": {"seconds": 0.1}}
        line["seconds"] = {"learner": 0.0, "evaluation": 0.25}
    if generation > 1:
        line["evaluation"] += [match("ancestor", 30), match("ancestor", 36, 2, distinct=10)]
    return line | parts


RECORDS = [record(generation) for generation in range(4)]


def pixels(png: bytes) -> np.ndarray:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))


def bar_colour(image: np.ndarray, index: int, value: float, pitch: int = 7) -> tuple:
    """Colour at a height of V in the middle of a bar."""
    at = image[142 - round(100 * value), 60 + pitch * index + pitch // 3]
    return tuple(int(each) for each in at)


@pytest.fixture
def drawn(monkeypatch):
    """The matplotlib figures that a test made, before they turn into bytes."""
    made = []
    monkeypatch.setattr(figures, "_png", lambda figure: made.append(figure) or b"png")
    return made


def words(axes) -> str:
    texts = [axes.get_title("left"), *(text.get_text() for text in axes.texts)]
    legend = axes.get_legend()
    return "\n".join(texts + ([text.get_text() for text in legend.get_texts()] if legend else []))


# Bars.


def test_value_bars_are_blue_from_zero_up_and_orange_below():
    values = np.zeros(101)
    values[10], values[11], values[50] = 0.8, -0.6, -1.3
    image = pixels(figures.value_bars(SUMTO.solution(), record(7, list(values)), "sumto"))
    assert image.shape == (300, 800, 3)
    assert bar_colour(image, 10, 0.75) == BLUE
    assert bar_colour(image, 11, -0.55) == ORANGE
    assert bar_colour(image, 50, -1.02) == ORANGE  # cut off at the limit of the axis
    assert bar_colour(image, 10, -0.05) not in (BLUE, ORANGE)
    assert bar_colour(image, 10, 0.85) not in (BLUE, ORANGE)
    assert bar_colour(image, 11, 0.05) not in (BLUE, ORANGE)


def test_a_picture_without_negative_values_has_no_orange_bar():
    image = pixels(figures.value_bars(SUMTO.solution(), record(1, [0.4] * 101)))
    orange = (image == ORANGE).all(2)
    assert not orange[:270].any()  # the legend is below
    assert orange[270:].any()


def test_optimal_bars_are_the_winning_sums_of_the_document():
    image = pixels(figures.optimal_bars(SUMTO.solution(), "sumto"))
    up = [total for total in range(101) if bar_colour(image, total, 0.9) == BLUE]
    down = [total for total in range(101) if bar_colour(image, total, -0.9) == ORANGE]
    assert up == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    assert sorted(up + down) == list(range(101))


def test_the_thin_line_shows_the_exact_values():
    solution = SUMTO.solution()
    image = pixels(figures.value_bars(solution, record(1, [0.0] * 101)))
    grey = (image == (0x77, 0x77, 0x77)).all(2)
    assert grey[42, 60:767].sum() >= 10 * 7  # along the top of ten winning sums
    assert grey[242, 60:767].sum() >= 80 * 7
    without = pixels(figures.optimal_bars(solution))[37:248, 61:767]
    assert not (without == (0x77, 0x77, 0x77)).all(2).any()


@pytest.mark.parametrize(("target", "step", "pitch"), [(200, 7, 4), (20, 4, 34), (720, 10, 1)])
def test_bars_fit_other_targets(target, step, pitch):
    solution = make_game("sumto", target=target, max_step=step).solution()
    image = pixels(figures.value_bars(solution, record(1, list(solution.values))))
    for total in (0, 1, target // 2, target):
        won = (target - total) % (step + 1) == 0
        assert bar_colour(image, total, 0.5 if won else -0.5, pitch) == (BLUE if won else ORANGE)


def test_of_very_many_positions_the_last_are_drawn():
    solution = make_game("sumto", target=5000, max_step=7).solution()
    image = pixels(figures.value_bars(solution, record(1, list(solution.values))))
    assert image.shape[1] == 60 + figures.MAX_BARS + 20
    assert tuple(image[100, 60 + figures.MAX_BARS - 1]) == BLUE  # 5000 is won


def test_no_solution_or_no_values_no_bars():
    assert figures.value_bars(None, record(1)) is None
    assert figures.value_bars(SUMTO.solution(), record(1, solution=None)) is None
    assert figures.value_bars(SUMTO.solution(), record(1, solution={"of": 91})) is None
    assert figures.optimal_bars(None) is None


def test_values_that_are_no_numbers_do_not_break_the_bars():
    values = [math.nan, math.inf, -math.inf] + [0.5] * 98
    image = pixels(figures.value_bars(SUMTO.solution(), record(1, values)))
    assert bar_colour(image, 1, 1.0) == BLUE and bar_colour(image, 2, -0.9) == ORANGE


@pytest.mark.parametrize(
    ("labels", "step"),
    [([str(i) for i in range(101)], 10), (["a"] * 5, 1), (["x" * 40] * 30, 20), (["1"], 1)],
)
def test_labels_leave_room_for_each_other(labels, step):
    assert figures.label_step(labels) == step


def test_an_animation_has_every_frame_and_repeats():
    solution = SUMTO.solution()
    values = np.linspace(-1, 1, 101)
    frames = [figures.value_bars(solution, record(g, list(np.roll(values, g)))) for g in range(25)]
    data = figures.animation(frames)
    assert len(data) < 1_000_000
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.size, image.n_frames) == ("GIF", (800, 300), 25)
        assert image.info["loop"] == 0
        image.seek(24)
        assert image.info["duration"] == 2000
        last = np.asarray(image.convert("RGB")).astype(int)
    assert abs(last - pixels(frames[24])).mean() < 3
    with pytest.raises(ValueError, match="at least one frame"):
        figures.animation([])


# What the curves show.


def test_win_rates_show_scores_intervals_and_n(drawn):
    figures.win_rates(RECORDS)
    [axes] = drawn[0].axes
    order = ("random", "perfect", "predecessor", figures.ANCESTORS)
    for opponent, line in zip(order, axes.lines, strict=False):
        rows = [figures.by_opponent(each).get(opponent) for each in RECORDS]
        expected = [row["score"] for row in rows if row]
        np.testing.assert_allclose(line.get_ydata(), expected)
    bands = [band.get_paths()[0].vertices[:, 1] for band in axes.collections]
    row = RECORDS[3]["evaluation"][0]
    assert row["low"] in bands[0] and row["high"] in bands[0]
    low, high = wilson(0.85 * 30, 30)
    assert f"random\n85% ({low:.0%} to {high:.0%})\nn = 40\n30 distinct" in words(axes)
    low, high = wilson(67 / 80 * 40, 40)
    assert f"{figures.ANCESTORS}\n84% ({low:.0%} to {high:.0%})\nn = 80\n40 distinct" in words(axes)


def test_many_opponents_go_on_several_lines(drawn):
    rows = [match(f"opponent {i}", i) for i in range(12)]
    figures.win_rates([record(g, evaluation=rows) for g in range(3)])
    assert len(drawn[0].axes) == 3


def test_ancestors_are_pooled_by_their_games():
    rows = [match("ancestor", 30), match("ancestor", 36, 2, distinct=10)]
    total = figures.pooled(rows)
    assert total["score"] == (30 + 36 + 1) / 80
    assert (total["low"], total["high"]) == wilson(total["score"] * 40, 40)
    assert total["n"] == total["wins"] + total["draws"] + total["losses"] == 80
    assert list(figures.by_opponent(RECORDS[3])) == [
        "random",
        "perfect",
        "predecessor",
        figures.ANCESTORS,
    ]


def test_loss_curves_have_a_line_per_generation_and_part(drawn):
    figures.loss_curves(RECORDS)
    left, right = drawn[0].axes
    paths = [
        path.vertices.round(9).tolist()
        for lines in left.collections
        if type(lines).__name__ == "LineCollection"
        for path in lines.get_paths()
    ]
    assert [[1.0, 0.9], [2.0, 0.25]] in paths and [[1.0, 0.8], [2.0, 0.2]] in paths
    assert len(paths) == 6
    assert {tuple(line.get_ydata()) for line in right.lines} == {
        (0.5, 0.25, 0.5 / 3),
        (0.6, 0.3, 0.6 / 3),
    }
    assert "generation 1\ngeneration 3\nheld-out games" in words(right)


def test_calibration_is_that_of_the_newest_generation(drawn):
    figures.calibration([*RECORDS, record(4, learner={})])
    [axes] = drawn[0].axes
    [points] = axes.collections
    assert points.get_offsets().tolist() == [[-0.5, -0.4], [1.02, 1.0]]
    large, small = points.get_sizes()
    assert large > 2 * small
    assert "generation 3\nn = 40 held-out decisions, mean gap 0.080" in words(axes)
    assert axes.get_xlim()[1] > 1.02


def test_the_other_curves_show_the_numbers_of_the_records(drawn):
    for draw in (
        figures.solved,
        figures.game_lengths,
        figures.exploration_and_duplicates,
        figures.throughput,
    ):
        draw(RECORDS)
    answers, lengths, variety, speed = (figure.axes[0] for figure in drawn)
    assert answers.lines[0].get_ydata().tolist() == [10 / 91, 11 / 91, 12 / 91, 13 / 91]
    assert "13 of 91 answered right" in words(answers) and "n = 101 positions" in words(answers)
    assert lengths.lines[0].get_ydata().tolist() == [610 / 50] * 3
    assert lengths.lines[1].get_ydata().tolist() == [20] * 3
    assert lengths.lines[2].get_ydata().tolist() == [40, 41, 42, 43]  # random, from generation 0
    assert variety.lines[0].get_ydata().tolist() == [61 / 600, 62 / 600, 63 / 600]
    assert variety.lines[1].get_ydata().tolist() == [0.25] * 3
    assert variety.lines[2].get_ydata().tolist() == [0.9] * 3
    assert speed.lines[0].get_ydata().tolist() == [101, 102, 103]
    stacked = drawn[3].axes[1].collections
    tops = [max(path.vertices[:, 1].max() for path in bars.get_paths()) for bars in stacked]
    assert tops == [0.5, 1.5, 1.75]  # self-play, learner, evaluation; the gate took no time


def test_shards_found_on_disk_are_no_speed(drawn):
    resumed = record(2)
    resumed["selfplay"] = resumed["selfplay"] | {"games_per_second": 0.0, "shards_found": 5}
    figures.throughput([record(1), resumed])
    first, second = drawn[0].axes[0].lines[0].get_ydata()
    assert first == 101 and math.isnan(second)


# Records with missing parts.


def diverged(generation: int) -> dict:
    line = record(generation)
    line["learner"] |= {
        "curve": {"train": [math.nan] * 2, "held_out": [math.nan] * 2},
        "loss_train": math.nan,
        "loss_held_out": math.nan,
        "calibration": [{"predicted": math.nan, "returned": 0.1, "n": 40}],
    }
    return line


def nothing_held_out(generation: int) -> dict:
    line = record(generation)
    line["learner"] |= {"curve": {"train": [0.5], "held_out": []}, "loss_held_out": None}
    return line


@pytest.mark.parametrize("draw", OF_RECORDS)
@pytest.mark.parametrize(
    "records",
    [
        RECORDS,
        [record(1)],
        [record(0), record(1, evaluation=[], solution=None), record(2)],
        [record(0), *(diverged(generation) for generation in (1, 2))],
        [record(0), *(nothing_held_out(generation) for generation in (1, 2))],
        [record(1), record(2, learner={"seconds": 0.1})],
        [record(generation) for generation in range(300)],
    ],
    ids=["whole", "one", "skipped", "diverged", "no held-out", "another learner", "long"],
)
def test_every_figure_is_drawn_from_what_there_is(draw, records):
    assert pixels(draw(records)).shape[0] > 300


@pytest.mark.parametrize("draw", OF_RECORDS)
def test_a_figure_without_a_subject_is_none(draw):
    nothing = record(0, evaluation=[], solution=None)
    assert draw([]) is None
    assert draw([nothing]) is None


def test_run_figures_are_those_that_apply():
    always = {"win_rates", "loss", "calibration", "game_lengths", "exploration", "throughput"}
    assert set(figures.run_figures(SUMTO, RECORDS)) == {*always, "optimal", "values", "solved"}
    four = make_game("k_in_a_row")
    unsolved = [each | {"solution": None} for each in RECORDS]
    assert set(figures.run_figures(four, unsolved)) == always
    assert set(figures.run_figures(four, [])) == set()


def test_a_matrix_of_scores(drawn):
    scores = np.array([[np.nan, 0.75, 1.0], [0.25, np.nan, 0.5], [0.0, 0.5, np.nan]])
    figures.score_matrix(["a", "b", "c"], scores, "who beats whom")
    axes = drawn[0].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts == {
        (1, 0): "75",
        (2, 0): "100",
        (0, 1): "25",
        (2, 1): "50",
        (0, 2): "0",
        (1, 2): "50",
    }
    assert np.array_equal(axes.images[0].get_array().filled(np.nan), scores, equal_nan=True)


def test_a_large_matrix_of_scores_is_drawn():
    names = [f"run/{generation}" for generation in range(80)]
    assert pixels(figures.score_matrix(names, np.full((80, 80), 0.5), "many")).shape[1] < 1200


# Between calls.


def test_threads_draw_the_same_as_one_alone():
    alone = figures.run_figures(SUMTO, RECORDS)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: figures.run_figures(SUMTO, RECORDS), range(4)))
    assert together == [alone] * 4


def test_pyplot_and_its_global_state_stay_out():
    code = "import sys, pipeline.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def tree_rows(generation: int, actions: int, pooled: tuple[int, ...] = ()) -> list[dict]:
    """Rows of trees.parquet, as the learner writes them."""
    return [
        {
            "action": action,
            "text": f"column {action}",
            "rows": 100 * (action + 1),
            "games": 50,
            "pooled": action in pooled,
            "leaves": 2.0 * generation + action,
            "depth": generation,
            "rmse_rows": 0.3,
            "rmse_games": math.nan if action == 1 else 0.4,
        }
        for action in range(actions)
    ]


def drawn_lines(monkeypatch, tables) -> dict[str, list[float]]:
    """The y of every labelled line of the figure of trees."""
    seen: dict[str, list[float]] = {}
    line = figures._line

    def noted(axes, x, y, index, label, **style):
        seen[f"{axes.get_title(loc='left')}: {label}"] = np.asarray(y).tolist()
        line(axes, x, y, index, label, **style)

    monkeypatch.setattr(figures, "_line", noted)
    assert figures.tree_sizes(tables) is not None
    return seen


def test_trees_are_drawn_by_action_and_their_errors_pooled(monkeypatch):
    tables = {2: tree_rows(2, 3, pooled=(1, 2)), 0: [], 1: tree_rows(1, 3)}
    lines = drawn_lines(monkeypatch, tables)
    assert lines["Leaves of a tree: column 0"] == [2.0, 4.0]
    assert lines["Leaves of a tree: column 1"] == [3.0, 5.0]
    assert lines["Depth: column 0"] == [1, 2]
    # Actions that share their trees count once.
    assert lines["Leaves of a tree: column 2"][0] == 4.0
    assert math.isnan(lines["Leaves of a tree: column 2"][1])
    assert lines["Error (band: all actions): held-out games"] == pytest.approx([0.4, 0.4])
    rows = tree_rows(1, 2)
    rows[0]["rmse_games"], rows[1]["rmse_games"] = 0.1, 0.7
    pooled = math.sqrt((100 * 0.01 + 200 * 0.49) / 300)
    assert drawn_lines(monkeypatch, {1: rows})[
        "Error (band: all actions): held-out games"
    ] == pytest.approx([pooled])


def test_many_actions_are_drawn_as_their_mean(monkeypatch):
    lines = drawn_lines(monkeypatch, {1: tree_rows(1, 20)})
    assert lines["Leaves of a tree: mean of all actions"] == pytest.approx([2 + 9.5])


def test_without_trees_there_is_no_figure_of_them():
    assert figures.tree_sizes({}) is None and figures.tree_sizes({0: []}) is None
    rows = [{**row, "rmse_rows": None, "rmse_games": None} for row in tree_rows(1, 2)]
    assert figures.tree_sizes({1: rows}) is not None
