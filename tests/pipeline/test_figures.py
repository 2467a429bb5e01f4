"""Figures: what is drawn, by pixels and by the numbers in it; records with missing parts."""

import io
import math
import re
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
    figures.rating_curve,
    figures.generation_matrix,
    figures.seat_scores,
    figures.oracle_accuracy,
    lambda records: figures.openings(SUMTO, records),
)


def match(
    opponent: str,
    wins: int,
    draws: int = 0,
    n: int = 40,
    distinct: int = 30,
    policy: str | None = None,
) -> dict:
    score = (wins + draws / 2) / n
    low, high = wilson(score * distinct, distinct)
    return {
        "opponent": opponent,
        "policy": policy or opponent,
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
        # The first seat wins what it can, the second has all draws.
        "results_by_seat": [
            [min(wins, n // 2), 0, n // 2 - min(wins, n // 2)],
            [wins - min(wins, n // 2), draws, n // 2 - draws - (wins - min(wins, n // 2))],
        ],
        "oracle": {"decisions": 4 * n, "kept": 3 * n, "contested": n, "kept_contested": n // 2},
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
            "lengths": {"8": 1, "9": 9, "12": 30, "20": 10},
            "openings": {"0": 10 + generation, "2": 30 - generation},
            "opening_entropy": 0.8,
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
            "weak": 0.5,
            "contested": 60,
            "weak_contested": 0.4,
            "strong": 0.25,
            "by_ply": [
                {"ply": 2, "n": 40, "weak": 0.3, "strong": 0.1},
                {"ply": 7, "n": 51, "weak": 0.1 * generation % 1, "strong": 0.1},
            ],
        },
        "ratings": {
            "anchor": "random",
            "players": [
                {"player": "perfect", "rating": 900.0, "low": 800.0, "high": 990.0, "games": 80},
                *(
                    {
                        "player": f"g{each:04d}",
                        "rating": 100.0 * each,
                        "low": 100.0 * each - 30,
                        "high": 100.0 * each + 20,
                        "games": 200,
                    }
                    for each in range(generation, -1, -1)
                ),
                {"player": "random", "rating": 0.0, "low": 0.0, "high": 0.0, "games": 80},
                {"player": "stray", "rating": None, "low": None, "high": None, "games": 2},
            ],
            "first_player": [12.0, 3.0, 20.0],
            "draw": 0.1,
        },
        "seconds": {"selfplay": 0.5, "learner": 1.0, "gate": 0.0, "evaluation": 0.25},
    }
    if played:
        before = f"g{generation - 1:04d}"
        line["evaluation"].append(match("predecessor", 25, policy=before))
    else:
        line |= {"selfplay": None, "learner": {"seconds": 0.1}}
        line["seconds"] = {"learner": 0.0, "evaluation": 0.25}
    if generation > 1:
        line["evaluation"] += [
            match("ancestor", 30, policy="g0000"),
            match("ancestor", 36, 2, distinct=10, policy="g0000"),
        ]
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
    assert "generation 1\ngeneration 2\ngeneration 3\nheld-out games" in words(right)


@pytest.mark.parametrize(
    ("last", "named"), [(1, [1]), (7, range(1, 8)), (25, [1, 5, 9, 13, 17, 21, 25])]
)
def test_of_many_generations_the_key_of_the_loss_names_some(drawn, last, named):
    figures.loss_curves([record(each) for each in range(1, last + 1)])
    said = re.findall(r"generation (\d+)\n", words(drawn[0].axes[1]))
    assert said == [str(each) for each in named]


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


def test_ratings_are_a_curve_with_a_band_and_baselines_are_lines(drawn):
    figures.rating_curve(RECORDS)
    [axes] = drawn[0].axes
    own, perfect, random = axes.lines
    assert own.get_xydata().tolist() == [[0, 0], [1, 100], [2, 200], [3, 300]]
    assert list(perfect.get_ydata()) == [900, 900] and list(random.get_ydata()) == [0, 0]
    [band] = [each.get_paths()[0].vertices.tolist() for each in axes.collections]
    assert [2, 170] in band and [2, 220] in band
    assert axes.get_ylabel() == "Elo, random = 0"
    text = words(axes)
    assert "Rating of generation 3: 300 (95%: 270 to 320)" in text and "n = 200 games" in text
    assert "perfect 900\n800 to 990, n = 80" in text and "stray" not in text


def test_ratings_of_a_run_without_a_rated_generation_are_not_drawn():
    line = record(1)
    line["ratings"]["players"] = [each for each in line["ratings"]["players"] if "g" not in each]
    for each in line["ratings"]["players"]:
        each["rating"] = None
    assert figures.rating_curve([line]) is None
    assert figures.rating_curve([record(1, ratings=None)]) is None


def cells(axes) -> dict[tuple, str]:
    """Texts of a matrix by (row, column)."""
    return {tuple(t.get_position()[::-1]): t.get_text() for t in axes.texts}


def test_the_matrix_pools_the_matches_of_a_pair_and_mirrors_them(drawn):
    figures.generation_matrix(RECORDS)
    axes = drawn[0].axes[0]
    scores = axes.images[0].get_array()
    # 1 beat 0 in 25 of 40; 2 met 0 as two ancestors: (30 + 37) of 80 points.
    assert scores[1, 0] == 25 / 40 and scores[0, 1] == 15 / 40
    assert scores[2, 0] == 67 / 80 and scores[0, 2] == 13 / 80
    assert scores[3, 2] == 25 / 40
    assert scores.mask.tolist() == [
        [True, False, False, False],
        [False, True, False, True],
        [False, False, True, False],
        [False, True, False, True],
    ]
    assert cells(axes)[1, 0] == "62\n40" and cells(axes)[2, 0] == "84\n80"
    assert (1, 3) not in cells(axes)
    assert axes.images[0].norm.vmin + axes.images[0].norm.vmax == 1  # ½ is in the middle


def test_beyond_two_players_a_match_is_not_mirrored(drawn):
    lines = [record(0), record(1)]
    for row in lines[1]["evaluation"]:
        row["by_seat"] = [0.5, 0.25, 0.25]
    figures.generation_matrix(lines)
    image = drawn[0].axes[0].images[0]
    scores = image.get_array()
    assert scores[1, 0] == 25 / 40 and scores.mask[0, 1]
    assert image.cmap(1 / 3) == pytest.approx((1, 1, 1, 1), abs=0.01)  # what equals score
    assert image.cmap(0.5)[0] < 0.9


def test_among_three_players_equals_score_a_third(drawn):
    lines = [record(0), record(1)]
    for line in lines:
        for row in line["evaluation"]:
            row["by_seat"] = [0.5, 0.25, 0.25]
            row["results_by_seat"] = [[10, 0, 10], [5, 0, 10], [5, 0, 5]]
    figures.win_rates(lines)
    figures.seat_scores(lines)
    rates, seats = drawn
    for axes in (*rates.axes, *seats.axes):
        across = [line for line in axes.lines if line.get_transform() != axes.transData]
        assert [list(line.get_ydata()) for line in across] == [[1 / 3, 1 / 3]]


def test_every_opponent_has_a_colour_of_its_own_and_the_same_in_every_figure(drawn):
    """Ten baselines, as Risk has, and the predecessor, whom generation 0 does not meet."""
    names = [f"player {each}" for each in range(9)] + ["random"]
    baselines = [match(name, 3 * each) for each, name in enumerate(names)]
    records = [
        record(0, evaluation=baselines),
        record(1, evaluation=[match("predecessor", 20), *baselines]),
    ]
    records[1]["ratings"]["players"] += [
        {"player": name, "rating": 10.0, "low": 0.0, "high": 20.0, "games": 40}
        for name in names[:-1]
    ]
    figures.game_lengths(records)
    figures.rating_curve(records)
    lengths, ratings = (figure.axes[0].lines for figure in drawn)
    against = {
        each.get_label().removeprefix("against "): each.get_color()
        for each in lengths
        if each.get_label().startswith("against ")
    }
    assert set(against) == {*names, "predecessor"}
    assert len({figures.BLUE, *against.values()}) == 12
    for name in names:
        [line] = [each for each in ratings if each.get_label().startswith(f"{name} ")]
        assert line.get_color() == against[name]


def test_beyond_eleven_opponents_lines_differ_by_dots(drawn):
    line = record(1, evaluation=[match(f"player {each}", each) for each in range(12)])
    figures.game_lengths([line])
    own, *others = [each for each in drawn[0].axes[0].lines if "longest" not in each.get_label()]
    looks = {(each.get_color(), each.get_linestyle()) for each in (own, *others)}
    assert len(looks) == 13


def test_seats_are_told_apart_against_earlier_generations_and_baselines(drawn):
    figures.seat_scores(RECORDS)
    past, base = drawn[0].axes
    assert words(past).startswith("Against earlier generations\nn = 20–60 games in each seat")
    assert words(base).startswith("Against baselines\nn = 40 games in each seat")
    # Against 0: 25 wins of 40, so 20 of 20 in the first seat and 5 of 20 in the second.
    first, second = past.lines[:2]
    assert first.get_xydata()[0].tolist() == [1, 1.0]
    assert second.get_xydata()[0].tolist() == [1, 0.25]
    # Generation 2: 25, 30 and 36 wins and 2 draws in the second seat, of 3 x 20 games.
    assert second.get_ydata()[1] == (5 + 10 + 16 + 1) / 60
    low, high = wilson(0.25 * 15, 15)  # 20 games, of which 30/40 are distinct
    band = past.collections[1].get_paths()[0].vertices[:, 1]
    assert low in band and high in band
    assert words(base).endswith("seat 0\nseat 1")
    old = record(1)
    for row in old["evaluation"]:
        del row["results_by_seat"]
    assert figures.seat_scores([old]) is None


def test_oracle_accuracy_has_curves_and_a_heat_map_by_ply(drawn):
    figures.oracle_accuracy([*RECORDS, record(4, solution=None, evaluation=[])])
    curves, by_ply, _ = drawn[0].axes
    lines = {line.get_label().split("\n")[0]: line.get_ydata() for line in curves.lines}
    assert lines["keeps the value"].tolist() == [0.5] * 4
    assert lines["keeps it where it can be lost"].tolist() == [0.4] * 4
    assert lines["keeps it by the fastest way"].tolist() == [0.25] * 4
    assert lines["in evaluation games"].tolist() == [0.75] * 4
    assert lines["in games, where it can be lost"].tolist() == [0.5] * 4
    assert "n = 60 positions" in words(curves) and "n = 320–800 decisions" in words(curves)
    image = by_ply.images[0]
    expected = [[0.3, 0.3, 0.3, 0.3], [0.0, 0.1, 0.2, 0.3]]
    np.testing.assert_allclose(image.get_array(), expected)
    assert "n = 40–51 positions" in words(by_ply)
    assert [tick.get_text() for tick in by_ply.get_yticklabels()] == ["2", "7"]


def test_oracle_accuracy_of_games_alone_has_no_heat_map(drawn):
    figures.oracle_accuracy([record(1, solution=None)])
    assert len(drawn[0].axes) == 1 and len(drawn[0].axes[0].lines) == 2


def test_openings_are_stacked_shares_with_their_entropy(drawn):
    figures.openings(SUMTO, RECORDS)
    left, right = drawn[0].axes
    tops = [[path.vertices[:, 1].max() for path in bars.get_paths()] for bars in left.collections]
    np.testing.assert_allclose(tops, [[11 / 40, 12 / 40, 13 / 40], [1, 1, 1]])
    assert words(left) == "First actions (n = 40 games)\n+3\n+1"
    assert right.lines[0].get_xydata().tolist() == [[1, 0.8], [2, 0.8], [3, 0.8]]
    assert right.lines[1].get_ydata()[0] == math.log2(10) and "all 10 alike" in words(right)


def test_rare_openings_are_one(drawn):
    line = record(1)
    line["selfplay"]["openings"] = {str(each): 1 + each for each in range(10)}
    figures.openings(SUMTO, [line])
    assert "3 others" in words(drawn[0].axes[0])
    base = [bars.get_paths()[0].vertices[:, 1].max() for bars in drawn[0].axes[0].collections]
    assert base[-2] == pytest.approx(1 - 6 / 55) and base[-1] == 1


def test_lengths_are_bands_of_games(drawn):
    figures.game_lengths(RECORDS)
    [axes] = drawn[0].axes
    wide, narrow = (set(each.get_paths()[0].vertices[:, 1]) for each in axes.collections)
    assert wide == {9, 20} and narrow == {12}  # of 50 games: 1 has 8 plies, 10 up to 9, 40 up to 12


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
    drawn = draw(records)
    if draw is figures.generation_matrix and len(records) == 1:  # it met nobody who is there
        assert drawn is None
    else:
        assert pixels(drawn).shape[0] > 300


@pytest.mark.parametrize("draw", OF_RECORDS)
def test_a_figure_without_a_subject_is_none(draw):
    nothing = record(0, evaluation=[], solution=None, ratings=None)
    assert draw([]) is None
    assert draw([nothing]) is None


def test_run_figures_are_those_that_apply():
    always = {"win_rates", "loss", "calibration", "game_lengths", "exploration", "throughput"}
    always |= {"ratings", "oracle", "generations", "seats", "openings"}
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


def test_fitted_values_are_drawn_with_every_sweep(drawn):
    lines = [record(generation) for generation in range(3)]
    assert figures.fitted_q(lines) is None  # no learner of trees
    for generation in (1, 2):
        lines[generation]["learner"] |= {
            "residual": 0.1 * generation,
            "drift": 0.2,
            "label_drift": 0.3,
            "clipped": 0.05 * generation,
        }
        lines[generation]["learner"]["curve"] |= {
            "residual": [0.5, 0.1 * generation],
            "clipped": [0.2, 0.05 * generation],
        }
    assert figures.fitted_q(lines) is not None
    left, right = drawn[0].axes
    named = {line.get_label(): line.get_ydata().tolist() for line in left.lines}
    assert named["Bellman residual"] == pytest.approx([0.1, 0.2])
    assert named["change of Q"] == [0.2, 0.2] and named["change of labels"] == [0.3, 0.3]
    sweeps = [
        line.get_ydata().tolist()
        for line in (*left.lines, *right.lines)
        if len(line.get_ydata()) == 2
    ]
    for values in ([0.5, 0.1], [0.5, 0.2], [0.2, 0.05], [0.2, 0.1]):
        assert any(values == pytest.approx(each) for each in sweeps)
