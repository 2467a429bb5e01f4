"""`selfplay risk` as its users meet it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_runs import small_config

from games import make_game
from games.risk import boards
from games.risk.boards import Continent
from pipeline import risk_cli
from pipeline.errors import ConfigError, UserError
from pipeline.train import train

CONF = Path(__file__).resolve().parents[2] / "conf"


def said(capsys, *arguments: str) -> str:
    risk_cli.main(list(arguments))
    return capsys.readouterr().out


def test_the_boards_are_listed(capsys):
    lines = said(capsys, "boards").splitlines()
    assert [line.split()[0] for line in lines[1:]] == boards.shipped()
    assert "classic_42      42    83          6" in lines[-1]


def test_a_foreign_map_becomes_a_canonical_file(tmp_path, capsys):
    source, out = tmp_path / "map.txt", tmp_path / "mine.json"
    source.write_text("V 3\nE 2\n(1 2)\n(2 3)\nP 1\n4 1 2 3\n")
    assert said(capsys, "convert", str(source), "--out", str(out)) == ""
    assert json.loads(out.read_text())["edges"] == [[0, 1], [1, 2]]
    assert boards.load(str(out)).continents[0].bonus == 4


def test_a_board_is_drawn(capsys):
    text = said(capsys, "draw", "grid_20", "--seed", "3")
    assert text.startswith("<svg") and text.count("<rect") + text.count("<circle") == 1 + 20 + 20


def test_a_simulation_counts_every_game_once_from_both_seats(capsys):
    text = said(capsys, "simulate", "passive", "front", "random", "--games", "40", "board=ring_6")
    rows = [line.split() for line in text.splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        ["passive", "front"],
        ["passive", "random"],
        ["front", "random"],
    ]
    for row in rows:
        games, wins, draws, losses = map(int, row[2:6])
        assert games == 40 == wins + draws + losses
        assert abs(float(row[6].rstrip("%")) - 100 * (wins + draws / 2) / 40) < 0.051
    assert int(rows[0][3]) == 0  # passive never attacks, so it never wins


def test_the_searches_play_and_are_best_against_passive(capsys):
    text = said(
        capsys, "simulate", "a_star", "rta_star", "passive", "--games", "10", "board=ring_6"
    )
    scores = {tuple(line.split()[:2]): line.split() for line in text.splitlines()[2:]}
    for name in ("a_star", "rta_star"):
        assert int(scores[name, "passive"][5]) == 0 and int(scores[name, "passive"][3]) >= 8


def test_a_simulation_is_the_same_again():
    game = make_game("risk", board="ring_6")
    pair = [risk_cli.player(name, game, "runs") for name in ("random", "minimax")]
    first, again = (risk_cli.play_pair(game, pair, 20, seed=5) for _ in range(2))
    assert (first.returns == again.returns).all() and (first.turns == again.turns).all()


def test_games_of_a_pair_have_the_same_start():
    game = make_game("risk", board="generated", boards=8)
    states = game.initial_states(risk_cli.game_keys(1, "simulate", 0, np.arange(6) // 2))
    assert (states[::2] == states[1::2]).all() and states[0] != states[2]


def test_solve_tells_turns_expansions_and_performance(capsys):
    lines = said(capsys, "solve", "worked_4").splitlines()
    found = {line.split()[2]: line.split()[3:] for line in lines[2:]}
    assert found["A*"] == ["2", "2", "4", "202", "20,002"]  # f * L + T
    assert found["greedy"] == ["2", "2", "4", "202", "20,002"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "passive"], "simulate needs two players or more"),
        (["simulate", "passive", "nobody"], "'nobody' is neither a player .* nor a run"),
        (["simulate", "passive", "front", "--games", "3"], "--games must be even"),
        (["simulate", "passive", "front", "--games", "0"], r"--games must be .* in 2\.\.1000000"),
        (["simulate", "passive", "front", "--games", "2000000"], r"in 2\.\.1000000, got 2000000"),
        (["simulate", "front", "front"], "different players, got front twice"),
        (["simulate", "passive", "front", "max_turns=-5"], r"must lie in 1\.\.10000, got -5"),
        (["solve", "ring_6", "--starts", "-1"], r"--starts must be in 1\.\.1000000, got -1"),
        (["simulate", "passive", "front", "nodes=3"], r"nodes of game risk must lie in 6\.\.64"),
        (["simulate", "passive", "front", "size=3"], "game risk has no parameter 'size'"),
        (["solve"], "solve needs the name or file of one board"),
        (["convert", "nowhere.json"], "there is no board 'nowhere.json'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        risk_cli.main([*arguments, "--root", str(tmp_path)])


def test_a_start_that_is_none_of_a_turn_is_told(tmp_path):
    # Two nodes of a continent each: what X is paid goes where it must, and its turn has begun.
    path = tmp_path / "two.json"
    parts = [Continent("a", 0, (0,)), Continent("b", 9, (1,))]
    path.write_text(boards.make_board("two", [(0, 1)], parts).to_text())
    with pytest.raises(
        UserError, match=r"start \d of risk .* cannot be solved: the turn has begun"
    ):
        risk_cli.main(["solve", str(path)])


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        risk_cli.main(["convert", "ring_6", "--out", str(tmp_path / "no" / "such.json")])


def test_a_number_may_be_the_base_with_and_without_the_name_of_its_section(capsys):
    first, again = (
        said(capsys, "simulate", "passive", "front", "--games", "4", "board=ring_6", word)
        for word in ("base=3", "game.base=3")
    )
    assert first == again and "base 3" in first


@pytest.mark.parametrize("learner", ["q_network", "value_network"])
def test_what_was_learned_elsewhere_plays_only_if_it_values_states(tmp_path, learner):
    settings = yaml.safe_load((CONF / "learner" / f"{learner}.yaml").read_text())
    train(
        small_config(
            tmp_path,
            "mine",
            generations=1,
            game={"name": "risk", "board": "generated", "boards": 4, "max_turns": 20},
            learner={**settings, "hidden": [4], "epochs": 1},
            selfplay__games=4,
            evaluation__games=2,
            evaluation__baselines=["passive"],
        )
    )
    same = make_game("risk", board="generated", boards=4, max_turns=30)
    risk_cli.player("mine", same, str(tmp_path))
    for other in (make_game("risk", board="ring_6"), make_game("risk", board="grid_20")):
        if learner == "value_network":
            pair = [risk_cli.player(name, other, str(tmp_path)) for name in ("mine", "passive")]
            assert risk_cli.play_pair(other, pair, 4, seed=1).turns.min() > 0
        else:
            with pytest.raises(ConfigError, match=r"mine values actions by number, .* name a run"):
                risk_cli.player("mine", other, str(tmp_path))


def test_players_of_runs_are_read_with_their_own_game(tmp_path):
    with pytest.raises(ConfigError, match="a policy of a run is RUN or RUN/GENERATION"):
        risk_cli.player("mine/last", make_game("risk"), str(tmp_path))


def test_the_command_explains_itself():
    done = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli import main; main()", "risk", "--help"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and re.search(r"simulate passive front", done.stdout)
