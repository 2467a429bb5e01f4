"""The study of a paper: its figures' numbers and its verdicts; as a whole: test_study_killed.py."""

import re
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from pipeline import study
from pipeline.config import to_config
from pipeline.errors import ConfigError, RunError
from pipeline.selfplay import Results
from pipeline.study import Won
from pipeline.tournament import Played


def played(labels, returns):
    returns = np.array(returns, np.float32)
    n = len(returns)
    none = np.zeros(n, np.int32)
    return Played(labels, False, Results(returns, none, none, none.astype(np.uint64)))


def test_wins_are_those_of_the_one_in_its_rotating_seat():
    # The one sits in seats 0, 1, 2, 3; it wins the games in seats 0 and 2; nobody wins the last.
    returns = [[1, 0.5, 0.5, 0.5], [1, 0.5, 0.5, 0.5], [0.5, 0.5, 1, 0.5], [0.9, 0.9, 0.9, 0.9]]
    won = study.figure2([played(("a", "b"), returns)])["a", "b"]
    assert won.games == 4 and won.share == 0.5
    assert (round(won.low, 3), round(won.high, 3)) == (0.15, 0.85)  # Wilson, 2 of 4


def test_points_are_those_of_the_copies_against_the_expert():
    returns = [[1, 0.2, 0.4, 0.6], [0.3, 0.5, 1, 0.6]]
    found = study.figure3(
        [played(("expert", "b"), returns), played(("b", "expert"), returns)], "expert", 10.0
    )
    assert list(found) == ["b"]
    # Copies have 2, 4, 6 and 3, 6, 10 points.
    assert found["b"].points == pytest.approx((2.5, (4 + 19 / 3) / 2, 8.0), abs=1e-6)
    assert found["b"].wins == 0.5


@pytest.mark.parametrize(
    ("ahead", "behind", "verdict"),
    [
        ((0.5, 0.45, 0.55), (0.1, 0.08, 0.12), "confirmed"),
        ((0.1, 0.08, 0.12), (0.5, 0.45, 0.55), "refuted"),
        ((0.5, 0.45, 0.55), (0.26, 0.24, 0.28), "not settled"),
        ((0.26, 0.24, 0.28), (0.1, 0.08, 0.12), "not settled"),
    ],
)
def test_a_claim_holds_where_both_directions_are_on_its_side(ahead, behind, verdict):
    wins = {("module", "feudal"): Won(100, *ahead), ("feudal", "module"): Won(100, *behind)}
    [line] = study.claims(wins, 3)
    assert line.startswith(f"module is better than feudal: {verdict}")


def test_two_players_are_measured_by_the_half_that_equals_win():
    # 40% against one other is less than its share of a half; against three it is more than a
    # quarter.
    wins = {
        ("module", "feudal"): Won(1000, 0.4, 0.37, 0.43),
        ("feudal", "module"): Won(1000, 0.6, 0.57, 0.63),
    }
    text = study.report(wins, {}, ["feudal", "module"], "value_greedy", 1)
    assert (
        "against one of another (column), 1,000 games each, 95% intervals; equals win 50%" in text
    )
    assert "module is better than feudal: refuted: the other way round (40.0% against one," in text
    assert "equals win 25%" in study.report(wins, {}, ["feudal", "module"], "value_greedy", 3)


STUDY = {"approaches": ["feudal"], "players": ["random"], "expert": "value_greedy", "games": 40}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"approaches": []}, "study.approaches needs at least one of feudal, module"),
        ({"approaches": ["feudal", "feudal"]}, "study.approaches must name everybody once"),
        ({"approaches": "feudal"}, "study.approaches: a list is expected, in brackets"),
        ({"players": []}, "study.players needs at least one baseline"),
        ({"players": ["random", "value_greedy"]}, "study.players and study.expert must name every"),
        ({"players": ["nobody"]}, "study.players must be one of random,"),
        ({"expert": "nobody"}, "study.expert must be one of random,"),
        ({"games": 42}, "study.games must be a multiple of the 4 seats of catan"),
        ({"games": 0}, "study.games must be in 1..10000000, got 0"),
    ],
)
def test_a_study_that_cannot_be_is_refused_in_a_sentence(small_catan, change, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refused:
        to_config({**small_catan, "study": STUDY | change})
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def small_catan():
    conf = str(Path(__file__).resolve().parents[2] / "conf")
    with initialize_config_dir(conf, version_base="1.3"):
        composed = compose("config", overrides=["experiment=catan_heuristic"])
    return OmegaConf.to_container(composed)


def test_games_under_other_settings_are_refused_before_anything_is_trained(small_catan, tmp_path):
    composed = {**small_catan, "study": STUDY, "root": str(tmp_path), "run": "paper", "seed": 2}
    config = to_config(composed | {"tracking": composed["tracking"] | {"enabled": False}})
    settings = tmp_path / "tournaments" / "paper" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"game": "catan", "opening_plies": 4}')
    with pytest.raises(RunError, match="tournament paper was begun with other settings"):
        study.play(config)
    assert [each.name for each in tmp_path.iterdir()] == ["tournaments"]
